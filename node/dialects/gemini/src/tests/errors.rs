//! Tests of errors.

use serde_json::{Value, json};

use crate::{error_status, read_error, write_error};
use assay_node_dialects::form::{Extra, ModelError, ModelErrorKind};

#[test]
fn errors_are_known_by_their_status_and_come_back() {
    for (status, name, kind) in [
        (400, "INVALID_ARGUMENT", ModelErrorKind::InvalidRequest),
        (400, "FAILED_PRECONDITION", ModelErrorKind::InvalidRequest),
        (401, "UNAUTHENTICATED", ModelErrorKind::Authentication),
        (403, "PERMISSION_DENIED", ModelErrorKind::Permission),
        (404, "NOT_FOUND", ModelErrorKind::NotFound),
        (429, "RESOURCE_EXHAUSTED", ModelErrorKind::RateLimit),
        (500, "INTERNAL", ModelErrorKind::Server),
        (503, "UNAVAILABLE", ModelErrorKind::Overloaded),
        (504, "DEADLINE_EXCEEDED", ModelErrorKind::Timeout),
    ] {
        let body =
            json!({ "error": { "code": status, "message": "no", "status": name, "details": [{ "reason": "A" }] } });
        let error = read_error(status, &body);
        assert_eq!((error.kind, error.code.as_deref(), error.message.as_str()), (kind, Some(name), "no"));
        assert_eq!(error_status(&error), status);
        assert_eq!(write_error(status, &error), body);
        assert_eq!(read_error(status, &json!([body])), error, "a stream that is no SSE is a list");
    }
}

#[test]
fn a_wrong_key_is_told_from_other_invalid_arguments() {
    let details = json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID" }]);
    let body = json!({ "error": { "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": details } });
    assert_eq!(read_error(400, &body).kind, ModelErrorKind::Authentication);
}

#[test]
fn bodies_of_others_become_the_message() {
    for (body, message) in [
        (json!("bad gateway"), "bad gateway"),
        (Value::Null, "the model server answered with status 502"),
        (json!({ "a": 1 }), r#"{"a":1}"#),
        (json!({ "error": {} }), "the model server answered with status 502"),
    ] {
        let error = read_error(502, &body);
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Server, message));
    }
    let long = "ä".repeat(5_000);
    assert_eq!(read_error(502, &json!(long)).message.len(), 2_048);
}

#[test]
fn errors_of_other_dialects_are_named_by_their_kind() {
    for (kind, status, name) in [
        (ModelErrorKind::InvalidRequest, 400, "INVALID_ARGUMENT"),
        (ModelErrorKind::TooLarge, 413, "INVALID_ARGUMENT"),
        (ModelErrorKind::Overloaded, 503, "UNAVAILABLE"),
        (ModelErrorKind::RateLimit, 429, "RESOURCE_EXHAUSTED"),
    ] {
        let code = Some("context_length_exceeded".to_owned());
        let error = ModelError { kind, message: "no".to_owned(), code, param: None, extra: Extra::default() };
        assert_eq!(error_status(&error), status);
        assert_eq!(
            write_error(status, &error),
            json!({ "error": { "code": status, "message": "no", "status": name } })
        );
    }
}

//! Facts about errors.

use serde_json::json;

use super::super::{error_status, failure, read_error, write_error};
use assay_node_dialects::form::ModelErrorKind;

#[test]
fn an_error_is_read_and_written_without_loss() {
    let table = [
        (400, json!({"error": {"message": "no", "type": "invalid_request_error", "param": "input", "code": "x"}})),
        (
            401,
            json!({"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": "invalid_api_key"}}),
        ),
        (404, json!({"error": {"message": "no", "type": "not_found_error", "param": null, "code": "model_not_found"}})),
        (
            429,
            json!({"error": {"message": "no", "type": "tokens", "param": null, "code": "rate_limit_exceeded", "x": 1}}),
        ),
        (500, json!({"error": {"message": "no", "type": "server_error", "param": null, "code": null}})),
        (503, json!({"error": {"message": "no", "type": "overloaded_error", "param": null, "code": null}})),
    ];
    for (status, body) in table {
        let error = read_error(status, &body);
        assert_eq!(write_error(status, &error), body);
        assert_eq!(error_status(&error), status);
    }
}

#[test]
fn a_body_of_another_shape_is_quoted() {
    assert_eq!(read_error(502, &json!("<html>")).message, "<html>");
    assert_eq!(read_error(502, &json!({"detail": "late"})).message, "late");
    assert_eq!(read_error(400, &json!({"error": "bad"})).message, "bad");
    assert_eq!(read_error(500, &json!(null)).message, "the model server answered with status 500");
    assert!(read_error(500, &json!(["ü".repeat(9_000)])).message.len() <= 500);
}

#[test]
fn a_failed_response_has_an_error() {
    let body = json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}, "output": []});
    let error = failure(&body).expect("failed");
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::RateLimit, "slow"));
    assert_eq!(failure(&json!({"status": "completed", "error": null})), None);
    assert_eq!(failure(&json!({"status": "failed"})).expect("failed").kind, ModelErrorKind::Server);
}

//! Bodies of errors.

use serde_json::{Map, Value, json};

use super::fields::put_back;
use assay_node_dialects::Dialect;
use assay_node_dialects::form::{Extra, ModelError, ModelErrorKind};

/// Upper bound of bytes of a body that is no JSON object and becomes the message.
const MESSAGE_BYTES_MAX: usize = 2_048;

/// Reads the body of an error. Other bodies than Google's become the message.
pub fn read_error(status: u16, body: &Value) -> ModelError {
    // a stream that is not asked for as SSE is a list
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let Some(Value::Object(error)) = body.get("error") else {
        return ModelError {
            kind: ModelErrorKind::of_status(status),
            message: plain_message(status, body),
            code: None,
            param: None,
            extra: Extra::default(),
        };
    };
    let mut fields = error.clone();
    fields.shift_remove("code");
    let take = |fields: &mut Map<String, Value>, name: &str| match fields.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        Some(other) => {
            fields.insert(name.to_owned(), other);
            None
        }
        None => None,
    };
    let message = take(&mut fields, "message").unwrap_or_else(|| plain_message(status, &Value::Null));
    let code = take(&mut fields, "status");
    let kind = kind_of(status, code.as_deref(), &fields);
    ModelError { kind, message, code, param: None, extra: Extra::of(Dialect::Gemini, fields) }
}

fn plain_message(status: u16, body: &Value) -> String {
    let text = match body {
        Value::String(text) => text.clone(),
        Value::Object(object) if !object.is_empty() => body.to_string(),
        _ => String::new(),
    };
    let mut end = text.len().min(MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text[..end].trim() {
        "" => format!("the model server answered with status {status}"),
        text => text.to_owned(),
    }
}

fn kind_of(status: u16, name: Option<&str>, fields: &Map<String, Value>) -> ModelErrorKind {
    // a wrong key is an invalid argument there
    let reasons = fields.get("details").and_then(Value::as_array).into_iter().flatten();
    let mut reasons = reasons.filter_map(|detail| detail.get("reason")?.as_str());
    if reasons.any(|reason| matches!(reason, "API_KEY_INVALID" | "API_KEY_EXPIRED" | "API_KEY_SERVICE_BLOCKED")) {
        return ModelErrorKind::Authentication;
    }
    match name {
        Some("INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE") if status != 413 => {
            ModelErrorKind::InvalidRequest
        }
        Some("UNAUTHENTICATED") => ModelErrorKind::Authentication,
        Some("PERMISSION_DENIED") => ModelErrorKind::Permission,
        Some("NOT_FOUND") => ModelErrorKind::NotFound,
        Some("RESOURCE_EXHAUSTED") => ModelErrorKind::RateLimit,
        Some("UNAVAILABLE") => ModelErrorKind::Overloaded,
        Some("DEADLINE_EXCEEDED") => ModelErrorKind::Timeout,
        Some("INTERNAL" | "UNKNOWN" | "DATA_LOSS") => ModelErrorKind::Server,
        _ => ModelErrorKind::of_status(status),
    }
}

/// Writes the body of an error.
pub fn write_error(status: u16, error: &ModelError) -> Value {
    let own = error.code.as_deref().filter(|code| is_status(code));
    let name = own.unwrap_or_else(|| status_name(error.kind));
    let mut fields = Map::new();
    fields.insert("code".to_owned(), json!(status));
    fields.insert("message".to_owned(), json!(error.message));
    fields.insert("status".to_owned(), json!(name));
    put_back(&mut fields, &error.extra);
    json!({ "error": fields })
}

/// Returns the HTTP status of a response with this error.
pub fn error_status(error: &ModelError) -> u16 {
    error.kind.status()
}

/// Whether a code is one of `google.rpc.Code`.
fn is_status(code: &str) -> bool {
    matches!(
        code,
        "CANCELLED"
            | "UNKNOWN"
            | "INVALID_ARGUMENT"
            | "DEADLINE_EXCEEDED"
            | "NOT_FOUND"
            | "ALREADY_EXISTS"
            | "PERMISSION_DENIED"
            | "UNAUTHENTICATED"
            | "RESOURCE_EXHAUSTED"
            | "FAILED_PRECONDITION"
            | "ABORTED"
            | "OUT_OF_RANGE"
            | "UNIMPLEMENTED"
            | "INTERNAL"
            | "UNAVAILABLE"
            | "DATA_LOSS"
    )
}

fn status_name(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::InvalidRequest | ModelErrorKind::TooLarge => "INVALID_ARGUMENT",
        ModelErrorKind::Authentication => "UNAUTHENTICATED",
        ModelErrorKind::Permission => "PERMISSION_DENIED",
        ModelErrorKind::NotFound => "NOT_FOUND",
        ModelErrorKind::RateLimit => "RESOURCE_EXHAUSTED",
        ModelErrorKind::Overloaded => "UNAVAILABLE",
        ModelErrorKind::Timeout => "DEADLINE_EXCEEDED",
        ModelErrorKind::Server => "INTERNAL",
    }
}

//! Errors: `{"type": "error", "error": {"type", "message"}}`.

use serde_json::{Map, Value};

use super::fields::{extra, keep_inner, put_back, take, typed};
use assay_node_dialects::form::{ModelError, ModelErrorKind};

/// Beginning of the message about a request that is longer than the model's context.
const TOO_LONG: &str = "prompt is too long";
const TOO_LONG_CODE: &str = "context_length_exceeded";

/// Reads an error's body. One of another shape is the message, or has it in `message` as that of a cloud provider.
pub fn read_error(status: u16, body: &Value) -> ModelError {
    let mut fields = body.as_object().cloned().unwrap_or_default();
    let Some(Value::Object(mut inner)) = take(&mut fields, "error") else {
        let message = fields.get("message").unwrap_or(body);
        let message = message.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let kind = ModelErrorKind::of_status(status);
        return ModelError { kind, message, code: None, param: None, extra: extra(Map::new()) };
    };
    fields.shift_remove("type");
    let name = inner.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known = kind_of(&name);
    let kind = known.unwrap_or_else(|| ModelErrorKind::of_status(status));
    let message = match inner.shift_remove("message") {
        Some(Value::String(message)) => message,
        other => other.unwrap_or_default().to_string(),
    };
    let code = if message.starts_with(TOO_LONG) {
        Some(TOO_LONG_CODE.to_owned())
    } else {
        (known.is_none() && !name.is_empty()).then(|| name.clone())
    };
    if type_of(kind) == name {
        inner.shift_remove("type");
    }
    keep_inner(&mut fields, "error", inner);
    ModelError { kind, message, code, param: None, extra: extra(fields) }
}

/// Writes an error's body. The status is not part of it.
pub fn write_error(_status: u16, error: &ModelError) -> Value {
    let mut inner = typed(type_of(error.kind));
    inner.insert("message".into(), error.message.clone().into());
    let mut body = typed("error");
    body.insert("error".into(), Value::Object(inner));
    put_back(&mut body, &error.extra);
    Value::Object(body)
}

/// Returns the HTTP status of a response with this error. Anthropic has one of its own for an overload.
pub fn error_status(error: &ModelError) -> u16 {
    match error.kind {
        ModelErrorKind::Overloaded => 529,
        kind => kind.status(),
    }
}

fn type_of(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::InvalidRequest => "invalid_request_error",
        ModelErrorKind::Authentication => "authentication_error",
        ModelErrorKind::Permission => "permission_error",
        ModelErrorKind::NotFound => "not_found_error",
        ModelErrorKind::TooLarge => "request_too_large",
        ModelErrorKind::RateLimit => "rate_limit_error",
        ModelErrorKind::Timeout => "timeout_error",
        ModelErrorKind::Server => "api_error",
        ModelErrorKind::Overloaded => "overloaded_error",
    }
}

fn kind_of(name: &str) -> Option<ModelErrorKind> {
    Some(match name {
        "invalid_request_error" => ModelErrorKind::InvalidRequest,
        "authentication_error" => ModelErrorKind::Authentication,
        "permission_error" => ModelErrorKind::Permission,
        "not_found_error" => ModelErrorKind::NotFound,
        "request_too_large" => ModelErrorKind::TooLarge,
        "rate_limit_error" => ModelErrorKind::RateLimit,
        "timeout_error" => ModelErrorKind::Timeout,
        "api_error" => ModelErrorKind::Server,
        "overloaded_error" => ModelErrorKind::Overloaded,
        _ => return None,
    })
}

//! Errors of chat completions, and those of servers that imitate them.

use serde_json::{Map, Value};

use super::fields::{ChatFields, count_of, put_extra};
use assay_node_dialects::form::{ModelError, ModelErrorKind};

/// Upper bound of the characters of a message that is made of a body without one.
const BODY_IN_MESSAGE_CHARS_MAX: usize = 1_000;

/// Reads the body of an error.
///
/// Known forms: `{"error": {...}}`, `{"error": "text"}`, the members of the error without `error` (vLLM, Mistral),
/// `{"detail": ...}` (FastAPI), and a list of one of them (Google).
pub fn read_error(status: u16, body: &Value) -> ModelError {
    let mut error = read(ModelErrorKind::of_status(status), body);
    if error.message.is_empty() {
        error.message = format!("the model server answered with status {status}");
    }
    error
}

/// Reads an error within a stream, whose kind its type or code says.
pub(crate) fn read_stream_error(body: &Value) -> ModelError {
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
    let code = error.get("code");
    let status = code.and_then(count_of).and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let words = [error.get("type"), code].map(|word| word.and_then(Value::as_str).unwrap_or_default());
    let kind = status.map(ModelErrorKind::of_status);
    let kind = kind.or_else(|| words.iter().find_map(|word| kind_of(word))).unwrap_or(ModelErrorKind::Server);
    let mut error = read(kind, body);
    if error.message.is_empty() {
        error.message = "the model server ended the stream with an error".to_owned();
    }
    error
}

fn read(kind: ModelErrorKind, body: &Value) -> ModelError {
    let body = body.as_array().and_then(|bodies| bodies.first()).unwrap_or(body);
    let value = match body {
        Value::Object(map) => match map.get("error") {
            Some(error @ (Value::Object(_) | Value::String(_))) => error,
            _ => body,
        },
        _ => body,
    };
    let Ok(mut fields) = ChatFields::of("error", value.clone()) else {
        let message = value.as_str().map_or_else(|| shortened(value), str::to_owned);
        return ModelError { kind, message, code: None, param: None, extra: Default::default() };
    };
    let message = fields.take_text("message").or_else(|| fields.take_text("detail"));
    let message = message.unwrap_or_else(|| if fields.is_empty() { String::new() } else { shortened(value) });
    let code = match fields.take("code") {
        Some(Value::String(code)) => Some(code),
        Some(code) => {
            // a number is written back as a number
            let text = code.is_number().then(|| code.to_string());
            fields.put("code", code);
            text
        }
        None => None,
    };
    let param = fields.take_text("param");
    if fields.get("param").is_some_and(Value::is_null) {
        fields.take("param");
    }
    if fields.get("type").is_none_or(|of| of.is_null() || of == type_of(kind)) {
        fields.take("type");
    }
    ModelError { kind, message, code, param, extra: fields.into_extra() }
}

fn shortened(value: &Value) -> String {
    if value.is_null() { String::new() } else { value.to_string().chars().take(BODY_IN_MESSAGE_CHARS_MAX).collect() }
}

fn kind_of(word: &str) -> Option<ModelErrorKind> {
    Some(match word {
        "invalid_request_error" | "BadRequestError" | "context_length_exceeded" => ModelErrorKind::InvalidRequest,
        "authentication_error" | "invalid_api_key" => ModelErrorKind::Authentication,
        "permission_error" => ModelErrorKind::Permission,
        "not_found_error" | "model_not_found" | "NotFoundError" => ModelErrorKind::NotFound,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "tokens" | "requests" => {
            ModelErrorKind::RateLimit
        }
        "overloaded_error" | "engine_overloaded_error" | "service_unavailable_error" => ModelErrorKind::Overloaded,
        "timeout_error" | "timeout" => ModelErrorKind::Timeout,
        "server_error" | "internal_error" | "InternalServerError" => ModelErrorKind::Server,
        _ => return None,
    })
}

fn type_of(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::InvalidRequest | ModelErrorKind::TooLarge | ModelErrorKind::NotFound => "invalid_request_error",
        ModelErrorKind::Authentication => "authentication_error",
        ModelErrorKind::Permission => "permission_error",
        ModelErrorKind::RateLimit => "rate_limit_error",
        ModelErrorKind::Overloaded => "overloaded_error",
        ModelErrorKind::Timeout => "timeout_error",
        ModelErrorKind::Server => "server_error",
    }
}

/// Writes an error. The status is in the head of the answer only.
pub fn write_error(_status: u16, error: &ModelError) -> Value {
    let mut map = Map::new();
    map.insert("message".to_owned(), Value::String(error.message.clone()));
    let kept = error.extra.for_dialect(assay_node_dialects::Dialect::Chat);
    let kept = |name: &str| kept.and_then(|kept| kept.get(name)).cloned();
    map.insert("type".to_owned(), kept("type").unwrap_or_else(|| Value::from(type_of(error.kind))));
    map.insert("param".to_owned(), error.param.clone().map_or(Value::Null, Value::String));
    let code = kept("code").or_else(|| error.code.clone().map(Value::String));
    map.insert("code".to_owned(), code.unwrap_or(Value::Null));
    put_extra(&mut map, &error.extra);
    serde_json::json!({ "error": map })
}

/// Returns the HTTP status of a response with this error.
pub fn error_status(error: &ModelError) -> u16 {
    error.kind.status()
}

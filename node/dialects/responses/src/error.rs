//! Errors of the Responses API: `{"error": {"message", "type", "param", "code"}}`.

use serde_json::{Value, json};

use super::fields::{Fields, put, put_missing, rest, take};
use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ModelError, ModelErrorKind};

/// Bytes of a body of another shape that are quoted in the message.
const QUOTED_BYTES_MAX: usize = 500;

/// Reads the body of a response with an error status. A body of another shape is quoted.
pub fn read_error(status: u16, body: &Value) -> ModelError {
    let kind = ModelErrorKind::of_status(status);
    match body.get("error") {
        Some(Value::Object(error)) => of_fields(error.clone(), Some(kind)),
        Some(Value::String(message)) => plain(kind, message.clone()),
        _ => match ["message", "detail"].iter().find_map(|name| body.get(name).and_then(Value::as_str)) {
            Some(message) => plain(kind, message.to_owned()),
            None => plain(kind, quoted(status, body)),
        },
    }
}

fn plain(kind: ModelErrorKind, message: String) -> ModelError {
    ModelError { kind, message, code: None, param: None, extra: Default::default() }
}

fn quoted(status: u16, body: &Value) -> String {
    let mut text = match body {
        Value::String(text) => text.clone(),
        Value::Null => return format!("the model server answered with status {status}"),
        body => body.to_string(),
    };
    let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
    text.truncate(end);
    text
}

/// Error of its fields. Without a status the code and the type tell the kind.
pub(super) fn of_fields(mut fields: Fields, kind: Option<ModelErrorKind>) -> ModelError {
    let text = |value: Option<Value>| match value? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let code = text(take(&mut fields, "code"));
    let named = fields.get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or_else(|| kind_of(code.as_deref().or(named).unwrap_or_default(), named));
    ModelError {
        kind,
        message: text(take(&mut fields, "message")).unwrap_or_else(|| "the model server failed".to_owned()),
        code,
        param: text(take(&mut fields, "param")),
        extra: rest(fields),
    }
}

fn kind_of(code: &str, named: Option<&str>) -> ModelErrorKind {
    match code {
        "rate_limit_exceeded" | "insufficient_quota" | "rate_limit_error" => ModelErrorKind::RateLimit,
        "server_is_overloaded" | "overloaded_error" | "slow_down" => ModelErrorKind::Overloaded,
        "invalid_api_key" | "authentication_error" => ModelErrorKind::Authentication,
        "permission_error" => ModelErrorKind::Permission,
        "model_not_found" | "not_found_error" | "image_file_not_found" => ModelErrorKind::NotFound,
        "vector_store_timeout" | "timeout_error" => ModelErrorKind::Timeout,
        "context_length_exceeded" | "invalid_prompt" | "bio_policy" | "invalid_request_error" => {
            ModelErrorKind::InvalidRequest
        }
        code if code.contains("image") => ModelErrorKind::InvalidRequest,
        _ if named == Some("invalid_request_error") => ModelErrorKind::InvalidRequest,
        _ => ModelErrorKind::Server,
    }
}

/// Writes the body of an error. The status has no place in it.
pub fn write_error(_status: u16, error: &ModelError) -> Value {
    let mut fields = Fields::new();
    put(&mut fields, "message", error.message.as_str());
    // chat completions have the same shape
    let kept = [Dialect::Responses, Dialect::Chat].into_iter().find_map(|dialect| error.extra.for_dialect(dialect));
    let kept = kept.cloned().unwrap_or_default();
    put(&mut fields, "type", kept.get("type").cloned().unwrap_or_else(|| type_of(error.kind).into()));
    put(&mut fields, "param", error.param.clone());
    put(&mut fields, "code", error.code.clone());
    for (name, value) in kept {
        put_missing(&mut fields, &name, || value);
    }
    json!({"error": fields})
}

fn type_of(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::InvalidRequest | ModelErrorKind::TooLarge => "invalid_request_error",
        ModelErrorKind::Authentication => "authentication_error",
        ModelErrorKind::Permission => "permission_error",
        ModelErrorKind::NotFound => "not_found_error",
        ModelErrorKind::RateLimit => "rate_limit_error",
        ModelErrorKind::Overloaded => "overloaded_error",
        ModelErrorKind::Timeout => "timeout_error",
        ModelErrorKind::Server => "server_error",
    }
}

/// Code of an error within a response, where one is required.
pub(super) fn code_of(error: &ModelError) -> String {
    let code = || match error.kind {
        ModelErrorKind::RateLimit => "rate_limit_exceeded",
        ModelErrorKind::InvalidRequest | ModelErrorKind::TooLarge => "invalid_prompt",
        _ => "server_error",
    };
    error.code.clone().unwrap_or_else(|| code().to_owned())
}

/// Returns the HTTP status of a response with this error.
pub fn error_status(error: &ModelError) -> u16 {
    error.kind.status()
}

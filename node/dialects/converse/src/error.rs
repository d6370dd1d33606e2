//! Errors: `{"message": ...}`, with the name of the error in `__type` if it came within a stream.

use serde_json::Value;

use assay_node_dialects::form::{Extra, ModelError, ModelErrorKind};

/// Status of an error of the model itself, which is no fault of the client.
const MODEL_ERROR_STATUS: u16 = 424;
/// Status of an error in a stream whose name is not known.
pub(super) const UNKNOWN_ERROR_STATUS: u16 = 500;
const TOO_LONG_CODE: &str = "context_length_exceeded";
/// Beginnings of messages about a prompt that is longer than the model's context.
const TOO_LONG: [&str; 3] =
    ["Input is too long", "prompt is too long", "The model returned the following errors: prompt is too long"];

/// Reads an error's body. The name of the error counts more than the status, which a stream does not have.
pub fn read_error(status: u16, body: &Value) -> ModelError {
    // some services write the member in upper case
    let message = ["message", "Message"].into_iter().find_map(|name| body.get(name));
    let message = match message.unwrap_or(body) {
        Value::String(message) => message.clone(),
        other => other.to_string(),
    };
    let name = body.get("__type").and_then(Value::as_str).map(bare_name);
    let kind = name.as_deref().and_then(kind_of).unwrap_or_else(|| match status {
        MODEL_ERROR_STATUS => ModelErrorKind::Server,
        status => ModelErrorKind::of_status(status),
    });
    let is_too_long = TOO_LONG.iter().any(|begin| message.starts_with(begin));
    let code = if is_too_long { Some(TOO_LONG_CODE.to_owned()) } else { name };
    ModelError { kind, message, code, param: None, extra: Extra::default() }
}

/// Returns the name without its namespace, which is before `#`, and an address, which is after `:`.
fn bare_name(name: &str) -> String {
    let name = name.rsplit('#').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default().to_owned()
}

/// Kind of a named error. Streams begin names in lower case.
fn kind_of(name: &str) -> Option<ModelErrorKind> {
    let name = name.to_ascii_lowercase();
    Some(match name.strip_suffix("exception").unwrap_or(&name) {
        "validation" => ModelErrorKind::InvalidRequest,
        "accessdenied" | "expiredtoken" => ModelErrorKind::Permission,
        "unrecognizedclient" | "invalidsignature" | "incompletesignature" | "missingauthenticationtoken" => {
            ModelErrorKind::Authentication
        }
        "resourcenotfound" => ModelErrorKind::NotFound,
        "throttling" | "servicequotaexceeded" | "toomanyrequests" => ModelErrorKind::RateLimit,
        "modelnotready" | "serviceunavailable" => ModelErrorKind::Overloaded,
        "modeltimeout" => ModelErrorKind::Timeout,
        "internalserver" | "internalfailure" | "modelstreamerror" | "modelerror" => ModelErrorKind::Server,
        _ => return None,
    })
}

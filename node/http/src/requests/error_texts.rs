//! Parts of error messages about bodies: the JSON type of a value, and excerpts of the caller's text.

use serde_json::Value;

/// Returns the JSON type of a value with its article, such as "an array".
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Shortens a caller's text for an error message.
pub fn shortened(text: &str) -> String {
    const SHOWN_CHARS: usize = 64;
    text.chars().take(SHOWN_CHARS).collect()
}

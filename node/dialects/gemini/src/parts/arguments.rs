//! Arguments of calls and responses of functions, which are objects here and texts in the form.

use serde_json::{Map, Value, json};

/// Returns the object that the JSON text of a call's arguments is. No text is the empty object.
pub(crate) fn arguments_object(arguments: &str) -> Option<Map<String, Value>> {
    if arguments.trim().is_empty() {
        return Some(Map::new());
    }
    object_of(arguments)
}

/// Reads the `response` of a function as a text, and whether the function failed. [`result_response`] is the inverse.
pub(crate) fn result_content(response: &Map<String, Value>) -> (String, bool) {
    let is_error = response.len() == 1 && response.contains_key("error");
    let name = if is_error { "error" } else { "output" };
    if response.len() == 1
        && let Some(Value::String(text)) = response.get(name)
        && result_response(text, is_error) == *response
    {
        return (text.clone(), is_error);
    }
    (Value::Object(response.clone()).to_string(), is_error)
}

/// Writes the `response` of a function. The text of an object is that object; others are its output or error.
pub(crate) fn result_response(text: &str, is_error: bool) -> Map<String, Value> {
    let name = if is_error { "error" } else { "output" };
    let object = object_of(text).filter(|object| !is_error || object.contains_key("error"));
    object.unwrap_or_else(|| Map::from_iter([(name.to_owned(), json!(text))]))
}

fn object_of(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

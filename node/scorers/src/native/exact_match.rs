//! ExactMatch: equality of two values as texts.

use serde_json::Value;

use crate::error::ScorerError;
use crate::texts::{AutoevalsPackage, MemberOrder, json_text, plain_text};

/// Returns 1 for equal texts, otherwise 0.
pub(super) fn equality(output: &Value, expected: &Value, package: AutoevalsPackage) -> Result<f64, ScorerError> {
    let as_json = is_structured(output, package) || is_structured(expected, package);
    let left = comparable(output, "output", as_json, package)?;
    let right = comparable(expected, "expected", as_json, package)?;
    Ok(f64::from(left == right))
}

/// Returns whether a value makes both be compared as JSON. Only TypeScript counts null.
fn is_structured(value: &Value, package: AutoevalsPackage) -> bool {
    match value {
        Value::Object(_) | Value::Array(_) => true,
        Value::Null => package == AutoevalsPackage::TypeScript,
        _ => false,
    }
}

fn comparable(value: &Value, path: &str, as_json: bool, package: AutoevalsPackage) -> Result<String, ScorerError> {
    if is_structured(value, package) {
        return Ok(json_text(value, MemberOrder::AsGiven, package));
    }
    match (value, as_json) {
        (Value::String(text), true) => match serde_json::from_str::<Value>(text) {
            Ok(parsed) => Ok(json_text(&parsed, MemberOrder::AsGiven, package)),
            Err(_) => Ok(text.clone()),
        },
        // Python raises a TypeError, as it parses whatever is beside an object
        (_, true) if package == AutoevalsPackage::Python => {
            Err(ScorerError::invalid("ExactMatch", path, value, "a string, an object or an array beside one of these"))
        }
        _ => Ok(plain_text(value, package)),
    }
}

//! Input of a code function, and the schema of the function's parameters.

use assay_node_invocations::{InvokeError, InvokedFunction};
use assay_node_scorers::schema_complaint;
use serde_json::Value;

/// Upper bound of the nested objects into which defaults are filled.
const NESTED_DEFAULTS_MAX: usize = 32;

/// Returns an input that fits the schema of the function's parameters (F-16).
pub fn checked_input(function: &InvokedFunction, mut input: Value) -> Result<Value, InvokeError> {
    let schema = &function.function_schema["parameters"];
    if !schema.is_object() || function.is_scorer() || function.is_classifier() {
        return Ok(input);
    }
    fill_defaults(&mut input, schema, NESTED_DEFAULTS_MAX);
    schema_complaint(&input, schema)
        .map_err(|why| InvokeError::invalid(format!("`input` does not fit the parameters of the function: {why}")))?;
    Ok(input)
}

/// Fills the defaults of required members into an object that lacks them.
///
/// Zod 4 describes what a schema returns: members with a default are required there, though no caller has to give them.
fn fill_defaults(value: &mut Value, schema: &Value, depth: usize) {
    let (Some(object), Some(properties)) = (value.as_object_mut(), schema["properties"].as_object()) else { return };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if let Some(default) = properties.get(name).and_then(|property| property.get("default"))
            && !object.contains_key(name)
        {
            object.insert(name.to_owned(), default.clone());
        }
    }
    if depth > 0 {
        for (name, property) in properties {
            if let Some(member) = object.get_mut(name) {
                fill_defaults(member, property, depth - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(mut value: Value) -> Value {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": {"type": "number", "default": 3},
                "word": {"type": "string"},
                "note": {"type": "string", "default": "none"},
                "inner": {"type": "object", "properties": {"deep": {"default": [1]}}, "required": ["deep"]},
            },
            "required": ["count", "word"],
        });
        fill_defaults(&mut value, &schema, NESTED_DEFAULTS_MAX);
        value
    }

    #[test]
    fn only_required_members_that_are_absent_get_their_default() {
        assert_eq!(filled(json!({})), json!({"count": 3}));
        assert_eq!(filled(json!({"count": null, "inner": {}})), json!({"count": null, "inner": {"deep": [1]}}));
        assert_eq!(filled(json!("text")), json!("text"));
    }
}

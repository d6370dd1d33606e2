//! Variables of templates, from the arguments of an invocation; and overrides of a prompt.

use serde_json::{Map, Value};

use crate::error::PromptError;

/// Levels of objects that overrides are merged into.
pub const OVERRIDE_DEPTH_MAX: usize = 64;

/// Arguments of an invocation that templates see. Null means absent, but for the input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptArguments {
    pub input: Value,
    pub expected: Option<Value>,
    pub metadata: Option<Value>,
    pub tags: Option<Value>,
    /// Parameters of an evaluation (F-59).
    pub parameters: Option<Value>,
}

impl PromptArguments {
    /// Returns the variables as an object. Members of an input object win over the arguments (F-25).
    pub fn variables(&self) -> Value {
        let mut variables = Map::new();
        variables.insert("input".to_owned(), self.input.clone());
        let given = [
            ("expected", &self.expected),
            ("metadata", &self.metadata),
            ("tags", &self.tags),
            ("parameters", &self.parameters),
        ];
        for (name, value) in given {
            if let Some(value) = value.as_ref().filter(|value| !value.is_null()) {
                variables.insert(name.to_owned(), value.clone());
            }
        }
        if let Value::Object(members) = &self.input {
            variables.extend(members.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Value::Object(variables)
    }
}

/// Merges the overrides of an invocation into the `prompt_data` of a prompt. Objects are merged, other values replaced.
/// A `model` at the top goes to the options (F-10).
pub fn merge_overrides(prompt_data: &mut Value, overrides: &Value) -> Result<(), PromptError> {
    let members = match overrides {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other => return Err(PromptError::wrong_type("overrides", "an object", other)),
    };
    let mut members = members.clone();
    if let Some(model) = members.shift_remove("model") {
        let options = serde_json::json!({"options": {"model": model}});
        merge(prompt_data, &options, 0)?;
    }
    merge(prompt_data, &Value::Object(members), 0)
}

fn merge(into: &mut Value, from: &Value, depth: usize) -> Result<(), PromptError> {
    if depth > OVERRIDE_DEPTH_MAX {
        return Err(PromptError::too_many("overrides", "levels", OVERRIDE_DEPTH_MAX));
    }
    let Value::Object(members) = from else {
        *into = from.clone();
        return Ok(());
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    if let Value::Object(target) = into {
        for (name, value) in members {
            merge(target.entry(name).or_insert(Value::Null), value, depth + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_members_of_an_input_object_win() {
        let arguments = |input: Value| PromptArguments {
            input,
            expected: Some(json!("e")),
            metadata: Some(Value::Null),
            tags: Some(json!(["t"])),
            parameters: None,
        };
        let cases = [
            (json!(5), json!({"input": 5, "expected": "e", "tags": ["t"]})),
            (json!([1]), json!({"input": [1], "expected": "e", "tags": ["t"]})),
            (
                json!({"question": "q"}),
                json!({"input": {"question": "q"}, "expected": "e", "tags": ["t"], "question": "q"}),
            ),
            // arguments of a scorer: the inner input counts
            (
                json!({"input": {"q": 1}, "output": "o", "expected": null, "metadata": {}}),
                json!({"input": {"q": 1}, "expected": null, "tags": ["t"], "output": "o", "metadata": {}}),
            ),
        ];
        for (input, expected) in cases {
            assert_eq!(arguments(input).variables(), expected);
        }
    }

    #[test]
    fn overrides_merge_objects_and_replace_the_rest() {
        let mut data = json!({"prompt": {"messages": [1]}, "options": {"model": "a", "params": {"x": 1, "y": 2}}});
        let overrides = json!({"model": "b", "options": {"params": {"x": [3], "z": null}}, "prompt": {"messages": []}});
        merge_overrides(&mut data, &overrides).expect("an object");
        let expected = json!({
            "prompt": {"messages": []}, "options": {"model": "b", "params": {"x": [3], "y": 2, "z": null}},
        });
        assert_eq!(data, expected);
        assert_eq!(merge_overrides(&mut data, &Value::Null), Ok(()));
        let why = merge_overrides(&mut data, &json!(1)).expect_err("a number");
        assert_eq!(why.to_string(), "overrides: expected an object, found a number");
        let mut options = json!({"options": null});
        merge_overrides(&mut options, &json!({"model": "m"})).expect("an object");
        assert_eq!(options, json!({"options": {"model": "m"}}));
    }
}

//! Arguments of a scorer: those of the call, and the defaults of the function's `config`.

use serde_json::{Map, Value};

use crate::error::ScorerError;

/// Levels of nesting within arguments; a body in JSON has at most as many.
pub const VALUE_DEPTH_MAX: usize = 128;

/// Arguments of one call. Names are written in snake case here; clients may use camel case (F-50).
#[derive(Clone, Debug)]
pub struct ScorerArguments<'a> {
    input: &'a Map<String, Value>,
    config: &'a Map<String, Value>,
}

impl<'a> ScorerArguments<'a> {
    /// Takes the `input` of a call, and the `config` of the function as defaults.
    pub fn new(input: &'a Map<String, Value>, config: &'a Map<String, Value>) -> Result<Self, ScorerError> {
        for value in input.values().chain(config.values()) {
            if !nests_within(value, VALUE_DEPTH_MAX) {
                let max = VALUE_DEPTH_MAX as u64;
                return Err(ScorerError::LimitExceeded { scorer: "scorer", subject: "nesting of an argument", max });
            }
        }
        Ok(ScorerArguments { input, config })
    }

    /// Returns an argument, or its default; null counts as absent.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        let camel = camel_case(name);
        let names = [name, camel.as_str()];
        let in_order = [self.input, self.config].into_iter().flat_map(|map| names.map(|name| map.get(name)));
        in_order.flatten().find(|value| !value.is_null())
    }

    /// Returns an argument, null if it is absent.
    pub(crate) fn or_null(&self, name: &str) -> &'a Value {
        self.get(name).unwrap_or(&Value::Null)
    }

    pub(crate) fn required(&self, scorer: &'static str, argument: &'static str) -> Result<&'a Value, ScorerError> {
        self.get(argument).ok_or(ScorerError::MissingArgument { scorer, argument })
    }

    pub(crate) fn number(&self, scorer: &'static str, name: &str, default: f64) -> Result<f64, ScorerError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        value.as_f64().ok_or_else(|| ScorerError::invalid(scorer, name, value, "a number"))
    }

    pub(crate) fn boolean(&self, scorer: &'static str, name: &str, default: bool) -> Result<bool, ScorerError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        value.as_bool().ok_or_else(|| ScorerError::invalid(scorer, name, value, "a boolean"))
    }

    pub(crate) fn text(&self, scorer: &'static str, name: &str) -> Result<Option<&'a str>, ScorerError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| ScorerError::invalid(scorer, name, value, "a string"))
    }
}

/// Returns a name in snake case as one in camel case.
pub(crate) fn camel_case(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    let mut is_start = false;
    for character in snake.chars() {
        match (character, is_start) {
            ('_', _) => is_start = true,
            (other, true) => {
                camel.push(other.to_ascii_uppercase());
                is_start = false;
            }
            (other, false) => camel.push(other),
        }
    }
    camel
}

fn nests_within(value: &Value, depth_max: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > depth_max {
            return false;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn an_argument_has_two_spellings_and_a_default() {
        let (input, config) =
            (map(json!({"expectedMin": 0.5, "model": null})), map(json!({"model": "m", "expected_min": 1})));
        let arguments = ScorerArguments::new(&input, &config).expect("shallow");
        assert_eq!(arguments.get("expected_min"), Some(&json!(0.5)));
        assert_eq!(arguments.get("model"), Some(&json!("m")));
        assert_eq!(arguments.get("other"), None);
    }

    #[test]
    fn arguments_nest_to_a_limit() {
        let mut value = json!(1);
        for _ in 1..VALUE_DEPTH_MAX {
            value = json!([value]);
        }
        let (input, config) = (map(json!({"output": value})), Map::new());
        assert!(ScorerArguments::new(&input, &config).is_ok());
        let deeper = map(json!({"output": [value]}));
        assert!(ScorerArguments::new(&deeper, &config).is_err());
    }
}

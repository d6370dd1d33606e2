//! Usage of an invocation: the tokens and models of its model calls.

use serde_json::{Map, Value, json};

/// Usage of the model calls of an invocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvokeUsage {
    /// Model of the latest answer.
    pub model: Option<String>,
    /// Sums over all answers that report their tokens, or `None` if no answer does.
    pub tokens: Option<InvokeTokens>,
}

/// Sums of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvokeTokens {
    pub prompt: u64,
    pub completion: u64,
}

impl InvokeUsage {
    /// Adds a response in the format of OpenAI's API.
    pub(crate) fn add(&mut self, response: &Value) {
        if let Some(model) = response.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        let Some(usage) = response.get("usage").and_then(Value::as_object) else { return };
        let number = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        let tokens = self.tokens.get_or_insert_default();
        tokens.prompt = tokens.prompt.saturating_add(number("prompt_tokens"));
        tokens.completion = tokens.completion.saturating_add(number("completion_tokens"));
    }

    /// Returns the members for the metadata of a response.
    pub fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.extend(self.model.as_ref().map(|model| ("model".to_owned(), json!(model))));
        if let Some(tokens) = &self.tokens {
            metadata.insert("tokens".into(), json!(tokens.prompt.saturating_add(tokens.completion)));
            metadata.insert("prompt_tokens".into(), json!(tokens.prompt));
            metadata.insert("completion_tokens".into(), json!(tokens.completion));
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_all_answers_are_summed() {
        let mut usage = InvokeUsage::default();
        assert_eq!(usage.metadata(), Map::new());
        usage.add(&json!({"model": "a", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}));
        usage.add(&json!({"model": "b", "usage": {"prompt_tokens": 3}}));
        usage.add(&json!({"usage": null}));
        let expected = json!({"model": "b", "tokens": 6, "prompt_tokens": 4, "completion_tokens": 2});
        assert_eq!(Value::Object(usage.metadata()), expected);
    }
}

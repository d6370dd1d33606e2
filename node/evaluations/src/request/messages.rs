//! Path to additional messages within a case (`extra_messages`).

use serde_json::Value;
use thiserror::Error;

use crate::datum::EvalDatum;

/// Upper bound of the additional messages of one case.
pub const EXTRA_MESSAGES_MAX: usize = 1_000;

/// Dotted path to the messages that are appended to a prompt, such as `input.messages`.
///
/// Names are looked up as in prompts. The members of an input object come first, then `input`, `expected` and
/// `metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePath {
    segments: Vec<String>,
}

/// Error for a case whose additional messages are not a list of messages.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{path}` of the case is {found}; it must be null or an array of at most 1000 messages with `role`")]
pub struct ExtraMessagesError {
    pub path: String,
    pub found: &'static str,
}

impl MessagePath {
    /// Parses a path, or returns `None` if it has an empty segment.
    pub fn parse(text: &str) -> Option<MessagePath> {
        let segments: Vec<String> = text.split('.').map(|segment| segment.trim().to_owned()).collect();
        segments.iter().all(|segment| !segment.is_empty()).then_some(MessagePath { segments })
    }

    /// Returns the messages of a case. A missing or null member stands for none.
    pub fn messages(&self, datum: &EvalDatum) -> Result<Vec<Value>, ExtraMessagesError> {
        let invalid = |found| ExtraMessagesError { path: self.segments.join("."), found };
        match self.find(datum) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(listed)) if listed.len() > EXTRA_MESSAGES_MAX => Err(invalid("a longer array")),
            Some(Value::Array(listed)) => match listed.iter().all(|message| message["role"].is_string()) {
                true => Ok(listed.clone()),
                false => Err(invalid("an array with an item that is no message")),
            },
            Some(other) => Err(invalid(super::members::kind(other))),
        }
    }

    fn find<'d>(&self, datum: &'d EvalDatum) -> Option<&'d Value> {
        let (first, rest) = self.segments.split_first()?;
        if let Some(found) = datum.input.as_object().and_then(|input| input.get(first)) {
            return below(found, rest);
        }
        match (first.as_str(), rest) {
            ("input", _) => below(&datum.input, rest),
            ("expected", _) => below(&datum.expected, rest),
            ("metadata", [member, rest @ ..]) => below(datum.metadata.get(member)?, rest),
            _ => None,
        }
    }
}

fn below<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, segment| match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        other => other.get(segment),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(path: &str, item: Value) -> Result<Vec<Value>, String> {
        let datum = EvalDatum::of_inline(0, item).expect("a datum");
        MessagePath::parse(path).expect("a path").messages(&datum).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_are_found_by_their_path() {
        let user = json!([{"role": "user", "content": "x"}]);
        let found = Ok(user.as_array().expect("a list").clone());
        assert_eq!(messages("input.messages", json!({"input": {"messages": user}})), found);
        assert_eq!(messages("messages", json!({"input": {"messages": user}})), found);
        assert_eq!(messages("input", json!({"input": user})), found);
        assert_eq!(messages("metadata.a.0", json!({"input": 1, "metadata": {"a": [user]}})), found);
        assert_eq!(messages("expected", json!({"input": 1, "expected": user})), found);
        // As in prompts, a member of the input hides the case's own members.
        assert_eq!(messages("input", json!({"input": {"input": user}})), found);
    }

    #[test]
    fn a_missing_member_stands_for_no_messages() {
        for item in [json!({"input": {}}), json!({"input": {"messages": null}}), json!("text")] {
            assert_eq!(messages("input.messages", item), Ok(Vec::new()));
        }
    }

    #[test]
    fn other_values_are_refused() {
        let error = messages("input.messages", json!({"input": {"messages": "hello"}})).expect_err("a string");
        assert!(error.starts_with("`input.messages` of the case is a string; it must be"), "{error}");
        assert!(messages("input.messages", json!({"input": {"messages": [1]}})).is_err());
        let many = vec![json!({"role": "user"}); EXTRA_MESSAGES_MAX + 1];
        assert!(messages("input", json!({"input": many})).is_err());
        assert_eq!(MessagePath::parse("input..x"), None);
        assert_eq!(MessagePath::parse(""), None);
    }
}

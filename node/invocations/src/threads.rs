//! Pure extraction of threads, which are the messages of a trace, from spans in many forms (functions.md 7.5).

mod parts;
mod shapes;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use shapes::{Side, messages_of};

/// Upper bound of the messages in one thread. Later messages are omitted.
pub const THREAD_MESSAGES_MAX: usize = 10_000;
/// Members of a span's metadata that may hold the instructions.
const INSTRUCTIONS: [&str; 2] = ["instructions", "system"];

/// Returns the messages of a trace from its spans in order. Spans of scorers and repeated messages are omitted.
pub fn thread_of_spans(spans: &[Value]) -> Vec<Value> {
    let (mut thread, mut known) = (Vec::new(), HashSet::new());
    for span in spans.iter().filter(|span| !is_scorer_span(span)) {
        for message in messages_of_span(span) {
            if thread.len() == THREAD_MESSAGES_MAX {
                return thread;
            }
            if known.insert(identity(&message)) {
                thread.push(message);
            }
        }
    }
    thread
}

/// Returns whether a span belongs to a scorer.
pub(crate) fn is_scorer_span(span: &Value) -> bool {
    let attributes = &span["span_attributes"];
    attributes["purpose"] == "scorer" || attributes["type"] == "score"
}

fn messages_of_span(span: &Value) -> Vec<Value> {
    let mut messages = messages_of(&span["input"], Side::Input);
    let is_system = |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let instructions = INSTRUCTIONS.iter().find_map(|name| span["metadata"][*name].as_str());
    if let Some(text) = instructions.filter(|text| !text.is_empty())
        && !messages.iter().any(is_system)
    {
        messages.insert(0, json!({"role": "system", "content": text}));
    }
    messages.extend(messages_of(&span["output"], Side::Output));
    messages
}

/// Returns the key by which messages are compared: role and content, where a text equals a single text part.
fn identity(message: &Value) -> String {
    let content = match &message["content"] {
        Value::Array(parts) if parts.len() == 1 && parts[0]["type"] == "text" && is_plain(&parts[0]) => {
            parts[0]["text"].clone()
        }
        content => content.clone(),
    };
    json!([message["role"], content]).to_string()
}

/// Returns whether a text part has no other members.
fn is_plain(part: &Value) -> bool {
    part.as_object().is_some_and(|members: &Map<String, Value>| members.len() == 2)
}

#[cfg(test)]
mod tests;

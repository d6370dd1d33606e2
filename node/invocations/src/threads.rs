//! Pure extraction of threads, which are the messages of a trace, from spans in many forms (functions.md 7.5).

mod parts;
mod shapes;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use shapes::{Side, messages_of};

/// Upper bound of the messages in one thread. Later messages are omitted.
pub const THREAD_MESSAGES_MAX: usize = 10_000;
/// Members of a span's metadata that may hold the instructions.
const INSTRUCTIONS: [&str; 2] = ["instructions", "system"];

/// Returns the messages of a trace from its spans in order. Spans of scorers and repeated messages are omitted.
///
/// The output of a span follows the messages of all spans below it, because it is the last that happened.
pub fn thread_of_spans(spans: &[Value]) -> Vec<Value> {
    let spans: Vec<&Value> = spans.iter().filter(|span| !is_scorer_span(span)).collect();
    let (mut thread, mut known) = (Vec::new(), HashSet::new());
    for (span, side) in message_order(&spans) {
        let messages = match side {
            Side::Input => input_messages(spans[span]),
            Side::Output => messages_of(&spans[span]["output"], Side::Output),
        };
        for message in messages {
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

/// Returns the order of the inputs and outputs of spans, which are named by their index.
fn message_order(spans: &[&Value]) -> Vec<(usize, Side)> {
    let by_id: HashMap<&str, usize> =
        spans.iter().enumerate().filter_map(|(index, span)| Some((span["span_id"].as_str()?, index))).collect();
    let parent = |index: usize| by_id.get(spans[index]["span_parents"][0].as_str()?).copied();
    // Index of the last span among a span and those below it.
    let mut last: Vec<usize> = (0..spans.len()).collect();
    for index in (0..spans.len()).rev() {
        let mut above = parent(index);
        // A span that has a later one below it has passed that on already. This also ends cycles.
        while let Some(span) = above.filter(|span| last[*span] < index) {
            last[span] = index;
            above = parent(span);
        }
    }
    let mut order = Vec::with_capacity(spans.len() * 2);
    let mut is_ended = vec![false; spans.len()];
    for index in 0..spans.len() {
        order.push((index, Side::Input));
        let mut ending = Some(index);
        while let Some(span) = ending.filter(|span| last[*span] == index && !is_ended[*span]) {
            is_ended[span] = true;
            order.push((span, Side::Output));
            ending = parent(span);
        }
    }
    order
}

/// Returns whether a span belongs to a scorer.
pub(crate) fn is_scorer_span(span: &Value) -> bool {
    let attributes = &span["span_attributes"];
    attributes["purpose"] == "scorer" || attributes["type"] == "score"
}

fn input_messages(span: &Value) -> Vec<Value> {
    let mut messages = messages_of(&span["input"], Side::Input);
    let is_system = |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let instructions = INSTRUCTIONS.iter().find_map(|name| span["metadata"][*name].as_str());
    if let Some(text) = instructions.filter(|text| !text.is_empty())
        && !messages.iter().any(is_system)
    {
        messages.insert(0, json!({"role": "system", "content": text}));
    }
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

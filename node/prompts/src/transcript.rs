//! Transcript of messages: the text by which judges and facets read a conversation.

use std::collections::HashMap;

use serde_json::Value;

use crate::text::{display_text, json_text, prefix};

/// Characters of a thought that a transcript shows.
pub const THOUGHT_CHARS_MAX: usize = 100;
/// Characters of the arguments, and of the result, of a tool call that a transcript shows.
pub const TOOL_CHARS_MAX: usize = 500;
/// Stands for what was cut out.
const GAP: &str = "...";

/// Returns the text of a list of messages or of one message; none for other values. An empty list is none.
pub(crate) fn message_text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) if !items.is_empty() && items.iter().all(is_message) => Some(transcript(items)),
        message if is_message(message) => {
            Some(format!("{}: {}", display_text(&message["role"]), content_text(&message["content"])))
        }
        _ => None,
    }
}

fn is_message(value: &Value) -> bool {
    value.get("role").is_some() && value.get("content").is_some()
}

/// Returns the transcript: each message with its role, separated by empty lines. Messages without text are left out.
pub fn transcript(messages: &[Value]) -> String {
    let calls = Calls::of(messages);
    messages.iter().filter_map(|message| block(message, &calls)).collect::<Vec<_>>().join("\n\n")
}

fn block(message: &Value, calls: &Calls) -> Option<String> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("unknown");
    if role == "tool" {
        return tool_block(message, calls);
    }
    let text = content_text(message.get("content").unwrap_or(&Value::Null));
    (!text.trim().is_empty()).then(|| format!("{}:\n{}", capitalized(role), indented(&text, "  ")))
}

fn tool_block(message: &Value, calls: &Calls) -> Option<String> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let results = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_result = |part: &&Value| part.get("type").and_then(Value::as_str) == Some("tool_result");
    let mut blocks: Vec<String> = Vec::new();
    for part in results.iter().filter(is_result) {
        blocks.push(result_block(part, "tool_name", part.get("output").unwrap_or(&Value::Null), calls));
    }
    if blocks.is_empty() {
        let text = Value::String(content_text(content));
        if text.as_str().is_some_and(|text| text.trim().is_empty()) {
            return None;
        }
        blocks.push(result_block(message, "name", &text, calls));
    }
    Some(blocks.join("\n\n"))
}

/// Returns one result of a tool. What the result does not say is known from its call.
fn result_block(result: &Value, name: &str, output: &Value, calls: &Calls) -> String {
    let id = result.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
    let call = calls.0.get(id);
    let named = result.get(name).and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = named.or(call.map(|call| call.name.as_str())).unwrap_or("unknown");
    let mut text = format!("Tool ({name}):");
    if let Some(call) = call {
        text.push_str(&format!("\n  Args:\n{}", indented(&cut(&call.arguments), "    ")));
    }
    let output = display_text(output);
    let label = if is_error(&output) { "Error" } else { "Result" };
    text.push_str(&format!("\n  {label}:\n{}", indented(&cut(&output), "    ")));
    text
}

fn is_error(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("error:") || lower.contains("\"error\"") || lower.starts_with("error")
}

/// Calls of tools by their ids.
struct Calls(HashMap<String, TranscriptCall>);

struct TranscriptCall {
    name: String,
    arguments: String,
}

impl Calls {
    fn of(messages: &[Value]) -> Calls {
        let mut calls = HashMap::new();
        for message in messages {
            for part in parts(message, "content") {
                if part.get("type").and_then(Value::as_str) == Some("tool_call") {
                    let arguments = &part["arguments"];
                    let arguments = arguments.get("value").unwrap_or(arguments);
                    insert(&mut calls, &part["tool_call_id"], &part["tool_name"], arguments);
                }
            }
            for call in parts(message, "tool_calls") {
                let function = &call["function"];
                insert(&mut calls, &call["id"], &function["name"], &function["arguments"]);
            }
        }
        Calls(calls)
    }
}

fn parts<'m>(message: &'m Value, name: &str) -> &'m [Value] {
    message.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn insert(calls: &mut HashMap<String, TranscriptCall>, id: &Value, name: &Value, arguments: &Value) {
    if let (Some(id), Some(name)) = (id.as_str(), name.as_str()) {
        calls.insert(id.to_owned(), TranscriptCall { name: name.to_owned(), arguments: display_text(arguments) });
    }
}

/// Returns the readable text of a message's content.
fn content_text(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(part_text).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => part_text(content).unwrap_or_else(|| json_text(content)),
        other => display_text(other),
    }
}

fn part_text(part: &Value) -> Option<String> {
    let text = || part.get("text").and_then(Value::as_str);
    match (part, part.get("type").and_then(Value::as_str)) {
        (Value::String(text), _) => Some(text.clone()),
        (_, Some("text" | "input_text" | "output_text")) => text().map(str::to_owned),
        (_, Some("reasoning")) => {
            let thought = text().filter(|thought| !thought.is_empty())?;
            Some(format!("[thinking: {}...]", prefix(thought, THOUGHT_CHARS_MAX)))
        }
        _ => None,
    }
}

/// Cuts the middle out of a text that is too long.
fn cut(text: &str) -> String {
    let chars = text.chars().count();
    if chars <= TOOL_CHARS_MAX {
        return text.to_owned();
    }
    let kept = TOOL_CHARS_MAX - GAP.len();
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let end: String = text.chars().skip(chars - tail).collect();
    format!("{}{GAP}{end}", prefix(text, head))
}

fn indented(text: &str, by: &str) -> String {
    text.split('\n').map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}

fn capitalized(role: &str) -> String {
    let mut characters = role.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roles_and_indented_texts_are_separated_by_empty_lines() {
        let messages = [
            json!({"role": "user", "content": "How much?\nIn euros."}),
            json!({"role": "assistant", "content": [
                {"type": "reasoning", "text": "x".repeat(120)},
                {"type": "text", "text": "Two."},
                {"type": "image_url", "image_url": {"url": "u"}},
            ]}),
            json!({"role": "assistant", "content": null}),
            json!({"role": "user", "content": "  "}),
        ];
        let thought = format!("[thinking: {}...]", "x".repeat(100));
        assert_eq!(
            transcript(&messages),
            format!("User:\n  How much?\n  In euros.\n\nAssistant:\n  {thought}\n  Two.")
        );
    }

    #[test]
    fn results_of_tools_show_the_arguments_of_their_call() {
        let messages = [
            json!({"role": "assistant", "content": [
                {"type": "tool_call", "tool_call_id": "1", "tool_name": "search", "arguments": {"type": "valid", "value": {"q": 1}}},
            ]}),
            json!({"role": "tool", "content": [{"type": "tool_result", "tool_call_id": "1", "tool_name": "search", "output": "none"}]}),
            json!({"role": "assistant", "content": "", "tool_calls": [
                {"id": "2", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
            ]}),
            json!({"role": "tool", "tool_call_id": "2", "content": "ERROR: no number"}),
            json!({"role": "tool", "tool_call_id": "3", "content": {"error": 1}}),
        ];
        let expected = "Tool (search):\n  Args:\n    {\"q\":1}\n  Result:\n    none\n\n\
            Tool (add):\n  Args:\n    {\"a\":1}\n  Error:\n    ERROR: no number\n\n\
            Tool (unknown):\n  Error:\n    {\"error\":1}";
        assert_eq!(transcript(&messages), expected);
    }

    #[test]
    fn a_long_result_loses_its_middle() {
        let text = format!("{}{}", "a".repeat(400), "z".repeat(400));
        let short = cut(&text);
        assert_eq!(short.chars().count(), TOOL_CHARS_MAX);
        assert!(short.starts_with("aaa") && short.contains("a...z") && short.ends_with("zzz"));
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn one_message_is_a_line_and_other_values_are_no_messages() {
        assert_eq!(message_text(&json!({"role": "user", "content": "a"})).as_deref(), Some("user: a"));
        for other in [json!([]), json!([{"role": "user"}]), json!("a"), json!({"content": 1}), json!([1])] {
            assert_eq!(message_text(&other), None, "{other}");
        }
    }
}

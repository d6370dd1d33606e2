//! Forms of messages in spans: those of model APIs and of frameworks.

use serde_json::{Map, Value, json};

use super::parts::{content_of, tool_call, tool_result};

/// Upper bound of the nested wrappers around messages.
const WRAPPERS_MAX: usize = 8;
/// Members that may hold messages, in order of precedence.
const WRAPPERS: [&str; 13] = [
    "messages",
    "prompt",
    "contents",
    "input",
    "output",
    "choices",
    "candidates",
    "generations",
    "message",
    "result",
    "response",
    "content",
    "text",
];

/// Side of a span, which determines the role of messages without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

impl Side {
    fn role(self) -> &'static str {
        match self {
            Side::Input => "user",
            Side::Output => "assistant",
        }
    }
}

/// Returns the messages in a value, in the form of the contract.
pub(super) fn messages_of(value: &Value, side: Side) -> Vec<Value> {
    let mut messages = Vec::new();
    collect(value, side, 0, &mut messages);
    messages
}

fn collect(value: &Value, side: Side, depth: usize, messages: &mut Vec<Value>) {
    if depth > WRAPPERS_MAX {
        return;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => messages.push(json!({"role": side.role(), "content": text})),
        Value::Array(items) if items.iter().all(|item| item.is_object() || item.is_array()) => {
            for item in items {
                collect(item, side, depth + 1, messages);
            }
        }
        Value::Object(members) => collect_object(members, side, depth, messages),
        _ => {}
    }
}

fn collect_object(members: &Map<String, Value>, side: Side, depth: usize, messages: &mut Vec<Value>) {
    if let Some(found) = message_of(members) {
        messages.extend(found);
        return;
    }
    for name in ["system", "instructions", "system_instruction", "systemInstruction"] {
        if let Some(content) = members.get(name).and_then(|value| content_of(value.get("parts").unwrap_or(value)))
            && WRAPPERS.iter().any(|wrapper| members.contains_key(*wrapper))
        {
            messages.push(json!({"role": "system", "content": content}));
            break;
        }
    }
    let is_wrapper = |name: &&str| members.get(*name).is_some_and(|value| !value.is_null());
    if let Some(wrapper) = WRAPPERS.iter().find(|name| is_wrapper(name)) {
        let wrapped = &members[*wrapper];
        let is_other_text =
            wrapped.is_string() && !matches!(*wrapper, "prompt" | "input" | "output" | "text" | "result" | "response");
        if !is_other_text {
            collect(wrapped, side, depth + 1, messages);
        }
    }
    if let Some(Value::Array(calls)) = members.get("toolCalls").or_else(|| members.get("tool_calls")) {
        let calls: Vec<Value> = calls.iter().filter_map(tool_call).collect();
        if !calls.is_empty() {
            messages.push(json!({"role": "assistant", "content": calls}));
        }
    }
}

/// Returns the messages that an object represents, or `None` if it is not a message.
fn message_of(members: &Map<String, Value>) -> Option<Vec<Value>> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if let Some(role) = text("role") {
        return role_message(role, members);
    }
    match (text("type"), text("kind")) {
        (Some("function_call"), _) => {
            let call = tool_call(&Value::Object(members.clone()))?;
            Some(vec![json!({"role": "assistant", "content": [call]})])
        }
        (Some("function_call_output"), _) => {
            let id = text("call_id").unwrap_or_default();
            Some(vec![tool_message(tool_result(id, None, members.get("output").unwrap_or(&Value::Null)))])
        }
        (Some("reasoning"), _) => Some(reasoning(members)),
        (Some(kind @ ("human" | "ai" | "system" | "tool" | "HumanMessage" | "AIMessage" | "SystemMessage")), _) => {
            framework_message(kind, members)
        }
        (_, Some("request" | "response")) if members.contains_key("parts") => {
            Some(parts_of_agent(members.get("parts")?))
        }
        // Serialized messages of LangChain have this type.
        (Some("constructor"), _) => {
            let kind = members.get("id")?.as_array()?.last()?.as_str()?;
            let fields = members.get("kwargs")?.as_object()?;
            framework_message(kind, fields)
        }
        _ => None,
    }
}

/// Returns the messages of an object with a role. Tool results become separate messages.
fn role_message(role: &str, members: &Map<String, Value>) -> Option<Vec<Value>> {
    let role = match role {
        "model" => "assistant",
        "function" => "tool",
        known @ ("system" | "developer" | "user" | "assistant" | "tool") => known,
        _ => return None,
    };
    let content = members.get("content").or_else(|| members.get("parts")).unwrap_or(&Value::Null);
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let mut messages = Vec::new();
    if role == "tool" {
        let id = text("tool_call_id").or_else(|| text("toolCallId"));
        if let Some(id) = id {
            return Some(vec![tool_message(tool_result(id, text("name").or_else(|| text("tool_name")), content))]);
        }
    }
    let mut content = content_of(content);
    let calls = members.get("tool_calls").and_then(Value::as_array);
    let calls: Vec<Value> = calls.into_iter().flatten().filter_map(tool_call).collect();
    if !calls.is_empty() {
        let mut parts = match content.take() {
            Some(Value::String(text)) if text.is_empty() => Vec::new(),
            Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
            Some(Value::Array(parts)) => parts,
            _ => Vec::new(),
        };
        parts.extend(calls);
        content = Some(Value::Array(parts));
    }
    let content = content?;
    let Value::Array(parts) = content else {
        return Some(vec![json!({"role": role, "content": content})]);
    };
    let (results, others): (Vec<Value>, Vec<Value>) = parts.into_iter().partition(|part| part["type"] == "tool_result");
    messages.extend(results.into_iter().map(tool_message));
    if !others.is_empty() {
        messages.push(json!({"role": role, "content": others}));
    }
    Some(messages)
}

fn tool_message(result: Value) -> Value {
    json!({"role": "tool", "content": [result]})
}

/// Returns a reasoning item of Responses as a message. Without readable text, there is no message.
fn reasoning(members: &Map<String, Value>) -> Vec<Value> {
    let summary = members.get("summary").and_then(Value::as_array);
    let texts: Vec<&str> = summary.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    match texts.is_empty() {
        true => Vec::new(),
        false => {
            let part = json!({"type": "reasoning", "text": texts.join("\n")});
            vec![json!({"role": "assistant", "content": [part]})]
        }
    }
}

/// Returns a LangChain message, whose kind determines its role.
fn framework_message(kind: &str, members: &Map<String, Value>) -> Option<Vec<Value>> {
    let role = match kind {
        "human" | "HumanMessage" | "HumanMessageChunk" => "user",
        "ai" | "AIMessage" | "AIMessageChunk" => "assistant",
        "system" | "SystemMessage" => "system",
        "tool" | "ToolMessage" => "tool",
        _ => return None,
    };
    let fields = members.get("data").and_then(Value::as_object).unwrap_or(members);
    role_message(role, fields)
}

/// Returns the messages of Pydantic AI parts, whose kind determines the role.
fn parts_of_agent(parts: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    for part in parts.as_array().into_iter().flatten() {
        let kind = part["part_kind"].as_str().unwrap_or_default();
        let content = &part["content"];
        let message = match kind {
            "system-prompt" => content_of(content).map(|content| json!({"role": "system", "content": content})),
            "user-prompt" => content_of(content).map(|content| json!({"role": "user", "content": content})),
            "text" => content_of(content).map(|content| json!({"role": "assistant", "content": content})),
            "tool-call" => tool_call(part).map(|call| json!({"role": "assistant", "content": [call]})),
            "tool-return" => {
                let id = part["tool_call_id"].as_str().unwrap_or_default();
                Some(tool_message(tool_result(id, part["tool_name"].as_str(), content)))
            }
            _ => None,
        };
        messages.extend(message);
    }
    messages
}

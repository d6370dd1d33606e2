//! Parts of messages in the forms of several model APIs: texts, reasoning, tool calls, and tool results.

use serde_json::{Value, json};

/// Returns the content of a message as a text or as parts in the form of the contract. Returns `None` if it is empty.
pub(super) fn content_of(content: &Value) -> Option<Value> {
    match content {
        Value::Null => None,
        Value::String(_) => Some(content.clone()),
        Value::Array(parts) => {
            let parts: Vec<Value> = parts.iter().filter_map(part_of).collect();
            match parts.as_slice() {
                [] => None,
                // Some APIs have only parts, even for a single text.
                [part] if part["type"] == "text" && part.as_object().is_some_and(|members| members.len() == 2) => {
                    Some(part["text"].clone())
                }
                _ => Some(Value::Array(parts)),
            }
        }
        Value::Object(_) => part_of(content).map(|part| json!([part])),
        other => Some(Value::String(other.to_string())),
    }
}

fn part_of(part: &Value) -> Option<Value> {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    if let Value::String(text) = part {
        return Some(json!({"type": "text", "text": text}));
    }
    match text("type") {
        Some("text" | "input_text" | "output_text") => Some(json!({"type": "text", "text": text("text")?})),
        Some("reasoning" | "thinking") => {
            let thought = text("text").or_else(|| text("thinking"))?;
            Some(json!({"type": "reasoning", "text": thought}))
        }
        Some("tool_use" | "tool_call" | "tool-call" | "function_call") => tool_call(part),
        Some("tool_result" | "tool-result") => {
            let id = text("tool_use_id").or_else(|| text("tool_call_id")).or_else(|| text("toolCallId"));
            let output = ["content", "output", "result"].iter().find_map(|name| part.get(*name));
            let name = text("tool_name").or_else(|| text("toolName"));
            Some(tool_result(id.unwrap_or_default(), name, output.unwrap_or(&Value::Null)))
        }
        Some(_) => Some(part.clone()),
        None => untyped_part(part),
    }
}

/// Returns a part of Gemini or Bedrock, whose member name is its type.
fn untyped_part(part: &Value) -> Option<Value> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        let kind = if part["thought"] == true { "reasoning" } else { "text" };
        return Some(json!({"type": kind, "text": text}));
    }
    if let Some(call) = ["functionCall", "function_call", "toolUse"]
        .iter()
        .find_map(|name| part.get(*name).filter(|call| call.is_object()))
    {
        return tool_call(call);
    }
    if let Some(result) = part.get("functionResponse").or_else(|| part.get("function_response")) {
        let id = result["id"].as_str().unwrap_or_default();
        return Some(tool_result(id, result["name"].as_str(), &result["response"]));
    }
    if let Some(result) = part.get("toolResult") {
        let id = result["toolUseId"].as_str().unwrap_or_default();
        return Some(tool_result(id, None, &result["content"]));
    }
    part.as_object().filter(|members| !members.is_empty()).map(|_| part.clone())
}

/// Returns a tool call in the form of the contract, or `None` if it names no tool.
pub(super) fn tool_call(call: &Value) -> Option<Value> {
    let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
    let text = |value: &Value, names: &[&str]| {
        names.iter().find_map(|name| value.get(*name).and_then(Value::as_str)).map(str::to_owned)
    };
    let name = text(function, &["name", "tool_name", "toolName"])?;
    let id = text(call, &["tool_call_id", "toolCallId", "call_id", "toolUseId", "id"]).unwrap_or_default();
    let arguments = ["arguments", "input", "args"].iter().find_map(|name| function.get(*name));
    let arguments = match arguments {
        Some(Value::Object(valid)) if valid.len() == 2 && valid.contains_key("type") && valid.contains_key("value") => {
            Value::Object(valid.clone())
        }
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => json!({"type": "valid", "value": value}),
            _ if text.trim().is_empty() => json!({"type": "valid", "value": {}}),
            _ => json!({"type": "invalid", "value": text}),
        },
        Some(Value::Null) | None => json!({"type": "valid", "value": {}}),
        Some(value) => json!({"type": "valid", "value": value}),
    };
    Some(json!({"type": "tool_call", "tool_call_id": id, "tool_name": name, "arguments": arguments}))
}

/// Returns a tool result in the form of the contract.
pub(super) fn tool_result(id: &str, name: Option<&str>, output: &Value) -> Value {
    json!({"type": "tool_result", "tool_call_id": id, "tool_name": name.unwrap_or_default(), "output": output})
}

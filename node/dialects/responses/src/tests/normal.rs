//! Normal forms, for the comparison of bodies: the normalisations that the documentation of the dialect lists.

use serde_json::{Map, Value, json};

pub fn normal_request(body: &Value) -> Value {
    let mut body = body.clone();
    let fields = body.as_object_mut().expect("is an object");
    for name in [
        "model",
        "instructions",
        "input",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "text",
        "reasoning",
        "user",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_logprobs",
        "metadata",
        "stream",
    ] {
        let is_empty = |value: &Value| match name {
            "input" | "tools" => value == &json!([]),
            "text" => value == &json!({}),
            "stream" => value == &json!(false),
            _ => false,
        };
        if fields.get(name).is_some_and(|value| value.is_null() || is_empty(value)) {
            fields.remove(name);
        }
    }
    let mut items = match fields.remove("input") {
        None => vec![],
        Some(Value::Array(items)) => items,
        Some(text) => vec![json!({"role": "user", "content": text})],
    };
    if let Some(instructions) = fields.remove("instructions") {
        items.insert(0, json!({"role": "system", "content": instructions}));
    }
    items.iter_mut().for_each(normal_item);
    fields.insert("input".into(), items.into());
    body
}

fn normal_item(item: &mut Value) {
    let fields = item.as_object_mut().expect("is an object");
    if fields.contains_key("role") {
        fields.insert("type".into(), "message".into());
    }
    let text_type = if fields.get("role") == Some(&json!("assistant")) { "output_text" } else { "input_text" };
    match fields.get("type").and_then(Value::as_str) {
        Some("message") => normal_content(fields, "content", text_type),
        Some("function_call_output") => normal_content(fields, "output", "input_text"),
        Some("reasoning") => {
            for name in ["encrypted_content", "content"] {
                if fields.get(name).is_some_and(Value::is_null) {
                    fields.remove(name);
                }
            }
        }
        _ => {}
    }
}

fn normal_content(fields: &mut Map<String, Value>, name: &str, text_type: &str) {
    let mut parts = match fields.remove(name) {
        Some(Value::Array(parts)) => parts,
        Some(text) => vec![json!({"type": text_type, "text": text})],
        None => vec![],
    };
    for part in &mut parts {
        let part = part.as_object_mut().expect("is an object");
        if part["type"] == "output_text" {
            part.entry("annotations").or_insert(json!([]));
        }
        for name in ["file_id", "file_url", "file_data", "image_url", "detail", "filename"] {
            if part.get(name).is_some_and(Value::is_null) {
                part.remove(name);
            }
        }
    }
    fields.insert(name.into(), parts.into());
}

/// A response without an id with the fields that its schema requires, and without those that may be left out.
pub fn normal_response(body: &Value) -> Value {
    let mut body = body.clone();
    let fields = body.as_object_mut().expect("is an object");
    let required = json!({
        "id": "", "object": "response", "model": "", "created_at": 0, "status": "completed", "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "parallel_tool_calls": true,
        "temperature": null, "tool_choice": "auto", "tools": [], "top_p": null, "output": [], "usage": null,
    });
    for (name, value) in required.as_object().expect("is an object") {
        fields.entry(name).or_insert(value.clone());
    }
    for (at, item) in fields["output"].as_array_mut().expect("is a list").iter_mut().enumerate() {
        normal_output_item(item.as_object_mut().expect("is an object"), at);
    }
    if let Some(usage) = fields["usage"].as_object_mut() {
        let required = [
            ("input_tokens_details", "cached_tokens"),
            ("input_tokens_details", "cache_write_tokens"),
            ("output_tokens_details", "reasoning_tokens"),
        ];
        for (details, name) in required {
            let details = usage.entry(details).or_insert(json!({})).as_object_mut().expect("is an object");
            details.entry(name).or_insert(json!(0));
        }
    }
    body
}

fn normal_output_item(item: &mut Map<String, Value>, at: usize) {
    let named = item["type"].as_str().expect("is a text").to_owned();
    let prefix = match named.as_str() {
        "message" => "msg",
        "function_call" => "fc",
        "reasoning" => "rs",
        _ => return,
    };
    item.entry("id").or_insert(json!(format!("{prefix}__{at}")));
    if named != "reasoning" {
        item.entry("status").or_insert(json!("completed"));
    }
    if item.get("encrypted_content").is_some_and(Value::is_null) {
        item.remove("encrypted_content");
    }
    for part in item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if part["type"] == "output_text" {
            let part = part.as_object_mut().expect("is an object");
            part.entry("annotations").or_insert(json!([]));
            part.entry("logprobs").or_insert(json!([]));
        }
    }
}

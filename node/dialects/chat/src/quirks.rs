//! Differences among servers of the OpenAI format, as changes of a body.
//!
//! They apply to a translated body and to one that passes from a chat client to a chat server, which is changed in
//! nothing else (G-26).

use serde_json::{Map, Value, json};

use super::json_tool::JSON_TOOL;
use super::parts::file_name;
use assay_node_dialects::{DialectError, ReasoningHistory, WriteOptions};

/// Shares of the tokens of an answer that reasoning may have: up to the first `low`, up to the second `medium`.
const EFFORT_SHARES: [f64; 2] = [0.35, 0.65];
/// Tokens of an answer whose bound is unknown.
const OUTPUT_TOKENS_UNKNOWN: u64 = 4_096;

/// Returns whether a model of OpenAI takes only the parameters of reasoning models.
pub fn is_reasoning_model_name(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or_default();
    let is_o = |name: &str| model == name || model.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    ["o1", "o2", "o3", "o4"].into_iter().any(is_o) || model.starts_with("gpt-5")
}

/// Returns the name of the deployment that Azure gives a model.
pub fn azure_deployment(model: &str) -> String {
    model.replace("gpt-3.5", "gpt-35")
}

/// Changes the body of a chat request for a server, and returns names of the parameters that were dropped.
pub fn adapt(body: &mut Value, options: &WriteOptions) -> Result<Vec<String>, DialectError> {
    let Some(body) = body.as_object_mut() else {
        return Err(DialectError::malformed("body", "an object"));
    };
    let mut dropped = Vec::new();
    body.shift_remove("use_cache");
    if body.get("response_format").is_some_and(|format| format["type"] == "text") {
        body.shift_remove("response_format");
    }
    move_reasoning_settings(body, options, &mut dropped);
    if options.is_reasoning_model {
        adapt_to_reasoning_model(body, &mut dropped);
    }
    if options.refuses_parallel_tool_calls && body.shift_remove("parallel_tool_calls").is_some() {
        dropped.push("parallel_tool_calls".to_owned());
    }
    adapt_stream_options(body, options.takes_stream_options);
    if options.refuses_cache_control && remove_cache_control(body) {
        dropped.push("cache_control".to_owned());
    }
    for message in objects(body, "messages") {
        adapt_reasoning_history(message, options.reasoning_history);
        if options.developer_as_system && message.get("role").is_some_and(|role| role == "developer") {
            message.insert("role".to_owned(), json!("system"));
        }
        for part in objects(message, "content") {
            move_document(part);
        }
    }
    if options.schema_as_tool {
        schema_to_tool(body)?;
    }
    Ok(dropped)
}

/// Returns the members of a list that are objects.
fn objects<'a>(
    map: &'a mut Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> + use<'a> {
    map.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Takes the settings that are sent nowhere. A budget becomes an effort, where the model has efforts.
fn move_reasoning_settings(body: &mut Map<String, Value>, options: &WriteOptions, dropped: &mut Vec<String>) {
    let enabled = body.shift_remove("reasoning_enabled");
    let budget = body.shift_remove("reasoning_budget").and_then(|budget| budget.as_u64());
    if body.get("reasoning_effort").is_some_and(|effort| !effort.is_null()) {
        return;
    }
    let is_disabled = enabled == Some(Value::Bool(false)) || budget == Some(0);
    if is_disabled {
        dropped.push("reasoning_enabled".to_owned());
        return;
    }
    let Some(budget) = budget else { return };
    if !options.is_reasoning_model {
        dropped.push("reasoning_budget".to_owned());
        return;
    }
    let bounds = ["max_completion_tokens", "max_tokens"].map(|name| body.get(name).and_then(Value::as_u64));
    let output = bounds.into_iter().flatten().max().or(options.model_max_output_tokens);
    let share = budget as f64 / output.unwrap_or(OUTPUT_TOKENS_UNKNOWN).max(1) as f64;
    let effort = match share {
        share if share <= EFFORT_SHARES[0] => "low",
        share if share <= EFFORT_SHARES[1] => "medium",
        _ => "high",
    };
    body.insert("reasoning_effort".to_owned(), json!(effort));
}

fn adapt_to_reasoning_model(body: &mut Map<String, Value>, dropped: &mut Vec<String>) {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    let model = model.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(max) = body.shift_remove("max_tokens").filter(|max| !max.is_null()) {
        let given = body.get("max_completion_tokens").and_then(Value::as_u64);
        if given.is_none_or(|given| max.as_u64().is_some_and(|max| max > given)) {
            body.insert("max_completion_tokens".to_owned(), max);
        }
    }
    let effort = body.get("reasoning_effort").and_then(Value::as_str);
    let keeps_temperature = model.starts_with("gpt-5") && effort == Some("none");
    if effort == Some("minimal") && model.starts_with("gpt-5.1") {
        body.insert("reasoning_effort".to_owned(), json!("low"));
    }
    let refused = ["temperature", "parallel_tool_calls"].into_iter();
    for name in refused.filter(|name| !(keeps_temperature && *name == "temperature")) {
        if body.shift_remove(name).is_some_and(|value| !value.is_null()) {
            dropped.push(name.to_owned());
        }
    }
    if model.starts_with("o1-mini") || model.starts_with("o1-preview") {
        for message in objects(body, "messages") {
            if message.get("role").is_some_and(|role| role == "system" || role == "developer") {
                message.insert("role".to_owned(), json!("user"));
            }
        }
    }
}

/// Asks for the usage of every stream (G-33), unless the server refuses the member.
fn adapt_stream_options(body: &mut Map<String, Value>, takes_stream_options: bool) {
    let is_stream = body.get("stream").is_some_and(|stream| stream == true);
    if !takes_stream_options || !is_stream {
        body.shift_remove("stream_options");
        return;
    }
    let options = body.entry("stream_options").or_insert_with(|| json!({}));
    if !options.is_object() {
        *options = json!({});
    }
    options["include_usage"] = json!(true);
}

fn adapt_reasoning_history(message: &mut Map<String, Value>, mode: ReasoningHistory) {
    match mode {
        ReasoningHistory::Keep => {}
        ReasoningHistory::Remove => {
            message.shift_remove("reasoning");
            message.shift_remove("reasoning_content");
        }
        ReasoningHistory::Texts => {
            let Some(Value::Array(entries)) = message.get("reasoning") else { return };
            let text = |entry: &Value| entry.as_str().or(entry["content"].as_str()).unwrap_or_default().to_owned();
            let text: String = entries.iter().map(text).collect();
            message.shift_remove("reasoning");
            if !text.is_empty() {
                message.insert("reasoning".to_owned(), Value::String(text.clone()));
                message.insert("reasoning_content".to_owned(), Value::String(text));
            }
        }
    }
}

/// Makes a part with a data URI that is no image a file.
fn move_document(part: &mut Map<String, Value>) {
    let Some(url) = part.get("image_url") else { return };
    let Some(url) = url.as_str().or(url["url"].as_str()).filter(|url| url.starts_with("data:")) else { return };
    let is_base64 = url.split(',').next().is_some_and(|head| head.ends_with(";base64"));
    if url.starts_with("data:image/") || !is_base64 {
        return;
    }
    let media_type = url["data:".len()..].split([';', ',']).next().unwrap_or_default();
    let file = json!({ "filename": file_name(media_type), "file_data": url });
    part.shift_remove("image_url");
    part.insert("type".to_owned(), json!("file"));
    part.insert("file".to_owned(), file);
}

/// Removes marks of cached prefixes and returns whether there were any.
fn remove_cache_control(body: &mut Map<String, Value>) -> bool {
    let mut found = false;
    let mut remove = |map: &mut Map<String, Value>| found |= map.shift_remove("cache_control").is_some();
    objects(body, "tools").for_each(&mut remove);
    for message in objects(body, "messages") {
        remove(message);
        objects(message, "content").for_each(&mut remove);
        objects(message, "tool_calls").for_each(&mut remove);
    }
    found
}

/// Asks for an answer of a schema as the arguments of a tool that must be called.
fn schema_to_tool(body: &mut Map<String, Value>) -> Result<(), DialectError> {
    if body.get("response_format").is_none_or(|format| format["type"] != "json_schema") {
        return Ok(());
    }
    if ["tools", "functions"].iter().any(|name| body.get(*name).is_some_and(|tools| tools != &json!([]))) {
        return Err(DialectError::unsupported("response_format", "a JSON schema together with tools"));
    }
    let format = body.shift_remove("response_format").unwrap_or_default();
    let schema = &format["json_schema"];
    let mut function = json!({ "name": JSON_TOOL, "parameters": schema["schema"] });
    for name in ["description", "strict"] {
        if let Some(value) = schema.get(name).filter(|value| !value.is_null()) {
            function[name] = value.clone();
        }
    }
    body.insert("tools".to_owned(), json!([{ "type": "function", "function": function }]));
    body.insert("tool_choice".to_owned(), json!({ "type": "function", "function": { "name": JSON_TOOL } }));
    Ok(())
}

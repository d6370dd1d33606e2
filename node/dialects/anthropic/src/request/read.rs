//! Bodies of requests to the internal form.

use serde_json::{Map, Value};

use crate::block_reader::read_content;
use crate::fields::{
    extra, items, keep_inner, object, put, require_text, take, take_bool, take_cache, take_count, take_number,
    take_text,
};
use crate::{MESSAGES_MAX, STOP_SEQUENCES_MAX, TOOLS_MAX};
use assay_node_dialects::form::{
    ContentPart, Extra, JsonSchemaFormat, Message, ModelRequest, OutputFormat, ReasoningEffort, ReasoningSettings,
    Role, Sampling, ToolChoice, ToolDefinition,
};
use assay_node_dialects::{Dialect, DialectError};

/// Reads a body of `POST /v1/messages`.
pub fn read_request(body: &Value) -> Result<ModelRequest, DialectError> {
    let mut fields = object(body, "body")?;
    let mut request = ModelRequest {
        model: require_text(&mut fields, "", "model")?,
        messages: read_system(&mut fields)?,
        tools: read_tools(&mut fields)?,
        max_output_tokens: take_count(&mut fields, "", "max_tokens")?,
        stop: read_stop(&mut fields)?,
        stream: take_bool(&mut fields, "", "stream")?.unwrap_or(false),
        sampling: Sampling {
            temperature: take_number(&mut fields, "", "temperature")?,
            top_p: take_number(&mut fields, "", "top_p")?,
            top_k: take_number(&mut fields, "", "top_k")?,
            seed: take_number(&mut fields, "", "seed")?,
            ..Sampling::default()
        },
        ..ModelRequest::default()
    };
    read_messages(&mut fields, &mut request.messages)?;
    read_tool_choice(&mut fields, &mut request)?;
    read_thinking(&mut fields, &mut request)?;
    read_output(&mut fields, &mut request)?;
    read_metadata(&mut fields, &mut request)?;
    request.extra = Extra::marked(Dialect::Anthropic, fields);
    Ok(request)
}

fn read_system(fields: &mut Map<String, Value>) -> Result<Vec<Message>, DialectError> {
    let Some(system) = take(fields, "system") else { return Ok(Vec::new()) };
    let parts = read_content(&system, "system")?;
    Ok(vec![Message { role: Role::System, name: None, parts, extra: Extra::default() }])
}

fn read_messages(fields: &mut Map<String, Value>, messages: &mut Vec<Message>) -> Result<(), DialectError> {
    let list = take(fields, "messages").unwrap_or_default();
    for (index, message) in items(&list, "messages", "messages", MESSAGES_MAX)?.iter().enumerate() {
        let path = format!("messages[{index}]");
        let mut fields = object(message, &path)?;
        let role = match require_text(&mut fields, &path, "role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(DialectError::malformed(format!("{path}.role"), "user or assistant")),
        };
        let content = take(&mut fields, "content").unwrap_or_default();
        let parts = read_content(&content, &format!("{path}.content"))?;
        messages.extend(by_role(role, parts, extra(fields)));
    }
    Ok(())
}

/// Splits a message of the user into results of tools and other content, which have two roles in the form.
fn by_role(role: Role, parts: Vec<ContentPart>, extra: Extra) -> Vec<Message> {
    let mut messages = vec![Message { role, name: None, parts: Vec::new(), extra }];
    for part in parts {
        let role = match part {
            ContentPart::ToolResult(_) if role == Role::User => Role::Tool,
            _ => role,
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.parts.push(part),
            Some(last) if last.parts.is_empty() => (last.role, last.parts) = (role, vec![part]),
            _ => messages.push(Message { role, name: None, parts: vec![part], extra: Extra::default() }),
        }
    }
    messages
}

/// Reads tools. One that the provider runs is kept whole.
fn read_tools(fields: &mut Map<String, Value>) -> Result<Vec<ToolDefinition>, DialectError> {
    let Some(list) = take(fields, "tools") else { return Ok(Vec::new()) };
    let mut tools = Vec::new();
    for (index, tool) in items(&list, "tools", "tools", TOOLS_MAX)?.iter().enumerate() {
        let path = format!("tools[{index}]");
        let mut fields = object(tool, &path)?;
        let kind = take_text(&mut fields, &path, "type")?;
        if kind.is_some_and(|kind| kind != "custom") {
            tools.push(ToolDefinition {
                name: String::new(),
                description: None,
                parameters: None,
                strict: None,
                cache: None,
                extra: extra(object(tool, &path)?),
            });
            continue;
        }
        let name = require_text(&mut fields, &path, "name")?;
        if name.is_empty() {
            return Err(DialectError::malformed(format!("{path}.name"), "the name of a tool"));
        }
        tools.push(ToolDefinition {
            name,
            description: take_text(&mut fields, &path, "description")?,
            parameters: take(&mut fields, "input_schema"),
            strict: take_bool(&mut fields, &path, "strict")?,
            cache: take_cache(&mut fields),
            extra: extra(fields),
        });
    }
    Ok(tools)
}

/// Reads the choice of a tool. A choice of an unknown type stays among the unknown fields.
fn read_tool_choice(fields: &mut Map<String, Value>, request: &mut ModelRequest) -> Result<(), DialectError> {
    let Some(choice) = take(fields, "tool_choice") else { return Ok(()) };
    let mut inner = object(&choice, "tool_choice")?;
    request.tool_choice = Some(match require_text(&mut inner, "tool_choice", "type")?.as_str() {
        "none" => ToolChoice::None,
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Named(vec![require_text(&mut inner, "tool_choice", "name")?]),
        _ => {
            fields.insert("tool_choice".into(), choice);
            return Ok(());
        }
    });
    let is_disabled = take_bool(&mut inner, "tool_choice", "disable_parallel_tool_use")?;
    request.parallel_tool_calls = is_disabled.map(|is_disabled| !is_disabled);
    keep_inner(fields, "tool_choice", inner);
    Ok(())
}

fn read_stop(fields: &mut Map<String, Value>) -> Result<Vec<String>, DialectError> {
    let Some(list) = take(fields, "stop_sequences") else { return Ok(Vec::new()) };
    let list = items(&list, "stop_sequences", "stop sequences", STOP_SEQUENCES_MAX)?;
    let text = |(index, text): (usize, &Value)| {
        let text = text.as_str().map(str::to_owned);
        text.ok_or_else(|| DialectError::malformed(format!("stop_sequences[{index}]"), "a string"))
    };
    list.iter().enumerate().map(text).collect()
}

/// Reads `thinking`. A type that the form cannot say is kept as an unknown field.
fn read_thinking(fields: &mut Map<String, Value>, request: &mut ModelRequest) -> Result<(), DialectError> {
    let Some(thinking) = take(fields, "thinking") else { return Ok(()) };
    let mut inner = object(&thinking, "thinking")?;
    let kind = require_text(&mut inner, "thinking", "type")?;
    let budget_tokens = take_count(&mut inner, "thinking", "budget_tokens")?;
    let enabled = match kind.as_str() {
        "enabled" | "adaptive" => Some(true),
        "disabled" => Some(false),
        _ => None,
    };
    let is_said =
        matches!((kind.as_str(), budget_tokens), ("enabled", Some(_)) | ("adaptive", None) | ("disabled", None));
    let is_hidden = inner.get("display").is_some_and(|display| display == "omitted");
    put(&mut inner, "type", (!is_said).then_some(kind));
    request.reasoning = Some(ReasoningSettings {
        enabled,
        budget_tokens,
        include_text: enabled.filter(|enabled| *enabled).map(|_| !is_hidden),
        extra: extra(inner),
        ..ReasoningSettings::default()
    });
    Ok(())
}

/// Reads `output_config` and its older form `output_format`.
fn read_output(fields: &mut Map<String, Value>, request: &mut ModelRequest) -> Result<(), DialectError> {
    let older = take(fields, "output_format");
    let mut inner = match take(fields, "output_config") {
        None => Map::new(),
        Some(config) => object(&config, "output_config")?,
    };
    if let Some(effort) = take_text(&mut inner, "output_config", "effort")? {
        request.reasoning.get_or_insert_default().effort = Some(effort_of(effort));
    }
    let (format, path) = match take(&mut inner, "format") {
        Some(format) => (Some(format), "output_config.format"),
        None => (older, "output_format"),
    };
    if let Some(format) = format {
        let mut format = object(&format, path)?;
        if require_text(&mut format, path, "type")? != "json_schema" {
            return Err(DialectError::malformed(format!("{path}.type"), "json_schema"));
        }
        let no_schema = || DialectError::malformed(format!("{path}.schema"), "a JSON schema");
        request.output_format = Some(OutputFormat::JsonSchema(Box::new(JsonSchemaFormat {
            name: None,
            description: None,
            schema: take(&mut format, "schema").ok_or_else(no_schema)?,
            strict: Some(true),
            extra: extra(format),
        })));
    }
    keep_inner(fields, "output_config", inner);
    Ok(())
}

fn effort_of(effort: String) -> ReasoningEffort {
    match effort.as_str() {
        "low" => ReasoningEffort::Low,
        "medium" => ReasoningEffort::Medium,
        "high" => ReasoningEffort::High,
        "xhigh" => ReasoningEffort::ExtraHigh,
        _ => ReasoningEffort::Other(effort),
    }
}

fn read_metadata(fields: &mut Map<String, Value>, request: &mut ModelRequest) -> Result<(), DialectError> {
    let Some(metadata) = take(fields, "metadata") else { return Ok(()) };
    let mut inner = object(&metadata, "metadata")?;
    request.user = take_text(&mut inner, "metadata", "user_id")?;
    keep_inner(fields, "metadata", inner);
    Ok(())
}

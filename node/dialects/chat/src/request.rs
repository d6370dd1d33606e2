//! Requests of chat completions.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::fields::{ChatFields, put_extra, put_some};
use super::{messages, quirks, tools};
use assay_node_dialects::form::{
    ContentPart, Extra, JsonSchemaFormat, ModelRequest, OutputFormat, ReasoningEffort, ReasoningSettings, Sampling,
    ToolDefinition,
};
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};

/// Upper bound of the tools of a request.
pub const CHAT_TOOLS_MAX: usize = 10_000;

/// Spelling of a request that came as chat. Its members pass even if only some servers know them.
const FROM_CHAT: &str = "chat";
/// The same for a request that bounds its answer by `max_completion_tokens`.
const FROM_CHAT_COMPLETION_TOKENS: &str = "chat with max_completion_tokens";

/// Reads a request of chat completions.
pub fn read_request(body: &Value) -> Result<ModelRequest, DialectError> {
    if !body.is_object() {
        return Err(DialectError::malformed("body", "an object"));
    }
    let mut fields = ChatFields::of("", body.clone())?;
    let model = fields.required_text("model")?;
    let messages = fields.list("messages")?.ok_or_else(|| DialectError::malformed("messages", "a list"))?;
    let messages = messages::read_messages(messages)?;
    let tools = take_tools(&mut fields)?;
    let tool_choice = match tools::take_tool_choice(&mut fields)? {
        Some(choice) => Some(choice),
        None => tools::take_legacy_choice(&mut fields)?,
    };
    let is_legacy = !tools.is_empty() && tools.iter().all(tools::is_legacy_tool);
    let parallel_tool_calls = fields.boolean("parallel_tool_calls")?.or_else(|| is_legacy.then_some(false));
    let (max, max_completion) = (fields.count("max_tokens")?, fields.count("max_completion_tokens")?);
    let spelling = if max_completion.is_some() { FROM_CHAT_COMPLETION_TOKENS } else { FROM_CHAT };
    // switches the gateway's own cache, and is sent nowhere
    fields.take("use_cache");
    Ok(ModelRequest {
        model,
        messages,
        tools,
        tool_choice,
        parallel_tool_calls,
        output_format: take_output_format(&mut fields)?,
        sampling: take_sampling(&mut fields)?,
        max_output_tokens: max.max(max_completion),
        stop: take_stop(&mut fields)?,
        reasoning: take_reasoning(&mut fields)?,
        stream: fields.boolean("stream")?.unwrap_or(false),
        include_usage: take_include_usage(&mut fields)?,
        user: fields.text("user")?,
        metadata: fields.object("metadata")?.map(ChatFields::into_map),
        extra: fields.into_extra().spelled(spelling),
    })
}

/// Returns whether the client asked with `functions`, so that it understands no other calls than `function_call`.
pub fn asks_for_function_call(request: &ModelRequest) -> bool {
    !request.tools.is_empty() && request.tools.iter().all(tools::is_legacy_tool)
}

fn take_tools(fields: &mut ChatFields) -> Result<Vec<ToolDefinition>, DialectError> {
    let (tools, functions) = (fields.list("tools")?, fields.list("functions")?);
    let (tools, functions) = (tools.unwrap_or_default(), functions.unwrap_or_default());
    if tools.len() + functions.len() > CHAT_TOOLS_MAX {
        return Err(DialectError::TooMany { dialect: Dialect::Chat, of: "tools", max: CHAT_TOOLS_MAX });
    }
    let tools = tools.into_iter().enumerate().map(|(at, tool)| tools::read_tool(tool, format!("tools[{at}]")));
    let functions = functions.into_iter().enumerate();
    let functions = functions.map(|(at, tool)| tools::read_legacy_tool(tool, format!("functions[{at}]")));
    tools.chain(functions).collect()
}

/// Takes the wanted format. Members beside the known ones stay, and so does a format that the form cannot say.
fn take_output_format(fields: &mut ChatFields) -> Result<Option<OutputFormat>, DialectError> {
    let Some(mut format) = fields.object("response_format")? else { return Ok(None) };
    let kind = format.required_text("type")?;
    let read = match kind.as_str() {
        "text" => OutputFormat::Text,
        "json_object" => OutputFormat::JsonObject,
        "json_schema" => {
            let path = format.path_of("json_schema");
            let mut schema = format.object("json_schema")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
            let path = schema.path_of("schema");
            OutputFormat::JsonSchema(Box::new(JsonSchemaFormat {
                name: schema.text("name")?,
                description: schema.text("description")?,
                schema: schema.take("schema").ok_or_else(|| DialectError::malformed(path, "a JSON schema"))?,
                strict: schema.boolean("strict")?,
                extra: schema.into_extra(),
            }))
        }
        _ => {
            format.put("type", Value::String(kind));
            fields.put_rest("response_format", format);
            return Ok(None);
        }
    };
    fields.put_rest("response_format", format);
    Ok(Some(read))
}

fn take_sampling(fields: &mut ChatFields) -> Result<Sampling, DialectError> {
    let mut number = |name: &str| match fields.take(name) {
        Some(value) if !value.is_number() => Err(DialectError::malformed(name, "a number")),
        value => Ok(value),
    };
    Ok(Sampling {
        temperature: number("temperature")?,
        top_p: number("top_p")?,
        top_k: number("top_k")?,
        frequency_penalty: number("frequency_penalty")?,
        presence_penalty: number("presence_penalty")?,
        seed: number("seed")?,
        choices: fields.count("n")?,
        logprobs: fields.boolean("logprobs")?,
        top_logprobs: fields.count("top_logprobs")?,
        logit_bias: fields.take("logit_bias"),
    })
}

fn take_stop(fields: &mut ChatFields) -> Result<Vec<String>, DialectError> {
    let expected = || DialectError::malformed("stop", "a text or a list of texts");
    match fields.take("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(stop)) => Ok(vec![stop]),
        Some(Value::Array(stops)) => {
            stops.into_iter().map(|stop| stop.as_str().map(str::to_owned).ok_or_else(expected)).collect()
        }
        Some(_) => Err(expected()),
    }
}

fn take_reasoning(fields: &mut ChatFields) -> Result<Option<ReasoningSettings>, DialectError> {
    let effort = fields.text("reasoning_effort")?.map(|effort| match effort.as_str() {
        "none" => ReasoningEffort::None,
        "minimal" => ReasoningEffort::Minimal,
        "low" => ReasoningEffort::Low,
        "medium" => ReasoningEffort::Medium,
        "high" => ReasoningEffort::High,
        "xhigh" => ReasoningEffort::ExtraHigh,
        _ => ReasoningEffort::Other(effort),
    });
    let (enabled, budget_tokens) = (fields.boolean("reasoning_enabled")?, fields.count("reasoning_budget")?);
    let is_set = effort.is_some() || enabled.is_some() || budget_tokens.is_some();
    Ok(is_set.then(|| ReasoningSettings { enabled, effort, budget_tokens, ..ReasoningSettings::default() }))
}

fn take_include_usage(fields: &mut ChatFields) -> Result<bool, DialectError> {
    let Some(mut options) = fields.object("stream_options")? else { return Ok(false) };
    let include_usage = options.boolean("include_usage")?;
    fields.put_rest("stream_options", options);
    Ok(include_usage.unwrap_or(false))
}

/// Writes a request of chat completions for a server that the options describe.
pub fn write_request(request: &ModelRequest, options: &WriteOptions) -> Result<WrittenRequest, DialectError> {
    let mut dropped = dropped_fields(request);
    let mut map = Map::new();
    map.insert("model".to_owned(), Value::String(request.model.clone()));
    map.insert("messages".to_owned(), Value::Array(messages::write_messages(&request.messages)?));
    put_tools(&mut map, request)?;
    put_output_format(&mut map, request.output_format.as_ref());
    let spelling = request.extra.spelling();
    let is_from_chat = [FROM_CHAT, FROM_CHAT_COMPLETION_TOKENS].map(Some).contains(&spelling);
    put_sampling(&mut map, &request.sampling, is_from_chat, &mut dropped);
    let is_completion = spelling == Some(FROM_CHAT_COMPLETION_TOKENS);
    let max_name = if is_completion { "max_completion_tokens" } else { "max_tokens" };
    put_some(&mut map, max_name, request.max_output_tokens);
    if !request.stop.is_empty() {
        map.insert("stop".to_owned(), json!(request.stop));
    }
    if let Some(reasoning) = &request.reasoning {
        put_some(&mut map, "reasoning_effort", reasoning.effort.as_ref().map(effort_name));
        put_some(&mut map, "reasoning_enabled", reasoning.enabled);
        put_some(&mut map, "reasoning_budget", reasoning.budget_tokens);
        dropped.extend(reasoning.include_text.map(|_| "reasoning.summary".to_owned()));
    }
    if request.stream {
        map.insert("stream".to_owned(), Value::Bool(true));
    }
    if request.include_usage {
        map.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    put_some(&mut map, "user", request.user.clone());
    match &request.metadata {
        Some(metadata) if is_from_chat => {
            map.insert("metadata".to_owned(), Value::Object(metadata.clone()));
        }
        metadata => dropped.extend(metadata.as_ref().map(|_| "metadata".to_owned())),
    }
    put_extra(&mut map, &request.extra);
    let mut body = Value::Object(map);
    dropped.extend(quirks::adapt(&mut body, options)?);
    let mut names = HashSet::new();
    dropped.retain(|name| names.insert(name.clone()));
    Ok(WrittenRequest { body, dropped })
}

fn put_tools(map: &mut Map<String, Value>, request: &ModelRequest) -> Result<(), DialectError> {
    let (mut functions, mut others) = (Vec::new(), Vec::new());
    for (at, tool) in request.tools.iter().enumerate() {
        let list = if tools::is_legacy_tool(tool) { &mut functions } else { &mut others };
        list.push(tools::write_tool(tool, &format!("tools[{at}]"))?);
    }
    let is_from_chat = request.extra.spelling().is_some();
    if asks_for_function_call(request) {
        if let Some(choice) = &request.tool_choice {
            map.insert("function_call".to_owned(), tools::write_legacy_choice(choice, "function_call")?);
        }
    } else if !request.tools.is_empty() || is_from_chat {
        put_some(map, "tool_choice", request.tool_choice.as_ref().map(tools::write_tool_choice));
        put_some(map, "parallel_tool_calls", request.parallel_tool_calls);
    }
    for (name, list) in [("tools", others), ("functions", functions)] {
        if !list.is_empty() {
            map.insert(name.to_owned(), Value::Array(list));
        }
    }
    Ok(())
}

fn put_output_format(map: &mut Map<String, Value>, format: Option<&OutputFormat>) {
    let written = match format {
        None => return,
        Some(OutputFormat::Text) => json!({ "type": "text" }),
        Some(OutputFormat::JsonObject) => json!({ "type": "json_object" }),
        Some(OutputFormat::JsonSchema(format)) => {
            let mut schema = Map::new();
            // the name is required
            let name = format.name.clone().unwrap_or_else(|| "answer".to_owned());
            schema.insert("name".to_owned(), Value::String(name));
            put_some(&mut schema, "description", format.description.clone());
            schema.insert("schema".to_owned(), format.schema.clone());
            put_some(&mut schema, "strict", format.strict);
            put_extra(&mut schema, &format.extra);
            json!({ "type": "json_schema", "json_schema": schema })
        }
    };
    map.insert("response_format".to_owned(), written);
}

fn put_sampling(map: &mut Map<String, Value>, sampling: &Sampling, is_from_chat: bool, dropped: &mut Vec<String>) {
    put_some(map, "temperature", sampling.temperature.clone());
    put_some(map, "top_p", sampling.top_p.clone());
    // no parameter of OpenAI's, which refuses it
    if is_from_chat {
        put_some(map, "top_k", sampling.top_k.clone());
    } else {
        dropped.extend(sampling.top_k.as_ref().map(|_| "top_k".to_owned()));
    }
    put_some(map, "frequency_penalty", sampling.frequency_penalty.clone());
    put_some(map, "presence_penalty", sampling.presence_penalty.clone());
    put_some(map, "seed", sampling.seed.clone());
    put_some(map, "n", sampling.choices);
    put_some(map, "logprobs", sampling.logprobs);
    put_some(map, "top_logprobs", sampling.top_logprobs);
    put_some(map, "logit_bias", sampling.logit_bias.clone());
}

fn effort_name(effort: &ReasoningEffort) -> &str {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::ExtraHigh => "xhigh",
        ReasoningEffort::Other(other) => other,
    }
}

/// Names of the fields of other dialects that the request has at any level.
fn dropped_fields(request: &ModelRequest) -> Vec<String> {
    let mut dropped = Vec::new();
    let mut add = |extra: &Extra| dropped.extend(extra.dropped_by(Dialect::Chat).map(str::to_owned));
    add(&request.extra);
    request.reasoning.iter().for_each(|reasoning| add(&reasoning.extra));
    request.tools.iter().filter(|tool| !tool.name.is_empty()).for_each(|tool| add(&tool.extra));
    if let Some(OutputFormat::JsonSchema(format)) = &request.output_format {
        add(&format.extra);
    }
    for message in &request.messages {
        add(&message.extra);
        for part in &message.parts {
            add_part(part, &mut add);
            if let ContentPart::ToolResult(result) = part {
                result.content.iter().for_each(|part| add_part(part, &mut add));
            }
        }
    }
    dropped
}

fn add_part(part: &ContentPart, add: &mut impl FnMut(&Extra)) {
    match part {
        ContentPart::Text(part) | ContentPart::Refusal(part) => add(&part.extra),
        ContentPart::Image { extra, .. } | ContentPart::Audio { extra, .. } => add(extra),
        ContentPart::File(part) => add(&part.extra),
        ContentPart::ToolCall(part) => add(&part.extra),
        ContentPart::ToolResult(part) => add(&part.extra),
        ContentPart::Reasoning(part) => add(&part.extra),
        ContentPart::Foreign { .. } => {}
    }
}

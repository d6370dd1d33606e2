//! Writer of requests to `converse` and `converse-stream`.

use serde_json::{Map, Value, json};

use super::reasoning::{ConverseReasoning, ModelMaker, plan_reasoning};
use super::tools::{is_unanswered, native_schema, tool_config};
use crate::blocks::{ConverseBlockWriter, PartBlocks};
use crate::dropped::ConverseDropped;
use crate::{MESSAGES_MAX, STOP_SEQUENCES_MAX};
use assay_node_dialects::form::{Message, ModelRequest, OutputFormat, Role, Sampling};
use assay_node_dialects::{DialectError, WriteOptions, WrittenRequest};

/// Highest temperature.
const TEMPERATURE_MAX: f64 = 1.0;

/// Writes a body of `POST /model/{model}/converse` or `converse-stream`, which are the same.
pub fn write_request(request: &ModelRequest, options: &WriteOptions) -> Result<WrittenRequest, DialectError> {
    if request.messages.len() > MESSAGES_MAX {
        return Err(DialectError::unsupported("messages", format!("more than {MESSAGES_MAX} messages")));
    }
    if request.stop.len() > STOP_SEQUENCES_MAX {
        return Err(DialectError::unsupported("stop", format!("more than {STOP_SEQUENCES_MAX} stop sequences")));
    }
    let mut writer = ConverseBlockWriter::new(options.refuses_cache_control);
    let mut body = Map::new();
    let messages = write_messages(&request.messages, &mut writer)?;
    let system = write_system(&request.messages, &mut writer)?;
    if !system.is_empty() {
        body.insert("system".to_owned(), system.into());
    }
    body.insert("messages".to_owned(), messages.into());
    let reasoning = plan_reasoning(request, options, &mut writer.dropped);
    let tools = tool_config(request, options, reasoning.thinks, &mut writer)?;
    let mut dropped = writer.dropped;
    let (inference, fields) = sampling(request, options, reasoning.max_tokens, &reasoning, &mut dropped);
    if !inference.is_empty() {
        body.insert("inferenceConfig".to_owned(), inference.into());
    }
    if let Some(tools) = tools {
        body.insert("toolConfig".to_owned(), tools);
    }
    let output = output_config(request, options, &reasoning, &mut dropped);
    if !output.is_empty() {
        body.insert("outputConfig".to_owned(), output.into());
    }
    if !fields.is_empty() {
        body.insert("additionalModelRequestFields".to_owned(), fields.into());
    }
    note_rest(request, &mut dropped);
    Ok(WrittenRequest { body: Value::Object(body), dropped: dropped.into_names() })
}

fn is_instruction(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

fn write_parts(
    index: usize,
    message: &Message,
    writer: &mut ConverseBlockWriter,
) -> Result<Vec<PartBlocks>, DialectError> {
    writer.dropped.add_extra(&message.extra);
    writer.dropped.add_if("name", message.name.is_some());
    writer.parts(message.role, &message.parts, &format!("messages[{index}].content"))
}

/// Joins all instructions.
fn write_system(messages: &[Message], writer: &mut ConverseBlockWriter) -> Result<Vec<Value>, DialectError> {
    let mut blocks = Vec::new();
    for (index, message) in messages.iter().enumerate().filter(|(_, message)| is_instruction(message)) {
        blocks.extend(write_parts(index, message, writer)?.into_iter().flat_map(|part| part.blocks));
    }
    Ok(blocks)
}

/// Joins neighbours of one role. Results of tools come before other content of their message.
fn write_messages(messages: &[Message], writer: &mut ConverseBlockWriter) -> Result<Vec<Value>, DialectError> {
    let mut joined: Vec<(&str, Vec<PartBlocks>)> = Vec::new();
    for (index, message) in messages.iter().enumerate().filter(|(_, message)| !is_instruction(message)) {
        let parts = write_parts(index, message, writer)?;
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        match joined.last_mut().filter(|(last, _)| *last == role) {
            Some((_, kept)) => kept.extend(parts),
            None if parts.is_empty() => {}
            None => joined.push((role, parts)),
        }
    }
    let write = |(role, mut parts): (&str, Vec<PartBlocks>)| {
        parts.sort_by_key(|part| !part.is_tool_result);
        let content: Vec<Value> = parts.into_iter().flat_map(|part| part.blocks).collect();
        json!({"role": role, "content": content})
    };
    Ok(joined.into_iter().map(write).collect())
}

/// Returns `inferenceConfig`, and the fields that only some models take.
fn sampling(
    request: &ModelRequest,
    options: &WriteOptions,
    max_tokens: Option<u64>,
    reasoning: &ConverseReasoning,
    dropped: &mut ConverseDropped,
) -> (Map<String, Value>, Map<String, Value>) {
    let Sampling { temperature, top_p, top_k, .. } = &request.sampling;
    let is_claude = ModelMaker::of(&request.model) == ModelMaker::Anthropic;
    let refuses_sampling = is_claude && options.adaptive_thinking;
    let (mut inference, mut fields) = (Map::new(), reasoning.fields.clone());
    if let Some(max_tokens) = max_tokens.filter(|max_tokens| *max_tokens > 0) {
        inference.insert("maxTokens".to_owned(), max_tokens.into());
    }
    if let Some(temperature) = temperature {
        let is_too_high = temperature.as_f64().is_some_and(|number| number > TEMPERATURE_MAX);
        // Claude thinks at its default temperature only
        if refuses_sampling || reasoning.thinks {
            dropped.add_if("temperature", temperature.as_f64() != Some(TEMPERATURE_MAX));
        } else {
            dropped.add_if("temperature", is_too_high);
            inference.insert("temperature".to_owned(), if is_too_high { 1.into() } else { temperature.clone() });
        }
    }
    if let Some(top_p) = top_p {
        // newer models of Claude refuse the two together
        if refuses_sampling || reasoning.thinks || (is_claude && temperature.is_some()) {
            dropped.add("top_p");
        } else {
            inference.insert("topP".to_owned(), top_p.clone());
        }
    }
    if let Some(top_k) = top_k {
        if is_claude && !refuses_sampling && !reasoning.thinks {
            fields.insert("top_k".to_owned(), top_k.clone());
        } else {
            dropped.add("top_k");
        }
    }
    let stop: Vec<&str> = request.stop.iter().map(String::as_str).filter(|stop| !stop.trim().is_empty()).collect();
    dropped.add_if("stop", stop.len() < request.stop.len());
    if !stop.is_empty() {
        inference.insert("stopSequences".to_owned(), stop.into());
    }
    (inference, fields)
}

/// Writes the schema and the effort of an answer.
fn output_config(
    request: &ModelRequest,
    options: &WriteOptions,
    reasoning: &ConverseReasoning,
    dropped: &mut ConverseDropped,
) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(OutputFormat::JsonSchema(format)) = &request.output_format {
        dropped.add_extra(&format.extra);
    }
    dropped.add_if("response_format", is_unanswered(request, options));
    if let Some(format) = native_schema(request, options) {
        let mut schema = json!({"schema": format.schema.to_string()});
        for (name, value) in [("name", &format.name), ("description", &format.description)] {
            if let Some(value) = value {
                schema[name] = value.clone().into();
            }
        }
        let text_format = json!({"type": "json_schema", "structure": {"jsonSchema": schema}});
        config.insert("textFormat".to_owned(), text_format);
    }
    if let Some(effort) = reasoning.effort {
        config.insert("effort".to_owned(), effort.into());
    }
    config
}

/// Names parameters that the API does not have.
fn note_rest(request: &ModelRequest, dropped: &mut ConverseDropped) {
    let sampling = &request.sampling;
    for (name, is_there) in [
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("seed", sampling.seed.is_some()),
        ("n", sampling.choices.is_some_and(|choices| choices != 1)),
        ("logprobs", sampling.logprobs == Some(true)),
        ("top_logprobs", sampling.top_logprobs.is_some()),
        ("logit_bias", sampling.logit_bias.is_some()),
        ("user", request.user.is_some()),
        ("metadata", request.metadata.is_some()),
    ] {
        dropped.add_if(name, is_there);
    }
    dropped.add_extra(&request.extra);
}

//! The internal form to bodies of requests.

use serde_json::{Map, Value};

use super::output::{is_unanswered, native_schema};
use super::thinking::{AnthropicThinking, plan_thinking};
use super::tools::put_tools;
use crate::block_writer::{AnthropicBlockWriter, AnthropicDropped, lone_text};
use crate::fields::{check_count, put, put_back, typed};
use crate::{MESSAGES_MAX, STOP_SEQUENCES_MAX};
use assay_node_dialects::form::{Message, ModelRequest, OutputFormat, Role, Sampling};
use assay_node_dialects::{Dialect, DialectError, WriteOptions, WrittenRequest};

/// Parameters of the gateway, which no model server gets.
const NEVER_SENT: [&str; 3] = ["use_cache", "reasoning_enabled", "reasoning_budget"];
/// Longest identity of an end user.
const USER_BYTES_MAX: usize = 256;
/// Highest temperature.
const TEMPERATURE_MAX: f64 = 1.0;

/// Writes a body of `POST /v1/messages`.
pub fn write_request(request: &ModelRequest, options: &WriteOptions) -> Result<WrittenRequest, DialectError> {
    let is_own = request.extra.dialect() == Some(Dialect::Anthropic);
    check_count(request.messages.len(), "messages", MESSAGES_MAX)?;
    check_count(request.stop.len(), "stop sequences", STOP_SEQUENCES_MAX)?;
    let mut writer = AnthropicBlockWriter::new(is_own);
    let thinking = plan_thinking(request, options, is_own, &mut writer.dropped);
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    body.insert("max_tokens".into(), thinking.max_tokens.into());
    put(&mut body, "system", write_system(&request.messages, &mut writer)?);
    body.insert("messages".into(), write_messages(&request.messages, &mut writer)?.into());
    let mut dropped = writer.dropped;
    put_tools(&mut body, request, options, &thinking, &mut dropped)?;
    put_output(&mut body, request, options, &thinking, &mut dropped);
    put_sampling(&mut body, request, options, &thinking, &mut dropped);
    put_rest(&mut body, request, &mut dropped);
    put(&mut body, "thinking", thinking.thinking);
    put(&mut body, "stream", request.stream.then_some(true));
    dropped.add_extra(&request.extra);
    put_back(&mut body, &request.extra);
    NEVER_SENT.iter().for_each(|name| drop(body.shift_remove(*name)));
    Ok(WrittenRequest { body: Value::Object(body), dropped: dropped.into_names() })
}

fn is_instruction(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// Joins all instructions: one text is written as such, several are blocks.
fn write_system(messages: &[Message], writer: &mut AnthropicBlockWriter) -> Result<Option<Value>, DialectError> {
    let mut blocks = Vec::new();
    for (index, message) in messages.iter().enumerate().filter(|(_, message)| is_instruction(message)) {
        note_message(message, writer);
        blocks.extend(writer.blocks(message.role, &message.parts, &format!("messages[{index}].content"))?);
    }
    Ok((!blocks.is_empty()).then(|| lone_text(blocks)))
}

fn note_message(message: &Message, writer: &mut AnthropicBlockWriter) {
    writer.dropped.add_extra(&message.extra);
    if message.name.is_some() {
        writer.dropped.add("name");
    }
}

/// Message under construction: blocks of neighbours of one role.
struct AnthropicMessage<'a> {
    role: &'static str,
    blocks: Vec<Value>,
    first: &'a Message,
}

/// Joins neighbours of one role. Results of tools come before other content of their message.
fn write_messages(messages: &[Message], writer: &mut AnthropicBlockWriter) -> Result<Vec<Value>, DialectError> {
    let mut joined: Vec<AnthropicMessage<'_>> = Vec::new();
    for (index, message) in messages.iter().enumerate().filter(|(_, message)| !is_instruction(message)) {
        note_message(message, writer);
        let blocks = writer.blocks(message.role, &message.parts, &format!("messages[{index}].content"))?;
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let joins = message.extra.for_dialect(Dialect::Anthropic).is_none();
        match joined.last_mut().filter(|last| last.role == role && joins) {
            Some(last) => last.blocks.extend(blocks),
            None if blocks.is_empty() => {}
            None => joined.push(AnthropicMessage { role, blocks, first: message }),
        }
    }
    let write = |mut message: AnthropicMessage<'_>| {
        message.blocks.sort_by_key(|block| block.get("type").is_none_or(|kind| kind != "tool_result"));
        let mut fields = Map::new();
        fields.insert("role".into(), message.role.into());
        fields.insert("content".into(), lone_text(message.blocks));
        put_back(&mut fields, &message.first.extra);
        Value::Object(fields)
    };
    Ok(joined.into_iter().map(write).collect())
}

/// Writes `output_config`, or a schema in its older place.
fn put_output(
    body: &mut Map<String, Value>,
    request: &ModelRequest,
    options: &WriteOptions,
    thinking: &AnthropicThinking,
    dropped: &mut AnthropicDropped,
) {
    if let Some(OutputFormat::JsonSchema(format)) = &request.output_format {
        dropped.add_extra(&format.extra);
    }
    if is_unanswered(request, options) {
        dropped.add("response_format");
    }
    let format = native_schema(request, options).map(|format| {
        let mut written = typed("json_schema");
        written.insert("schema".into(), format.schema.clone());
        put_back(&mut written, &format.extra);
        if format.description.is_some() {
            dropped.add("response_format.description");
        }
        written
    });
    let mut config = Map::new();
    put(&mut config, "effort", thinking.effort.clone());
    let place = if options.schema_in_output_format { &mut *body } else { &mut config };
    put(place, if options.schema_in_output_format { "output_format" } else { "format" }, format);
    put(body, "output_config", (!config.is_empty()).then_some(config));
}

/// Writes numbers that tune the answer, within what the API takes of them.
fn put_sampling(
    body: &mut Map<String, Value>,
    request: &ModelRequest,
    options: &WriteOptions,
    thinking: &AnthropicThinking,
    dropped: &mut AnthropicDropped,
) {
    let sampling = &request.sampling;
    note_sampling(sampling, dropped);
    let (mut temperature, mut top_p, mut top_k) =
        (sampling.temperature.clone(), sampling.top_p.clone(), sampling.top_k.clone());
    if request.extra.dialect() != Some(Dialect::Anthropic) {
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
        if number(&temperature).is_some_and(|number| number > TEMPERATURE_MAX) {
            temperature = Some(Value::from(1));
            dropped.add("temperature");
        }
        if options.adaptive_thinking {
            leave_out(&mut temperature, "temperature", dropped);
        } else if thinking.is_on {
            if number(&temperature).is_some_and(|number| number != TEMPERATURE_MAX) {
                dropped.add("temperature");
            }
            temperature = Some(Value::from(1));
        }
        // newer models refuse the two together
        if options.adaptive_thinking || temperature.is_some() {
            leave_out(&mut top_p, "top_p", dropped);
        }
        if options.adaptive_thinking || thinking.is_on {
            leave_out(&mut top_k, "top_k", dropped);
        }
    }
    put(body, "temperature", temperature);
    put(body, "top_p", top_p);
    put(body, "top_k", top_k);
}

fn leave_out(value: &mut Option<Value>, name: &str, dropped: &mut AnthropicDropped) {
    if value.take().is_some() {
        dropped.add(name);
    }
}

/// Names parameters that the API does not have.
fn note_sampling(sampling: &Sampling, dropped: &mut AnthropicDropped) {
    let missing = [
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("seed", sampling.seed.is_some()),
        ("n", sampling.choices.is_some_and(|choices| choices != 1)),
        ("logprobs", sampling.logprobs == Some(true)),
        ("top_logprobs", sampling.top_logprobs.is_some()),
        ("logit_bias", sampling.logit_bias.is_some()),
    ];
    missing.into_iter().filter(|(_, is_there)| *is_there).for_each(|(name, _)| dropped.add(name));
}

/// Writes stop sequences and the identity of the user.
fn put_rest(body: &mut Map<String, Value>, request: &ModelRequest, dropped: &mut AnthropicDropped) {
    let is_own = request.extra.dialect() == Some(Dialect::Anthropic);
    let is_taken = |stop: &&String| is_own || !stop.trim().is_empty();
    let stop: Vec<Value> = request.stop.iter().filter(is_taken).map(|stop| Value::from(stop.as_str())).collect();
    if stop.len() < request.stop.len() {
        dropped.add("stop");
    }
    put(body, "stop_sequences", (!stop.is_empty()).then_some(stop));
    let user = request.user.as_ref().filter(|user| is_own || user.len() <= USER_BYTES_MAX);
    if user.is_none() && request.user.is_some() {
        dropped.add("user");
    }
    put(body, "metadata", user.map(|user| Map::from_iter([("user_id".to_owned(), Value::from(user.as_str()))])));
    if request.metadata.is_some() {
        dropped.add("metadata");
    }
}

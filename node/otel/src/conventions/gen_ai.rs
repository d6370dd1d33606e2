//! Semantic conventions `gen_ai.*` of OpenTelemetry in all versions, as attributes and as events.
//!
//! Several conventions extend them. Their names that begin with `gen_ai.` are also here.

use serde_json::{Map, Value};

use super::kind_of;
use crate::attributes::Attributes;
use crate::draft::{Convention, MetricAttribute, SILENT, Source};
use crate::value::{parse, parse_meant};

pub(super) const CONVENTION: Convention = Convention {
    signs: &["gen_ai."],
    span_type,
    llm: &[
        "gen_ai.prompt",
        "gen_ai.prompt.0.",
        "gen_ai.prompt_json",
        "gen_ai.completion",
        "gen_ai.completion.0.",
        "gen_ai.completion_json",
        "gen_ai.content.",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.request.",
        "gen_ai.response.",
        "gen_ai.usage.",
    ],
    input: &[
        Source::Several(input_messages),
        Source::List("gen_ai.prompt.", message),
        Source::Json("gen_ai.prompt_json"),
        Source::Json("gen_ai.prompt"),
        Source::Json("gen_ai.content.prompt"),
        Source::Json("gen_ai.tool.call.arguments"),
        Source::Plain("gen_ai.retrieval.query.text"),
        Source::Plain("gen_ai.memory.query.text"),
        Source::Several(|attributes| memory_records(attributes, false)),
    ],
    output: &[
        Source::Json("gen_ai.output.messages"),
        Source::List("gen_ai.completion.", message),
        Source::Json("gen_ai.completion_json"),
        Source::Json("gen_ai.completion"),
        Source::Json("gen_ai.content.completion"),
        Source::Json("gen_ai.tool.call.result"),
        Source::Json("gen_ai.retrieval.documents"),
        Source::Several(|attributes| memory_records(attributes, true)),
    ],
    metadata: &[
        ("gen_ai.request.model", "model"),
        ("gen_ai.response.model", "model"),
        ("gen_ai.provider.name", "provider"),
        ("gen_ai.system", "provider"),
        ("gen_ai.request.temperature", "temperature"),
        ("gen_ai.request.top_p", "top_p"),
        ("gen_ai.request.top_k", "top_k"),
        ("gen_ai.request.max_tokens", "max_tokens"),
        ("gen_ai.request.frequency_penalty", "frequency_penalty"),
        ("gen_ai.request.presence_penalty", "presence_penalty"),
        ("gen_ai.request.stop_sequences", "stop"),
        ("gen_ai.request.seed", "seed"),
        ("gen_ai.openai.request.seed", "seed"),
        ("gen_ai.request.choice.count", "n"),
        ("gen_ai.request.stream", "stream"),
    ],
    payloads: &[(Source::Json("gen_ai.tool.definitions"), "tools"), (Source::Json("gen_ai.request.tools"), "tools")],
    metrics: &[
        MetricAttribute("gen_ai.usage.input_tokens", "prompt_tokens", 1.0),
        MetricAttribute("gen_ai.usage.prompt_tokens", "prompt_tokens", 1.0),
        MetricAttribute("gen_ai.usage.output_tokens", "completion_tokens", 1.0),
        MetricAttribute("gen_ai.usage.completion_tokens", "completion_tokens", 1.0),
        MetricAttribute("gen_ai.usage.total_tokens", "tokens", 1.0),
        MetricAttribute("gen_ai.usage.cache_read.input_tokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("gen_ai.usage.cache_read_input_tokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("gen_ai.usage.input_tokens.cached", "prompt_cached_tokens", 1.0),
        MetricAttribute("gen_ai.usage.cached_tokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("gen_ai.usage.details.cache_read_tokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("gen_ai.usage.details.cache_read_input_tokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("gen_ai.usage.cache_creation.input_tokens", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("gen_ai.usage.cache_creation_input_tokens", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("gen_ai.usage.input_tokens.cache_write", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("gen_ai.usage.details.cache_write_tokens", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("gen_ai.usage.details.cache_creation_input_tokens", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("gen_ai.usage.reasoning.output_tokens", "completion_reasoning_tokens", 1.0),
        MetricAttribute("gen_ai.usage.reasoning_tokens", "completion_reasoning_tokens", 1.0),
        MetricAttribute("gen_ai.usage.output_tokens.reasoning", "completion_reasoning_tokens", 1.0),
        MetricAttribute("gen_ai.usage.details.reasoning_tokens", "completion_reasoning_tokens", 1.0),
        MetricAttribute("gen_ai.usage.cost", "estimated_cost", 1.0),
        MetricAttribute("gen_ai.response.time_to_first_chunk", "time_to_first_token", 1.0),
        MetricAttribute("gen_ai.client.operation.time_to_first_chunk", "time_to_first_token", 1.0),
        MetricAttribute("gen_ai.server.time_to_first_token", "time_to_first_token", 1.0),
    ],
    ..SILENT
};

/// Span types by `gen_ai.operation.name`.
const OPERATIONS: &[(&str, &str)] = &[
    ("chat", "llm"),
    ("generate_content", "llm"),
    ("text_completion", "llm"),
    ("completion", "llm"),
    ("embeddings", "llm"),
    ("execute_tool", "tool"),
    ("create_agent", "task"),
    ("invoke_agent", "task"),
    ("invoke_workflow", "task"),
    ("plan", "task"),
    ("retrieval", "function"),
    ("create_memory", "function"),
    ("update_memory", "function"),
    ("upsert_memory", "function"),
    ("delete_memory", "function"),
    ("search_memory", "function"),
    ("create_memory_store", "function"),
    ("delete_memory_store", "function"),
];

fn span_type(attributes: &Attributes) -> Option<&'static str> {
    let operation = attributes.text("gen_ai.operation.name").and_then(|name| kind_of(OPERATIONS, name));
    let is_tool = || attributes.has("gen_ai.tool.name") || attributes.has("gen_ai.tool.call.");
    operation.or_else(|| is_tool().then_some("tool"))
}

/// Takes the input messages. The system instructions become the first one.
fn input_messages(attributes: &mut Attributes) -> Option<Value> {
    let messages = parse_meant(attributes.take("gen_ai.input.messages")?);
    let Value::Array(mut messages) = messages else { return Some(messages) };
    if let Some(instructions) = attributes.take("gen_ai.system_instructions").map(parse_meant) {
        let key = if instructions.is_array() { "parts" } else { "content" };
        let system = [("role".to_owned(), Value::from("system")), (key.to_owned(), instructions)];
        messages.insert(0, Value::Object(Map::from_iter(system)));
    }
    Some(Value::Array(messages))
}

/// Takes memory records, which are results or inputs depending on the operation.
fn memory_records(attributes: &mut Attributes, are_found: bool) -> Option<Value> {
    let is_search = attributes.text("gen_ai.operation.name") == Some("search_memory");
    if is_search == are_found { attributes.take("gen_ai.memory.records").map(parse_meant) } else { None }
}

/// Converts an element of `gen_ai.prompt.0.*`, whose content may be JSON text and whose tool calls are not nested.
pub(super) fn message(value: Value) -> Value {
    let Value::Object(mut message) = value else { return value };
    // Only content parts are parsed. Other JSON stays the text that the model wrote.
    if let Some(content) = message.get_mut("content")
        && let Some(parts) = content.as_str().filter(|text| text.starts_with('[')).and_then(parse)
        && parts.as_array().is_some_and(|parts| parts.iter().all(|part| part.get("type").is_some()))
    {
        *content = parts;
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            *call = tool_call(call.take());
        }
    }
    Value::Object(message)
}

pub(super) fn tool_call(value: Value) -> Value {
    let Value::Object(mut call) = value else { return value };
    if call.contains_key("function") {
        return Value::Object(call);
    }
    let function = ["name", "arguments"].into_iter().filter_map(|key| Some((key.to_owned(), call.shift_remove(key)?)));
    let function = Value::Object(function.collect());
    call.entry("type").or_insert_with(|| Value::from("function"));
    call.insert("function".to_owned(), function);
    Value::Object(call)
}

/// Roles of events that are messages. Only `gen_ai.choice` is an output.
const SPEAKERS: [(&str, &str, bool); 5] = [
    ("gen_ai.system.message", "system", true),
    ("gen_ai.user.message", "user", true),
    ("gen_ai.assistant.message", "assistant", true),
    ("gen_ai.tool.message", "tool", true),
    ("gen_ai.choice", "assistant", false),
];

/// Returns the message of an event, and whether it belongs to the input.
pub(crate) fn message_of_event(name: &str, attributes: &Map<String, Value>) -> Option<(Value, bool)> {
    let (_, role, is_input) = SPEAKERS.iter().find(|(speaker, ..)| *speaker == name)?;
    let whole = attributes.get("gen_ai.event.content").or_else(|| attributes.get("event.body"));
    let mut message = match whole.cloned().map(parse_meant) {
        Some(Value::Object(message)) => message,
        Some(content) => Map::from_iter([("content".to_owned(), content)]),
        None => attributes.iter().filter(|(key, _)| !key.starts_with("gen_ai.")).map(said).collect(),
    };
    if message.is_empty() {
        return None;
    }
    if *is_input || !message.contains_key("message") {
        message.entry("role").or_insert_with(|| Value::from(*role));
    }
    Some((Value::Object(message), *is_input))
}

fn said((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), parse_meant(value.clone()))
}

/// Returns all messages of an event that contains them in one attribute, and whether they are the input.
pub(crate) fn content_of_event(name: &str, attributes: &Map<String, Value>) -> Option<(Value, bool)> {
    let (key, is_input) = match name {
        "gen_ai.content.prompt" => ("gen_ai.prompt", true),
        "gen_ai.content.completion" => ("gen_ai.completion", false),
        _ => return None,
    };
    attributes.get(key).map(|content| (parse_meant(content.clone()), is_input))
}

/// Returns whether an event contains attributes of the span, which were written separately because of their size.
pub(crate) fn moves_to_span(name: &str) -> bool {
    name == "gen_ai.client.inference.operation.details"
}

/// Event with a judge's score for the span.
pub(crate) const EVALUATION_EVENT: &str = "gen_ai.evaluation.result";

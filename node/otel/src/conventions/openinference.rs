//! OpenInference: `openinference.span.kind`, `input.value`, `llm.*`, and the attributes of its other span kinds.

use serde_json::{Map, Value};

use super::kind_of;
use crate::attributes::Attributes;
use crate::draft::{Convention, Draft, MetricAttribute, SILENT, Source, object, texts};
use crate::value::{parse, parse_meant};

pub(super) const CONVENTION: Convention = Convention {
    signs: &[
        "openinference.",
        "llm.",
        "input.value",
        "output.value",
        "embedding.",
        "reranker.",
        "retrieval.documents.",
    ],
    span_type,
    llm: &[
        "llm.model_name",
        "llm.request.model_name",
        "llm.response.model_name",
        "llm.input_messages.",
        "llm.output_messages.",
        "llm.prompts.",
        "llm.completions.",
        "llm.choices.",
        "llm.token_count.",
        "llm.invocation_parameters",
        "embedding.model_name",
    ],
    input: &[
        Source::List("llm.input_messages.", message),
        Source::Json("llm.input_messages"),
        Source::List("llm.prompts.", message),
        Source::Json("llm.prompts"),
        Source::Several(|attributes| plain_or_json(attributes, "input.value", "input.mime_type")),
        Source::List("embedding.embeddings.", embedded_text),
        Source::Plain("embedding.text"),
        Source::Plain("reranker.query"),
        Source::Json("tool.parameters"),
    ],
    output: &[
        Source::List("llm.output_messages.", message),
        Source::Json("llm.output_messages"),
        Source::List("llm.completions.", message),
        Source::List("llm.choices.", message),
        Source::List("reranker.output_documents.", document),
        Source::List("retrieval.documents.", document),
        Source::Several(|attributes| plain_or_json(attributes, "output.value", "output.mime_type")),
    ],
    metadata: &[
        ("llm.request.model_name", "model"),
        ("llm.model_name", "model"),
        ("llm.response.model_name", "model"),
        ("embedding.model_name", "model"),
        ("reranker.model_name", "model"),
        ("llm.provider", "provider"),
        ("llm.system", "provider"),
    ],
    payloads: &[(Source::List("llm.tools.", tool), "tools")],
    metrics: &[
        MetricAttribute("llm.token_count.prompt", "prompt_tokens", 1.0),
        MetricAttribute("llm.token_count.completion", "completion_tokens", 1.0),
        MetricAttribute("llm.token_count.total", "tokens", 1.0),
        MetricAttribute("llm.token_count.prompt_details.cache_read", "prompt_cached_tokens", 1.0),
        MetricAttribute("llm.token_count.prompt_details.cache_input", "prompt_cached_tokens", 1.0),
        MetricAttribute("llm.token_count.prompt_details.cache_write", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("llm.token_count.completion_details.reasoning", "completion_reasoning_tokens", 1.0),
        MetricAttribute("llm.cost.total", "estimated_cost", 1.0),
    ],
    before,
    ..SILENT
};

/// Span types by `openinference.span.kind`.
const KINDS: &[(&str, &str)] = &[
    ("LLM", "llm"),
    ("EMBEDDING", "llm"),
    ("TOOL", "tool"),
    ("CHAIN", "task"),
    ("AGENT", "task"),
    ("RETRIEVER", "function"),
    ("RERANKER", "function"),
    ("GUARDRAIL", "function"),
    ("PROMPT", "function"),
    ("DECISION", "function"),
    ("EVALUATOR", "score"),
];

fn span_type(attributes: &Attributes) -> Option<&'static str> {
    kind_of(KINDS, attributes.text("openinference.span.kind")?)
}

/// Adds the parameters of the call, and the application's metadata and tags.
fn before(attributes: &mut Attributes, draft: &mut Draft) {
    if attributes.has("openinference.span.kind") {
        draft.add_metadata(attributes.take_if("metadata", object).unwrap_or_default());
        draft.tag(attributes.take_if("tag.tags", texts).unwrap_or_default());
    }
    let parameters = attributes.get("llm.invocation_parameters").and_then(object);
    draft.add_metadata(parameters.unwrap_or_default());
}

/// Takes a text that another attribute may declare as JSON. Without a declaration, the text is parsed if it looks like
/// JSON.
fn plain_or_json(attributes: &mut Attributes, name: &str, mime_type: &str) -> Option<Value> {
    let is_plain = attributes.text(mime_type).is_some_and(|mime_type| mime_type.starts_with("text/"));
    let is_json = attributes.text(mime_type).is_some_and(|mime_type| mime_type.contains("json"));
    let value = attributes.take(name)?;
    match &value {
        _ if is_plain => Some(value),
        Value::String(text) if is_json => Some(parse(text).unwrap_or(value)),
        _ => Some(parse_meant(value)),
    }
}

/// Converts `{"message": {...}}`, in which content parts and tool calls are wrapped, too.
fn message(value: Value) -> Value {
    let value = unwrapped(value, &["message", "prompt", "completion"]);
    let Value::Object(mut message) = value else { return value };
    if let Some(Value::Array(parts)) = message.shift_remove("contents") {
        let parts = parts.into_iter().map(|part| content(unwrapped(part, &["message_content"]))).collect();
        message.entry("content").or_insert(Value::Array(parts));
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls {
            *call = super::gen_ai::tool_call(unwrapped(call.take(), &["tool_call"]));
        }
    }
    Value::Object(message)
}

/// Converts a content part. Images get the form of common model APIs.
fn content(part: Value) -> Value {
    let Value::Object(mut part) = part else { return part };
    if let Some(image) = part.shift_remove("image") {
        part.insert("type".to_owned(), Value::from("image_url"));
        part.insert("image_url".to_owned(), unwrapped(image, &["image"]));
    }
    Value::Object(part)
}

fn embedded_text(value: Value) -> Value {
    unwrapped(unwrapped(value, &["embedding"]), &["text"])
}

fn document(value: Value) -> Value {
    let value = unwrapped(value, &["document"]);
    let Value::Object(mut document) = value else { return value };
    if let Some(metadata) = document.get_mut("metadata") {
        *metadata = parse_meant(metadata.take());
    }
    Value::Object(document)
}

fn tool(value: Value) -> Value {
    parse_meant(unwrapped(unwrapped(value, &["tool"]), &["json_schema"]))
}

/// Returns the only member of an object, if it is a wrapper.
fn unwrapped(value: Value, wrappers: &[&str]) -> Value {
    let is_wrapper =
        |map: &Map<String, Value>| map.len() == 1 && wrappers.iter().any(|wrapper| map.contains_key(*wrapper));
    match value {
        Value::Object(map) if is_wrapper(&map) => map.into_iter().next().map_or(Value::Null, |(_, within)| within),
        other => other,
    }
}

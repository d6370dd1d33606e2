//! OpenLLMetry: `traceloop.*` and its own `llm.*`. For messages, it uses the common conventions.

use serde_json::Value;

use super::kind_of;
use crate::attributes::Attributes;
use crate::draft::{Convention, MetricAttribute, SILENT, Source};
use crate::value::parse_meant;

pub(super) const CONVENTION: Convention = Convention {
    signs: &["traceloop.", "llm."],
    span_type,
    llm: &["llm.usage.", "llm.request.model", "llm.response.model", "llm.request.max_tokens"],
    input: &[Source::Json("traceloop.entity.input")],
    output: &[Source::Json("traceloop.entity.output")],
    metadata: &[
        ("llm.request.model", "model"),
        ("llm.response.model", "model"),
        ("llm.vendor", "provider"),
        ("llm.temperature", "temperature"),
        ("llm.request.temperature", "temperature"),
        ("llm.top_p", "top_p"),
        ("llm.top_k", "top_k"),
        ("llm.request.max_tokens", "max_tokens"),
        ("llm.frequency_penalty", "frequency_penalty"),
        ("llm.presence_penalty", "presence_penalty"),
        ("llm.chat.stop_sequences", "stop"),
        ("llm.is_streaming", "stream"),
    ],
    payloads: &[(Source::List("llm.request.functions.", function), "tools")],
    metrics: &[
        MetricAttribute("llm.usage.prompt_tokens", "prompt_tokens", 1.0),
        MetricAttribute("llm.usage.completion_tokens", "completion_tokens", 1.0),
        MetricAttribute("llm.usage.total_tokens", "tokens", 1.0),
        MetricAttribute("llm.usage.cache_read_input_tokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("llm.usage.cache_creation_input_tokens", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("llm.usage.reasoning_tokens", "completion_reasoning_tokens", 1.0),
    ],
    ..SILENT
};

/// Span types by `traceloop.span.kind`.
const KINDS: &[(&str, &str)] =
    &[("workflow", "task"), ("task", "task"), ("agent", "task"), ("tool", "tool"), ("llm", "llm")];

/// Span types by `llm.request.type`.
const REQUESTS: &[(&str, &str)] =
    &[("chat", "llm"), ("completion", "llm"), ("embedding", "llm"), ("rerank", "function")];

fn span_type(attributes: &Attributes) -> Option<&'static str> {
    let kind = attributes.text("traceloop.span.kind").and_then(|kind| kind_of(KINDS, kind));
    kind.or_else(|| kind_of(REQUESTS, attributes.text("llm.request.type")?))
}

/// Converts an element of `llm.request.functions.0.*` to the form of model APIs.
fn function(value: Value) -> Value {
    let Value::Object(mut function) = value else { return value };
    if let Some(parameters) = function.get_mut("parameters") {
        *parameters = parse_meant(parameters.take());
    }
    let tool = [("type".to_owned(), Value::from("function")), ("function".to_owned(), Value::Object(function))];
    Value::Object(tool.into_iter().collect())
}

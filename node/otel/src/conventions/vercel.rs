//! Attributes `ai.*` of the Vercel AI SDK, versions 3 to 6. Spans of single model calls also have the common
//! conventions.

use serde_json::{Map, Value};

use super::kind_of;
use crate::attributes::Attributes;
use crate::draft::{Convention, Draft, MetricAttribute, SILENT, Source};
use crate::value::parse_meant;

pub(super) const CONVENTION: Convention = Convention {
    signs: &["ai."],
    span_type,
    llm: &["ai.prompt", "ai.prompt.", "ai.response.", "ai.result.", "ai.usage.", "ai.model."],
    input: &[
        Source::Json("ai.prompt.messages"),
        Source::Json("ai.prompt"),
        Source::Json("ai.toolCall.args"),
        Source::JsonEach("ai.values"),
        Source::Json("ai.value"),
    ],
    output: &[
        Source::Several(|attributes| answer(attributes, "ai.response.")),
        Source::Several(|attributes| answer(attributes, "ai.result.")),
        Source::Json("ai.toolCall.result"),
        Source::JsonEach("ai.embeddings"),
        Source::Json("ai.embedding"),
    ],
    metadata: &[
        ("ai.model.id", "model"),
        ("ai.response.model", "model"),
        ("ai.model.provider", "provider"),
        ("ai.settings.temperature", "temperature"),
        ("ai.settings.topP", "top_p"),
        ("ai.settings.topK", "top_k"),
        ("ai.settings.maxOutputTokens", "max_tokens"),
        ("ai.settings.maxTokens", "max_tokens"),
        ("ai.settings.frequencyPenalty", "frequency_penalty"),
        ("ai.settings.presencePenalty", "presence_penalty"),
        ("ai.settings.stopSequences", "stop"),
        ("ai.settings.seed", "seed"),
    ],
    payloads: &[
        (Source::JsonEach("ai.prompt.tools"), "tools"),
        (Source::Json("ai.prompt.toolChoice"), "tool_choice"),
        (Source::Json("ai.schema"), "schema"),
    ],
    metrics: &[
        MetricAttribute("ai.usage.inputTokens", "prompt_tokens", 1.0),
        MetricAttribute("ai.usage.promptTokens", "prompt_tokens", 1.0),
        MetricAttribute("ai.usage.outputTokens", "completion_tokens", 1.0),
        MetricAttribute("ai.usage.completionTokens", "completion_tokens", 1.0),
        MetricAttribute("ai.usage.totalTokens", "tokens", 1.0),
        MetricAttribute("ai.usage.tokens", "tokens", 1.0),
        MetricAttribute("ai.usage.cachedInputTokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("ai.usage.inputTokenDetails.cacheReadTokens", "prompt_cached_tokens", 1.0),
        MetricAttribute("ai.usage.inputTokenDetails.cacheWriteTokens", "prompt_cache_creation_tokens", 1.0),
        MetricAttribute("ai.usage.reasoningTokens", "completion_reasoning_tokens", 1.0),
        MetricAttribute("ai.usage.outputTokenDetails.reasoningTokens", "completion_reasoning_tokens", 1.0),
        MetricAttribute("ai.response.msToFirstChunk", "time_to_first_token", 0.001),
        MetricAttribute("ai.stream.msToFirstChunk", "time_to_first_token", 0.001),
    ],
    after,
    ..SILENT
};

/// Span types by `ai.operationId`.
///
/// Outer spans belong to the application's call, which may call models several times. Each model call has its own inner
/// span.
const OPERATIONS: &[(&str, &str)] = &[
    ("ai.generateText", "function"),
    ("ai.streamText", "function"),
    ("ai.generateObject", "function"),
    ("ai.streamObject", "function"),
    ("ai.embed", "function"),
    ("ai.embedMany", "function"),
    ("ai.rerank", "function"),
    ("ai.toolCall", "tool"),
];

fn span_type(attributes: &Attributes) -> Option<&'static str> {
    let operation = attributes.text("ai.operationId")?;
    kind_of(OPERATIONS, operation).or_else(|| operation.contains(".do").then_some("llm"))
}

/// Takes the metadata of the application under its own names.
fn after(attributes: &mut Attributes, draft: &mut Draft) {
    let said = attributes.under("ai.telemetry.metadata.").map(|(name, value)| (name.to_owned(), value.clone()));
    draft.add_metadata(said.collect());
}

/// Takes the answer. A text is the whole answer, unless there are tool calls or reasoning.
fn answer(attributes: &mut Attributes, beginning: &str) -> Option<Value> {
    let mut take = |part: &str| attributes.take(&format!("{beginning}{part}"));
    let said = take("object").map(parse_meant).or_else(|| take("text"));
    let (calls, reasoning) = (take("toolCalls").map(parse_meant), take("reasoning"));
    if calls.is_none() && reasoning.is_none() {
        return said;
    }
    let mut message = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
    for (key, part) in [("content", said), ("reasoning", reasoning), ("tool_calls", calls)] {
        message.extend(part.map(|part| (key.to_owned(), part)));
    }
    Some(Value::Object(message))
}

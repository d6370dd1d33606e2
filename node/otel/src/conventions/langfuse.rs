//! Attributes `langfuse.*` of Langfuse's SDKs, for Python from version 3 and for JavaScript from version 4.

use serde_json::{Map, Number, Value};

use super::kind_of;
use crate::attributes::Attributes;
use crate::draft::{Convention, Draft, SILENT, Source, object, texts};
use crate::value::{number, parse_meant};

pub(super) const CONVENTION: Convention = Convention {
    signs: &["langfuse."],
    span_type,
    llm: &[
        "langfuse.observation.model.",
        "langfuse.observation.usage_details",
        "langfuse.observation.completion_start_time",
    ],
    input: &[Source::Json("langfuse.observation.input"), Source::Json("langfuse.trace.input")],
    output: &[Source::Json("langfuse.observation.output"), Source::Json("langfuse.trace.output")],
    metadata: &[("langfuse.observation.model.name", "model")],
    after,
    ..SILENT
};

/// Span types by `langfuse.observation.type`. A `span` or an `event` may be of any type.
const KINDS: &[(&str, &str)] = &[
    ("generation", "llm"),
    ("embedding", "llm"),
    ("tool", "tool"),
    ("agent", "task"),
    ("chain", "task"),
    ("retriever", "function"),
    ("guardrail", "function"),
    ("evaluator", "score"),
];

/// Prefixes of the application's metadata, which may be a single value or an attribute for each key.
const METADATA: [&str; 2] = ["langfuse.observation.metadata", "langfuse.trace.metadata"];

fn span_type(attributes: &Attributes) -> Option<&'static str> {
    kind_of(KINDS, attributes.text("langfuse.observation.type")?)
}

fn after(attributes: &mut Attributes, draft: &mut Draft) {
    let details = |name: &str| attributes.get(name).and_then(object).unwrap_or_default();
    for (metric, count) in usage_metrics(&details("langfuse.observation.usage_details")) {
        draft.metric(metric, Some(count), 1.0);
    }
    draft.metric("estimated_cost", total_cost(&details("langfuse.observation.cost_details")), 1.0);
    draft.add_metadata(details("langfuse.observation.model.parameters"));
    for name in METADATA {
        if let Some(all) = attributes.take_if(name, object) {
            draft.add_metadata(all);
        }
        let beginning = format!("{name}.");
        let said = attributes.under(&beginning).map(|(key, value)| (key.to_owned(), parse_meant(value.clone())));
        draft.add_metadata(said.collect());
    }
    draft.tag(attributes.get("langfuse.trace.tags").and_then(texts).unwrap_or_default());
}

/// Returns the total of the costs of a call: the one that is given, or the sum of its parts.
pub fn total_cost(costs: &Map<String, Value>) -> Option<Number> {
    costs.get("total").and_then(number).or_else(|| {
        let parts: Vec<f64> = costs.values().filter_map(|cost| number(cost)?.as_f64()).collect();
        if parts.is_empty() { None } else { Number::from_f64(parts.iter().sum()) }
    })
}

/// Returns the metrics of token counts, whose names are free.
///
/// Names for the prompt begin with `input`, and names for the answer with `output`. Each token is in a single count, so
/// cached tokens are added to the prompt. Counts with OpenAI's names are accepted, too.
pub fn usage_metrics(details: &Map<String, Value>) -> Vec<(&'static str, Number)> {
    let sum = |is_part: fn(&str) -> bool| {
        let counts = details.iter().filter(|(name, _)| is_part(name)).filter_map(|(_, count)| count.as_i64());
        counts.reduce(i64::saturating_add).map(Number::from)
    };
    let whole = |name: &str| details.get(name).and_then(Value::as_i64).map(Number::from);
    let counts = [
        ("prompt_tokens", whole("prompt_tokens").or_else(|| sum(is_prompt))),
        ("completion_tokens", whole("completion_tokens").or_else(|| sum(|name| name.starts_with("output")))),
        ("tokens", whole("total").or_else(|| whole("total_tokens"))),
        ("prompt_cached_tokens", sum(|name| is_cache(name) && !is_cache_write(name))),
        ("prompt_cache_creation_tokens", sum(|name| is_cache(name) && is_cache_write(name))),
        ("completion_reasoning_tokens", sum(|name| name.starts_with("output") && name.contains("reasoning"))),
    ];
    counts.into_iter().filter_map(|(metric, count)| Some((metric, count?))).collect()
}

fn is_prompt(name: &str) -> bool {
    name.starts_with("input") || is_cache(name)
}

fn is_cache(name: &str) -> bool {
    name.starts_with("cache") || name.starts_with("input") && name.contains("cache")
}

fn is_cache_write(name: &str) -> bool {
    name.contains("creation") || name.contains("write")
}

//! Token counts: the API's `inputTokens` has no cached tokens, that of the form has all.

use serde_json::Value;

use assay_node_dialects::form::{Extra, TokenUsage};

/// Upper bound of the entries of `cacheDetails`, of which the API knows two.
const CACHE_DETAILS_MAX: usize = 16;

/// Reads counts. One that is missing or no number is not known.
pub(super) fn read_usage(usage: &Value) -> TokenUsage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    // names of an early version end in `TokenCount`
    let either = |name: &str, early: &str| count(name).or_else(|| count(early));
    let cached_input = either("cacheReadInputTokens", "cacheReadInputTokenCount");
    let cache_creation = either("cacheWriteInputTokens", "cacheWriteInputTokenCount");
    let details = usage.get("cacheDetails").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let written = |ttl: &str| {
        let of_ttl = details.iter().take(CACHE_DETAILS_MAX).filter(|detail| detail["ttl"] == ttl);
        of_ttl.filter_map(|detail| detail["inputTokens"].as_u64()).reduce(u64::saturating_add)
    };
    let fresh = count("inputTokens").unwrap_or(0);
    TokenUsage {
        input: fresh.saturating_add(cached_input.unwrap_or(0)).saturating_add(cache_creation.unwrap_or(0)),
        output: count("outputTokens").unwrap_or(0),
        cached_input,
        cache_creation,
        cache_creation_5m: written("5m"),
        cache_creation_1h: written("1h"),
        reasoning: None,
        extra: Extra::default(),
    }
}

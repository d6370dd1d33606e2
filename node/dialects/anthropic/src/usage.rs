//! Token counts: the API's `input_tokens` has neither cached nor newly cached tokens, that of the form has both.

use serde_json::{Map, Value};

use super::fields::{extra, keep_inner, object, put, put_back, take, take_count};
use assay_node_dialects::DialectError;
use assay_node_dialects::form::TokenUsage;

pub(super) fn read_usage(usage: &Value, path: &str) -> Result<TokenUsage, DialectError> {
    let mut fields = object(usage, path)?;
    let fresh = take_count(&mut fields, path, "input_tokens")?.unwrap_or(0);
    let output = take_count(&mut fields, path, "output_tokens")?.unwrap_or(0);
    let cached_input = take_count(&mut fields, path, "cache_read_input_tokens")?;
    let cache_creation = take_count(&mut fields, path, "cache_creation_input_tokens")?;
    let split_path = format!("{path}.cache_creation");
    let mut split = match take(&mut fields, "cache_creation") {
        None => Map::new(),
        Some(split) => object(&split, &split_path)?,
    };
    let cache_creation_5m = take_count(&mut split, &split_path, "ephemeral_5m_input_tokens")?;
    let cache_creation_1h = take_count(&mut split, &split_path, "ephemeral_1h_input_tokens")?;
    keep_inner(&mut fields, "cache_creation", split);
    let mut usage = TokenUsage {
        input: 0,
        output,
        cached_input,
        cache_creation,
        cache_creation_5m,
        cache_creation_1h,
        reasoning: None,
        extra: extra(fields),
    };
    usage.input = fresh.saturating_add(beside_fresh(&usage));
    Ok(usage)
}

/// Tokens of the prompt that the API does not count as `input_tokens`.
fn beside_fresh(usage: &TokenUsage) -> u64 {
    let split = || usage.cache_creation_5m.unwrap_or(0).saturating_add(usage.cache_creation_1h.unwrap_or(0));
    usage.cached_input.unwrap_or(0).saturating_add(usage.cache_creation.unwrap_or_else(split))
}

pub(super) fn write_usage(usage: &TokenUsage) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("input_tokens".into(), usage.input.saturating_sub(beside_fresh(usage)).into());
    put(&mut fields, "cache_creation_input_tokens", usage.cache_creation);
    put(&mut fields, "cache_read_input_tokens", usage.cached_input);
    let mut split = Map::new();
    put(&mut split, "ephemeral_5m_input_tokens", usage.cache_creation_5m);
    put(&mut split, "ephemeral_1h_input_tokens", usage.cache_creation_1h);
    put(&mut fields, "cache_creation", (!split.is_empty()).then_some(split));
    fields.insert("output_tokens".into(), usage.output.into());
    put_back(&mut fields, &usage.extra);
    fields
}

/// Usage of an answer whose server did not say it: the API's clients need the fields.
pub(super) fn unknown_usage() -> Map<String, Value> {
    write_usage(&TokenUsage::default())
}

//! Tokens of a response.

use serde_json::Value;

use super::fields::{Fields, kept, object, put, put_missing, put_rest, rest, take, take_count};
use assay_node_dialects::DialectError;
use assay_node_dialects::form::TokenUsage;

pub(super) fn read_usage(usage: Value) -> Result<TokenUsage, DialectError> {
    let mut fields = object(usage, "usage")?;
    let input = take_count(&mut fields, "usage", "input_tokens")?.unwrap_or_default();
    let output = take_count(&mut fields, "usage", "output_tokens")?.unwrap_or_default();
    let total = take_count(&mut fields, "usage", "total_tokens")?;
    if let Some(total) = total.filter(|total| *total != input.saturating_add(output)) {
        put(&mut fields, "total_tokens", total);
    }
    let mut usage = TokenUsage { input, output, ..TokenUsage::default() };
    let path = "usage.input_tokens_details";
    if let Some(details) = take(&mut fields, "input_tokens_details") {
        let mut details = object(details, path)?;
        usage.cached_input = take_count(&mut details, path, "cached_tokens")?;
        usage.cache_creation = take_count(&mut details, path, "cache_write_tokens")?;
        keep(&mut fields, "input_tokens_details", details);
    }
    let path = "usage.output_tokens_details";
    if let Some(details) = take(&mut fields, "output_tokens_details") {
        let mut details = object(details, path)?;
        usage.reasoning = take_count(&mut details, path, "reasoning_tokens")?;
        keep(&mut fields, "output_tokens_details", details);
    }
    usage.extra = rest(fields);
    Ok(usage)
}

fn keep(fields: &mut Fields, name: &str, details: Fields) {
    if !details.is_empty() {
        put(fields, name, details);
    }
}

/// Writes the tokens. The schema requires the details, so that an unknown number is 0 there.
pub(super) fn write_usage(usage: &TokenUsage) -> Value {
    let details = |name: &str| kept(&usage.extra, name).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut input = Fields::new();
    put(&mut input, "cached_tokens", usage.cached_input.unwrap_or_default());
    put(&mut input, "cache_write_tokens", usage.cache_creation.unwrap_or_default());
    input.append(&mut details("input_tokens_details"));
    let mut output = Fields::new();
    put(&mut output, "reasoning_tokens", usage.reasoning.unwrap_or_default());
    output.append(&mut details("output_tokens_details"));
    let mut fields = Fields::new();
    put(&mut fields, "input_tokens", usage.input);
    put(&mut fields, "input_tokens_details", input);
    put(&mut fields, "output_tokens", usage.output);
    put(&mut fields, "output_tokens_details", output);
    put_rest(&mut fields, &usage.extra);
    put_missing(&mut fields, "total_tokens", || usage.input.saturating_add(usage.output).into());
    Value::Object(fields)
}

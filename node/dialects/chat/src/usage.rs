//! Usage of tokens in chat and text completions.

use serde_json::{Map, Value, json};

use super::fields::{ChatFields, count_of, put_extra, put_some};
use assay_node_dialects::SseEvent;
use assay_node_dialects::form::TokenUsage;

const INPUT_DETAILS: &str = "prompt_tokens_details";
const OUTPUT_DETAILS: &str = "completion_tokens_details";
const CREATION_DETAILS: &str = "cache_creation_token_details";

/// Reads a usage object. Counts that are missing are zero; `None` if it is no object.
///
/// DeepSeek counts cached tokens in `prompt_cache_hit_tokens`.
pub fn read_usage(value: &Value) -> Option<TokenUsage> {
    let mut fields = ChatFields::of("usage", value.clone()).ok()?;
    let input = take_count(&mut fields, "prompt_tokens").unwrap_or_default();
    let output = take_count(&mut fields, "completion_tokens").unwrap_or_default();
    if fields.get("total_tokens").and_then(count_of).is_some_and(|total| total == input.saturating_add(output)) {
        fields.take("total_tokens");
    }
    let mut usage = TokenUsage { input, output, ..TokenUsage::default() };
    if let Some(mut details) = details(&mut fields, INPUT_DETAILS) {
        usage.cached_input = take_count(&mut details, "cached_tokens");
        usage.cache_creation = take_count(&mut details, "cache_creation_tokens");
        if let Some(mut creation) = self::details(&mut details, CREATION_DETAILS) {
            usage.cache_creation_5m = take_count(&mut creation, "ephemeral_5m_input_tokens");
            usage.cache_creation_1h = take_count(&mut creation, "ephemeral_1h_input_tokens");
            details.put_rest(CREATION_DETAILS, creation);
        }
        fields.put_rest(INPUT_DETAILS, details);
    }
    usage.cached_input = usage.cached_input.or_else(|| fields.get("prompt_cache_hit_tokens").and_then(count_of));
    if let Some(mut details) = details(&mut fields, OUTPUT_DETAILS) {
        usage.reasoning = take_count(&mut details, "reasoning_tokens");
        fields.put_rest(OUTPUT_DETAILS, details);
    }
    usage.extra = fields.into_extra();
    Some(usage)
}

/// Takes a count; anything else stays.
fn take_count(fields: &mut ChatFields, name: &str) -> Option<u64> {
    let count = fields.get(name).and_then(count_of)?;
    fields.take(name);
    Some(count)
}

/// Takes a nested object that has members; an empty one stays.
fn details(fields: &mut ChatFields, name: &str) -> Option<ChatFields> {
    let is_filled = fields.get(name).and_then(Value::as_object).is_some_and(|details| !details.is_empty());
    if is_filled { fields.object(name).ok()? } else { None }
}

/// Writes a usage object.
pub fn write_usage(usage: &TokenUsage) -> Value {
    let mut map = Map::new();
    map.insert("prompt_tokens".to_owned(), json!(usage.input));
    map.insert("completion_tokens".to_owned(), json!(usage.output));
    let mut input = Map::new();
    put_some(&mut input, "cached_tokens", usage.cached_input);
    put_some(&mut input, "cache_creation_tokens", usage.cache_creation);
    let mut creation = Map::new();
    put_some(&mut creation, "ephemeral_5m_input_tokens", usage.cache_creation_5m);
    put_some(&mut creation, "ephemeral_1h_input_tokens", usage.cache_creation_1h);
    put_filled(&mut input, CREATION_DETAILS, creation);
    put_filled(&mut map, INPUT_DETAILS, input);
    let mut output = Map::new();
    put_some(&mut output, "reasoning_tokens", usage.reasoning);
    put_filled(&mut map, OUTPUT_DETAILS, output);
    put_extra(&mut map, &usage.extra);
    map.entry("total_tokens").or_insert_with(|| json!(usage.input.saturating_add(usage.output)));
    Value::Object(map)
}

fn put_filled(map: &mut Map<String, Value>, name: &str, nested: Map<String, Value>) {
    if !nested.is_empty() {
        map.insert(name.to_owned(), Value::Object(nested));
    }
}

/// Returns whether an event is the chunk that only `stream_options.include_usage` asks for: it has no choices (G-33).
/// A stream that passes to a client that did not ask goes without it.
pub fn is_usage_chunk(event: &SseEvent) -> bool {
    // most chunks need no parsing
    if !event.data.contains("\"usage\"") {
        return false;
    }
    let chunk: Value = serde_json::from_str(&event.data).unwrap_or_default();
    chunk["usage"].is_object() && chunk["choices"].as_array().is_some_and(Vec::is_empty)
}

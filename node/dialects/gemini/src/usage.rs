//! Numbers of tokens.

use serde_json::{Map, Value, json};

use assay_node_dialects::form::TokenUsage;
use assay_node_dialects::{Dialect, DialectError};

use super::fields::{GeminiFields, put_back};

/// Tokens of the prompt that the provider's own tools added. The form counts them as input.
const TOOL_PROMPT: &str = "toolUsePromptTokenCount";

pub(super) fn read_usage(mut usage: GeminiFields) -> Result<TokenUsage, DialectError> {
    let prompt = usage.count("promptTokenCount")?.unwrap_or(0);
    let candidates = usage.count("candidatesTokenCount")?.unwrap_or(0);
    let reasoning = usage.count("thoughtsTokenCount")?;
    let cached_input = usage.count("cachedContentTokenCount")?;
    usage.take("totalTokenCount");
    let tools = usage.count(TOOL_PROMPT)?;
    if let Some(tools) = tools {
        usage.keep(TOOL_PROMPT, json!(tools));
    }
    Ok(TokenUsage {
        input: prompt.saturating_add(tools.unwrap_or(0)),
        output: candidates.saturating_add(reasoning.unwrap_or(0)),
        cached_input,
        reasoning,
        extra: usage.extra(),
        ..TokenUsage::default()
    })
}

pub(super) fn write_usage(usage: &TokenUsage) -> Value {
    let own = usage.extra.for_dialect(Dialect::Gemini);
    let tools = own.and_then(|own| own.get(TOOL_PROMPT)).and_then(Value::as_u64).unwrap_or(0);
    let candidates = usage.output.saturating_sub(usage.reasoning.unwrap_or(0));
    let fields = [
        ("promptTokenCount", Some(usage.input.saturating_sub(tools))),
        ("candidatesTokenCount", Some(candidates)),
        ("totalTokenCount", Some(usage.input.saturating_add(usage.output))),
        ("cachedContentTokenCount", usage.cached_input),
        ("thoughtsTokenCount", usage.reasoning),
    ];
    let known = fields.into_iter().filter_map(|(name, count)| Some((name.to_owned(), json!(count?))));
    let mut written: Map<String, Value> = known.collect();
    put_back(&mut written, &usage.extra);
    Value::Object(written)
}

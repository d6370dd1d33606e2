//! Settings of thinking.

use serde_json::{Map, Value, json};

use super::UnsentNames;
use crate::fields::{GeminiFields, put_back};
use assay_node_dialects::form::{ReasoningEffort, ReasoningSettings};
use assay_node_dialects::{Dialect, DialectError, WriteOptions};

const LEVEL: &str = "thinkingLevel";
const BUDGET: &str = "thinkingBudget";
/// Budget by which the model decides.
const DYNAMIC_BUDGET: i64 = -1;
/// Least level that all models with levels know.
const LEAST_LEVEL: &str = "low";

pub(super) fn read_thinking(settings: &mut GeminiFields) -> Result<Option<ReasoningSettings>, DialectError> {
    let Some(mut thinking) = settings.object("thinkingConfig")? else { return Ok(None) };
    // the answer has no thoughts unless they are asked for
    let include_text = Some(thinking.flag("includeThoughts")?.unwrap_or(false));
    let level = thinking.text(LEVEL)?;
    let budget = match thinking.number(BUDGET)? {
        None => None,
        Some(budget) if budget.as_i64() == Some(DYNAMIC_BUDGET) => Some(DYNAMIC_BUDGET),
        Some(budget) => {
            let known = budget.as_u64().and_then(|budget| i64::try_from(budget).ok());
            let expected = "a number of tokens, or -1";
            Some(known.ok_or_else(|| DialectError::malformed(thinking.path_of(BUDGET), expected))?)
        }
    };
    let mut read = ReasoningSettings {
        enabled: budget.map(|budget| budget != 0),
        effort: level.as_deref().map(effort_of),
        budget_tokens: budget.and_then(|budget| u64::try_from(budget).ok()),
        include_text,
        extra: thinking.extra(),
    };
    if let Some(level) = level {
        read.extra = read.extra.with_field_spelling(Dialect::Gemini, LEVEL, json!(level));
    }
    Ok(Some(read))
}

fn effort_of(level: &str) -> ReasoningEffort {
    match level.to_ascii_uppercase().as_str() {
        "MINIMAL" => ReasoningEffort::Minimal,
        "LOW" => ReasoningEffort::Low,
        "MEDIUM" => ReasoningEffort::Medium,
        "HIGH" => ReasoningEffort::High,
        _ => ReasoningEffort::Other(level.to_owned()),
    }
}

/// Writes the settings. A budget wins over an effort, as servers refuse both.
pub(super) fn write_thinking(
    reasoning: &ReasoningSettings,
    options: &WriteOptions,
    dropped: &mut UnsentNames,
) -> Option<Map<String, Value>> {
    dropped.add_extra(&reasoning.extra);
    let mut thinking = Map::new();
    let effort = reasoning.effort.as_ref();
    let spelled = reasoning.extra.field_spelling(Dialect::Gemini, LEVEL);
    let spelled = spelled.and_then(Value::as_str).filter(|level| Some(&effort_of(level)) == effort);
    let is_off = reasoning.enabled == Some(false) || effort == Some(&ReasoningEffort::None);
    let dynamic = (reasoning.enabled == Some(true)).then_some(DYNAMIC_BUDGET);
    let budget = reasoning.budget_tokens.and_then(|budget| i64::try_from(budget).ok());
    let (level, budget) = match (spelled, budget) {
        (Some(level), budget) => (Some(level), budget.or(dynamic)),
        (None, Some(budget)) => (None, Some(budget)),
        (None, None) if options.takes_thinking_level && is_off => (Some(LEAST_LEVEL), None),
        (None, None) if options.takes_thinking_level => (effort.and_then(level_of), None),
        (None, None) if is_off => (None, Some(0)),
        (None, None) => (None, effort.and_then(budget_of).or(dynamic)),
    };
    dropped.add_if(effort.is_some() && level.is_none() && budget.is_none(), "reasoning_effort");
    if let Some(level) = level {
        thinking.insert(LEVEL.to_owned(), json!(level));
    }
    if let Some(budget) = budget {
        thinking.insert(BUDGET.to_owned(), json!(budget));
    }
    let is_wanted = !is_off && (effort.is_some() || budget.is_some_and(|budget| budget != 0) || dynamic.is_some());
    if reasoning.include_text.unwrap_or(is_wanted) {
        thinking.insert("includeThoughts".to_owned(), json!(true));
    }
    put_back(&mut thinking, &reasoning.extra);
    (!thinking.is_empty()).then_some(thinking)
}

/// Returns the level of an effort. Levels that only some models know are rounded to one that all know.
fn level_of(effort: &ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => Some(LEAST_LEVEL),
        ReasoningEffort::Medium => Some("medium"),
        ReasoningEffort::High | ReasoningEffort::ExtraHigh => Some("high"),
        ReasoningEffort::Other(_) => None,
    }
}

/// Returns the budget that Google documents for an effort.
fn budget_of(effort: &ReasoningEffort) -> Option<i64> {
    match effort {
        ReasoningEffort::None => Some(0),
        ReasoningEffort::Minimal | ReasoningEffort::Low => Some(1_024),
        ReasoningEffort::Medium => Some(8_192),
        ReasoningEffort::High | ReasoningEffort::ExtraHigh => Some(24_576),
        ReasoningEffort::Other(_) => None,
    }
}

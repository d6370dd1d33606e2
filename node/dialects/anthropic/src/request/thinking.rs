//! Reasoning settings to `thinking`, with the bound of tokens that depends on its budget.

use serde_json::Value;

use crate::block_writer::{AnthropicDropped, is_signed};
use crate::fields::{put, put_back, typed};
use assay_node_dialects::WriteOptions;
use assay_node_dialects::form::{ContentPart, ModelRequest, ReasoningEffort, ReasoningSettings, Role};
use assay_node_dialects::thinking_budget::{MAX_TOKENS_DEFAULT, ThinkingBudget};

/// Fields of a request about reasoning.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AnthropicThinking {
    pub(super) thinking: Option<Value>,
    pub(super) effort: Option<String>,
    pub(super) max_tokens: u64,
    /// The model may think before it answers.
    pub(super) is_on: bool,
}

/// Plans reasoning as the request asks for it, within the limits of the API.
pub(super) fn plan_thinking(
    request: &ModelRequest,
    options: &WriteOptions,
    is_own: bool,
    dropped: &mut AnthropicDropped,
) -> AnthropicThinking {
    let max_tokens = request.max_output_tokens.or(options.model_max_output_tokens).unwrap_or(MAX_TOKENS_DEFAULT);
    let plan = AnthropicThinking { max_tokens, ..AnthropicThinking::default() };
    let Some(settings) = &request.reasoning else { return plan };
    dropped.add_extra(&settings.extra);
    if is_own {
        return own_plan(settings, plan);
    }
    let is_off = settings.enabled == Some(false)
        || settings.budget_tokens == Some(0)
        || settings.effort == Some(ReasoningEffort::None);
    let is_asked = settings.enabled.is_some() || settings.budget_tokens.is_some() || settings.effort.is_some();
    if is_off {
        return AnthropicThinking { thinking: Some(Value::Object(typed("disabled"))), ..plan };
    }
    if !is_asked {
        return plan;
    }
    if options.adaptive_thinking {
        if settings.budget_tokens.is_some() {
            dropped.add("reasoning_budget");
        }
        let effort = settings.effort.as_ref().map(adaptive_effort);
        return AnthropicThinking { thinking: Some(Value::Object(typed("adaptive"))), effort, is_on: true, ..plan };
    }
    if replays_unsigned_call(request) {
        dropped.add("reasoning");
        return plan;
    }
    let (wanted, effort) = (settings.budget_tokens, settings.effort.as_ref());
    let ThinkingBudget { budget_tokens, max_tokens } =
        ThinkingBudget::new(wanted, effort, max_tokens, options.model_max_output_tokens);
    let mut thinking = typed("enabled");
    thinking.insert("budget_tokens".into(), budget_tokens.into());
    AnthropicThinking { thinking: Some(Value::Object(thinking)), max_tokens, is_on: true, ..plan }
}

/// Writes settings back as they came.
fn own_plan(settings: &ReasoningSettings, plan: AnthropicThinking) -> AnthropicThinking {
    let kind = match (settings.enabled, settings.budget_tokens) {
        (Some(false), _) => "disabled",
        (Some(true), None) => "adaptive",
        _ => "enabled",
    };
    let is_there = settings.enabled.is_some() || !settings.extra.is_empty();
    let thinking = is_there.then(|| {
        let mut thinking = typed(kind);
        put(&mut thinking, "budget_tokens", settings.budget_tokens);
        put_back(&mut thinking, &settings.extra);
        Value::Object(thinking)
    });
    let effort = settings.effort.as_ref().map(own_effort);
    AnthropicThinking { thinking, effort, is_on: settings.enabled == Some(true), ..plan }
}

fn own_effort(effort: &ReasoningEffort) -> String {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::ExtraHigh => "xhigh",
        ReasoningEffort::Other(other) => other,
    }
    .to_owned()
}

/// Effort of a model that adapts its reasoning, whose lowest is `low`.
fn adaptive_effort(effort: &ReasoningEffort) -> String {
    match effort {
        ReasoningEffort::Minimal => "low".to_owned(),
        effort => own_effort(effort),
    }
}

/// Returns whether the last answer called tools without signed reasoning before them. The API refuses to think then.
fn replays_unsigned_call(request: &ModelRequest) -> bool {
    let last = request.messages.iter().rfind(|message| message.role == Role::Assistant);
    let parts = last.map(|message| message.parts.as_slice()).unwrap_or_default();
    let calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
    let first = parts.iter().find(|part| match part {
        ContentPart::Text(text) => !text.text.is_empty(),
        ContentPart::Reasoning(reasoning) => is_signed(reasoning),
        _ => true,
    });
    calls && !matches!(first, Some(ContentPart::Reasoning(_)))
}

//! Reasoning settings to the fields that a model takes beside those of the API.

use serde_json::{Map, Value, json};

use crate::dropped::ConverseDropped;
use assay_node_dialects::WriteOptions;
use assay_node_dialects::form::{ContentPart, ModelRequest, ReasoningEffort, ReasoningSettings, Role};
use assay_node_dialects::thinking_budget::{MAX_TOKENS_DEFAULT, ThinkingBudget};

/// Maker of a model, as far as its requests differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelMaker {
    Anthropic,
    OpenAi,
    Other,
}

impl ModelMaker {
    /// Reads the maker from an id or an ARN, such as `eu.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    pub(super) fn of(model: &str) -> ModelMaker {
        if model.contains("anthropic.") || model.contains("claude") {
            ModelMaker::Anthropic
        } else if model.contains("openai.") {
            ModelMaker::OpenAi
        } else {
            ModelMaker::Other
        }
    }
}

/// Fields of a request about reasoning.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ConverseReasoning {
    /// Fields of `additionalModelRequestFields`.
    pub(super) fields: Map<String, Value>,
    /// `outputConfig.effort`
    pub(super) effort: Option<&'static str>,
    pub(super) max_tokens: Option<u64>,
    /// Claude thinks before it answers, and refuses some other settings then.
    pub(super) thinks: bool,
}

/// Plans reasoning as the request asks for it, within the limits of the model.
pub(super) fn plan_reasoning(
    request: &ModelRequest,
    options: &WriteOptions,
    dropped: &mut ConverseDropped,
) -> ConverseReasoning {
    let plan = ConverseReasoning { max_tokens: request.max_output_tokens, ..ConverseReasoning::default() };
    let Some(settings) = &request.reasoning else { return plan };
    dropped.add_extra(&settings.extra);
    let is_off = settings.enabled == Some(false)
        || settings.budget_tokens == Some(0)
        || settings.effort == Some(ReasoningEffort::None);
    let is_asked = settings.enabled.is_some() || settings.budget_tokens.is_some() || settings.effort.is_some();
    match ModelMaker::of(&request.model) {
        _ if !is_asked => plan,
        ModelMaker::Anthropic if is_off => {
            let fields = Map::from_iter([("thinking".to_owned(), json!({"type": "disabled"}))]);
            ConverseReasoning { fields, ..plan }
        }
        ModelMaker::Anthropic if options.adaptive_thinking => {
            dropped.add_if("reasoning_budget", settings.budget_tokens.is_some());
            let fields = Map::from_iter([("thinking".to_owned(), json!({"type": "adaptive"}))]);
            ConverseReasoning { fields, effort: settings.effort.as_ref().map(effort), thinks: true, ..plan }
        }
        ModelMaker::Anthropic if replays_unsigned_call(request) => {
            dropped.add("reasoning");
            plan
        }
        ModelMaker::Anthropic => budgeted(settings, options, plan),
        ModelMaker::OpenAi if !is_off => {
            dropped.add_if("reasoning_budget", settings.budget_tokens.is_some());
            let effort = match &settings.effort {
                Some(ReasoningEffort::Minimal | ReasoningEffort::Low) => "low",
                Some(ReasoningEffort::High | ReasoningEffort::ExtraHigh) => "high",
                _ => "medium",
            };
            ConverseReasoning { fields: Map::from_iter([("reasoning_effort".to_owned(), effort.into())]), ..plan }
        }
        ModelMaker::OpenAi | ModelMaker::Other => {
            dropped.add("reasoning_effort");
            plan
        }
    }
}

fn budgeted(settings: &ReasoningSettings, options: &WriteOptions, plan: ConverseReasoning) -> ConverseReasoning {
    let asked = plan.max_tokens.or(options.model_max_output_tokens).unwrap_or(MAX_TOKENS_DEFAULT);
    let (wanted, effort) = (settings.budget_tokens, settings.effort.as_ref());
    let ThinkingBudget { budget_tokens, max_tokens } =
        ThinkingBudget::new(wanted, effort, asked, options.model_max_output_tokens);
    let thinking = json!({"type": "enabled", "budget_tokens": budget_tokens});
    let fields = Map::from_iter([("thinking".to_owned(), thinking)]);
    ConverseReasoning { fields, max_tokens: Some(max_tokens), thinks: true, ..plan }
}

/// Effort of a model that adapts its reasoning, whose lowest is `low`.
fn effort(effort: &ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::ExtraHigh => "xhigh",
        ReasoningEffort::Other(name) if name == "max" => "max",
        ReasoningEffort::High | ReasoningEffort::Other(_) => "high",
    }
}

/// Returns whether the last answer called tools without signed reasoning before them. Claude refuses to think then.
fn replays_unsigned_call(request: &ModelRequest) -> bool {
    let last = request.messages.iter().rfind(|message| message.role == Role::Assistant);
    let parts = last.map(|message| message.parts.as_slice()).unwrap_or_default();
    let calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
    let is_signed = |part: &ContentPart| match part {
        ContentPart::Reasoning(part) => part.signature.is_some() || part.encrypted.is_some(),
        _ => false,
    };
    calls && !parts.iter().any(is_signed)
}

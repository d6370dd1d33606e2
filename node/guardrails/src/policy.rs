//! The policy of a project, and its decisions about models and output tokens.

use std::fmt;

use crate::detectors::Detector;
use crate::error::GuardrailRefusal;
use crate::glob;
use crate::pattern::RulePattern;

/// When rules are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardrailStage {
    /// Before a request is sent to a provider.
    Request,
    /// Before a request or an answer is logged.
    Log,
}

/// What a rule does with what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardrailAction {
    /// Refuses the request. What is logged cannot be refused: there it is masked.
    Block,
    Mask,
    /// Counts only.
    Report,
}

impl GuardrailAction {
    /// Returns the name in the stored form.
    pub fn name(self) -> &'static str {
        match self {
            GuardrailAction::Block => "block",
            GuardrailAction::Mask => "mask",
            GuardrailAction::Report => "report",
        }
    }
}

impl fmt::Display for GuardrailAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What happens to requests that ask for more output tokens than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAction {
    Cap,
    Refuse,
}

/// Number of output tokens to ask the provider for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenDecision {
    /// As the request has it.
    Keep,
    Set(u64),
}

/// What a rule looks for.
#[derive(Debug)]
pub(crate) enum RuleSubject {
    Detector(Detector),
    Pattern(RulePattern),
}

/// Rule for texts.
#[derive(Debug)]
pub(crate) struct GuardrailRule {
    pub(crate) name: String,
    pub(crate) subject: RuleSubject,
    pub(crate) action: GuardrailAction,
    pub(crate) for_request: bool,
    pub(crate) for_log: bool,
    /// Stands for each match that is masked.
    pub(crate) replacement: String,
}

impl GuardrailRule {
    pub(crate) fn is_for(&self, stage: GuardrailStage) -> bool {
        match stage {
            GuardrailStage::Request => self.for_request,
            GuardrailStage::Log => self.for_log,
        }
    }
}

/// Guardrails of a project. The default has none.
#[derive(Debug, Default)]
pub struct GuardrailPolicy {
    /// Globs of models; all models if absent.
    pub(crate) models: Option<Vec<String>>,
    pub(crate) output_tokens: Option<(u64, TokenAction)>,
    pub(crate) rules: Vec<GuardrailRule>,
}

impl GuardrailPolicy {
    /// Whether there are no guardrails at all.
    pub fn is_empty(&self) -> bool {
        self.models.is_none() && self.output_tokens.is_none() && self.rules.is_empty()
    }

    /// Whether any rule applies to texts of this stage.
    pub fn has_rules(&self, stage: GuardrailStage) -> bool {
        self.rules.iter().any(|rule| rule.is_for(stage))
    }

    /// Refuses models that are not allowed.
    pub fn check_model(&self, model: &str) -> Result<(), GuardrailRefusal> {
        match &self.models {
            Some(globs) if !globs.iter().any(|glob| glob::matches(glob, model)) => {
                Err(GuardrailRefusal::Model { model: model.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Decides about the output tokens that a request asks for; `None` if it does not say, which the limit bounds too.
    pub fn cap_tokens(&self, asked: Option<u64>) -> Result<TokenDecision, GuardrailRefusal> {
        match (self.output_tokens, asked) {
            (None, _) => Ok(TokenDecision::Keep),
            (Some((limit, _)), Some(asked)) if asked <= limit => Ok(TokenDecision::Keep),
            (Some((limit, TokenAction::Refuse)), Some(asked)) => Err(GuardrailRefusal::OutputTokens { limit, asked }),
            (Some((limit, _)), _) => Ok(TokenDecision::Set(limit)),
        }
    }
}

//! Errors of stored policies, and refusals of calls. A refusal never shows the text that was found.

/// Stored guardrails that are not valid: where, and what is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct GuardrailError {
    /// Path within the stored form, such as `rules[2].pattern`; empty for the whole.
    pub path: String,
    pub problem: String,
}

impl GuardrailError {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> GuardrailError {
        GuardrailError { path: path.into(), problem: problem.into() }
    }
}

/// Why a call is refused, for its caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardrailRefusal {
    #[error("the guardrails of the project do not allow the model `{model}`: use one that they list")]
    Model { model: String },
    #[error("the guardrails of the project allow at most {limit} output tokens, and the request asks for {asked}")]
    OutputTokens { limit: u64, asked: u64 },
    #[error("the guardrail `{rule}` of the project refuses the request: remove from it what the rule is about")]
    Rule { rule: String },
    #[error("the guardrails of the project cannot check the request: it is nested deeper than {max} levels")]
    Depth { max: usize },
    #[error("the guardrails of the project cannot check the request: its texts have more than {max} bytes")]
    Size { max: usize },
}

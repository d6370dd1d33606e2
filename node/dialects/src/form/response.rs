//! Whole answers of a model, their usage, and errors.

use serde_json::Value;

use super::{ContentPart, Extra};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelResponse {
    pub id: String,
    pub model: String,
    /// Seconds since 1970, where the dialect has it.
    pub created: Option<u64>,
    pub choices: Vec<ModelChoice>,
    pub usage: Option<TokenUsage>,
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelChoice {
    pub index: u64,
    pub parts: Vec<ContentPart>,
    pub finish: Option<FinishReason>,
    pub logprobs: Option<Value>,
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    /// One of the request's stop sequences, where the dialect says which.
    StopSequence(Option<String>),
    Length,
    ToolCalls,
    ContentFilter,
    /// A long turn that continues in the next request (Anthropic).
    Pause,
    /// Reason that the form has no name for; written as `stop` elsewhere (G-28).
    Other(String),
}

/// Tokens of a call. `None` is unknown, which differs from zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenUsage {
    /// Tokens of the prompt, with cached ones.
    pub input: u64,
    /// Tokens of the answer, with reasoning.
    pub output: u64,
    pub cached_input: Option<u64>,
    pub cache_creation: Option<u64>,
    pub cache_creation_5m: Option<u64>,
    pub cache_creation_1h: Option<u64>,
    pub reasoning: Option<u64>,
    pub extra: Extra,
}

/// Error of a model server or of the gateway, in the terms of all dialects.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    pub message: String,
    /// Machine-readable code, such as `context_length_exceeded`.
    pub code: Option<String>,
    /// Field of the request that caused it.
    pub param: Option<String>,
    pub extra: Extra,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    InvalidRequest,
    Authentication,
    Permission,
    NotFound,
    TooLarge,
    RateLimit,
    Overloaded,
    Timeout,
    Server,
}

impl ModelErrorKind {
    /// Kind that an HTTP status stands for.
    pub fn of_status(status: u16) -> ModelErrorKind {
        match status {
            401 => ModelErrorKind::Authentication,
            403 => ModelErrorKind::Permission,
            404 => ModelErrorKind::NotFound,
            408 | 504 => ModelErrorKind::Timeout,
            413 => ModelErrorKind::TooLarge,
            429 => ModelErrorKind::RateLimit,
            503 | 529 => ModelErrorKind::Overloaded,
            400..=499 => ModelErrorKind::InvalidRequest,
            _ => ModelErrorKind::Server,
        }
    }

    /// HTTP status of a response with such an error, where the dialect has no other.
    pub fn status(self) -> u16 {
        match self {
            ModelErrorKind::InvalidRequest => 400,
            ModelErrorKind::Authentication => 401,
            ModelErrorKind::Permission => 403,
            ModelErrorKind::NotFound => 404,
            ModelErrorKind::TooLarge => 413,
            ModelErrorKind::RateLimit => 429,
            ModelErrorKind::Server => 500,
            ModelErrorKind::Overloaded => 503,
            ModelErrorKind::Timeout => 504,
        }
    }
}

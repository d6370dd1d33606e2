//! Errors of invocations, classified by the action that the caller can take (functions.md 2.5).

use assay_node_prompts::{AnswerError, PromptError};
use assay_node_scorers::ScorerError;

/// Kind of an error, which determines the status of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvokeErrorKind {
    /// The request or the function is invalid: 400.
    Invalid,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 413.
    TooLarge,
    /// The function failed, or the answer of its model is unusable: 500.
    Failed,
    /// The node that ran the function was lost, so nobody knows whether it ran: 500.
    Lost,
    /// This version does not support such functions: 501.
    NotServed,
    /// The model server is unreachable or failed: 502.
    Upstream,
    /// A limit of the model server or of this node is reached: 429.
    RateLimited,
    /// The node is temporarily unavailable: 503.
    Unavailable,
    /// 504.
    TooLate,
}

/// Error of an invocation, with a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvokeError {
    pub kind: InvokeErrorKind,
    pub message: String,
    /// Seconds until a retry makes sense, if known.
    pub retry_after_s: Option<u64>,
    /// Error that the code of a function raised.
    pub failure: Option<Box<CodeFailure>>,
}

/// Error that the code of a function raised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeFailure {
    /// Name of the error's type, such as `TypeError`.
    pub name: String,
    pub message: String,
    pub stack: String,
}

impl InvokeError {
    pub fn new(kind: InvokeErrorKind, message: impl Into<String>) -> InvokeError {
        InvokeError { kind, message: message.into(), retry_after_s: None, failure: None }
    }

    pub fn invalid(message: impl Into<String>) -> InvokeError {
        InvokeError::new(InvokeErrorKind::Invalid, message)
    }

    pub fn not_found(message: impl Into<String>) -> InvokeError {
        InvokeError::new(InvokeErrorKind::NotFound, message)
    }

    /// Returns the error of a code function that failed.
    pub fn of_code(failure: CodeFailure) -> InvokeError {
        let message = failure.message.clone();
        InvokeError { failure: Some(Box::new(failure)), ..InvokeError::new(InvokeErrorKind::Failed, message) }
    }

    /// Returns the text for the span of a function: the stack trace of its code, or else the message.
    pub fn span_text(&self) -> String {
        match &self.failure {
            Some(failure) if failure.stack.contains(&failure.message) => failure.stack.clone(),
            Some(failure) => format!("{}: {}\n{}", failure.name, failure.message, failure.stack).trim_end().to_owned(),
            None => self.message.clone(),
        }
    }

    /// Returns the error for the status of a model call.
    ///
    /// A refused provider secret does not become a 401 or 403, because clients would ask for another login.
    pub fn of_model_status(status: u16, message: impl Into<String>, retry_after_s: Option<u64>) -> InvokeError {
        let kind = match status {
            413 => InvokeErrorKind::TooLarge,
            408 | 504 => InvokeErrorKind::TooLate,
            429 => InvokeErrorKind::RateLimited,
            501 => InvokeErrorKind::NotServed,
            503 if retry_after_s.is_some() => InvokeErrorKind::Unavailable,
            400..=499 => InvokeErrorKind::Invalid,
            _ => InvokeErrorKind::Upstream,
        };
        InvokeError { retry_after_s, ..InvokeError::new(kind, message) }
    }
}

impl From<PromptError> for InvokeError {
    fn from(error: PromptError) -> InvokeError {
        InvokeError::invalid(error.to_string())
    }
}

impl From<AnswerError> for InvokeError {
    fn from(error: AnswerError) -> InvokeError {
        InvokeError::new(InvokeErrorKind::Failed, error.to_string())
    }
}

impl From<ScorerError> for InvokeError {
    fn from(error: ScorerError) -> InvokeError {
        let kind = match &error {
            ScorerError::InvalidResponse { .. } => InvokeErrorKind::Failed,
            _ => InvokeErrorKind::Invalid,
        };
        InvokeError::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_providers_are_none_of_the_caller() {
        let kind = |status| InvokeError::of_model_status(status, "m", None).kind;
        for status in [400, 401, 402, 403, 404, 422] {
            assert_eq!(kind(status), InvokeErrorKind::Invalid, "{status}");
        }
        for status in [500, 502, 503, 529] {
            assert_eq!(kind(status), InvokeErrorKind::Upstream, "{status}");
        }
        assert_eq!((kind(429), kind(504)), (InvokeErrorKind::RateLimited, InvokeErrorKind::TooLate));
    }
}

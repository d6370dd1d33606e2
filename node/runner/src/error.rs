//! Errors of code functions, by what their caller can do.

/// Error that the code of a user raised, or that ended it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionFailure {
    /// Name of the error's type, such as `TypeError`.
    pub name: String,
    pub message: String,
    /// Stack trace in the form of the language; empty if the code was ended from outside.
    pub stack: String,
}

/// Reason why a call has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// This node runs no code, or not this code.
    #[error("{0}")]
    NotRun(String),
    /// The function failed, or was ended because it passed a limit.
    #[error("{}", .0.message)]
    Function(FunctionFailure),
    /// The call waited too long for a slot, or too many calls wait.
    #[error("{why}")]
    Busy { why: String, retry_after_seconds: u64 },
    /// The node could not start the function.
    #[error("{0}")]
    Node(String),
}

impl CodeError {
    /// Returns the error of a function that the server ended.
    pub fn ended(name: &str, message: impl Into<String>) -> CodeError {
        CodeError::Function(FunctionFailure { name: name.to_owned(), message: message.into(), stack: String::new() })
    }
}

//! Errors of credentials.

/// Why there are no credentials. Never contains a secret or the text of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("the secret `{provider}` is no JSON object; valid is one with the members {members}")]
    NotJson { provider: String, members: &'static str },
    #[error("{member} of the secret `{provider}` is missing or no text: {expected}")]
    Missing { provider: String, member: String, expected: &'static str },
    #[error("{member} of the secret `{provider}` is not valid: expected {expected}")]
    Invalid { provider: String, member: String, expected: &'static str },
    #[error("{what} of the secret `{provider}` is not supported by this version")]
    Unsupported { provider: String, what: &'static str },
    #[error("the token server refused the secret with status {status}, code {code}")]
    Refused { status: u16, code: String },
    #[error("the token server failed with status {status}")]
    Failed { status: u16 },
    #[error("the token server could not be reached, or did not answer in time")]
    Unreachable,
    #[error("the answer of the token server cannot be read: {problem}")]
    Answer { problem: &'static str },
    #[error("the request cannot be signed: {problem}")]
    Signature { problem: &'static str },
}

impl CredentialError {
    /// Returns whether only a change of the secret or of its metadata helps.
    pub fn blames_secret(&self) -> bool {
        match self {
            CredentialError::NotJson { .. }
            | CredentialError::Missing { .. }
            | CredentialError::Invalid { .. }
            | CredentialError::Unsupported { .. }
            | CredentialError::Refused { .. } => true,
            CredentialError::Failed { .. }
            | CredentialError::Unreachable
            | CredentialError::Answer { .. }
            | CredentialError::Signature { .. } => false,
        }
    }
}

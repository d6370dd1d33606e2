//! Errors of URLs and of outbound calls.

use std::fmt;

/// Error for a text that is not a URL for an outbound call. It depends only on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("the URL has more than 8192 bytes")]
    Long,
    #[error("the URL has the character {0:?}: write it percent-encoded")]
    Character(char),
    #[error("the URL begins neither with https:// nor with http://")]
    Scheme,
    #[error("the URL has a user name or an `@` before its path: send credentials in headers")]
    UserInfo,
    #[error("the URL has no host")]
    NoHost,
    #[error("the host of the URL is not ASCII: write it in its xn-- form")]
    HostNotAscii,
    #[error("the host of the URL is percent-encoded: write it plainly")]
    HostEscaped,
    #[error("the host of the URL is neither a valid address nor a name: names do not end in a number")]
    HostAddress,
    #[error("the host of the URL is no DNS name: labels have letters, digits, `-` and `_`, and at most 63 bytes")]
    HostName,
    #[error("the port of the URL is no number between 1 and 65535")]
    Port,
}

/// State of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EgressProgress {
    /// No byte of the request left this machine, so it may be repeated freely.
    NothingSent,
    /// The request may have been executed.
    NoResponse,
    /// The head of a response arrived, but its body is incomplete.
    ResponseCut,
}

/// Step at which a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EgressFailure {
    /// The policy refuses the target, or the request exceeds a limit.
    Refused,
    /// The name has no address, or there is no connection or no TLS.
    NotReached,
    /// All permitted connections are in use.
    Busy,
    /// The connection ended before the head of a response, or the head is invalid.
    NoHead,
    /// No head of a response arrived within the time limit.
    HeadLate,
    /// The connection ended within the body.
    BodyCut,
    /// The body paused for longer than the limit, or the total time is over.
    BodyLate,
    /// The body exceeds the caller's limit.
    BodyLarge,
    /// There are more redirects than are followed, or a redirect has no valid target.
    Redirects,
}

/// Error of an outbound call.
///
/// Every failure before a response has the same text, so a refused target looks like a closed port.
/// [`EgressError::operator_reason`] returns the reason, for the operator's log only.
pub struct EgressError {
    failure: EgressFailure,
    progress: EgressProgress,
    reason: String,
}

/// Text of every failure before a response.
pub const UNREACHABLE: &str = "upstream_unreachable";

impl EgressError {
    pub(crate) fn nothing_sent(failure: EgressFailure, reason: impl Into<String>) -> EgressError {
        EgressError { failure, progress: EgressProgress::NothingSent, reason: reason.into() }
    }

    pub(crate) fn no_response(failure: EgressFailure, reason: impl Into<String>) -> EgressError {
        EgressError { failure, progress: EgressProgress::NoResponse, reason: reason.into() }
    }

    pub(crate) fn cut(failure: EgressFailure, reason: impl Into<String>) -> EgressError {
        EgressError { failure, progress: EgressProgress::ResponseCut, reason: reason.into() }
    }

    /// Converts the error of a request that followed an earlier response.
    pub(crate) fn behind_response(self) -> EgressError {
        EgressError { progress: EgressProgress::ResponseCut, ..self }
    }

    pub fn progress(&self) -> EgressProgress {
        self.progress
    }

    /// Returns the failed step for decisions and metrics. It must not be revealed to the author of a URL.
    pub fn failure(&self) -> EgressFailure {
        self.failure
    }

    /// Returns the reason with host and address, for the operator's log only.
    pub fn operator_reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.failure {
            EgressFailure::Refused
            | EgressFailure::NotReached
            | EgressFailure::Busy
            | EgressFailure::NoHead
            | EgressFailure::HeadLate
            | EgressFailure::Redirects => UNREACHABLE,
            EgressFailure::BodyCut => "the connection ended within the response of the upstream",
            EgressFailure::BodyLate => "the response of the upstream did not continue in time",
            EgressFailure::BodyLarge => "the response of the upstream is larger than the limit",
        })
    }
}

/// Hides the reason, because errors are also printed in this form.
impl fmt::Debug for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressError({self})")
    }
}

/// Has no source, because the cause would reveal more than the text.
impl std::error::Error for EgressError {}

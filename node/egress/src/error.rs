//! Errors: of URLs, and of outbound calls with what is known about the request.

use std::fmt;

/// Why a text is no URL for an outbound call. Depends on the text alone.
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

/// What is known about a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EgressProgress {
    /// Not a byte of the request left this machine: it may be repeated freely.
    NothingSent,
    /// The request may have been executed.
    NoResponse,
    /// The head of a response came, and its body is not whole.
    ResponseCut,
}

/// Step at which a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EgressFailure {
    /// The policy refuses the target, or the request exceeds a limit of ours.
    Refused,
    /// No address for the name, no connection, or no TLS.
    NotReached,
    /// All connections that the limits allow are in use.
    Busy,
    /// The connection ended before the head of a response, or its head is invalid.
    NoHead,
    /// No head of a response within the time limit.
    HeadLate,
    /// The connection ended within the body.
    BodyCut,
    /// The body paused for longer than the limit, or all time is over.
    BodyLate,
    /// The body is larger than the caller takes.
    BodyLarge,
    /// More redirects than are followed, or one without a valid target.
    Redirects,
}

/// Error of an outbound call.
///
/// Its text is one and the same for every failure before a response: whoever sees it cannot tell a refused target from a
/// closed port. [`EgressError::operator_reason`] has the reason, for the operator's log only.
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

    /// Returns the error of a request that followed a response to one before it.
    pub(crate) fn behind_response(self) -> EgressError {
        EgressError { progress: EgressProgress::ResponseCut, ..self }
    }

    pub fn progress(&self) -> EgressProgress {
        self.progress
    }

    /// Returns the step that failed, for decisions and metrics. Must not reach the author of a URL.
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

/// Shows no reason either: errors are also shown in this form.
impl fmt::Debug for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EgressError({self})")
    }
}

/// Has no source: the cause would tell more than the text.
impl std::error::Error for EgressError {}

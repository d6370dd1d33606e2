//! Errors of MCP sessions: which server, what failed, and what to do about it.

use std::fmt;

use assay_node_egress::{EgressError, EgressFailure};

/// Characters of a message of a server that an error shows.
const SERVER_MESSAGE_CHARS_MAX: usize = 300;

/// What the client did as it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpAction {
    Connect,
    ListTools,
    /// A call of the tool of this name.
    CallTool(String),
}

impl fmt::Display for McpAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            McpAction::Connect => f.write_str("the connection failed"),
            McpAction::ListTools => f.write_str("the list of tools failed"),
            McpAction::CallTool(tool) => write!(f, "the call of the tool `{tool}` failed"),
        }
    }
}

/// What an answer of a server has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpAnswer {
    /// The result of a call.
    Result,
    ToolList,
    Other,
}

impl McpAnswer {
    /// Returns what to do about an answer that is too large.
    fn advice(self) -> &'static str {
        match self {
            McpAnswer::Result => "ask the tool for less",
            McpAnswer::ToolList => "use a server with fewer tools, or with shorter descriptions",
            McpAnswer::Other => "check that the URL is that of an MCP server over HTTP",
        }
    }
}

/// Why an exchange with a server failed. Its texts have neither URLs nor tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpFailure {
    /// A target that the policy refuses has the same text as one that does not listen.
    #[error("the server cannot be reached: check its URL, and that the operator allows it in `egress.allow` for mcp")]
    Unreachable,
    #[error("no answer within the time limit: try again, or ask the tool for less")]
    Late,
    #[error("the connection ended within the answer: try again")]
    Cut,
    #[error("the answer has more than {bytes_max} bytes, which is the limit: {}", subject.advice())]
    Large { bytes_max: usize, subject: McpAnswer },
    #[error("the server refused the credentials with {status}: pass a valid `oauth_token` for its URL in `mcp_auth`")]
    Unauthorized { status: u16 },
    #[error("the server answered with a redirect, which is not followed: use the URL that it leads to")]
    Redirect,
    #[error("the server answered with the status {status}: check that its URL is that of an MCP server over HTTP")]
    Status { status: u16 },
    #[error("the answer is neither JSON nor an event stream: check that the URL is that of an MCP server over HTTP")]
    ContentType,
    #[error("the answer is not valid: {0}")]
    Invalid(&'static str),
    #[error("the session ended on the server: try again")]
    SessionEnded,
    /// An error that the server itself reports.
    #[error("the server reports the error {code}: {message}")]
    Reported { code: i64, message: String },
    #[error("the server has more than {max} tools: choose some in `enabled_tools`")]
    TooManyTools { max: usize },
    #[error("the arguments are not an object")]
    Arguments,
}

impl McpFailure {
    /// Returns an error of a server with its message, shortened.
    pub(crate) fn reported(code: i64, message: &str) -> McpFailure {
        let mut shown: String = message.chars().take(SERVER_MESSAGE_CHARS_MAX).collect();
        if shown.len() < message.len() {
            shown.push('…');
        }
        McpFailure::Reported { code, message: shown }
    }

    /// Returns what a failed exchange means. `large` stands for an answer over the limit.
    pub(crate) fn of_egress(error: &EgressError, large: McpFailure) -> McpFailure {
        match error.failure() {
            EgressFailure::Refused
            | EgressFailure::NotReached
            | EgressFailure::Busy
            | EgressFailure::NoHead
            | EgressFailure::Redirects => McpFailure::Unreachable,
            EgressFailure::HeadLate | EgressFailure::BodyLate => McpFailure::Late,
            EgressFailure::BodyCut => McpFailure::Cut,
            EgressFailure::BodyLarge => large,
        }
    }
}

/// Failure of a session with a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{server}`: {action}: {failure}")]
pub struct McpError {
    /// Name of the server in the prompt.
    pub server: String,
    pub action: McpAction,
    pub failure: McpFailure,
}

//! Servers to connect to: their URL, headers and token; and the limits of their use.

use std::fmt;
use std::time::Duration;

use assay_node_egress::{EgressUrl, HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

/// Upper bound of the time of one exchange: a connection, a list of tools, a call (G-70).
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Time in which a server is told that its session ends.
pub const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);
/// Servers of one prompt.
pub const SERVERS_MAX: usize = 20;
/// Tools of one server that are offered.
pub const TOOLS_MAX: usize = 500;
/// Bytes of the tools of one server with their schemas.
pub const SCHEMA_LIST_BYTES_MAX: usize = 1 << 20;
/// Bytes of the result of a call.
pub const RESULT_BYTES_MAX: usize = 256 << 10;
/// Characters of the name of a tool, as providers of models limit it.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// Bytes of a token: more fit in no header that servers take.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Token of a server, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct McpToken(String);

impl McpToken {
    /// Takes a token that can be sent in a header.
    pub fn new(token: String) -> Result<McpToken, SpecError> {
        let is_sendable = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX || !is_sendable {
            return Err(SpecError::Token);
        }
        Ok(McpToken(token))
    }

    /// Returns the value of the `Authorization` header.
    pub(crate) fn header(&self) -> HeaderValue {
        let value = HeaderValue::try_from(format!("Bearer {}", self.0));
        let mut value = value.expect("a token has visible characters only");
        value.set_sensitive(true);
        value
    }

    /// Replaces the token wherever a server repeats it.
    pub(crate) fn removed_from(&self, text: &str) -> Option<String> {
        text.contains(&self.0).then(|| text.replace(&self.0, "[TOKEN]"))
    }
}

impl fmt::Debug for McpToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpToken(..)")
    }
}

/// Why a server cannot be described. The value itself is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error("the token is empty, larger than 16384 bytes, or has characters other than visible ASCII")]
    Token,
}

/// Server to connect to.
#[derive(Clone)]
pub struct McpServerSpec {
    /// Name in the prompt; the names of its tools begin with it.
    pub name: String,
    pub url: EgressUrl,
    /// Sent to `url` only.
    pub bearer: Option<McpToken>,
    /// Headers of every request. Those of the protocol and `Authorization` are not taken from here.
    pub headers: HeaderMap,
    /// Tools to offer, by the names of the server; all of them if absent.
    pub enabled_tools: Option<Vec<String>>,
    /// Connections are shared within an organization only.
    pub organization: Uuid,
    /// Time of one exchange, at most [`CALL_TIME_MAX`].
    pub call_time: Duration,
}

/// Shows neither values of headers nor the token.
impl fmt::Debug for McpServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerSpec")
            .field("name", &self.name)
            .field("url", &self.url)
            .field("bearer", &self.bearer)
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("enabled_tools", &self.enabled_tools)
            .field("organization", &self.organization)
            .field("call_time", &self.call_time)
            .finish()
    }
}

impl McpServerSpec {
    /// Returns a server without token and headers, all of whose tools are offered.
    pub fn new(name: impl Into<String>, url: EgressUrl, organization: Uuid) -> McpServerSpec {
        McpServerSpec {
            name: name.into(),
            url,
            bearer: None,
            headers: HeaderMap::new(),
            enabled_tools: None,
            organization,
            call_time: CALL_TIME_MAX,
        }
    }

    pub(crate) fn is_enabled(&self, tool: &str) -> bool {
        self.enabled_tools.as_ref().is_none_or(|enabled| enabled.iter().any(|name| name == tool))
    }

    pub(crate) fn exchange_time(&self) -> Duration {
        self.call_time.min(CALL_TIME_MAX)
    }
}

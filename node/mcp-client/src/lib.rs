//! Client of MCP servers, whose tools are offered to the models that prompts call (G-70, G-71).
//!
//! ```text
//! prompt_data.mcp, records, mcp_auth ── server_specs ──▶ McpServerSpec
//! McpServerSpec ── McpSession::connect ──▶ list_tools ──▶ McpTool (name for the model, JSON schema)
//! call of a model ── McpSession::call ──▶ McpToolOutcome (a text or JSON)
//! ```
//! The protocol is that of `rmcp`; HTTP goes through the egress client, so that its policy holds and no redirect is
//! followed. A token is sent to the URL of its server only, and is in no error, log line or outcome.

mod answer;
mod error;
mod names;
mod servers;
mod session;
mod spec;
mod transport;

pub use answer::McpToolOutcome;
pub use error::{McpAction, McpAnswer, McpError, McpFailure};
pub use names::tool_names;
pub use servers::{McpServerRecord, McpServersError, record_ids, server_specs};
pub use session::{LIST_PAGES_MAX, McpSession, McpTool};
pub use spec::{
    CALL_TIME_MAX, CLOSE_TIME_MAX, McpServerSpec, McpToken, RESULT_BYTES_MAX, SCHEMA_LIST_BYTES_MAX, SERVERS_MAX,
    SpecError, TOOL_NAME_CHARS_MAX, TOOLS_MAX,
};

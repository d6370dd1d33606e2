//! MCP server for coding agents: the protocol, its tools, and answers of bounded size.
//!
//! ```text
//! HTTP request ─▶ headers ─▶ message ─▶ tool ─▶ arguments ─▶ ToolData (the caller's rights) ─▶ cut to size ─▶ answer
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `versions` | protocol versions, with and without a handshake |
//! | `message`, `headers` | JSON-RPC messages, and the headers that must agree with them |
//! | `server` | dispatch of one HTTP request |
//! | `arguments` | arguments of tools: their schemas, and their checks |
//! | `data` | data of the caller, which the shell provides |
//! | `bounds` | cuts of values to a size |
//! | `transcript` | traces as a tree of spans |
//! | `tools` | the tools, one file for each subject |
//!
//! The server is stateless: any node answers any request. This crate performs no I/O.

mod arguments;
mod bounds;
mod data;
mod headers;
mod message;
mod server;
mod tools;
mod transcript;
mod versions;

pub use data::{RecordKindName, RecordRequest, RowBatch, RowQuery, ToolData, ToolFailure};
pub use headers::McpHeaders;
pub use message::{McpReply, RpcError, parse_error};
pub use server::{BATCH_MESSAGES_MAX, MessageSummary, RESULT_BYTES_MAX, answer, summary_of};
pub use tools::tool_names;
pub use versions::McpVersion;

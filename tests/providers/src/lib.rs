//! Servers that answer as model providers do, in the wire format of each, from a script instead of a model.
//!
//! What a server answers depends only on the request: see [`script`]. One server has the paths of all providers, with those
//! of Bedrock, of Vertex and of token servers; of credentials it checks only that there are some. At `/mcp` it is an MCP
//! server with one tool. Faults are queued by a test and spent by the next requests: see [`fault`].
//!
//! The crate shares no code with the gateway, so that tests compare two readings of each format.

mod anthropic;
mod bedrock;
mod chat;
mod event_stream;
pub mod fault;
mod gemini;
mod mcp;
mod responses;
pub mod script;
mod server;
mod sse;
mod tokens;

pub use fault::Fault;
pub use server::{ProviderServer, RecordedRequest};

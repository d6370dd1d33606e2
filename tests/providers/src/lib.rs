//! Servers that answer as model providers do, in the wire format of each, from a script instead of a model.
//!
//! What a server answers depends only on the request: see [`script`]. Faults are queued by a test and spent by the next
//! requests: see [`fault`]. The crate shares no code with the gateway, so that tests compare two readings of each format.

mod anthropic;
mod chat;
pub mod fault;
mod gemini;
mod responses;
pub mod script;
mod server;
mod sse;

pub use fault::Fault;
pub use server::{ProviderServer, RecordedRequest};

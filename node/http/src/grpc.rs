//! Server of unary gRPC calls over HTTP/2.
//!
//! The module handles connections, frames and statuses. The contents of messages and the permissions of callers are up
//! to the service.
//!
//! ```text
//! socket -> TLS, if there is any -> HTTP/2 -> call (path, metadata) -> the service -> message behind five bytes, status
//!                                                                        |
//!                                                                        +-> takes the message in at its own pace
//! ```
//! The server reads the message of a call only on demand, so a service can authenticate the caller by its metadata
//! first.
//!
//! A graceful shutdown accepts no connections, tells every client that its connection ends, and completes active calls.

mod message;
mod reply;
mod server;
mod status;
#[cfg(test)]
mod tests;

pub use hyper::HeaderMap;
pub use hyper::header::{HeaderName, HeaderValue};
pub use message::GrpcMessage;
pub use reply::GrpcReply;
pub use server::{GrpcCall, GrpcHandle, GrpcLimits, GrpcServer, GrpcService};
pub use status::{GrpcCode, GrpcStatus};

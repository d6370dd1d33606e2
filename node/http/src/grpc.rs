//! gRPC with one message each way, served to clients over HTTP/2. It knows connections, frames and statuses, and neither the
//! contents of a message nor who may send it.
//!
//! ```text
//! socket -> TLS, if there is any -> HTTP/2 -> call (path, metadata) -> the service -> message behind five bytes, status
//!                                                                        |
//!                                                                        +-> takes the message in at its own pace
//! ```
//! The message of a call is not read before the service asks for it: the caller is authenticated by the metadata first.
//!
//! A graceful shutdown accepts no connection, tells every client that its connection ends, and answers calls under way.

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

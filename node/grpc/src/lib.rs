//! gRPC with one message each way, served to clients over HTTP/2. Thin: it knows connections, frames and statuses, and neither
//! what is said in a message nor who may say it.
//!
//! ```text
//! socket -> TLS, if there is any -> HTTP/2 -> call (path, metadata) -> the service -> message behind five bytes, status
//!                                                                        |
//!                                                                        +-> takes the message in at its own pace
//! ```
//! The message of a call is not read before the service asks for it: who calls is known from the metadata, and of a stranger
//! nothing is taken in.
//!
//! What a stop does: nobody gets in, every connection is told that it ends, and what is under way is answered.

mod answer;
mod inbound;
mod server;
mod status;

pub use answer::Reply;
pub use hyper::HeaderMap;
pub use hyper::header::{HeaderName, HeaderValue};
pub use inbound::{Broken, Head, Inbound};
pub use server::{Call, Handle, Limits, Server, Service};
pub use status::{Code, Status};

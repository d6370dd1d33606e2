//! Responses to clients, whole or streamed.

mod codec;
mod stream;
mod whole;

pub(crate) use stream::{BrokenStream, EVENT_STREAM, begin_stream};
pub use stream::{ReplyStream, StreamCut};
pub(crate) use whole::{failed_reply, read_whole};

use bytes::Bytes;

/// Response of the gateway.
#[derive(Debug)]
pub struct ModelReply {
    pub status: u16,
    /// Headers with names in lower case, including the content type.
    pub headers: Vec<(String, String)>,
    pub body: ReplyBody,
}

/// Body of a response.
#[derive(Debug)]
pub enum ReplyBody {
    Whole(Bytes),
    Stream(Box<ReplyStream>),
}

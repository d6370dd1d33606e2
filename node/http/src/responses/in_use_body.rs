//! Streamed bodies, which mark their connection as in use until they end.
//!
//! When connections run out, the server closes the connection that was idle longest.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use assay_node_connections::InUse;
use bytes::Bytes;

struct InUseBody {
    body: BoxBody,
    _in_use: InUse,
}

/// Wraps a streamed body so that it keeps its connection in use. Other bodies pass to the connection immediately.
pub(crate) fn in_use_until_end(body: BoxBody, in_use: Option<InUse>) -> BoxBody {
    match (body.size(), in_use) {
        (BodySize::Stream, Some(in_use)) => BoxBody::new(InUseBody { body, _in_use: in_use }),
        _ => body,
    }
}

impl MessageBody for InUseBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

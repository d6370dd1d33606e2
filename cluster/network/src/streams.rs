//! Services that respond with a stream of chunks: upper layers name, serve and call them, on behalf of a principal.
//!
//! The transport carries chunks as their reader takes them, so that a slow reader holds back its sender only.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_transport::{Call, Handlers, Received, Refusal, RefusalCode, StreamHandler};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};

use crate::delegated::{join, split};
use crate::network::Network;
use crate::service::{AskError, NoAnswer, ask_error, refusal_of};

/// Chunks of a response as they come. An error is the last item.
pub type AskStream = BoxStream<'static, Result<Bytes, AskError>>;

/// Service that responds with chunks. It runs on the threads of consensus: what takes long belongs elsewhere.
pub trait StreamService: Send + Sync + fmt::Debug + 'static {
    /// Returns the chunks, each of which is made when its reader has room for it. `within` is the time that the reader
    /// waits for each.
    fn stream_for(
        &self,
        principal: Bytes,
        body: Bytes,
        within: Duration,
    ) -> BoxStream<'static, Result<Bytes, NoAnswer>>;
}

#[derive(Debug)]
struct StreamServiceHandler {
    answers: Arc<dyn StreamService>,
    net: Network,
}

impl StreamHandler for StreamServiceHandler {
    fn stream(&self, received: Received) -> BoxStream<'static, Result<Bytes, Refusal>> {
        let checked = self.net.check(&received);
        let Received { from, body, within, .. } = received;
        let refused = |refusal: Refusal| stream::iter([Err(refusal)]).boxed();
        if from.is_none() {
            let why = "only nodes of the cluster may call this service";
            return refused(Refusal::new(RefusalCode::NotAuthenticated, why));
        }
        if let Err(refusal) = checked {
            return refused(refusal);
        }
        let Some((principal, body)) = split(body) else {
            return refused(Refusal::new(RefusalCode::Unavailable, "the request has no principal in front"));
        };
        self.answers.stream_for(principal, body, within).map(|chunk| chunk.map_err(refusal_of)).boxed()
    }
}

impl Network {
    /// Registers the service. On a node without peers it is never called.
    pub fn serve_stream(&self, service: &'static str, answers: Arc<dyn StreamService>) {
        if let Some(transport) = self.transport() {
            let handler = Arc::new(StreamServiceHandler { answers, net: self.clone() });
            transport.register(Handlers::new().stream(service, handler));
        }
    }

    /// Opens a stream of chunks from another node, and waits for the first one. Each chunk may take `within`.
    pub async fn open_stream(
        &self,
        node: NodeId,
        service: &'static str,
        (principal, body): (&[u8], &[u8]),
        within: Duration,
    ) -> Result<AskStream, AskError> {
        let transport = self
            .transport()
            .cloned()
            .ok_or_else(|| AskError::NotReached { node, why: "this node has no address for other nodes".into() })?;
        // A stream changes nothing, and its chunks are large.
        let call = Call::new(service, join(principal, body), within).in_bulk().repeatable();
        let chunks = transport.stream(node, call).await.map_err(|error| ask_error(node, error))?;
        let mut chunks = chunks.map(move |chunk| chunk.map_err(|error| ask_error(node, error))).boxed();
        // A refusal is the first chunk, and says where to ask instead.
        match chunks.next().await {
            Some(Err(error)) => Err(error),
            Some(first) => Ok(stream::iter([first]).chain(chunks).boxed()),
            None => Ok(stream::empty().boxed()),
        }
    }
}

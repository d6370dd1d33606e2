//! Services between nodes besides those of groups: upper layers name, serve and call them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_transport::{Call, CallError, Handler, Handlers, Received, Refusal, RefusalCode};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use thiserror::Error;

use crate::network::Network;

/// A larger question goes where it holds no heartbeat up.
const LARGE_BODY_BYTES: usize = 64 << 10;

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// The request did not reach any node.
    #[error("node {node} could not be reached: {why}")]
    NotReached { node: NodeId, why: String },
    /// The other node does not lead the group that this is about; nothing was done.
    #[error("node {node} does not lead the group{}", leader.map(|leader| format!(", node {leader} does")).unwrap_or_default())]
    NotLeader { node: NodeId, leader: Option<NodeId> },
    /// Nothing was done.
    #[error("node {node} refused: {why}")]
    Refused { node: NodeId, why: String },
    /// Nothing was done for lack of capacity; a repeated request may succeed.
    #[error("node {node} is busy: {why}")]
    Busy { node: NodeId, why: String },
    /// It may have been done.
    #[error("node {node} did not respond: {why}")]
    Unknown { node: NodeId, why: String },
}

/// Failure that is answered instead of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    NotLeader {
        leader: Option<NodeId>,
    },
    /// Nothing was done.
    Refused(String),
    /// It may have been done.
    Unknown(String),
}

/// Runs on the threads of consensus: what takes long belongs elsewhere.
pub trait Service: Send + Sync + fmt::Debug + 'static {
    fn answer(&self, from: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>>;
}

#[derive(Debug)]
struct ServiceHandler {
    answers: Arc<dyn Service>,
    net: Network,
}

impl Handler for ServiceHandler {
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        let checked = self.net.check(&received);
        let Received { from, body, within, .. } = received;
        let Some(from) = from else {
            let why = "only nodes of the cluster may call this service";
            return async move { Err(Refusal::new(RefusalCode::NotAuthenticated, why)) }.boxed();
        };
        if let Err(refusal) = checked {
            return async move { Err(refusal) }.boxed();
        }
        let answer = self.answers.answer(from, body, within);
        async move { answer.await.map_err(refusal_of) }.boxed()
    }
}

impl Network {
    /// Registers the service on this node. Without a transport it is never called.
    pub fn serve(&self, service: &'static str, answers: Arc<dyn Service>) {
        if let Some(transport) = self.transport() {
            transport.register(Handlers::new().call(service, Arc::new(ServiceHandler { answers, net: self.clone() })));
        }
    }

    pub async fn ask(
        &self,
        node: NodeId,
        service: &'static str,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        self.send_request(node, Call::new(service, body, within)).await
    }

    /// Sends a request that changes nothing. If the node stops responding directly, it is sent again through another
    /// node.
    pub async fn ask_repeatable(
        &self,
        node: NodeId,
        service: &'static str,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        self.send_request(node, Call::new(service, body, within).repeatable()).await
    }

    async fn send_request(&self, node: NodeId, call: Call) -> Result<Bytes, AskError> {
        let call = if call.body.len() > LARGE_BODY_BYTES { call.in_bulk() } else { call };
        self.call(node, call).await.map_err(|error| ask_error(node, error))
    }
}

pub(crate) fn refusal_of(no: NoAnswer) -> Refusal {
    match no {
        NoAnswer::NotLeader { leader } => {
            let detail = leader.map(|leader| Bytes::copy_from_slice(&leader.0.to_le_bytes()));
            Refusal::new(RefusalCode::NotLeader, "it does not lead the group").with_detail(detail.unwrap_or_default())
        }
        NoAnswer::Refused(why) => Refusal::new(RefusalCode::Unavailable, why),
        NoAnswer::Unknown(why) => Refusal::new(RefusalCode::Unknown, why),
    }
}

pub(crate) fn ask_error(node: NodeId, error: CallError) -> AskError {
    match error {
        CallError::NotReached(why) => AskError::NotReached { node, why },
        CallError::Lost(why) => AskError::Unknown { node, why },
        CallError::Refused(Refusal { code, why, detail }) => match code {
            RefusalCode::NotLeader => {
                let leader = <[u8; 8]>::try_from(&detail[..]).ok().map(u64::from_le_bytes).map(NodeId);
                AskError::NotLeader { node, leader }
            }
            RefusalCode::Busy => AskError::Busy { node, why },
            code if code.may_have_been_done() => AskError::Unknown { node, why },
            _ => AskError::Refused { node, why },
        },
    }
}

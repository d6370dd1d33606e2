//! The other nodes of a cluster, and the services by which they reach this one.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use assay_cluster::{AskError, CATALOG_SILENCE_MAX, Cluster, NoAnswer, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{CodeForwarding, ForwardingShared};

/// Service of a node for forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerService {
    /// What the node can run. The message may arrive twice.
    Runtimes,
    /// Start or end of a call. The message may not arrive twice.
    Call,
    /// Output of a call. The message may arrive twice.
    Output,
}

impl PeerService {
    const ALL: [PeerService; 3] = [PeerService::Runtimes, PeerService::Call, PeerService::Output];

    fn name(self) -> &'static str {
        match self {
            PeerService::Runtimes => "functions.runtimes",
            PeerService::Call => "functions.call",
            PeerService::Output => "functions.output",
        }
    }
}

/// Other node of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerNode {
    pub node: NodeId,
    /// Whether the node has been heard a moment ago.
    pub is_heard: bool,
}

/// Reason why a message has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFailure {
    /// The message had no effect.
    #[error("{0}")]
    NotDone(String),
    /// The message may have had its effect.
    #[error("{0}")]
    Unknown(String),
}

/// Access to the other nodes.
pub trait ForwardingPeers: Send + Sync + fmt::Debug + 'static {
    fn others(&self) -> Vec<PeerNode>;

    /// Sends a message to another node, which passes it to [`CodeForwarding::answer`].
    fn ask(
        &self,
        node: NodeId,
        service: PeerService,
        body: Bytes,
        within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerFailure>>;
}

/// Starts to serve messages of other nodes.
pub(crate) fn serve(cluster: &Cluster, forwarding: &CodeForwarding) {
    for service in PeerService::ALL {
        // The cluster outlives what serves it, and must not keep it.
        let forwarding = Arc::downgrade(&forwarding.0);
        cluster.serve(service.name(), Arc::new(ForwardingService { service, forwarding }));
    }
}

/// Service that hands messages over. It runs on the threads of consensus.
#[derive(Debug)]
struct ForwardingService {
    service: PeerService,
    forwarding: Weak<ForwardingShared>,
}

impl Service for ForwardingService {
    fn answer(&self, from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let answer = self.forwarding.upgrade().map(|shared| CodeForwarding(shared).answer(self.service, from, body));
        async move {
            match answer {
                Some(answer) => answer.await.map_err(NoAnswer::Refused),
                None => Err(NoAnswer::Refused("this node is stopping".into())),
            }
        }
        .boxed()
    }
}

/// Other nodes of a [`Cluster`].
pub(crate) struct ClusterForwardingPeers(pub Arc<Cluster>);

impl ForwardingPeers for ClusterForwardingPeers {
    fn others(&self) -> Vec<PeerNode> {
        let (own, now) = (self.0.node(), Instant::now());
        let is_heard = |heard: Instant| now.saturating_duration_since(heard) < CATALOG_SILENCE_MAX;
        let peers = self.0.peer_counts().into_iter().filter(|(node, _)| *node != own);
        peers.map(|(node, counts)| PeerNode { node, is_heard: counts.last_heard.is_some_and(is_heard) }).collect()
    }

    fn ask(
        &self,
        node: NodeId,
        service: PeerService,
        body: Bytes,
        within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerFailure>> {
        let cluster = Arc::clone(&self.0);
        async move {
            let answer = match service {
                PeerService::Call => cluster.ask(node, service.name(), body, within).await,
                PeerService::Runtimes | PeerService::Output => {
                    cluster.ask_repeatable(node, service.name(), body, within).await
                }
            };
            answer.map_err(|error| match error {
                AskError::Unknown { .. } => PeerFailure::Unknown(error.to_string()),
                AskError::NotReached { .. }
                | AskError::NotLeader { .. }
                | AskError::Refused { .. }
                | AskError::Busy { .. } => PeerFailure::NotDone(error.to_string()),
            })
        }
        .boxed()
    }
}

impl fmt::Debug for ClusterForwardingPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterForwardingPeers").finish_non_exhaustive()
    }
}

//! The other nodes of a cluster, and the service by which they send their states.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{CATALOG_SILENCE_MAX, Cluster, NoAnswer, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{CoolingExchange, CoolingPeers};

const STATES: &str = "models.cooling";

/// Receives states of other nodes.
pub(crate) fn serve(cluster: &Cluster, exchange: &CoolingExchange) {
    cluster.serve(STATES, Arc::new(CoolingService(exchange.receiver())));
}

/// Takes messages of other nodes. Runs on the threads of consensus, so it only hands them over.
#[derive(Debug)]
struct CoolingService(crate::CoolingReceiver);

impl Service for CoolingService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        self.0.receive(body);
        async { Ok(Bytes::new()) }.boxed()
    }
}

/// The other nodes of a [`Cluster`].
pub(crate) struct ClusterCoolingPeers(pub Arc<Cluster>);

impl CoolingPeers for ClusterCoolingPeers {
    fn alive(&self) -> Vec<NodeId> {
        let (own, now) = (self.0.node(), Instant::now());
        let is_heard = |heard: Instant| now.saturating_duration_since(heard) < CATALOG_SILENCE_MAX;
        let peers = self.0.peer_counts().into_iter();
        peers
            .filter(|(node, counts)| *node != own && counts.last_heard.is_some_and(is_heard))
            .map(|(node, _)| node)
            .collect()
    }

    fn send(&self, node: NodeId, message: Bytes, within: Duration) -> BoxFuture<'static, Result<(), String>> {
        let cluster = Arc::clone(&self.0);
        async move {
            let answer = cluster.ask_repeatable(node, STATES, message, within).await;
            answer.map(drop).map_err(|error| error.to_string())
        }
        .boxed()
    }
}

impl fmt::Debug for ClusterCoolingPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCoolingPeers").finish_non_exhaustive()
    }
}

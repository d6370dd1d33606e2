//! Cache in a cluster: choice of the nodes that own entries, and messages between nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{CATALOG_SILENCE_MAX, Cluster, NoAnswer, PeerCounts, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::ResponseCache;

const CACHE: &str = "gateway.cache";
/// Time for which a view of the nodes is reused, because each request needs one.
const VIEW_HOLDS: Duration = Duration::from_millis(250);
/// Silence after which a node owns no entries.
const SILENCE_MAX: Duration = CATALOG_SILENCE_MAX.saturating_add(Duration::from_secs(1));

/// Nodes of the cluster, as this node sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheView {
    pub own: NodeId,
    /// Nodes that can be owners, including this one.
    pub alive: Vec<NodeId>,
}

/// Connection to the other nodes of the cluster.
pub trait CachePeers: Send + Sync + fmt::Debug + 'static {
    /// Returns the nodes. It is called for each request that uses the cache, so it must be cheap.
    fn view(&self) -> Arc<CacheView>;

    /// Sends a message to another node, which passes it to [`ResponseCache::answer`]. It may arrive twice.
    fn ask(&self, node: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Starts serving messages from other nodes.
pub fn serve_cache(cluster: &Cluster, cache: &ResponseCache) {
    cluster.serve(CACHE, Arc::new(CacheService(cache.clone())));
}

/// Service that answers other nodes.
///
/// It runs on the threads of consensus, so file operations run on other threads.
#[derive(Debug)]
struct CacheService(ResponseCache);

impl Service for CacheService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let cache = self.0.clone();
        async move { cache.answer(body).await.map_err(NoAnswer::Refused) }.boxed()
    }
}

/// Other nodes of a [`Cluster`].
pub struct ClusterCachePeers {
    cluster: Arc<Cluster>,
    tracked: Mutex<CachePeerTracker>,
}

impl ClusterCachePeers {
    pub fn new(cluster: Arc<Cluster>) -> ClusterCachePeers {
        let mut tracked = CachePeerTracker::new(cluster.node(), Instant::now());
        tracked.look(cluster.node(), &cluster.peer_counts(), Instant::now());
        ClusterCachePeers { tracked: Mutex::new(tracked), cluster }
    }
}

impl CachePeers for ClusterCachePeers {
    fn view(&self) -> Arc<CacheView> {
        let mut tracked = self.tracked.lock();
        if tracked.at.elapsed() >= VIEW_HOLDS {
            tracked.look(self.cluster.node(), &self.cluster.peer_counts(), Instant::now());
        }
        Arc::clone(&tracked.view)
    }

    fn ask(&self, node: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, String>> {
        let cluster = Arc::clone(&self.cluster);
        async move { cluster.ask_repeatable(node, CACHE, body, within).await.map_err(|error| error.to_string()) }
            .boxed()
    }
}

impl fmt::Debug for ClusterCachePeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCachePeers").field("view", &self.tracked.lock().view).finish_non_exhaustive()
    }
}

/// Tracker of the nodes that are alive.
struct CachePeerTracker {
    /// Moment at which each node was first known. It counts as a sign of life.
    first: BTreeMap<NodeId, Instant>,
    at: Instant,
    view: Arc<CacheView>,
}

impl CachePeerTracker {
    fn new(own: NodeId, at: Instant) -> CachePeerTracker {
        CachePeerTracker { first: BTreeMap::new(), at, view: Arc::new(alone(own)) }
    }

    fn look(&mut self, own: NodeId, peers: &BTreeMap<NodeId, PeerCounts>, now: Instant) {
        self.first.retain(|node, _| peers.contains_key(node));
        let mut view = alone(own);
        for (node, counts) in peers.iter().filter(|(node, _)| **node != own) {
            let first = *self.first.entry(*node).or_insert(now);
            let heard = counts.last_heard.map_or(first, |heard| heard.max(first));
            if now.saturating_duration_since(heard) < SILENCE_MAX {
                view.alive.push(*node);
            }
        }
        (self.at, self.view) = (now, Arc::new(view));
    }
}

/// Returns the view of a node without peers.
fn alone(own: NodeId) -> CacheView {
    CacheView { own, alive: vec![own] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_owns_entries_while_it_is_heard() {
        let (own, start) = (NodeId(2), Instant::now());
        let heard = |at| PeerCounts { last_heard: at, ..PeerCounts::default() };
        let peers = |at| BTreeMap::from([(NodeId(1), heard(at)), (NodeId(3), heard(None))]);
        let mut tracked = CachePeerTracker::new(own, start);
        let mut alive = |peers, now| {
            tracked.look(own, &peers, now);
            assert_eq!(tracked.view.own, own);
            tracked.view.alive.iter().map(|node| node.0).collect::<Vec<_>>()
        };
        assert_eq!(alive(BTreeMap::new(), start), [2]);
        assert_eq!(alive(peers(None), start), [2, 1, 3]);
        assert_eq!(
            alive(peers(Some(start + Duration::from_secs(3))), start + SILENCE_MAX),
            [2, 1],
            "one was never heard"
        );
        assert_eq!(alive(peers(Some(start + SILENCE_MAX)), start + 2 * SILENCE_MAX), [2]);
        assert_eq!(alive(BTreeMap::from([(NodeId(4), heard(None))]), start + 3 * SILENCE_MAX), [2, 4]);
    }
}

//! Rate limiting in a cluster: choice of the nodes that hold buckets, and messages between nodes.

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

use super::{RateLimiter, RatePeers, RateView};

const LEASE: &str = "limits.lease";
/// Time for which a view of the nodes is reused, because each request needs one.
const VIEW_HOLDS: Duration = Duration::from_millis(250);
/// Silence after which a node is no longer a home.
///
/// By then, an isolated node does not hear from the catalog either and admits nobody. So two nodes never hand out the
/// same tokens.
const SILENCE_MAX: Duration = CATALOG_SILENCE_MAX.saturating_add(Duration::from_secs(1));

/// Starts serving requests for tokens from other nodes.
pub fn serve_leases(cluster: &Cluster, rates: &RateLimiter) {
    if rates.has_rules() {
        cluster.serve(LEASE, Arc::new(LeaseService(rates.clone())));
    }
}

/// Service that answers requests for tokens.
///
/// It runs on the threads of consensus, so it only counts and waits at most for a short lock.
#[derive(Debug)]
struct LeaseService(RateLimiter);

impl Service for LeaseService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let answer = self.0.answer(&body).map_err(NoAnswer::Refused);
        async move { answer }.boxed()
    }
}

/// Other nodes of a [`Cluster`].
pub struct ClusterPeers {
    cluster: Arc<Cluster>,
    seen: Mutex<PeerTracker>,
}

impl ClusterPeers {
    pub fn new(cluster: Arc<Cluster>) -> ClusterPeers {
        let mut seen =
            PeerTracker { first: BTreeMap::new(), at: Instant::now(), view: Arc::new(alone(cluster.node())) };
        seen.look(cluster.node(), &cluster.peer_counts(), Instant::now());
        ClusterPeers { seen: Mutex::new(seen), cluster }
    }
}

impl RatePeers for ClusterPeers {
    fn view(&self) -> Arc<RateView> {
        let mut seen = self.seen.lock();
        if seen.at.elapsed() >= VIEW_HOLDS {
            seen.look(self.cluster.node(), &self.cluster.peer_counts(), Instant::now());
        }
        Arc::clone(&seen.view)
    }

    fn ask(&self, node: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, String>> {
        let cluster = Arc::clone(&self.cluster);
        async move { cluster.ask(node, LEASE, body, within).await.map_err(|error| error.to_string()) }.boxed()
    }
}

/// Returns the view of a node without peers.
fn alone(own: NodeId) -> RateView {
    RateView { own, known: 1, alive: vec![own] }
}

/// Tracker of the nodes that are alive.
struct PeerTracker {
    /// Moment at which each node was first known. It counts as a sign of life.
    first: BTreeMap<NodeId, Instant>,
    at: Instant,
    view: Arc<RateView>,
}

impl PeerTracker {
    fn look(&mut self, own: NodeId, peers: &BTreeMap<NodeId, PeerCounts>, now: Instant) {
        self.first.retain(|node, _| peers.contains_key(node));
        let mut view = alone(own);
        for (node, counts) in peers.iter().filter(|(node, _)| **node != own) {
            let first = *self.first.entry(*node).or_insert(now);
            let heard = counts.last_heard.map_or(first, |heard| heard.max(first));
            view.known += 1;
            if now.saturating_duration_since(heard) < SILENCE_MAX {
                view.alive.push(*node);
            }
        }
        (self.at, self.view) = (now, Arc::new(view));
    }
}

impl fmt::Debug for ClusterPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterPeers").field("view", &self.seen.lock().view).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(at: Option<Instant>) -> PeerCounts {
        PeerCounts { last_heard: at, ..PeerCounts::default() }
    }

    #[test]
    fn a_node_is_home_to_something_while_it_is_heard() {
        let (own, start) = (NodeId(2), Instant::now());
        let mut seen = PeerTracker { first: BTreeMap::new(), at: start, view: Arc::new(alone(own)) };
        seen.look(own, &BTreeMap::new(), start);
        assert_eq!(*seen.view, alone(own));
        let peers = |at| BTreeMap::from([(NodeId(1), heard(at)), (NodeId(3), heard(None))]);
        seen.look(own, &peers(None), start);
        assert_eq!(*seen.view, RateView { own, known: 3, alive: vec![NodeId(2), NodeId(1), NodeId(3)] });
        let later = start + SILENCE_MAX;
        seen.look(own, &peers(Some(start + Duration::from_secs(3))), later);
        assert_eq!(*seen.view, RateView { own, known: 3, alive: vec![NodeId(2), NodeId(1)] }, "one was never heard");
        seen.look(own, &peers(Some(later)), later + SILENCE_MAX);
        assert_eq!(*seen.view, RateView { own, known: 3, alive: vec![NodeId(2)] });
        seen.look(own, &BTreeMap::from([(NodeId(1), heard(Some(later)))]), later);
        assert_eq!(seen.view.known, 2, "one was removed");
    }
}

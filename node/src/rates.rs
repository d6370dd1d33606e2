//! Limits across the cluster: which nodes there are, as this one sees them, and how they ask each other. What is asked, and
//! what is answered, is HTTP's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{CATALOG_SILENCE_MAX, Cluster, NoAnswer, PeerCounts, Service};
use assay_node_http::{RatePeers, RateView, Rates};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

const LEASE: &str = "limits.lease";
/// Nodes come and go, and are asked for at each request.
const VIEW_HOLDS: Duration = Duration::from_millis(250);
/// A node that was not heard for this long is home to nothing. By then one that is cut off from the others does not hear from
/// the catalog any more and lets nobody in, so that none of the two gives out what the other does.
const SILENCE_MAX: Duration = CATALOG_SILENCE_MAX.saturating_add(Duration::from_secs(1));

/// From here on other nodes are answered.
pub fn serve(cluster: &Cluster, rates: &Rates) {
    if rates.has_rules() {
        cluster.serve(LEASE, Arc::new(LeaseDoor(rates.clone())));
    }
}

/// Runs on the threads of consensus: it counts, and waits for nothing but the count of others.
#[derive(Debug)]
struct LeaseDoor(Rates);

impl Service for LeaseDoor {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let answer = self.0.answer(&body).map_err(NoAnswer::Refused);
        async move { answer }.boxed()
    }
}

pub struct ClusterPeers {
    cluster: Arc<Cluster>,
    seen: Mutex<Seen>,
}

impl ClusterPeers {
    pub fn new(cluster: Arc<Cluster>) -> ClusterPeers {
        let mut seen = Seen { first: BTreeMap::new(), at: Instant::now(), view: Arc::new(alone(cluster.node())) };
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

fn alone(own: NodeId) -> RateView {
    RateView { own, known: 1, alive: vec![own] }
}

struct Seen {
    /// When each node was first known here: one that was never heard is given as long to be as one that was.
    first: BTreeMap<NodeId, Instant>,
    at: Instant,
    view: Arc<RateView>,
}

impl Seen {
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
        let mut seen = Seen { first: BTreeMap::new(), at: start, view: Arc::new(alone(own)) };
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

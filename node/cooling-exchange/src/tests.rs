//! Tests of the exchange between nodes of one process.

use std::collections::BTreeMap;

use assay_node_models::cooling::{CoolingKey, CoolingTable, UpstreamFailure};
use futures::FutureExt;
use tokio::time::sleep;

use super::*;

/// Nodes whose messages go from memory to memory. A node without a receiver never answers.
#[derive(Clone, Debug, Default)]
struct MemoryPeers(Arc<Mutex<BTreeMap<u64, Option<CoolingReceiver>>>>);

#[derive(Debug)]
struct MemoryPeersOf {
    own: u64,
    all: MemoryPeers,
}

impl CoolingPeers for MemoryPeersOf {
    fn alive(&self) -> Vec<NodeId> {
        self.all.0.lock().keys().filter(|node| **node != self.own).map(|node| NodeId(*node)).collect()
    }

    fn send(&self, node: NodeId, message: Bytes, within: Duration) -> BoxFuture<'static, Result<(), String>> {
        let receiver = self.all.0.lock().get(&node.0).cloned().flatten();
        async move {
            match receiver {
                Some(receiver) => {
                    receiver.receive(message);
                    Ok(())
                }
                None => {
                    sleep(within).await;
                    Err("no answer".to_owned())
                }
            }
        }
        .boxed()
    }
}

struct MemoryNode {
    table: Arc<Mutex<CoolingTable>>,
    exchange: CoolingExchange,
}

impl MemoryPeers {
    fn start(&self, own: u64) -> MemoryNode {
        let table = Arc::new(Mutex::new(CoolingTable::new()));
        let peers = Arc::new(MemoryPeersOf { own, all: self.clone() });
        let exchange = CoolingExchange::between(peers, Arc::clone(&table));
        self.0.lock().insert(own, Some(exchange.receiver()));
        MemoryNode { table, exchange }
    }
}

fn key(model: usize) -> CoolingKey {
    CoolingKey { secret_id: "s".into(), model: model.to_string() }
}

impl MemoryNode {
    fn fail(&self, model: usize) {
        let mut table = self.table.lock();
        table.fail(&key(model), now_ms(), 1, UpstreamFailure::RateLimited { retry_after_ms: None });
        self.exchange.changed(&key(model));
    }

    fn is_cooling(&self, model: usize) -> bool {
        self.table.lock().is_cooling(&key(model), now_ms())
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_known_everywhere_within_a_moment() {
    let peers = MemoryPeers::default();
    let nodes = [1, 2, 3].map(|own| peers.start(own));
    // The first round of each node, which has nothing yet.
    sleep(Duration::from_millis(1)).await;
    nodes[0].fail(0);
    sleep(FLUSH_EVERY * 2).await;
    assert!(nodes.iter().all(|node| node.is_cooling(0)));
    let counts = nodes[0].exchange.counts();
    assert_eq!((counts.sent, counts.unsent), (2, 0));
    let counts = nodes[1].exchange.counts();
    assert_eq!((counts.received, counts.joined, counts.unreadable), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn many_changes_go_together() {
    let peers = MemoryPeers::default();
    let nodes = [1, 2].map(|own| peers.start(own));
    for model in 0..200 {
        nodes[0].fail(model);
        sleep(Duration::from_millis(1)).await;
    }
    sleep(FLUSH_EVERY * 2).await;
    assert!((0..200).all(|model| nodes[1].is_cooling(model)));
    let sent = nodes[0].exchange.counts().sent;
    assert!((1..=6).contains(&sent), "{sent} messages in 200 ms");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_answer_delays_no_other() {
    let peers = MemoryPeers::default();
    let nodes = [1, 2].map(|own| peers.start(own));
    peers.0.lock().insert(3, None);
    for model in 0..5 {
        nodes[0].fail(model);
        sleep(FLUSH_EVERY * 2).await;
        assert!(nodes[1].is_cooling(model), "{model}");
    }
    sleep(SEND_WITHIN * 2).await;
    let unsent = nodes[0].exchange.counts().unsent;
    assert!((1..=2).contains(&unsent), "{unsent}: what waited went together");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_later_learns_everything_with_a_round() {
    let peers = MemoryPeers::default();
    let first = peers.start(1);
    (0..50).for_each(|model| first.fail(model));
    sleep(Duration::from_secs(1)).await;
    let second = peers.start(2);
    sleep(ROUND_EVERY).await;
    assert!((0..50).all(|model| second.table.lock().state(&key(model)).is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_read_is_counted_and_dropped() {
    let node = MemoryPeers::default().start(1);
    for message in [&b""[..], b"\x02[]", b"\x01{}", b"\x01[[{\"secret_id\":\"s\"}]]"] {
        node.exchange.receiver().receive(Bytes::copy_from_slice(message));
    }
    sleep(Duration::from_millis(1)).await;
    let counts = node.exchange.counts();
    assert_eq!((counts.unreadable, counts.received, node.table.lock().states().count()), (4, 0, 0));
    for _ in 0..RECEIVED_MAX + 3 {
        node.exchange.receiver().receive(Bytes::from_static(b"\x01[]"));
    }
    assert_eq!(node.exchange.counts().overflowed, 3);
}

#[tokio::test(start_paused = true)]
async fn the_exchange_ends_with_its_last_handle() {
    let node = MemoryPeers::default().start(1);
    let table = Arc::downgrade(&node.table);
    drop(node);
    sleep(Duration::from_millis(1)).await;
    assert!(table.upgrade().is_none());
}

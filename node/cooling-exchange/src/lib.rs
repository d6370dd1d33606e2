//! Exchange of cooling states between the nodes of a cluster: what one node learns of an upstream the others know within
//! a second, as far as messages arrive (G-16).
//!
//! ```text
//! failure here ─> table ─> changed() ─> flush, every 50 ms at most ─> all live nodes ─> joined into their tables
//!                            round, every 10 s: all states, a bounded number each ─┘
//! ```
//! States are joined, so that messages may come late, twice, in any order, or not at all. A node of a version without this
//! service refuses the messages and is no worse off than before.
//!
//! | module | subject |
//! |---|---|
//! | `outbox` | which states go to which node, and when; pure |
//! | `wire` | messages |
//! | `cluster_peers` | the nodes of a cluster |

mod cluster_peers;
mod outbox;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_cluster::Cluster;
use assay_node_models::cooling::{CoolingKey, CoolingTable};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::cluster_peers::ClusterCoolingPeers;
use crate::outbox::{Outbox, OutgoingStates};

pub use outbox::{FLUSH_EVERY, ROUND_EVERY, STATES_PER_ROUND_MAX};

/// Upper bound of the time that one message may take.
const SEND_WITHIN: Duration = Duration::from_secs(1);
/// Upper bound of the received messages that wait to be joined. More are dropped, and come again with a round.
const RECEIVED_MAX: usize = 256;
/// States that are joined while the table is locked once.
const JOINED_AT_ONCE_MAX: usize = 64;

/// Access to the other nodes.
pub trait CoolingPeers: Send + Sync + fmt::Debug + 'static {
    /// Returns the other nodes that are alive.
    fn alive(&self) -> Vec<NodeId>;

    /// Sends a message to another node, which passes it to [`CoolingReceiver::receive`].
    fn send(&self, node: NodeId, message: Bytes, within: Duration) -> BoxFuture<'static, Result<(), String>>;
}

/// Exchange of the states of one table. Clones share everything; the exchange ends with the last of them.
#[derive(Clone, Debug)]
pub struct CoolingExchange(Arc<RunningExchange>);

#[derive(Debug)]
struct RunningExchange {
    shared: Arc<ExchangeShared>,
    receiver: CoolingReceiver,
    task: AbortHandle,
}

impl Drop for RunningExchange {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct ExchangeShared {
    table: Arc<Mutex<CoolingTable>>,
    /// Locked after the table where both are needed.
    outbox: Mutex<Outbox>,
    wake: Notify,
    peers: Arc<dyn CoolingPeers>,
    counters: Arc<ExchangeCounters>,
}

/// Takes messages of other nodes.
#[derive(Clone, Debug)]
pub struct CoolingReceiver {
    messages: mpsc::Sender<Bytes>,
    counters: Arc<ExchangeCounters>,
}

#[derive(Debug, Default)]
struct ExchangeCounters {
    sent: AtomicU64,
    unsent: AtomicU64,
    received: AtomicU64,
    unreadable: AtomicU64,
    overflowed: AtomicU64,
    joined: AtomicU64,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoolingExchangeCounts {
    /// Messages that another node took.
    pub sent: u64,
    /// Messages that another node did not take, or not in time.
    pub unsent: u64,
    /// Messages of other nodes that were read.
    pub received: u64,
    /// Messages that were dropped because they cannot be read.
    pub unreadable: u64,
    /// Messages that were dropped because too many waited.
    pub overflowed: u64,
    /// Received states that changed the table.
    pub joined: u64,
}

impl CoolingExchange {
    /// Begins the exchange with the other nodes of the cluster. It has to be called within a tokio runtime.
    pub fn start(cluster: &Arc<Cluster>, table: Arc<Mutex<CoolingTable>>) -> CoolingExchange {
        let exchange = CoolingExchange::between(Arc::new(ClusterCoolingPeers(Arc::clone(cluster))), table);
        cluster_peers::serve(cluster, &exchange);
        exchange
    }

    /// Begins the exchange with these nodes. It has to be called within a tokio runtime.
    pub fn between(peers: Arc<dyn CoolingPeers>, table: Arc<Mutex<CoolingTable>>) -> CoolingExchange {
        let counters = Arc::new(ExchangeCounters::default());
        let (sender, messages) = mpsc::channel(RECEIVED_MAX);
        let receiver = CoolingReceiver { messages: sender, counters: Arc::clone(&counters) };
        let (outbox, wake) = (Mutex::default(), Notify::new());
        let shared = Arc::new(ExchangeShared { table, outbox, wake, peers, counters });
        let task = tokio::spawn(run(Arc::clone(&shared), messages)).abort_handle();
        CoolingExchange(Arc::new(RunningExchange { shared, receiver, task }))
    }

    /// Sends the state of this key to the other nodes. It has to be called after each change of the table: a failure, a
    /// success, the begin of an attempt. The caller may hold the lock of the table.
    pub fn changed(&self, key: &CoolingKey) {
        self.0.shared.outbox.lock().changed(key);
        self.0.shared.wake.notify_one();
    }

    /// Returns the receiver of messages of other nodes.
    pub fn receiver(&self) -> CoolingReceiver {
        self.0.receiver.clone()
    }

    pub fn counts(&self) -> CoolingExchangeCounts {
        let counters = &self.0.shared.counters;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CoolingExchangeCounts {
            sent: value(&counters.sent),
            unsent: value(&counters.unsent),
            received: value(&counters.received),
            unreadable: value(&counters.unreadable),
            overflowed: value(&counters.overflowed),
            joined: value(&counters.joined),
        }
    }
}

impl CoolingReceiver {
    /// Takes a message; it is joined in a moment. Never waits.
    pub fn receive(&self, message: Bytes) {
        if self.messages.try_send(message).is_err() {
            add(&self.counters.overflowed, 1);
        }
    }
}

impl ExchangeShared {
    fn step(&self, at: Duration) -> Vec<OutgoingStates> {
        let alive = self.peers.alive();
        let mut table = self.table.lock();
        self.outbox.lock().step(at, &alive, &mut table, now_ms())
    }

    fn join(&self, message: &Bytes) {
        let states = match wire::decode(message) {
            Ok(states) => states,
            Err(why) => {
                add(&self.counters.unreadable, 1);
                tracing::debug!(%why, "a message about the cooling of models was dropped");
                return;
            }
        };
        add(&self.counters.received, 1);
        for part in states.chunks(JOINED_AT_ONCE_MAX) {
            let joined = outbox::join(&mut self.table.lock(), part, now_ms());
            add(&self.counters.joined, joined as u64);
        }
    }

    /// Sends messages one after the other. What is behind a failure is left out: a round sends it again.
    async fn send(&self, outgoing: OutgoingStates) -> NodeId {
        let OutgoingStates { node, states } = outgoing;
        for message in wire::encode(&states) {
            if let Err(why) = self.peers.send(node, message, SEND_WITHIN).await {
                add(&self.counters.unsent, 1);
                tracing::debug!(%node, why, "the cooling of models could not be sent");
                break;
            }
            add(&self.counters.sent, 1);
        }
        node
    }
}

/// Runs the exchange until it is aborted.
async fn run(shared: Arc<ExchangeShared>, mut messages: mpsc::Receiver<Bytes>) {
    let began = Instant::now();
    let mut sends = FuturesUnordered::new();
    loop {
        let due = shared.outbox.lock().due();
        tokio::select! {
            () = sleep_until(began + due) => {
                let outgoing = shared.step(began.elapsed());
                sends.extend(outgoing.into_iter().map(|outgoing| shared.send(outgoing)));
            }
            () = shared.wake.notified() => {}
            Some(message) = messages.recv() => shared.join(&message),
            Some(node) = sends.next(), if !sends.is_empty() => shared.outbox.lock().finished(node),
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// Milliseconds since the epoch, by which all nodes compare their states.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

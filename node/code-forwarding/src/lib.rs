//! Forwarding of code calls to a node of the cluster that has their interpreter.
//!
//! ```text
//! origin ── functions.runtimes ──▶ all nodes     what can you run, how busy are you
//!        ── functions.call ──────▶ executor      start, cancel
//!        ◀── functions.output ──── executor      console, parts of the outcome, signs of life
//! ```
//! The executor sends its output, one message at a time. A message is repeated until the origin has taken it, and its
//! number tells repetitions apart. An origin whose client reads slowly takes no message, which holds the function back.
//!
//! A call starts at most once. Only a refusal before its start is tried on one other node. If one of the two nodes hears
//! nothing from the other one for [`SILENCE_MAX`], it ends the call on its side.
//!
//! | module | contents |
//! |---|---|
//! | [`choice`] | nodes that can run a call, the least busy first; pure |
//! | [`messages`] | messages between nodes; pure |
//! | [`origin`] | calls of this node that run elsewhere |
//! | [`executor`] | calls of other nodes that run here |
//! | [`peers`] | the other nodes of a cluster |
//!
//! The crate knows neither functions nor principals: a request and its outcome are bytes of a higher layer.
//! Decision: node/decisions/0056.

mod choice;
mod executor;
mod messages;
mod origin;
mod peers;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_cluster::Cluster;
use assay_node_runner::{CodeEvent, RunnerOffer};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::executor::ExecutedCalls;
use crate::origin::ForwardedCalls;
use crate::peers::ClusterForwardingPeers;

pub use executor::EXECUTED_MAX;
pub use origin::{ForwardedCall, ForwardingError};
pub use peers::{ForwardingPeers, PeerFailure, PeerNode, PeerService};

/// Silence of the other node after which a call ends.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Interval between two signs of life of an executor that has nothing else to send.
const ALIVE_EVERY: Duration = Duration::from_secs(2);
/// Upper bound of the bytes of a request.
pub const REQUEST_BYTES_MAX: usize = 72 << 20;
/// Upper bound of the bytes of an outcome: a value of 16 MiB, with the rest of its message.
pub const OUTCOME_BYTES_MAX: usize = 20 << 20;

/// Request of another node to run a call here.
#[derive(Debug)]
pub struct ExecutionRequest {
    pub request: Bytes,
    pub time_max: Duration,
    pub events: Option<mpsc::Sender<CodeEvent>>,
}

/// Outcome of a call on its executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the executor refused the call before any of its code ran, so that another node may run it.
    pub is_refused: bool,
    pub content: Bytes,
}

/// Execution of calls on this node.
pub trait CodeExecutor: Send + Sync + fmt::Debug + 'static {
    /// Returns what this node can run.
    fn offer(&self) -> BoxFuture<'static, RunnerOffer>;

    /// Runs a call of another node. Dropping the future ends the function.
    fn execute(&self, request: ExecutionRequest) -> BoxFuture<'static, Outcome>;
}

/// Counts of forwarding since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingReading {
    /// Calls of this node that another node started.
    pub forwarded: u64,
    /// Forwarded calls whose executor stopped responding.
    pub lost: u64,
    /// Calls of other nodes that this node started.
    pub executed: u64,
}

#[derive(Debug, Default)]
struct ForwardingCounts {
    forwarded: AtomicU64,
    lost: AtomicU64,
    executed: AtomicU64,
}

/// Forwarding of code calls. Clones share everything.
#[derive(Clone, Debug)]
pub struct CodeForwarding(Arc<ForwardingShared>);

#[derive(Debug)]
struct ForwardingShared {
    peers: Arc<dyn ForwardingPeers>,
    /// Runtime of the calls of other nodes.
    runtime: Handle,
    /// Execution here, which a node gets once it serves.
    executor: OnceLock<Arc<dyn CodeExecutor>>,
    forwarded: ForwardedCalls,
    executed: ExecutedCalls,
    counts: ForwardingCounts,
}

impl CodeForwarding {
    /// Starts to forward calls between the nodes of a cluster.
    pub fn start(cluster: &Arc<Cluster>, runtime: Handle) -> CodeForwarding {
        let forwarding = CodeForwarding::between(Arc::new(ClusterForwardingPeers(Arc::clone(cluster))), runtime);
        peers::serve(cluster, &forwarding);
        forwarding
    }

    /// Forwards calls between these nodes.
    pub fn between(peers: Arc<dyn ForwardingPeers>, runtime: Handle) -> CodeForwarding {
        CodeForwarding(Arc::new(ForwardingShared {
            peers,
            runtime,
            executor: OnceLock::new(),
            forwarded: ForwardedCalls::default(),
            executed: ExecutedCalls::default(),
            counts: ForwardingCounts::default(),
        }))
    }

    /// Runs calls of other nodes from now on. Later calls have no effect.
    pub fn execute_with(&self, executor: Arc<dyn CodeExecutor>) {
        let _ = self.0.executor.set(executor);
    }

    pub fn reading(&self) -> ForwardingReading {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let ForwardingCounts { forwarded, lost, executed } = &self.0.counts;
        ForwardingReading { forwarded: read(forwarded), lost: read(lost), executed: read(executed) }
    }

    /// Answers a message of another node. The error says why nothing was done.
    pub fn answer(&self, service: PeerService, from: NodeId, body: Bytes) -> BoxFuture<'static, Result<Bytes, String>> {
        let shared = Arc::clone(&self.0);
        match service {
            PeerService::Runtimes => Box::pin(executor::offer(shared)),
            PeerService::Call => Box::pin(async move { executor::take(&shared, from, body) }),
            PeerService::Output => Box::pin(origin::take(shared, from, body)),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

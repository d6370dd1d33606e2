//! Lane to a peer: at most one connection, made on demand by one attempt that all callers share.
//!
//! ```text
//!   Idle ──call──> Connecting ──made──> Up ──closed, and a call──> Connecting
//!                      └──failed──> Down ──the pause is over, and a call──> Connecting
//! ```
//! While a lane is down, every call fails at once. The pauses are short, so that a returning peer is reached quickly. A
//! refused connection costs almost nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{ClusterId, NodeId};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::call_headers;
use crate::certificate_names::node_name;
use crate::connection::{Connection, DialTarget, NoConnection};
use crate::identity::Credentials;
use crate::peer_counters::Traffic;

/// Pause after the first failure. Each further failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Identity with which this node dials.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) cluster: ClusterId,
    pub(crate) node: NodeId,
    pub(crate) credentials: RwLock<Credentials>,
    pub(crate) connect_within: Duration,
    pub(crate) runtime: Handle,
}

type Attempt = Shared<BoxFuture<'static, Result<Connection, NoConnection>>>;

pub(crate) struct LaneConnection {
    dialer: Arc<Dialer>,
    to: NodeId,
    address: String,
    traffic: Arc<Traffic>,
    state: Mutex<LaneState>,
}

struct LaneState {
    stands: Stands,
    failures: u32,
}

enum Stands {
    Idle,
    Connecting(Attempt),
    Up(Connection),
    Down { until: Instant, why: NoConnection },
}

impl LaneConnection {
    pub(crate) fn new(dialer: Arc<Dialer>, to: NodeId, address: String, traffic: Arc<Traffic>) -> Arc<LaneConnection> {
        let state = Mutex::new(LaneState { stands: Stands::Idle, failures: 0 });
        Arc::new(LaneConnection { dialer, to, address, traffic, state })
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(&self.state.lock().stands, Stands::Up(connection) if connection.is_open())
    }

    /// Returns a connection that was open a moment ago, or makes one.
    pub(crate) async fn connection(self: &Arc<LaneConnection>) -> Result<Connection, NoConnection> {
        let attempt = {
            let mut state = self.state.lock();
            match &state.stands {
                Stands::Up(connection) if connection.is_open() => return Ok(connection.clone()),
                Stands::Down { until, why } if Instant::now() < *until => return Err(why.clone()),
                Stands::Connecting(attempt) => attempt.clone(),
                Stands::Idle | Stands::Up(_) | Stands::Down { .. } => {
                    let attempt = self.begin();
                    state.stands = Stands::Connecting(attempt.clone());
                    attempt
                }
            }
        };
        attempt.await
    }

    /// Starts an attempt in its own task, so that a caller that gives up does not cancel the shared connection.
    fn begin(self: &Arc<LaneConnection>) -> Attempt {
        let lane = Arc::clone(self);
        let task = self.dialer.runtime.spawn(async move {
            let made = lane.make().await;
            lane.settle(&made);
            made
        });
        let lane = Arc::clone(self);
        let ended = async move {
            task.await.unwrap_or_else(|error| {
                let failed = Err(NoConnection::NotReached(format!("the attempt to connect ended: {error}")));
                lane.settle(&failed);
                failed
            })
        };
        ended.boxed().shared()
    }

    async fn make(&self) -> Result<Connection, NoConnection> {
        let Dialer { cluster, node, credentials, connect_within, .. } = &*self.dialer;
        let tls = Arc::clone(&credentials.read().client);
        Connection::make(DialTarget {
            address: &self.address,
            name: &node_name(*cluster, self.to),
            tls,
            within: *connect_within,
            headers: call_headers::lasting(*cluster, Some(*node), Some(self.to)),
            traffic: Arc::clone(&self.traffic),
        })
        .await
    }

    fn settle(&self, made: &Result<Connection, NoConnection>) {
        let mut state = self.state.lock();
        match made {
            Ok(connection) => {
                self.traffic.connected();
                *state = LaneState { stands: Stands::Up(connection.clone()), failures: 0 };
            }
            Err(why) => {
                let pause = pause(state.failures);
                let until = Instant::now() + pause;
                *state = LaneState { stands: Stands::Down { until, why: why.clone() }, failures: state.failures + 1 };
            }
        }
    }
}

fn pause(failures_before: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures_before.min(16)).min(PAUSE_MAX)
}

impl fmt::Debug for LaneConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneConnection").field("to", &self.to).field("up", &self.is_up()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit() {
        let pauses: Vec<u128> = [0, 1, 2, 3, 4, 40, u32::MAX].map(|failures| pause(failures).as_millis()).into();
        assert_eq!(pauses, [20, 40, 80, 160, 200, 200, 200]);
    }
}

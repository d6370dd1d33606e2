//! Clocks of the other nodes. A node that assigns ids compares its own clock with them.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::node_records;
use assay_cluster_network::{NoAnswer, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::certificates::node_certificates::now_micros;
use crate::{Cluster, Shared};

pub(crate) const CLOCK: &str = "cluster.clock";
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// Time limit of a reading. A slower one is too inexact.
const ASK_MAX: Duration = Duration::from_millis(1500);

/// Common reading of the other nodes' clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeersTime {
    /// Median in microseconds since the epoch. Of two readings it is the later one.
    pub micros: i64,
    /// Number of readings.
    pub heard: usize,
}

/// Last reading of each clock, with the time of its arrival.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    heard: Mutex<Option<(Instant, PeersTime)>>,
}

pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let others: Vec<NodeId> =
            node_records::addresses(&shared.catalog.read()).into_keys().filter(|node| *node != shared.node).collect();
        let asked = others.into_iter().map(|node| ask(&shared, node));
        let now = Instant::now();
        let told = join_all(asked).await.into_iter().flatten().map(|(at, micros)| {
            let since = i64::try_from((now.max(at) - now.min(at)).as_micros()).unwrap_or(i64::MAX);
            micros.saturating_sub(since)
        });
        if let Some(time) = later_half(told.collect()) {
            *shared.clocks.heard.lock() = Some((now, time));
        }
        sleep(ASKED_EVERY).await;
    }
}

async fn ask(shared: &Shared, node: NodeId) -> Option<(Instant, i64)> {
    let answer = shared.net.ask_repeatable(node, CLOCK, Bytes::new(), ASK_MAX).await.ok()?;
    Some((Instant::now(), i64::from_le_bytes(answer.as_ref().try_into().ok()?)))
}

/// Returns the median. Of two readings it is the later one, so that a slow clock delays no node.
fn later_half(mut told: Vec<i64>) -> Option<PeersTime> {
    told.sort_unstable();
    let micros = *told.get(told.len() / 2)?;
    Some(PeersTime { micros, heard: told.len() })
}

impl Cluster {
    /// Returns the common reading of the other nodes' clocks, advanced to now.
    pub fn peers_time(&self) -> Option<PeersTime> {
        let (at, time) = (*self.shared.clocks.heard.lock())?;
        let since = i64::try_from(at.elapsed().as_micros()).unwrap_or(i64::MAX);
        Some(PeersTime { micros: time.micros.saturating_add(since), ..time })
    }
}

/// Service that returns this machine's time.
#[derive(Debug)]
pub(crate) struct ClockService;

impl Service for ClockService {
    fn answer(&self, _from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        async move { Ok(Bytes::copy_from_slice(&now_micros().to_le_bytes())) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_what_they_say_counts() {
        let of = |told: &[i64]| later_half(told.to_vec()).map(|time| (time.micros, time.heard));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some((7, 1)));
        assert_eq!(of(&[1, 9]), Some((9, 2)));
        assert_eq!(of(&[9, 1, 8]), Some((8, 3)));
        assert_eq!(of(&[1, 9, 8, 7]), Some((8, 4)));
    }
}

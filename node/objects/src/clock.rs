//! Clock for ids.
//!
//! A machine's clock may jump. An id years ahead would pin all later ids of its shard to that time. Recent requests
//! would then count as old ones, and a repeated request would be written twice. So a time needs confirmation.
//!
//! C1: with at least two other nodes, a time is at most `AHEAD_MAX` above the upper median of their times.
//! C2: with fewer nodes, it is at most that far above the larger of two times: that of the other node, and the start
//!     time plus the elapsed time.
//! C3: a clock that is behind is used unchanged, since ids increase in any case.
//!
//! Other nodes are queried every few seconds. C2 applies to the first moments after a start.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use assay_cluster::{Cluster, PeersTime};

/// Microseconds since the epoch, UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Accepted lead of this machine's clock. Synchronized clocks differ by much less.
const AHEAD_MAX: Duration = Duration::from_secs(10);
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the machine's clock, limited by the other nodes and the time since the start.
pub fn node_clock(cluster: &Arc<Cluster>) -> Clock {
    let (cluster, started, at_start) = (Arc::downgrade(cluster), Instant::now(), wall());
    let said = AtomicI64::new(i64::MIN);
    Arc::new(move || {
        let now = wall();
        let since = micros(started.elapsed());
        let projected = at_start.saturating_add(since);
        let peers = cluster.upgrade().and_then(|cluster| cluster.peers_time());
        let taken = confirmed(now, projected, peers);
        let due = said.load(Ordering::Relaxed).saturating_add(micros(WARNING_INTERVAL)) <= since;
        if taken < now && due {
            said.store(since, Ordering::Relaxed);
            tracing::warn!(
                seconds = (now - taken) / 1_000_000,
                "the clock of this machine is far ahead of the other nodes and of the elapsed time, so it is \
                 ignored. Correct it, or restart this node if it is right"
            );
        }
        taken
    })
}

fn wall() -> i64 {
    micros(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn confirmed(now: i64, projected: i64, peers: Option<PeersTime>) -> i64 {
    let trusted = match peers {
        Some(peers) if peers.heard >= 2 => peers.micros,
        Some(peers) => projected.max(peers.micros),
        None => projected,
    };
    now.min(trusted.saturating_add(micros(AHEAD_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const DAY: i64 = 86_400 * SECOND;
    const NOW: i64 = 20_000 * DAY;

    fn check(now: i64, projected: i64, peers: &[i64], expected: i64) {
        let time = peers.iter().max().map(|micros| PeersTime { micros: *micros, heard: peers.len() });
        assert_eq!(confirmed(now, projected, time), expected, "{now} {projected} {peers:?}");
    }

    #[test]
    fn a_jump_ahead_is_not_followed() {
        let limit = NOW + 10 * SECOND;
        check(NOW + 3 * SECOND, NOW, &[], NOW + 3 * SECOND);
        check(NOW + 26 * 3600 * SECOND, NOW, &[], limit);
        check(NOW + 3650 * DAY, NOW, &[NOW], limit);
        check(NOW + 3650 * DAY, NOW, &[NOW, NOW], limit);
    }

    #[test]
    fn a_machine_that_stood_still_takes_the_time_of_the_others() {
        check(NOW + DAY, NOW, &[NOW + DAY], NOW + DAY);
        check(NOW + DAY, NOW, &[NOW + DAY, NOW + DAY], NOW + DAY);
    }

    #[test]
    fn a_clock_that_was_wrong_at_the_start_is_not_followed_where_two_others_know_better() {
        check(NOW + DAY, NOW + DAY, &[NOW, NOW], NOW + 10 * SECOND);
        check(NOW + DAY, NOW + DAY, &[NOW], NOW + DAY);
    }

    #[test]
    fn what_is_behind_is_taken_as_it_is() {
        check(NOW - DAY, NOW, &[NOW, NOW], NOW - DAY);
    }
}

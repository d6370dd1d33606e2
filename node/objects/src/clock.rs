//! The clock that ids follow. A machine's clock may jump; an id that followed it years ahead would stay there for good, and
//! with it every later one of its shard: requests that were just written would count as long forgotten, and one that is
//! sent again would be written again. So a time is taken only where something else than this machine's clock bears it out.
//!
//! C1: no more than `AHEAD_MAX` above what at least two other nodes say, the later half of them.
//! C2: with fewer to ask, no more than that above both the one other and the time at the start plus what has passed since.
//! C3: a clock that is behind is taken as it is: ids go up all the same.
//!
//! Other nodes are asked every few seconds; in the first moments after a start C2 holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use assay_cluster::{Cluster, PeersTime};

/// Microseconds since the epoch, UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Clocks of machines that are kept in step differ by much less.
const AHEAD_MAX: Duration = Duration::from_secs(10);
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The machine's clock, as far as the other nodes and the time since the start bear it out.
pub fn node_clock(cluster: &Arc<Cluster>) -> Clock {
    let (cluster, started, at_start) = (Arc::downgrade(cluster), Instant::now(), wall());
    let said = AtomicI64::new(i64::MIN);
    Arc::new(move || {
        let now = wall();
        let since = micros(started.elapsed());
        let projected = at_start.saturating_add(since);
        let peers = cluster.upgrade().and_then(|cluster| cluster.peers_time());
        let taken = borne_out(now, projected, peers);
        let due = said.load(Ordering::Relaxed).saturating_add(micros(SAID_AGAIN_AFTER)) <= since;
        if taken < now && due {
            said.store(since, Ordering::Relaxed);
            tracing::warn!(
                seconds = (now - taken) / 1_000_000,
                "this machine's clock is far ahead of the others and of the time since the start, and is not followed; \
                 set it right, or start this node again if it is right"
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

fn borne_out(now: i64, projected: i64, peers: Option<PeersTime>) -> i64 {
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
        assert_eq!(borne_out(now, projected, time), expected, "{now} {projected} {peers:?}");
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

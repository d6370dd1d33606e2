//! Elections that a replica leaves to others: one on a slow disk lets other voters stand first.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::group::Group;

/// The time when a replica last heard its leader.
#[derive(Debug)]
pub(crate) struct LeaderHeard(Mutex<Instant>);

impl LeaderHeard {
    /// Counts from now, as if a leader had just been heard.
    pub fn new() -> LeaderHeard {
        LeaderHeard(Mutex::new(Instant::now()))
    }

    /// Notes an append, which only leaders send.
    pub fn note(&self) {
        *self.0.lock() = Instant::now();
    }

    fn elapsed(&self) -> Duration {
        self.0.lock().elapsed()
    }
}

impl Group {
    /// Lets other voters stand for election before this replica, or ends that. To be called again and again.
    ///
    /// A replica that yields stands by itself only after it has heard no leader for [`Timing::yield_max`]: it may be the
    /// only one with all committed entries. It takes a lead that is handed to it at once.
    ///
    /// [`Timing::yield_max`]: crate::Timing::yield_max
    pub fn yield_elections(&self, yields: bool) {
        if self.leads() {
            self.leader_heard().note(); // its own appends are heard by others only
        }
        let waits = yields && self.leader_heard().elapsed() < self.timing().yield_max();
        self.raft().runtime_config().elect(!waits);
    }
}

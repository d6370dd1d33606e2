//! Reachability of a peer over direct connections, judged by the calls to it.
//!
//! ```text
//!   up ──a call has no answer for `ping_after`──> examined ──any answer──> up
//!                                                    └──no answer for `silent_after`──> down ──a ping is answered──> up
//! ```
//! An examination is one ping. Only a response proves that both directions work, unlike bytes that merely arrive. While
//! a path is down, calls first go through another node (`relay`). A path marked as down by mistake only costs a detour.

use std::time::Duration;

use assay_storage_model::NodeId;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time for which a peer is not used as a relay after it reported that it does not support it.
const RELAY_UNKNOWN_FOR: Duration = Duration::from_secs(30);
/// Time without relay attempts after all relays failed to reach the peer.
const RELAY_PAUSE: Duration = Duration::from_millis(500);

/// Time limits of silence, which must be longer than a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A call without an answer for this long makes the node ping the peer.
    pub ping_after: Duration,
    /// A ping without an answer for this long means that the direct path is down.
    pub silent_after: Duration,
    /// Limit for TCP, TLS and the greeting of a new connection together.
    pub connect_within: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            ping_after: Duration::from_millis(100),
            silent_after: Duration::from_millis(200),
            connect_within: Duration::from_secs(1),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Path {
    state: Mutex<PathState>,
    down: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct PathState {
    /// Start of the oldest call without a later response.
    unanswered_since: Option<Instant>,
    examined: bool,
    /// Relay that last reached the peer.
    via: Option<NodeId>,
    no_relay_before: Option<Instant>,
    /// Time before which this peer is not used as a relay.
    relays_nothing_before: Option<Instant>,
}

impl Default for Path {
    fn default() -> Path {
        Path { state: Mutex::default(), down: watch::Sender::new(false) }
    }
}

impl Path {
    pub(crate) fn asked(&self, now: Instant) {
        self.state.lock().unanswered_since.get_or_insert(now);
    }

    pub(crate) fn answered(&self) {
        self.state.lock().unanswered_since = None;
    }

    pub(crate) fn is_unanswered_since(&self, then: Instant) -> bool {
        self.state.lock().unanswered_since.is_some_and(|since| since <= then)
    }

    /// Returns whether the caller must examine the path now. It then calls [`Path::end_examination`] afterwards.
    pub(crate) fn begin_examination(&self, now: Instant, ping_after: Duration) -> bool {
        let mut state = self.state.lock();
        let due = !state.examined && state.unanswered_since.is_some_and(|since| now - since >= ping_after);
        state.examined |= due;
        due
    }

    pub(crate) fn end_examination(&self) {
        self.state.lock().examined = false;
    }

    /// Sets whether the path is down, and returns whether that is a change.
    pub(crate) fn set_down(&self, down: bool) -> bool {
        self.down.send_if_modified(|was| std::mem::replace(was, down) != down)
    }

    pub(crate) fn is_down(&self) -> bool {
        *self.down.borrow()
    }

    /// Waits until the path is down, possibly forever.
    pub(crate) async fn until_down(&self) {
        let mut down = self.down.subscribe();
        if down.wait_for(|down| *down).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the path has been down for this long without interruption.
    pub(crate) async fn until_down_for(&self, time: Duration) {
        let mut down = self.down.subscribe();
        loop {
            self.until_down().await;
            let is_up_again = down.wait_for(|down| !*down);
            if tokio::time::timeout(time, is_up_again).await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn via(&self) -> Option<NodeId> {
        self.state.lock().via
    }

    pub(crate) fn reached_via(&self, via: NodeId) {
        self.state.lock().via = Some(via);
    }

    pub(crate) fn may_be_relayed(&self, now: Instant) -> bool {
        self.state.lock().no_relay_before.is_none_or(|until| now >= until)
    }

    pub(crate) fn relayed_in_vain(&self, now: Instant) {
        let mut state = self.state.lock();
        state.via = None;
        state.no_relay_before = Some(now + RELAY_PAUSE);
    }

    pub(crate) fn relays(&self, now: Instant) -> bool {
        !self.is_down() && self.state.lock().relays_nothing_before.is_none_or(|until| now >= until)
    }

    pub(crate) fn does_not_relay(&self, now: Instant) {
        self.state.lock().relays_nothing_before = Some(now + RELAY_UNKNOWN_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING_AFTER: Duration = Duration::from_millis(100);

    #[test]
    fn a_path_is_examined_once_when_the_oldest_call_has_no_answer_for_long() {
        let (path, start) = (Path::default(), Instant::now());
        path.asked(start);
        path.asked(start + PING_AFTER / 2);
        assert!(!path.begin_examination(start + PING_AFTER / 2, PING_AFTER));
        assert!(path.begin_examination(start + PING_AFTER, PING_AFTER));
        assert!(!path.begin_examination(start + PING_AFTER * 2, PING_AFTER), "one examination at a time");
        path.end_examination();
        path.answered();
        assert!(!path.begin_examination(start + PING_AFTER * 3, PING_AFTER), "any answer proves the path");
        path.asked(start + PING_AFTER * 3);
        assert!(path.begin_examination(start + PING_AFTER * 4, PING_AFTER));
    }

    #[test]
    fn relays_rest_after_they_failed_and_peers_that_do_not_know_how_rest_longer() {
        let (path, now) = (Path::default(), Instant::now());
        assert!(path.may_be_relayed(now) && path.relays(now));
        path.relayed_in_vain(now);
        assert!(!path.may_be_relayed(now) && path.may_be_relayed(now + RELAY_PAUSE));
        path.does_not_relay(now);
        assert!(!path.relays(now + RELAY_PAUSE) && path.relays(now + RELAY_UNKNOWN_FOR));
        path.set_down(true);
        assert!(!path.relays(now + RELAY_UNKNOWN_FOR), "a path that is down leads to no relay");
    }
}

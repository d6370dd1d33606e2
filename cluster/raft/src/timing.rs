//! Timing of failure detection between replicas, and the derived time limits in consensus.

use std::time::Duration;

use thiserror::Error;

/// Election and heartbeat times of all groups of a node, which should be equal on all nodes of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Interval of heartbeats, and time limit of the response to an append. Must be longer than a round trip.
    pub heartbeat: Duration,
    /// Lower bound of the random time without a leader after which a follower requests votes.
    pub election_min: Duration,
    /// Upper bound of that time. It is also the lease: a voter with contact to its leader within this time votes for no
    /// other.
    pub election_max: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            heartbeat: Duration::from_millis(120),
            election_min: Duration::from_millis(400),
            election_max: Duration::from_millis(700),
        }
    }
}

/// Shortest heartbeat. A shorter one costs an idle node noticeable CPU time.
const HEARTBEAT_MIN: Duration = Duration::from_millis(20);
/// Longest election, because readers and writers wait for elections.
pub const ELECTION_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadTiming {
    #[error("the heartbeat of {0:?} is too short: it must be at least {HEARTBEAT_MIN:?}")]
    Heartbeat(Duration),
    #[error("the shortest election time is {election_min:?}: it must be at least three heartbeats of {heartbeat:?}")]
    ElectionMin { heartbeat: Duration, election_min: Duration },
    #[error(
        "the longest election time is {election_max:?}: it must be at least half as long again as the shortest, which \
         is {election_min:?}"
    )]
    ElectionMax { election_min: Duration, election_max: Duration },
    #[error("the longest election time is {0:?}: it may be at most {ELECTION_LIMIT:?}")]
    TooLong(Duration),
}

impl Timing {
    pub fn check(self) -> Result<Timing, BadTiming> {
        let Timing { heartbeat, election_min, election_max } = self;
        if heartbeat < HEARTBEAT_MIN {
            return Err(BadTiming::Heartbeat(heartbeat));
        }
        if election_max > ELECTION_LIMIT {
            return Err(BadTiming::TooLong(election_max));
        }
        if election_min < heartbeat * 3 {
            return Err(BadTiming::ElectionMin { heartbeat, election_min });
        }
        if election_max < election_min * 3 / 2 {
            return Err(BadTiming::ElectionMax { election_min, election_max });
        }
        Ok(self)
    }

    /// Interval at which consensus checks its timers, which openraft derives from the heartbeat.
    pub(crate) fn tick(self) -> Duration {
        self.heartbeat * 3 / 2
    }

    /// Time limit of a candidacy before a retry.
    pub(crate) fn election_wait(self) -> Duration {
        self.election_min * 5 / 8
    }

    /// Pause between two attempts to get a majority of pre-votes. An election timeout is long enough for several.
    pub(crate) fn pre_vote_pause(self) -> Duration {
        self.election_min / 2
    }

    /// Time limit of one request to a leader: a round trip, and the leader's own round that the request may have to
    /// wait for.
    pub(crate) fn ask_max(self) -> Duration {
        (self.heartbeat * 5).max(Duration::from_secs(2))
    }

    /// Time for which a read searches for a leader before it fails.
    pub(crate) fn leader_wait(self) -> Duration {
        (self.election_max * 4).max(Duration::from_secs(5))
    }

    /// Time limit for a replica to lead after the request to take over.
    pub(crate) fn take_over_max(self) -> Duration {
        (self.election_max * 3).max(Duration::from_secs(3))
    }

    /// Time without a leader after which a yielding replica stands for election. By then, others had time for two
    /// attempts.
    pub fn yield_max(self) -> Duration {
        self.take_over_max()
    }

    /// Time limit for the writes in flight to end before a handover is cancelled.
    pub(crate) fn quiet_wait(self) -> Duration {
        (self.heartbeat * 3).max(Duration::from_secs(1))
    }

    /// Time for the old leader to notice that the other replica leads.
    pub(crate) fn notice_wait(self) -> Duration {
        (self.heartbeat * 3).max(Duration::from_millis(500))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(heartbeat: u64, election_min: u64, election_max: u64) -> Result<Timing, BadTiming> {
        let [heartbeat, election_min, election_max] =
            [heartbeat, election_min, election_max].map(Duration::from_millis);
        Timing { heartbeat, election_min, election_max }.check()
    }

    #[test]
    fn times_keep_their_relation_and_the_defaults_do() {
        assert!(Timing::default().check().is_ok());
        assert!(of(800, 2400, 4000).is_ok(), "what is documented for 300 ms one way");
        assert!(matches!(of(10, 400, 700), Err(BadTiming::Heartbeat(_))));
        assert!(matches!(of(200, 400, 700), Err(BadTiming::ElectionMin { .. })));
        assert!(matches!(of(120, 400, 500), Err(BadTiming::ElectionMax { .. })));
        assert!(matches!(of(120, 400, 60_000), Err(BadTiming::TooLong(_))));
    }

    #[test]
    fn no_wait_is_shorter_than_what_it_waits_for() {
        for timing in [Timing::default(), of(800, 2400, 4000).expect("good")] {
            let round_trip = timing.heartbeat;
            assert!(timing.ask_max() >= round_trip * 3);
            assert!(timing.leader_wait() >= timing.election_max * 2);
            assert!(timing.take_over_max() >= timing.election_max + timing.election_wait() + round_trip);
            assert!(timing.yield_max() >= (timing.election_max + timing.election_wait()) * 2);
            assert!(timing.quiet_wait() >= round_trip && timing.notice_wait() >= round_trip);
            assert!(timing.election_wait() >= round_trip);
        }
    }
}

//! Elections with pre-votes, in which replicas with a slow disk yield to others.
//!
//! openraft 0.9 has no pre-vote. A follower without contact to its leader would raise its term with every election
//! timeout. That term deposes a leader that all others follow. Elections are therefore off in openraft. This task
//! turns them on only while a majority reports that it has no contact to a leader either (decisions/0018).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_storage_model::{GroupId, NodeId, ReplicaId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use openraft::ServerState;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::group::Group;
use crate::log::log_store::LogStore;
use crate::network::peers::{Message, MessageKind, PeerError, Peers, Way};
use crate::network::wire;
use crate::timing::Timing;
use crate::types::{LogIdOf, RaftOf, Replica};

/// Election state of a replica: its last contact with the leader, and whether it yields to others.
#[derive(Debug)]
pub(crate) struct Elections {
    timing: Timing,
    started: Instant,
    leader_heard: Mutex<Option<Instant>>,
    yields: AtomicBool,
    /// Whether another voter had contact with a leader in the last round of pre-votes.
    heard_by_others: AtomicBool,
}

impl Elections {
    pub fn new(timing: Timing) -> Elections {
        let [yields, heard_by_others] = [(); 2].map(|()| AtomicBool::new(false));
        Elections { timing, started: Instant::now(), leader_heard: Mutex::default(), yields, heard_by_others }
    }

    /// Records an append of the current leader, or that this replica leads.
    pub fn note_leader(&self) {
        *self.leader_heard.lock() = Some(Instant::now());
    }

    /// Returns whether there was contact with the leader within the lease.
    fn hears_leader(&self) -> bool {
        self.leader_heard.lock().is_some_and(|heard| heard.elapsed() < self.timing.election_max)
    }

    /// Returns the leader according to consensus.
    ///
    /// Returns `None` if contact was lost for as long as a follower waits before it stands. Consensus names a leader
    /// until another one is elected, which takes a majority.
    pub fn leader(&self, own: Replica, named: Option<Replica>) -> Option<ReplicaId> {
        let stands_after = self.timing.election_max + self.timing.election_min;
        let is_heard = || self.leader_heard.lock().is_some_and(|heard| heard.elapsed() < stands_after);
        named.filter(|leader| *leader == own || is_heard()).map(ReplicaId)
    }

    /// Returns the leader that has contact with another voter but not with this replica.
    pub fn unheard_leader(&self, own: Replica, named: Option<Replica>) -> Option<ReplicaId> {
        let heard_by_others = self.heard_by_others.load(Ordering::Relaxed);
        named.map(ReplicaId).filter(|_| heard_by_others && self.leader(own, named).is_none())
    }

    /// Returns the time until this replica may request pre-votes.
    fn waits(&self) -> Duration {
        let heard = *self.leader_heard.lock();
        match (self.yields.load(Ordering::Relaxed), heard) {
            (true, heard) => self.timing.yield_max().saturating_sub(heard.unwrap_or(self.started).elapsed()),
            (false, Some(heard)) => self.timing.election_max.saturating_sub(heard.elapsed()),
            // The leader from before this start may be gone.
            (false, None) => Duration::ZERO,
        }
    }

    /// Decides on the pre-vote for a candidate with this last entry.
    pub fn pre_vote(&self, candidate_last: Option<LogIdOf>, raft: &RaftOf, log: &LogStore) -> PreVote {
        if self.leads(raft) || self.hears_leader() {
            return PreVote::HearsLeader;
        }
        if candidate_last < log.last() { PreVote::LongerLog } else { PreVote::Granted }
    }

    /// Returns whether this replica leads, and a majority responded to it within the lease.
    fn leads(&self, raft: &RaftOf) -> bool {
        let metrics = raft.metrics();
        let metrics = metrics.borrow();
        let answered = metrics.millis_since_quorum_ack.map(Duration::from_millis);
        metrics.state == ServerState::Leader && answered.is_some_and(|since| since < self.timing.election_max)
    }
}

/// Response to a request for a pre-vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreVote {
    Granted,
    /// The voter has contact with a leader, or is one.
    HearsLeader,
    /// The voter has entries that the candidate lacks.
    LongerLog,
}

/// Parts of a replica that its election task uses. The task holds the replica only while it requests pre-votes.
pub(crate) struct Candidate<'a> {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub raft: &'a RaftOf,
    pub log: &'a LogStore,
    pub peers: &'a Arc<dyn Peers>,
    pub elections: &'a Elections,
}

/// Turns elections of a replica on and off until the replica is dropped or its consensus stops.
pub(crate) async fn guard_elections<T>(replica: Weak<T>, candidate_of: impl Fn(&T) -> Candidate<'_>) {
    loop {
        let pause = {
            let Some(replica) = replica.upgrade() else { return };
            let candidate = candidate_of(&replica);
            if candidate.raft.metrics().borrow().running_state.is_err() {
                return;
            }
            candidate.look().await
        };
        sleep(pause).await;
    }
}

impl Candidate<'_> {
    /// Decides whether the replica may stand for election, and returns the time until the next decision.
    async fn look(&self) -> Duration {
        let timing = self.elections.timing;
        let metrics = self.raft.server_metrics().borrow().clone();
        let membership = metrics.membership_config.membership();
        if metrics.state == ServerState::Leader {
            self.elections.note_leader();
        }
        let waits = self.elections.waits();
        if !membership.voter_ids().any(|voter| voter == self.replica.0) || !waits.is_zero() {
            self.raft.runtime_config().elect(false);
            return waits.max(timing.pre_vote_pause());
        }
        let others = membership.nodes().filter(|(replica, _)| **replica != self.replica.0);
        let others = others.map(|(replica, home)| (ReplicaId(*replica), NodeId(home.node))).collect();
        let won = self.wins_pre_vote(membership.get_joint_config(), others).await;
        // This replica may have heard from the leader during the pre-votes.
        self.raft.runtime_config().elect(won && self.elections.waits().is_zero());
        timing.pre_vote_pause()
    }

    async fn wins_pre_vote(&self, config: &[BTreeSet<Replica>], others: Vec<(ReplicaId, NodeId)>) -> bool {
        let mut granted = BTreeSet::from([self.replica.0]);
        let is_voter = |replica: ReplicaId| config.iter().any(|voters| voters.contains(&replica.0));
        let asked = others.into_iter().filter(|(replica, _)| is_voter(*replica));
        let mut answers: FuturesUnordered<_> = asked.map(|(replica, node)| self.ask(replica, node)).collect();
        let mut heard_by_others = false;
        while !is_majority(config, &granted) {
            let Some((replica, answer)) = answers.next().await else { break };
            heard_by_others |= answer == Some(PreVote::HearsLeader);
            granted.extend(answer.filter(|answer| *answer == PreVote::Granted).map(|_| replica.0));
        }
        self.elections.heard_by_others.store(heard_by_others, Ordering::Relaxed);
        is_majority(config, &granted)
    }

    async fn ask(&self, to: ReplicaId, node: NodeId) -> (ReplicaId, Option<PreVote>) {
        let way = Way { group: self.group, from: self.replica, to, node };
        let body = wire::encode_pre_vote(self.log.last().as_ref());
        let within = self.elections.timing.election_wait();
        let sent = self.peers.send(Message { way, kind: MessageKind::PreVote, body, within });
        let answer = match timeout(within, sent).await {
            Ok(Ok(answer)) => wire::decode_pre_voted(&answer).ok(),
            // Versions before 0.5 support only the vote itself.
            Ok(Err(PeerError::Unsupported(_))) => Some(PreVote::Granted),
            Ok(Err(_)) | Err(_) => None,
        };
        (to, answer)
    }
}

/// Returns whether the granted pre-votes are a majority of every set of voters. A membership change has two sets.
fn is_majority(config: &[BTreeSet<Replica>], granted: &BTreeSet<Replica>) -> bool {
    config.iter().all(|voters| voters.intersection(granted).count() * 2 > voters.len())
}

impl Group {
    /// Makes this replica yield elections to other voters, or ends that.
    ///
    /// A yielding replica stands for election only after [`Timing::yield_max`] without a leader, because it may be the
    /// only one with all committed entries. It accepts a handover at once.
    pub fn yield_elections(&self, yields: bool) {
        self.elections().yields.store(yields, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_replica_asks_once_its_leader_is_silent_for_the_lease() {
        let timing = Timing::default();
        let elections = Elections::new(timing);
        assert!(elections.waits().is_zero(), "no leader was heard since the start");
        elections.note_leader();
        assert!(elections.hears_leader());
        assert_eq!(elections.waits(), timing.election_max);
        tokio::time::advance(timing.election_max).await;
        assert!(!elections.hears_leader());
        assert!(elections.waits().is_zero());
        elections.yields.store(true, Ordering::Relaxed);
        assert_eq!(elections.waits(), timing.yield_max() - timing.election_max);
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_is_not_heard_is_named_no_longer_than_a_follower_waits_to_stand() {
        let timing = Timing::default();
        let elections = Elections::new(timing);
        assert_eq!(elections.leader(1, Some(2)), None, "it was not heard since the start");
        assert_eq!(elections.leader(1, Some(1)), Some(ReplicaId(1)));
        elections.note_leader();
        elections.heard_by_others.store(true, Ordering::Relaxed);
        let named = (elections.leader(1, Some(2)), elections.unheard_leader(1, Some(2)));
        assert_eq!(named, (Some(ReplicaId(2)), None));
        tokio::time::advance(timing.election_max + timing.election_min).await;
        let named = (elections.leader(1, Some(2)), elections.unheard_leader(1, Some(2)));
        assert_eq!(named, (None, Some(ReplicaId(2))));
    }

    #[test]
    fn a_majority_is_needed_of_each_set_of_voters() {
        let set = |voters: &[Replica]| voters.iter().copied().collect::<BTreeSet<_>>();
        let joint = [set(&[1, 2, 3]), set(&[3, 4, 5])];
        assert!(!is_majority(&joint, &set(&[1, 2])));
        assert!(!is_majority(&joint, &set(&[3, 4])));
        assert!(is_majority(&joint, &set(&[1, 3, 4])));
        assert!(is_majority(&[set(&[1])], &set(&[1])));
        assert!(!is_majority(&[set(&[1, 2])], &set(&[1])));
    }
}

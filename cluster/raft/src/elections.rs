//! Elections: a replica asks the others for a pre-vote before it stands, and lets others stand first on a slow disk.
//!
//! openraft 0.9 has no pre-vote. A follower that its leader does not reach raises its term with every election timeout,
//! and that term deposes a leader that all others hear. So elections are off in openraft, and this task turns them on
//! for as long as a majority answers that it hears no leader either (decisions/0018).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_storage_model::{GroupId, NodeId, ReplicaId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use openraft::ServerState;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::group::Group;
use crate::log_store::LogStore;
use crate::peers::{Message, MessageKind, PeerError, Peers, Way};
use crate::timing::Timing;
use crate::types::{LogIdOf, RaftOf, Replica};
use crate::wire;

/// What a replica knows about elections: when it last heard its leader, and whether others are to stand first.
#[derive(Debug)]
pub(crate) struct Elections {
    timing: Timing,
    started: Instant,
    leader_heard: Mutex<Option<Instant>>,
    yields: AtomicBool,
}

impl Elections {
    pub fn new(timing: Timing) -> Elections {
        let (started, leader_heard, yields) = (Instant::now(), Mutex::default(), AtomicBool::new(false));
        Elections { timing, started, leader_heard, yields }
    }

    /// Notes an append of the current leader, or that this replica leads.
    pub fn note_leader(&self) {
        *self.leader_heard.lock() = Some(Instant::now());
    }

    /// Whether the leader was heard within the lease.
    fn hears_leader(&self) -> bool {
        self.leader_heard.lock().is_some_and(|heard| heard.elapsed() < self.timing.election_max)
    }

    /// Time until this replica may ask for pre-votes.
    fn waits(&self) -> Duration {
        let heard = *self.leader_heard.lock();
        match (self.yields.load(Ordering::Relaxed), heard) {
            (true, heard) => self.timing.yield_max().saturating_sub(heard.unwrap_or(self.started).elapsed()),
            (false, Some(heard)) => self.timing.election_max.saturating_sub(heard.elapsed()),
            // The leader of the time before this start may be gone.
            (false, None) => Duration::ZERO,
        }
    }

    /// Decides on a pre-vote: granted unless this replica hears a leader, is one, or has a longer log.
    pub fn grants(&self, candidate_last: Option<LogIdOf>, raft: &RaftOf, log: &LogStore) -> bool {
        !self.leads(raft) && !self.hears_leader() && candidate_last >= log.last()
    }

    /// Whether this replica leads, and a majority answered it within the lease.
    fn leads(&self, raft: &RaftOf) -> bool {
        let metrics = raft.metrics();
        let metrics = metrics.borrow();
        let answered = metrics.millis_since_quorum_ack.map(Duration::from_millis);
        metrics.state == ServerState::Leader && answered.is_some_and(|since| since < self.timing.election_max)
    }
}

/// What the election task of a replica works with. It must not keep the replica alive.
pub(crate) struct Candidate<'a> {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub raft: &'a RaftOf,
    pub log: &'a LogStore,
    pub peers: &'a Arc<dyn Peers>,
    pub elections: &'a Elections,
}

/// Turns elections of a replica on and off, as long as somebody holds the replica.
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
    /// Decides whether the replica may stand for election, and returns the time until the next look.
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
        let elected = self.wins_pre_vote(membership.get_joint_config(), others).await;
        // The leader may have been heard while the others were asked.
        self.raft.runtime_config().elect(elected && self.elections.waits().is_zero());
        timing.pre_vote_pause()
    }

    async fn wins_pre_vote(&self, config: &[BTreeSet<Replica>], others: Vec<(ReplicaId, NodeId)>) -> bool {
        let mut granted = BTreeSet::from([self.replica.0]);
        let is_voter = |replica: ReplicaId| config.iter().any(|voters| voters.contains(&replica.0));
        let asked = others.into_iter().filter(|(replica, _)| is_voter(*replica));
        let mut answers: FuturesUnordered<_> = asked.map(|(replica, node)| self.ask(replica, node)).collect();
        while !is_majority(config, &granted) {
            let Some(answer) = answers.next().await else { return false };
            granted.extend(answer.map(|replica| replica.0));
        }
        true
    }

    /// Returns the replica if it grants the pre-vote.
    async fn ask(&self, to: ReplicaId, node: NodeId) -> Option<ReplicaId> {
        let way = Way { group: self.group, from: self.replica, to, node };
        let body = wire::encode_pre_vote(self.log.last().as_ref());
        let within = self.elections.timing.election_wait();
        let sent = self.peers.send(Message { way, kind: MessageKind::PreVote, body, within });
        let granted = match tokio::time::timeout(within, sent).await {
            Ok(Ok(answer)) => wire::decode_pre_voted(&answer).unwrap_or(false),
            // A version before 0.5 only knows the vote itself.
            Ok(Err(PeerError::Unsupported(_))) => true,
            Ok(Err(_)) | Err(_) => false,
        };
        granted.then_some(to)
    }
}

/// Whether the granted pre-votes are a majority of every set of voters: there are two while members change.
fn is_majority(config: &[BTreeSet<Replica>], granted: &BTreeSet<Replica>) -> bool {
    config.iter().all(|voters| voters.intersection(granted).count() * 2 > voters.len())
}

impl Group {
    /// Lets other voters stand for election before this replica, or ends that.
    ///
    /// A replica that yields stands by itself only after it has heard no leader for [`Timing::yield_max`]: it may be the
    /// only one with all committed entries. It takes a lead that is handed to it at once.
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

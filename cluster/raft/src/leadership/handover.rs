//! Planned handover of the lead to another replica, before a planned stop or to spread leaders over nodes.
//!
//! openraft 0.9 has no leadership transfer. A voter is bound to its leader until the lease has passed, which is as long
//! as the longest election.
//!
//! The leader therefore finishes everything in flight, holds new writes back, stops its heartbeats, and asks the other
//! replica to take over. That replica waits for the lease, requests votes, and responds with its term. The leader steps
//! down at once, because messages of other replicas may come late. The held writes are then refused as "another replica
//! leads", unwritten, and their senders retry there.
//!
//! An impaired node may be unable to finish the writes in flight. It hands over anyway after a wait. The outcome of
//! those writes is then unknown to their senders, as after a crash of the leader. The other replica may even lack their
//! entries, as followers do while the leader cannot open the file of a large write. The most advanced of the others
//! then wins the election without this replica.

use std::pin::pin;
use std::time::Duration;

use assay_storage_model::ReplicaId;
use bytes::Bytes;
use openraft::ServerState;
use openraft::Vote;
use thiserror::Error;
use tokio::time::{Instant, timeout};

use crate::counters::Counters;
use crate::group::Group;
use crate::leadership::higher_vote::yield_to;
use crate::network::inbound::node_of;
use crate::network::peers::{Message, MessageKind, PeerError, Way};
use crate::network::wire;

/// Time limit for writes in flight on a slow disk, which take longer to end.
const QUIET_WAIT_OF_SLOW_DISK: Duration = Duration::from_secs(6);
/// Number of entries that the other replica may lack when a handover begins.
const BEHIND_MAX: u64 = 1000;

/// Reason for which a node should lead nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impairment {
    /// Writes end late.
    SlowDisk,
    /// The process has no free file descriptor, so writes that need one must wait.
    NoFiles,
}

/// Behavior of a handover if the writes in flight do not end in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnfinishedWrites {
    /// This replica keeps the lead.
    KeepLead,
    /// The handover continues, and the outcome of these writes is unknown.
    Abandon,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandOverError {
    #[error("this replica does not lead")]
    NotLeader,
    #[error("replica {0} is not a voter or lags too far behind")]
    Unfit(ReplicaId),
    #[error("writes in flight did not end in time")]
    Busy,
    #[error("{0}")]
    Failed(String),
}

/// Guard that turns heartbeats on again, however the handover ends.
struct Heartbeats<'a>(&'a Group);

impl Drop for Heartbeats<'_> {
    fn drop(&mut self) {
        self.0.raft().runtime_config().heartbeat(true);
    }
}

impl Group {
    /// Hands over the lead. Returns when the other replica leads, or when this one still does.
    pub async fn hand_over(&self, to: ReplicaId) -> Result<(), HandOverError> {
        self.hand_over_within(to, self.timing().quiet_wait(), UnfinishedWrites::KeepLead).await
    }

    /// Hands over the lead of an impaired node, if necessary without the outcome of the writes in flight.
    ///
    /// Otherwise these writes would block all later ones for as long as the node is impaired.
    pub async fn hand_over_from_impaired_node(&self, to: ReplicaId, why: Impairment) -> Result<(), HandOverError> {
        let quiet_wait = self.timing().quiet_wait();
        let quiet_wait = match why {
            Impairment::SlowDisk => quiet_wait.max(QUIET_WAIT_OF_SLOW_DISK),
            Impairment::NoFiles => quiet_wait,
        };
        self.hand_over_within(to, quiet_wait, UnfinishedWrites::Abandon).await
    }

    async fn hand_over_within(
        &self,
        to: ReplicaId,
        quiet_wait: Duration,
        unfinished: UnfinishedWrites,
    ) -> Result<(), HandOverError> {
        let raft = self.raft();
        let unfit = || HandOverError::Unfit(to);
        if !self.leads() {
            return Err(HandOverError::NotLeader);
        }
        self.check_fit(to).await?;
        let node = node_of(raft, to).ok_or_else(unfit)?;
        // The pending lock already blocks new writes.
        let mut no_writes = pin!(self.gate().write());
        let held = match timeout(quiet_wait, &mut no_writes).await {
            Ok(held) => Some(held),
            Err(_) if unfinished == UnfinishedWrites::Abandon => None,
            Err(_) => return Err(HandOverError::Busy),
        };
        // Without the lock there is no further wait, because missing entries do not reach the other replica any more.
        let wait = if held.is_some() { self.timing().quiet_wait() } else { Duration::ZERO };
        let caught_up = self.wait_for_matched(to, 0, wait).await;
        if unfinished == UnfinishedWrites::KeepLead || !self.is_most_advanced(to) {
            caught_up?;
        }
        let heartbeats = Heartbeats(self);
        raft.runtime_config().heartbeat(false);
        let way = Way { group: self.id(), from: self.replica(), to, node };
        let message =
            Message { way, kind: MessageKind::TakeOver, body: Bytes::new(), within: self.timing().take_over_max() };
        let asked = self.peers().send(message).await;
        if let Ok(Ok(Some(term))) = asked.as_deref().map(wire::decode_taken_over) {
            yield_to(raft, Vote::new_committed(term, to.0)).await;
        }
        drop(heartbeats);
        let still_leads = self.still_leads(&asked).await;
        drop(held);
        match (asked, still_leads) {
            (_, false) => {
                Counters::add(&self.counters().handovers, 1);
                Ok(())
            }
            (Err(why), true) => Err(HandOverError::Failed(why.to_string())),
            (Ok(_), true) => Err(HandOverError::Failed("this replica still leads".into())),
        }
    }

    /// Returns whether this replica still leads after the request to the other one.
    ///
    /// Waits until a majority has responded to a heartbeat since then, because a write of a deposed leader would have
    /// an unknown outcome.
    async fn still_leads(&self, asked: &Result<Bytes, PeerError>) -> bool {
        let asked_in_vain = matches!(asked, Err(PeerError::Unreachable(_) | PeerError::Unsupported(_)));
        let since = Instant::now();
        let mut metrics = self.raft().metrics();
        let known = metrics.wait_for(|metrics| {
            let answered = metrics.millis_since_quorum_ack.map(Duration::from_millis);
            let confirmed = answered.is_some_and(|answered| answered < since.elapsed());
            metrics.state != ServerState::Leader || asked_in_vain || confirmed
        });
        match timeout(self.timing().notice_wait(), known).await {
            Ok(Ok(metrics)) => metrics.state == ServerState::Leader,
            Ok(Err(_)) => false,
            Err(_) => self.leads(),
        }
    }

    /// Checks that the replica can take over.
    ///
    /// Writes continue during the check, so that they are held back only briefly. A new leader has yet to get a
    /// response from the replica.
    async fn check_fit(&self, to: ReplicaId) -> Result<(), HandOverError> {
        let unfit = HandOverError::Unfit(to);
        if to == self.replica() || !self.status().members.iter().any(|member| member.replica == to && member.voter) {
            return Err(unfit);
        }
        self.wait_for_matched(to, BEHIND_MAX, self.timing().quiet_wait()).await
    }

    /// Returns whether no other voter than this replica has more entries. A majority of the others then elects it.
    fn is_most_advanced(&self, to: ReplicaId) -> bool {
        let status = self.status();
        let others = status.members.iter().filter(|member| member.voter && member.replica != self.replica());
        let most = others.clone().filter_map(|member| member.matched).max();
        most.is_some() && others.into_iter().any(|member| member.replica == to && member.matched == most)
    }

    async fn wait_for_matched(&self, to: ReplicaId, behind_max: u64, wait: Duration) -> Result<(), HandOverError> {
        let mut metrics = self.raft().metrics();
        let close = metrics.wait_for(|metrics| {
            let matched = metrics.replication.as_ref().and_then(|all| all.get(&to.0).copied().flatten());
            matched.is_some_and(|matched| matched.index + behind_max >= metrics.last_log_index.unwrap_or(0))
        });
        match timeout(wait, close).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(HandOverError::NotLeader),
            Err(_) => Err(HandOverError::Unfit(to)),
        }
    }
}

//! Giving the lead to another replica on purpose: before a planned stop, or to spread leaders over nodes.
//!
//! openraft 0.9 knows no transfer of leadership. A voter is bound to its leader until the lease has passed, which is as
//! long as the longest election; so the leader lets everything under way end, holds back what comes, stops its
//! heartbeats, and asks the other one to take over, which waits for the lease and then asks for votes. What was held
//! back is then refused as "another replica leads", unwritten, and its sender asks there.

use std::time::Duration;

use assay_storage_model::ReplicaId;
use bytes::Bytes;
use openraft::ServerState;
use thiserror::Error;
use tokio::time::timeout;

use crate::counters::Counters;
use crate::group::Group;
use crate::inbound::node_of;
use crate::peers::{Message, MessageKind, Way};

/// On a slow disk writes under way take longer to end, and the lead is to leave it all the same.
const QUIET_WAIT_OF_SLOW_DISK: Duration = Duration::from_secs(6);
/// Entries that the other one may lack when a handover begins.
const BEHIND_MAX: u64 = 1000;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandOverError {
    #[error("this replica does not lead")]
    NotLeader,
    #[error("replica {0} is no voter that is close behind")]
    Unfit(ReplicaId),
    #[error("writes under way did not end in time")]
    Busy,
    #[error("{0}")]
    Failed(String),
}

/// Heartbeats go on however this ends.
struct Heartbeats<'a>(&'a Group);

impl Drop for Heartbeats<'_> {
    fn drop(&mut self) {
        self.0.raft().runtime_config().heartbeat(true);
    }
}

impl Group {
    /// Returns when the other replica leads, or this one still does.
    pub async fn hand_over(&self, to: ReplicaId) -> Result<(), HandOverError> {
        self.hand_over_within(to, self.timing().quiet_wait()).await
    }

    /// The same from a node whose disk is slow: what is under way there may take long to end.
    pub async fn hand_over_from_slow_disk(&self, to: ReplicaId) -> Result<(), HandOverError> {
        self.hand_over_within(to, QUIET_WAIT_OF_SLOW_DISK.max(self.timing().quiet_wait())).await
    }

    async fn hand_over_within(&self, to: ReplicaId, quiet_wait: Duration) -> Result<(), HandOverError> {
        let raft = self.raft();
        let unfit = || HandOverError::Unfit(to);
        if !self.leads() {
            return Err(HandOverError::NotLeader);
        }
        self.check_fit(to).await?;
        let node = node_of(raft, to).ok_or_else(unfit)?;
        let held = timeout(quiet_wait, self.gate().write()).await.map_err(|_| HandOverError::Busy)?;
        self.caught_up(to).await?;
        let _heartbeats = Heartbeats(self);
        raft.runtime_config().heartbeat(false);
        let way = Way { group: self.id(), from: self.replica(), to, node };
        let message =
            Message { way, kind: MessageKind::TakeOver, body: Bytes::new(), within: self.timing().take_over_max() };
        let asked = self.peers().send(message).await;
        let mut metrics = raft.server_metrics();
        let gone = metrics.wait_for(|metrics| metrics.state != ServerState::Leader);
        let answer = match (asked, timeout(self.timing().notice_wait(), gone).await) {
            (_, Ok(_)) => {
                Counters::add(&self.counters().handovers, 1);
                Ok(())
            }
            (Err(why), Err(_)) => Err(HandOverError::Failed(why.to_string())),
            (Ok(_), Err(_)) => Err(HandOverError::Failed("this replica still leads".into())),
        };
        drop(held);
        answer
    }

    /// Asked while writes go on, so that they are held back for a moment only. A leader that is new has yet to hear from it.
    async fn check_fit(&self, to: ReplicaId) -> Result<(), HandOverError> {
        let unfit = HandOverError::Unfit(to);
        if to == self.replica() || !self.status().members.iter().any(|member| member.replica == to && member.voter) {
            return Err(unfit);
        }
        self.wait_for_matched(to, BEHIND_MAX).await
    }

    /// Nothing is written meanwhile, so what it lacks is on its way.
    async fn caught_up(&self, to: ReplicaId) -> Result<(), HandOverError> {
        self.wait_for_matched(to, 0).await
    }

    async fn wait_for_matched(&self, to: ReplicaId, behind_max: u64) -> Result<(), HandOverError> {
        let mut metrics = self.raft().metrics();
        let close = metrics.wait_for(|metrics| {
            let matched = metrics.replication.as_ref().and_then(|all| all.get(&to.0).copied().flatten());
            matched.is_some_and(|matched| matched.index + behind_max >= metrics.last_log_index.unwrap_or(0))
        });
        match timeout(self.timing().quiet_wait(), close).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(HandOverError::NotLeader),
            Err(_) => Err(HandOverError::Unfit(to)),
        }
    }
}

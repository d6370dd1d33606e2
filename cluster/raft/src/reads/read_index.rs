//! Read index: the end of a group's committed log, requested from its leader once per round of fences.
//!
//! The leader confirms with a majority that it still leads, because leases are not used. Without a leader or a majority
//! the request is retried for a while. An election takes about a second, and a wait is better than a failed read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{GroupId, ReplicaId};
use bytes::Bytes;
use openraft::ServerState;
use openraft::error::{CheckIsLeaderError, RaftError};
use tokio::sync::RwLock;
use tokio::time::{Instant, sleep, timeout};

use crate::error::FenceError;
use crate::leadership::elections::Elections;
use crate::network::inbound::node_of;
use crate::network::peers::{Message, MessageKind, PeerError, Peers, Way};
use crate::network::wire;
use crate::timing::Timing;
use crate::types::{Home, RaftOf, Replica};

const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(20);

pub(crate) struct ReadIndex {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub raft: RaftOf,
    pub peers: Arc<dyn Peers>,
    pub elections: Arc<Elections>,
    /// Gate that a handover takes exclusively, because a confirmation would renew the lease that the handover lets
    /// expire.
    pub gate: Arc<RwLock<()>>,
    pub timing: Timing,
}

impl fmt::Debug for ReadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadIndex").field("group", &self.group).finish_non_exhaustive()
    }
}

impl ReadIndex {
    pub async fn confirm(&self) -> Result<Option<u64>, FenceError> {
        let until = Instant::now() + self.timing.leader_wait();
        loop {
            let refusal = match self.ask().await {
                Ok(index) => return Ok(index),
                Err(stopped @ FenceError::Stopped(_)) => return Err(stopped),
                Err(refusal) => refusal,
            };
            if Instant::now() >= until {
                return Err(refusal);
            }
            sleep(ASKED_AGAIN_AFTER).await;
        }
    }

    async fn ask(&self) -> Result<Option<u64>, FenceError> {
        let (state, leader) = {
            let metrics = self.raft.server_metrics();
            let metrics = metrics.borrow();
            (metrics.state, self.elections.leader(metrics.id, metrics.current_leader))
        };
        match leader {
            _ if state == ServerState::Leader => self.confirm_own_lead().await,
            Some(leader) if leader != self.replica => self.ask_leader(leader).await,
            // This replica is named as the leader but does not lead yet. Soon it leads, or another replica does.
            _ => Err(FenceError::NotLeader { leader: None }),
        }
    }

    /// Returns the read index to another replica, which considers this one the leader.
    ///
    /// The request is never forwarded, because the current leader may be the caller, and would wait for its own
    /// response.
    pub async fn confirm_own_lead(&self) -> Result<Option<u64>, FenceError> {
        if sabotage::is(Sabotage::StaleRead) {
            return Ok(self.raft.metrics().borrow().last_applied.map(|id| id.index));
        }
        let _pass = self.gate.read().await;
        let confirmed = timeout(self.timing.ask_max(), self.raft.get_read_log_id()).await;
        let late = || FenceError::NoQuorum(format!("none within {:?}", self.timing.ask_max()));
        let (read, _) = confirmed.map_err(|_| late())?.map_err(refused)?;
        Ok(read.map(|id| id.index))
    }

    async fn ask_leader(&self, leader: ReplicaId) -> Result<Option<u64>, FenceError> {
        let unknown = FenceError::NotLeader { leader: Some(leader) };
        let node = node_of(&self.raft, leader).ok_or(unknown)?;
        let way = Way { group: self.group, from: self.replica, to: leader, node };
        let message = Message { way, kind: MessageKind::ReadIndex, body: Bytes::new(), within: self.timing.ask_max() };
        let mut metrics = self.raft.server_metrics();
        let fallen = metrics.wait_for(|metrics| metrics.current_leader != Some(leader.0));
        let answer = tokio::select! {
            biased;
            answer = self.peers.send(message) => answer,
            // The next attempt asks the new leader instead of waiting for the old one.
            _ = fallen => return Err(FenceError::NotLeader { leader: None }),
        };
        match answer {
            Ok(answer) => {
                wire::decode_read_index(&answer).map_err(|error| FenceError::NoQuorum(format!("its answer: {error}")))
            }
            Err(PeerError::Refused { leader: Some(leader), .. }) => Err(FenceError::NotLeader { leader: Some(leader) }),
            Err(error) => Err(FenceError::NoQuorum(error.to_string())),
        }
    }
}

fn refused(error: RaftError<Replica, CheckIsLeaderError<Replica, Home>>) -> FenceError {
    match error {
        RaftError::APIError(CheckIsLeaderError::ForwardToLeader(forward)) => {
            FenceError::NotLeader { leader: forward.leader_id.map(ReplicaId) }
        }
        RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(missing)) => FenceError::NoQuorum(missing.to_string()),
        RaftError::Fatal(fatal) => FenceError::Stopped(fatal.to_string()),
    }
}

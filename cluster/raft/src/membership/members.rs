//! Members of a group in consensus, and changes of them. Only one change runs at a time, and a repeated request
//! finishes or undoes it.

use std::collections::BTreeSet;
use std::time::Duration;

use assay_storage_model::{NodeId, ReplicaId};
use openraft::error::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{ChangeMembers, ServerState};
use thiserror::Error;
use tokio::time::timeout;

use crate::group::Group;
use crate::types::{Home, Replica};

/// Time limit of a change without a majority. A repeated request finishes the change or finds it done.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub replica: ReplicaId,
    pub node: NodeId,
    /// Whether the member votes in the current configuration, or in either one during a change.
    pub voter: bool,
    /// Last known index of the member's log. Only the leader knows it.
    pub matched: Option<u64>,
}

/// State of a group according to one replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    pub leads: bool,
    /// The leader, if this replica has contact with it.
    pub leader: Option<ReplicaId>,
    /// The leader that another voter has contact with and this replica does not.
    pub unheard_leader: Option<ReplicaId>,
    pub term: u64,
    pub members: Vec<Member>,
    /// Whether there are two configurations, whose majorities both count.
    pub joint: bool,
    /// Whether a change of members is in progress: the configuration is joint, or not yet known to be committed. Until
    /// then, the loss of a member that is about to leave may still cost the quorum.
    pub changing: bool,
    pub last: Option<u64>,
    pub applied: Option<u64>,
    pub sealed: Option<u64>,
    pub purged: Option<u64>,
    /// Time since a majority last confirmed this leader.
    pub quorum_heard: Option<Duration>,
}

/// Time without confirmation by a majority after which a leader is doubted. An isolated leader does not step down by
/// itself.
pub const LEAD_DOUBTED_AFTER: Duration = Duration::from_secs(5);

impl GroupStatus {
    /// Returns whether this replica leads, with a recent confirmation by a majority.
    pub fn leads_confirmed(&self) -> bool {
        self.leads && self.quorum_heard.is_some_and(|since| since < LEAD_DOUBTED_AFTER)
    }

    /// Returns whether the group has a leader, as far as this replica can tell.
    pub fn is_led(&self) -> bool {
        if self.leads { self.leads_confirmed() } else { self.leader.is_some() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    #[error("this replica does not lead its group")]
    NotLeader { leader: Option<ReplicaId> },
    #[error("another membership change is in progress")]
    UnderWay,
    #[error("{0}")]
    Failed(String),
}

type Refused = RaftError<Replica, ClientWriteError<Replica, Home>>;

fn refused(error: Refused) -> ChangeError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
            ChangeError::NotLeader { leader: forward.leader_id.map(ReplicaId) }
        }
        RaftError::APIError(ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_))) => {
            ChangeError::UnderWay
        }
        other => ChangeError::Failed(other.to_string()),
    }
}

impl Group {
    pub fn status(&self) -> GroupStatus {
        let metrics = self.raft().metrics().borrow().clone();
        let (own, named) = (metrics.id, metrics.current_leader);
        let membership = metrics.membership_config.membership();
        let voters: BTreeSet<Replica> = membership.voter_ids().collect();
        let matched = |replica: &Replica| {
            if *replica == self.replica().0 {
                return metrics.last_log_index;
            }
            metrics.replication.as_ref()?.get(replica)?.map(|id| id.index)
        };
        let joint = membership.get_joint_config().len() > 1;
        let committed = *metrics.membership_config.log_id() <= metrics.last_applied;
        let member = |(replica, home): (&Replica, &Home)| Member {
            replica: ReplicaId(*replica),
            node: NodeId(home.node),
            voter: voters.contains(replica),
            matched: matched(replica),
        };
        GroupStatus {
            leads: metrics.state == ServerState::Leader,
            leader: self.elections().leader(own, named),
            unheard_leader: self.elections().unheard_leader(own, named),
            term: metrics.current_term,
            members: membership.nodes().map(member).collect(),
            joint,
            changing: joint || !committed,
            last: metrics.last_log_index,
            applied: metrics.last_applied.map(|id| id.index),
            sealed: metrics.snapshot.map(|id| id.index),
            purged: metrics.purged.map(|id| id.index),
            quorum_heard: metrics.millis_since_quorum_ack.map(Duration::from_millis),
        }
    }

    /// Adds a learner. Returns when the group has the learner, not when the learner has caught up.
    pub async fn add_learner(&self, replica: ReplicaId, node: NodeId) -> Result<(), ChangeError> {
        let _pass = self.gate().read().await;
        let home = Home { node: node.0 };
        bounded(async { self.raft().add_learner(replica.0, home, false).await.map(drop).map_err(refused) }).await
    }

    /// Makes exactly these members the voters. All of them must be members already, and other voters leave the group.
    pub async fn set_voters(&self, voters: BTreeSet<ReplicaId>) -> Result<(), ChangeError> {
        let _pass = self.gate().read().await;
        let wanted: BTreeSet<Replica> = voters.iter().map(|replica| replica.0).collect();
        bounded(async {
            let changes = ChangeMembers::ReplaceAllVoters(wanted);
            self.raft().change_membership(changes, false).await.map(drop).map_err(refused)
        })
        .await
    }

    /// Removes a learner from the group.
    pub async fn remove_learner(&self, replica: ReplicaId) -> Result<(), ChangeError> {
        let _pass = self.gate().read().await;
        bounded(async {
            let changes = ChangeMembers::RemoveNodes(BTreeSet::from([replica.0]));
            self.raft().change_membership(changes, false).await.map(drop).map_err(refused)
        })
        .await
    }
}

async fn bounded(change: impl Future<Output = Result<(), ChangeError>>) -> Result<(), ChangeError> {
    let late = || ChangeError::Failed(format!("no majority agreed within {} s", CHANGE_WAIT_MAX.as_secs()));
    timeout(CHANGE_WAIT_MAX, change).await.unwrap_or_else(|_| Err(late()))
}

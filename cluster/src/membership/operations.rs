//! Operations of administrators on a running cluster.
//!
//! Every operation writes the wanted state to the catalog and may be repeated. Reconcilers on the nodes realize the
//! state.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use assay_cluster_network::node_records::{self, NodeRecord, NodeState};
use assay_cluster_raft::{Group, HandOverError, Member};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect};
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId, ReplicaId, WriteFailure};
use bytes::Bytes;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::certificates::node_certificates::now_micros;
use crate::{Cluster, Shared};

/// Upper bound of the attempts, because another operator or a reconciler may change the node concurrently.
const ATTEMPTS_MAX: usize = 8;
/// Time limit of a drain until the node leads nothing.
const DRAIN_WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Number of concurrent handovers of a stopping node.
const HANDOVERS_AT_ONCE: usize = 64;

#[derive(Debug, Error)]
pub enum OperateError {
    #[error("this node has no address for other nodes: start it with --peer-address HOST:PORT")]
    NoAddress,
    #[error("there is no node {0} in this cluster")]
    NoNode(NodeId),
    #[error("node {0} was removed; its number is not used again")]
    Removed(NodeId),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Write(#[from] WriteFailure),
    #[error("the catalog is unavailable: {0}")]
    Fence(#[from] assay_cluster_raft::FenceError),
    #[error("{0}")]
    Failed(String),
}

impl Shared {
    /// Sends one command to the catalog, wherever it is led.
    pub async fn change(&self, command: CatalogCommand) -> Result<CatalogOutcome, OperateError> {
        match self.write(GroupId::CATALOG, Bytes::from(command.encode())).await? {
            Outcome::Catalog(outcome) => Ok(outcome),
            other => Err(OperateError::Failed(format!("the catalog answered {other:?}"))),
        }
    }

    /// Changes the record of a node, with retries on concurrent changes.
    pub async fn change_node(
        &self,
        node: NodeId,
        change: impl Fn(&NodeRecord) -> Result<NodeRecord, OperateError>,
    ) -> Result<NodeRecord, OperateError> {
        for _ in 0..ATTEMPTS_MAX {
            let known = node_records::all(&self.catalog.read()).remove(&node);
            let (record, revision) = known.ok_or(OperateError::NoNode(node))?;
            let changed = change(&record)?;
            if changed == record {
                return Ok(record);
            }
            let put = node_records::put(&changed, Expect::Revision(revision), now_micros());
            if let CatalogOutcome::Put { .. } = self.change(CatalogCommand::Put(put)).await? {
                return Ok(changed);
            }
        }
        Err(OperateError::Failed("the same node is being changed concurrently: try again".into()))
    }
}

impl Cluster {
    pub(crate) async fn set_state(&self, node: NodeId, state: NodeState) -> Result<NodeRecord, OperateError> {
        self.fence(GroupId::CATALOG).await?;
        let change = |record: &NodeRecord| match (record.state, state) {
            (NodeState::Removed, NodeState::Removed) => Ok(record.clone()),
            (NodeState::Removed, _) => Err(OperateError::Removed(node)),
            _ => Ok(NodeRecord { state, ..record.clone() }),
        };
        self.shared.change_node(node, change).await
    }

    /// Drains a node. On return the node leads nothing, and it gets no leadership until `undrain`.
    pub async fn drain(&self, node: NodeId) -> Result<(), OperateError> {
        self.set_state(node, NodeState::Draining).await?;
        let until = Instant::now() + DRAIN_WAIT_MAX;
        loop {
            let led = self.status().await.groups.iter().filter(|group| group.leader == Some(node)).count();
            if led == 0 {
                return Ok(());
            }
            if Instant::now() >= until {
                let why = format!("node {node} still leads {led} groups: no other node can lead them at the moment");
                return Err(OperateError::Failed(why));
            }
            sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    pub async fn undrain(&self, node: NodeId) -> Result<(), OperateError> {
        self.set_state(node, NodeState::Active).await.map(drop)
    }

    /// Hands over all groups that this node leads. Elections follow later for groups that cannot be handed over.
    pub(crate) async fn hand_over_all(&self) {
        let leads = self.shared.replicas.groups().into_iter().filter(Group::leads).collect::<Vec<_>>();
        if leads.is_empty() {
            return;
        }
        let answering: BTreeSet<NodeId> = self.shared.reports().await.into_keys().collect();
        let mut handing = JoinSet::new();
        for group in leads {
            let to = self.shared.successors(&group).into_iter().find(|one| answering.contains(&one.node));
            if let Some(to) = to.map(|one| one.replica) {
                if handing.len() >= HANDOVERS_AT_ONCE {
                    handing.join_next().await;
                }
                handing.spawn(async move { (group.id(), hand_over(&group, to).await) });
            }
        }
        while let Some(ended) = handing.join_next().await {
            if let Ok((group, Err(why))) = ended {
                tracing::info!(%group, %why, "not handed over; an election will follow");
            }
        }
    }
}

async fn hand_over(group: &Group, to: ReplicaId) -> Result<(), HandOverError> {
    group.hand_over(to).await
}

impl Shared {
    /// Returns the candidates to lead a group that this node leads: voters on nodes that may lead, the most up to date
    /// first.
    ///
    /// Whether they respond is unknown here, because a leader's state of a dead member does not change.
    pub fn successors(&self, group: &Group) -> Vec<Member> {
        let status = group.status();
        if !status.leads {
            return Vec::new();
        }
        let nodes = node_records::all(&self.catalog.read());
        let may_lead = |node: &NodeId| nodes.get(node).is_none_or(|(record, _)| record.state == NodeState::Active);
        let able = |member: &Member| {
            member.voter && member.replica != group.replica() && member.matched.is_some() && may_lead(&member.node)
        };
        let mut able: Vec<Member> = status.members.into_iter().filter(able).collect();
        able.sort_by_key(|member| Reverse((member.matched, member.replica)));
        able
    }

    /// Returns the first candidate that responds.
    pub async fn first_there(&self, members: Vec<Member>) -> Option<ReplicaId> {
        for member in members {
            if self.answers(member.node).await {
                return Some(member.replica);
            }
        }
        None
    }
}

//! Bootstrap of a replica. Before the replica serves, it checks that its log is complete, and founds its group if
//! requested. A replica that is the only voter elects itself.

use std::collections::BTreeMap;
use std::io;

use assay_storage_model::{GroupId, NodeId, ReplicaId};
use thiserror::Error;

use crate::apply::machine::Machine;
use crate::log::log_store::LogStore;
use crate::membership::hard_state::{self, LogPlace};
use crate::types::{self, Home, LogIdOf, RaftOf};

/// Whether a group is created now or exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// First start of the group, with its first members.
    Now(Vec<(ReplicaId, NodeId)>),
    /// The replica existed before, so an empty log means that the log was lost.
    Before,
    /// The replica is new to an existing group. It is empty and waits for the group's leader.
    Joining,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(
        "group {0}: its log is missing. Restore the data directory from a backup; on a cluster, let this node join again"
    )]
    LogGone(GroupId),
    #[error(
        "group {group}: its log ends at {last} and its state is at {sealed}, so acknowledged entries are missing. \
         Restore the data directory from a backup; on a cluster, let this node join again"
    )]
    LogBehind { group: GroupId, last: u64, sealed: u64 },
    /// The state and the log belong to different histories of the group.
    #[error("group {group}: {why}")]
    OtherHistory { group: GroupId, why: String },
    #[error("group {group}: {source}")]
    Io { group: GroupId, source: io::Error },
    #[error("group {group}: {why}")]
    Consensus { group: GroupId, why: String },
}

/// Founds the group once.
pub(crate) async fn initialize(raft: &RaftOf, founding: Bootstrap) -> Result<(), String> {
    let Bootstrap::Now(members) = founding else { return Ok(()) };
    if raft.is_initialized().await.map_err(|fatal| fatal.to_string())? {
        return Ok(());
    }
    let members: BTreeMap<_, _> = members.iter().map(|(id, node)| (id.0, Home { node: node.0 })).collect();
    raft.initialize(members).await.map_err(|error| error.to_string())
}

/// Elects a replica that is the only voter, which need not wait for others.
pub(crate) async fn elect_alone(raft: &RaftOf, replica: ReplicaId) -> Result<(), String> {
    let alone = raft.with_raft_state(move |state| {
        let voters = state.membership_state.effective().voter_ids();
        voters.eq([replica.0]) && !state.vote_ref().is_committed()
    });
    if alone.await.map_err(|fatal| fatal.to_string())? {
        raft.trigger().elect().await.map_err(|fatal| fatal.to_string())?;
    }
    Ok(())
}

/// Checks that the log is complete.
///
/// openraft considers a log behind the state to be overtaken by a snapshot, and continues. A group of one member never
/// receives snapshots, so there it means that the log was lost. In other groups, a crash between the installation of a
/// snapshot and its record in the log leaves the same state. A log that was lost as a whole is detected by its missing
/// vote.
pub(crate) fn check_log(
    group: GroupId,
    replica: ReplicaId,
    founding: &Bootstrap,
    log: &LogStore,
    machine: &dyn Machine,
) -> Result<(), StartError> {
    let applied = machine.applied();
    let had_something = *founding == Bootstrap::Before || applied.position.is_some();
    if had_something && !matches!(founding, Bootstrap::Now(_)) && log.is_new() {
        return Err(StartError::LogGone(group));
    }
    let (sealed, membership) =
        types::applied_state(&applied).map_err(|error| StartError::Consensus { group, why: error.to_string() })?;
    let place = |id: Option<LogIdOf>| id.map(|id| LogPlace::of(types::position_of(&id)));
    if let Some(why) = hard_state::disagree(place(log.last()), place(log.committed()), place(sealed)) {
        return Err(StartError::OtherHistory { group, why });
    }
    let alone = membership.voter_ids().eq([replica.0]);
    let index = |id: Option<LogIdOf>| id.map_or(0, |id| id.index);
    if alone && log.last() < sealed {
        return Err(StartError::LogBehind { group, last: index(log.last()), sealed: index(sealed) });
    }
    Ok(())
}

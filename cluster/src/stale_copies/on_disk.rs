//! Detection of a directory with files of different times. A start does this alone, before it asks any other node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use assay_cluster_directory::acknowledged;
use assay_cluster_directory::data_dir::HomeError;
use assay_cluster_directory::node_files::{KeptReplica, KeptState, NodeFiles};
use assay_cluster_directory::starts::{self, KeptStarts, Name, StartId, fits, read_marker, write_marker};
use assay_cluster_raft::contradiction;
use assay_storage_disk::{Disk, SharedDisk};
use assay_storage_log::Log;
use assay_storage_model::catalog::ShardMap;
use assay_storage_model::{Applied, GroupId, NodeId};
use uuid::Uuid;

use crate::error::OpenError;
use crate::replica_lifecycle::{ClosedReplica, close_damaged};

/// Returns the groups whose replica in a directory must not run again, although it is there. Needs no lock.
pub fn closed_groups(disk: SharedDisk, dir: &Path) -> Result<Vec<GroupId>, HomeError> {
    let node_files = NodeFiles { disk, dir: dir.to_owned() };
    let closed = starts::read(&*node_files.disk, dir)?.unwrap_or_default().closed;
    let kept = node_files.replicas()?.unwrap_or_default();
    let must_not = |one: &&KeptReplica| one.state == KeptState::Kept && closed.contains(&(one.group, one.replica));
    Ok(kept.iter().filter(must_not).map(|one| one.group).collect())
}

/// Checks the files with the node's own state, and returns each error that a start would meet. Needs no lock.
pub fn check_node_files(disk: SharedDisk, dir: &Path) -> Vec<(&'static str, HomeError)> {
    let node_files = NodeFiles { disk, dir: dir.to_owned() };
    let disk = &*node_files.disk;
    let read = [
        ("NODE", node_files.node().err()),
        ("PEERS", node_files.kept_peers().err()),
        ("REPLICAS", node_files.replicas().err()),
        ("STARTS", starts::read(disk, dir).err()),
        ("log/START", read_marker(disk, &dir.join("log")).err()),
        ("ACKNOWLEDGED", acknowledged::read(disk, dir).err()),
    ];
    read.into_iter().filter_map(|(file, error)| Some((file, error?))).collect()
}

/// Returns whether the log was last used by another copy of the data directory, so that the next start closes every
/// replica.
///
/// Returns `false` if that cannot be read.
pub fn log_is_of_other_time(disk: &dyn Disk, dir: &Path) -> bool {
    let Ok(kept) = starts::read(disk, dir) else { return false };
    let Ok(marker) = read_marker(disk, &dir.join("log")) else { return false };
    !fits(&kept.unwrap_or_default().history, marker)
}

/// Start that has not been announced yet.
pub(crate) struct Beginning<'a> {
    log: &'a Log,
    node_files: &'a NodeFiles,
    log_dir: PathBuf,
    map: Option<&'a ShardMap>,
    node: NodeId,
    before: KeptStarts,
    start: StartId,
    /// Start that last used the log, if it is not in this directory's history, or if the log lacks the last start.
    strange: Option<StartId>,
    closed: BTreeSet<Name>,
}

impl<'a> Beginning<'a> {
    pub fn new(
        (log, node_files): (&'a Log, &'a NodeFiles),
        log_dir: &Path,
        map: Option<&'a ShardMap>,
        node: NodeId,
    ) -> Result<Beginning<'a>, OpenError> {
        let before = starts::read(&*node_files.disk, &node_files.dir)?.unwrap_or_default();
        let start = StartId(Uuid::new_v4().as_u128());
        let marker = read_marker(&*node_files.disk, log_dir)?;
        let strange = (!fits(&before.history, marker)).then(|| marker.map_or(start, |(_, current)| current));
        let closed = before.closed.clone();
        Ok(Beginning { log, node_files, log_dir: log_dir.to_owned(), map, node, before, start, strange, closed })
    }

    /// Closes every replica if the log is of another time than the other files, because votes and entries may be
    /// missing.
    pub fn look_at_log(&mut self, kept: &[KeptReplica]) -> Result<(), OpenError> {
        if self.strange.is_none() {
            return Ok(());
        }
        for replica in kept.iter().filter(|replica| replica.state == KeptState::Kept) {
            if close_damaged((self.log, self.node_files), replica, self.map, self.node)?.is_none() {
                return Err(OpenError::LogOfOtherTime(replica.group));
            }
            self.closed.insert((replica.group, replica.replica));
        }
        tracing::error!(
            "log/ was not last used by this data directory: it is of another time. All replicas are closed, and rebuilt \
             from the other nodes under new numbers"
        );
        Ok(())
    }

    /// Returns the replica as closed if it must not run, unless it is the only copy.
    pub fn closed(&self, replica: &KeptReplica) -> Result<Option<ClosedReplica>, OpenError> {
        if !self.closed.contains(&(replica.group, replica.replica)) {
            return Ok(None);
        }
        let stays = close_damaged((self.log, self.node_files), replica, self.map, self.node)?;
        if stays.is_some() {
            tracing::error!(group = %replica.group, replica = %replica.replica, "a replica that must not vote stays closed");
        }
        Ok(stays)
    }

    /// Returns the replica as closed if its state contradicts its log, because its group continued without its
    /// committed entries.
    pub fn of_other_history(
        &mut self,
        replica: &KeptReplica,
        sealed: &Applied,
    ) -> Result<Option<ClosedReplica>, OpenError> {
        let found = contradiction(&self.log.group(replica.group), sealed);
        let found = found.map_err(OpenError::io(format!("cannot read the log of group {}", replica.group)))?;
        let Some(why) = found else { return Ok(None) };
        let stays = close_damaged((self.log, self.node_files), replica, self.map, self.node)?;
        if stays.is_some() {
            let KeptReplica { group, replica, .. } = replica;
            tracing::error!(%group, %replica, why, "a replica is of another history of its group and stays closed");
            self.closed.insert((*group, *replica));
        }
        Ok(stays)
    }

    /// Makes the start durable. The marker in the log comes first, so that a crash in between differs from a log of
    /// another time.
    pub fn write(self) -> Result<KeptStarts, OpenError> {
        let Beginning { node_files, log_dir, before, start, strange, closed, .. } = self;
        let disk = &*node_files.disk;
        write_marker(disk, &log_dir, before.history.last().copied(), start)?;
        let kept = match strange {
            Some(strange) => before.as_old_copy(strange, start, closed),
            None => before.begun(start).with_closed(closed),
        };
        starts::write(disk, &node_files.dir, &kept)?;
        Ok(kept)
    }
}

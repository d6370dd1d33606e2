//! Access of an archive outside of the cluster to the states and the logs of groups.

use std::io;

use assay_cluster_raft::{AppliedContent, AppliedEntries};
use assay_storage_blobs::BlobName;
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;

use crate::Cluster;
use crate::membership::operations::OperateError;

/// State of a group's log on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Whether the replica here leads.
    pub leads: bool,
    /// Last applied index, or 0.
    pub applied: u64,
    /// Index of the first entry in the log here.
    pub first_in_log: u64,
}

impl Cluster {
    /// Returns the groups with a replica on this node.
    pub fn own_groups(&self) -> Vec<GroupId> {
        self.shared.replicas.groups().iter().map(|group| group.id()).collect()
    }

    /// Returns the nodes of the cluster that were not removed, this one included.
    pub fn present_nodes(&self) -> Vec<NodeId> {
        let state = self.shared.catalog.read();
        assay_cluster_network::node_records::present(&state).map(|record| record.node).collect()
    }

    /// Returns the state of a group's log, or `None` if the group has no replica here.
    pub fn log_status(&self, group: GroupId) -> Option<LogStatus> {
        let group = self.group(group)?;
        let (leads, first_in_log) = (group.leads(), group.first_in_log());
        Some(LogStatus { leads, applied: group.applied_index().unwrap_or(0), first_in_log })
    }

    /// Returns applied entries of a group from an index on, with the content of large writes beside them.
    pub async fn applied_entries(&self, group: GroupId, from: u64, bytes_max: usize) -> io::Result<AppliedEntries> {
        let known =
            self.group(group).ok_or_else(|| io::Error::other(format!("no replica of group {group} is here")))?;
        known.applied_entries(from, bytes_max).await
    }

    /// Reads the content of a large write that an entry in the log names.
    pub async fn read_large_write(&self, content: &AppliedContent) -> Result<Option<Bytes>, OperateError> {
        let AppliedContent::Large { hash, length, .. } = content else { return Ok(None) };
        let (writes, name, length) = (self.shared.writes.clone(), BlobName(*hash), *length);
        let read = tokio::task::spawn_blocking(move || writes.read(name, length)).await;
        let failed = |why: String| OperateError::Failed(format!("reading a large write: {why}"));
        read.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(why.to_string()))
    }

    /// Keeps the entries of a group behind this index in the log. See [`assay_cluster_raft::Group::keep_log_behind`].
    pub fn keep_log_behind(&self, group: GroupId, index: Option<u64>) {
        if let Some(group) = self.group(group) {
            group.keep_log_behind(index);
        }
    }

    /// Rewrites the log of the catalog on this node within the time that the settings allow, without deleted records.
    pub fn erase_catalog_log(&self) {
        self.shared.replicas.mark_catalog_remains();
    }
}

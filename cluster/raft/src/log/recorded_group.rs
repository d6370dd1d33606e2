//! State of a group according to its log, read while the group does not run.

use std::collections::BTreeSet;
use std::io;

use assay_storage_log::GroupLog;
use assay_storage_model::{Applied, ReplicaId};
use openraft::EntryPayload;

use crate::log::encoding;
use crate::types::{self, MembershipOf};
use crate::write_path::large_writes::blob_named;

/// Upper bound of the bytes of one read.
const READ_BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedGroup {
    /// Whether the replica ever had an entry, including purged ones. A vote alone does not count.
    pub has_entries: bool,
    /// Index of the last purged entry, which the state must reach.
    pub purged: Option<u64>,
    /// Voters of the newest membership in the log, in both configurations during a change. `None` if it was purged.
    pub voters: Option<BTreeSet<ReplicaId>>,
    /// Blobs that entries name, by index.
    pub blobs: Vec<(u64, [u8; 32])>,
}

impl RecordedGroup {
    /// Reads the whole log of the group. Blocking.
    pub fn read(log: &GroupLog) -> io::Result<RecordedGroup> {
        let state = log.state();
        let mut found = RecordedGroup {
            has_entries: state.has_entries(),
            purged: state.purged.map(|purged| purged.index),
            ..RecordedGroup::default()
        };
        let Some((last, _)) = state.last else { return Ok(found) };
        let mut next = state.first;
        while next <= last {
            let records = log.read(next, last + 1, READ_BYTES_MAX).map_err(io::Error::other)?;
            let Some(end) = records.last().map(|record| record.index + 1) else { break };
            for record in records {
                let entry = encoding::decode_record(record.index, record.term, &record.payload);
                let entry = entry.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                if let Some((hash, _)) = blob_named(&entry.payload) {
                    found.blobs.push((record.index, hash));
                }
                if let EntryPayload::Membership(membership) = &entry.payload {
                    found.voters = Some(voters_of(membership));
                }
            }
            next = end;
        }
        Ok(found)
    }

    /// Returns the voters, from the applied state if they are not in the log, or `None` if this replica never received
    /// a membership.
    pub fn voters_or_applied(&self, applied: &Applied) -> io::Result<Option<BTreeSet<ReplicaId>>> {
        if self.voters.is_some() {
            return Ok(self.voters.clone());
        }
        let (_, stored) =
            types::applied_state(applied).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some(voters_of(stored.membership())).filter(|voters| !voters.is_empty()))
    }
}

fn voters_of(membership: &MembershipOf) -> BTreeSet<ReplicaId> {
    membership.voter_ids().map(ReplicaId).collect()
}

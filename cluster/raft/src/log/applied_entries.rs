//! Applied entries of a group's log, for an archive outside of the cluster.
//!
//! Only applied entries are returned. They are committed, so every replica has the same ones.

use std::io;
use std::sync::Arc;

use assay_storage_model::LogPosition;
use bytes::Bytes;
use openraft::EntryPayload;
use tokio::task::spawn_blocking;

use crate::apply::machine::Export;
use crate::error::SealError;
use crate::group::Group;
use crate::types::{EntryBytes, EntryOf, position_of};
use crate::write_path::large_writes::blob_named;

/// Entry that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEntry {
    pub position: LogPosition,
    pub content: AppliedContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedContent {
    /// No commands: a membership, or the start of a term.
    Nothing,
    /// Commands, as `assay_storage_model::entry` frames them.
    Commands(Bytes),
    /// Entry that names a large write by the hash and the length of its content.
    Large { entry: Bytes, hash: [u8; 32], length: u64 },
}

/// Applied entries from an index on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedEntries {
    /// The log no longer has the first entry. Its own first entry has this index.
    Purged { first: u64 },
    /// Consecutive entries. There are none if no later entry was applied.
    Read(Vec<AppliedEntry>),
}

impl AppliedEntry {
    /// Returns the bytes of the entry, without those of a large write.
    pub fn len(&self) -> usize {
        match &self.content {
            AppliedContent::Nothing => 0,
            AppliedContent::Commands(entry) | AppliedContent::Large { entry, .. } => entry.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn of(entry: EntryOf) -> AppliedEntry {
        let position = position_of(&entry.log_id);
        let large = blob_named(&entry.payload);
        let content = match (entry.payload, large) {
            (EntryPayload::Normal(EntryBytes(entry)), Some((hash, length))) => {
                AppliedContent::Large { entry, hash, length }
            }
            (EntryPayload::Normal(EntryBytes(entry)), None) => AppliedContent::Commands(entry),
            (EntryPayload::Blank | EntryPayload::Membership(_), _) => AppliedContent::Nothing,
        };
        AppliedEntry { position, content }
    }
}

impl Group {
    /// Returns the index of the first entry in the log here.
    pub fn first_in_log(&self) -> u64 {
        self.log().first_index()
    }

    /// Returns applied entries from an index on. Stops behind the entry with which they have `bytes_max` bytes.
    pub async fn applied_entries(&self, from: u64, bytes_max: usize) -> io::Result<AppliedEntries> {
        let end = self.applied_index().map_or(0, |index| index + 1);
        let (mut entries, mut bytes, mut next) = (Vec::new(), 0, from);
        while next < end && bytes < bytes_max {
            let read = self.log().entries(next, end, bytes_max - bytes).await?;
            // The log may be purged between two reads.
            if read.first().is_none_or(|entry| entry.log_id.index != next) {
                break;
            }
            for entry in read.into_iter().map(AppliedEntry::of) {
                bytes += entry.len().max(1);
                next = entry.position.index + 1;
                entries.push(entry);
            }
        }
        let first = self.first_in_log();
        if entries.is_empty() && from < end && first > from {
            return Ok(AppliedEntries::Purged { first });
        }
        Ok(AppliedEntries::Read(entries))
    }

    /// Keeps the entries behind this index in the log, for an archive that will ask for them. `None` keeps none.
    ///
    /// A log that has become too large is purged nevertheless.
    pub fn keep_log_behind(&self, index: Option<u64>) {
        self.nearer().lock().set_archived(index);
    }

    /// Seals the group, and returns the files of its state. They stay on disk while the export exists.
    pub async fn sealed_export(&self) -> Result<Export, SealError> {
        self.seal().await?;
        let machine = Arc::clone(self.machine());
        let export = spawn_blocking(move || machine.export()).await;
        let failed = |why: String| SealError::Stopped(why);
        export.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(why.to_string()))
    }
}

//! Types that openraft carries for this crate, and conversions to the types of the model.

use std::fmt;
use std::path::PathBuf;

use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, LogPosition};
use bytes::Bytes;
use openraft::{CommittedLeaderId, LogId, StoredMembership};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::apply::machine::Export;
use crate::log::encoding::{self, BadRecord};
use crate::runtime::Runtime;

openraft::declare_raft_types!(
    /// Consensus instance of one group of any kind.
    pub Consensus:
        D = EntryBytes,
        R = Vec<Outcome>,
        NodeId = u64,
        Node = Home,
        SnapshotData = SnapshotFiles,
        AsyncRuntime = Runtime,
);

/// Number of a replica in consensus, which is a `ReplicaId`.
pub(crate) type Replica = u64;
pub(crate) type LogIdOf = LogId<Replica>;
pub(crate) type EntryOf = openraft::Entry<Consensus>;
pub(crate) type MembershipOf = openraft::Membership<Replica, Home>;
pub(crate) type StoredMembershipOf = StoredMembership<Replica, Home>;
pub(crate) type SnapshotMetaOf = openraft::SnapshotMeta<Replica, Home>;
pub(crate) type SnapshotOf = openraft::Snapshot<Consensus>;
pub(crate) type StorageErrorOf = openraft::StorageError<Replica>;
pub(crate) type RaftOf = openraft::Raft<Consensus>;

/// Entry in the encoding of `model::entry`.
#[derive(Clone, PartialEq, Eq)]
pub struct EntryBytes(pub Bytes);

impl fmt::Debug for EntryBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryBytes({} bytes)", self.0.len())
    }
}

impl Serialize for EntryBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for EntryBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EntryBytes, D::Error> {
        struct AnyBytes;
        impl<'de> serde::de::Visitor<'de> for AnyBytes {
            type Value = EntryBytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the bytes of a log entry")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<EntryBytes, E> {
                Ok(EntryBytes(Bytes::copy_from_slice(bytes)))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<EntryBytes, E> {
                Ok(EntryBytes(Bytes::from(bytes)))
            }
        }
        deserializer.deserialize_byte_buf(AnyBytes)
    }
}

/// Node of a replica. Its address is in the catalog, because an address may change and this may not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    pub node: u64,
}

/// Content of a snapshot: files with checksums, and the kept state.
#[derive(Clone, Debug, Default)]
pub enum SnapshotFiles {
    /// The position only, for the start of a group or the report of a seal.
    #[default]
    PositionOnly,
    /// Files on this node, in the place of their export.
    Exported(Export),
    /// Files in the directory `incoming`, which is `None` if the snapshot has no files.
    Fetched { applied: Applied, kept: Bytes, incoming: Option<PathBuf> },
}

pub(crate) fn position_of(id: &LogIdOf) -> LogPosition {
    LogPosition { term: id.leader_id.term, replica: id.leader_id.node_id, index: id.index }
}

pub(crate) fn log_id_of(position: LogPosition) -> LogIdOf {
    LogId::new(CommittedLeaderId::new(position.term, position.replica), position.index)
}

/// Converts the applied position of a machine to the types of consensus.
pub(crate) fn applied_state(applied: &Applied) -> Result<(Option<LogIdOf>, StoredMembershipOf), BadRecord> {
    let membership = match applied.membership.as_slice() {
        [] => StoredMembership::default(),
        bytes => encoding::decode_stored_membership(bytes)?,
    };
    Ok((applied.position.map(log_id_of), membership))
}

/// Returns the description of a seal. The same position always gives the same id.
pub(crate) fn snapshot_meta(applied: &Applied) -> Result<SnapshotMetaOf, BadRecord> {
    let (last_log_id, last_membership) = applied_state(applied)?;
    let snapshot_id = applied.position.map(|position| position.to_string()).unwrap_or_default();
    Ok(SnapshotMetaOf { last_log_id, last_membership, snapshot_id })
}

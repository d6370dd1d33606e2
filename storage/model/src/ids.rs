//! Typed ids: mixing two kinds does not compile.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map($name)
            }
        }
    )+};
}

uuid_ids! {
    /// Names one cluster for ever; data of another cluster is refused.
    ClusterId,
    /// An organization: the tenant. Part of every storage key.
    OrgId,
    ProjectId,
    UserId,
    /// Id of a catalog record of any kind.
    RecordId,
}

macro_rules! number_ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty)),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

number_ids! {
    /// A machine. Never used again once given.
    NodeId(u64),
    /// Id of one copy of one group on one node. Consensus uses these, not node ids; never used again.
    ReplicaId(u64),
    /// The unit of placement: many objects, one group.
    ShardId(u16),
    /// A consensus group: the catalog or a shard.
    GroupId(u64),
}

impl GroupId {
    /// The control group.
    pub const CATALOG: GroupId = GroupId(1);
    const SHARD_ZERO: u64 = 16;

    pub fn of_shard(shard: ShardId) -> GroupId {
        GroupId(Self::SHARD_ZERO + u64::from(shard.0))
    }

    /// The shard this group keeps, or none for the catalog.
    pub fn shard(self) -> Option<ShardId> {
        let number = self.0.checked_sub(Self::SHARD_ZERO)?;
        u16::try_from(number).ok().map(ShardId)
    }
}

/// Kind of an object that owns rows. The numbers are on disk: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ObjectKind {
    ProjectLogs = 1,
    Experiment = 2,
    Dataset = 3,
    PlaygroundLogs = 4,
    /// A project's prompts and functions.
    ProjectPrompts = 5,
    /// Access changes in an organization, under its id.
    AuditLog = 6,
    /// Files of an organization: under its id what there is, and each file's bytes under an id made of its name.
    Files = 7,
}

impl ObjectKind {
    pub const ALL: [ObjectKind; 7] = [
        ObjectKind::ProjectLogs,
        ObjectKind::Experiment,
        ObjectKind::Dataset,
        ObjectKind::PlaygroundLogs,
        ObjectKind::ProjectPrompts,
        ObjectKind::AuditLog,
        ObjectKind::Files,
    ];

    pub fn from_byte(byte: u8) -> Option<ObjectKind> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::ProjectLogs => "project_logs",
            ObjectKind::Experiment => "experiment",
            ObjectKind::Dataset => "dataset",
            ObjectKind::PlaygroundLogs => "playground_logs",
            ObjectKind::ProjectPrompts => "project_prompts",
            ObjectKind::AuditLog => "org_audit_logs",
            ObjectKind::Files => "files",
        }
    }
}

/// Names one object on disk: tenant, kind, id, lane. The lane is 0 until an object may be wider than a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    pub org: OrgId,
    pub kind: ObjectKind,
    pub id: Uuid,
    pub lane: u8,
}

impl ObjectKey {
    pub const BYTES: usize = 34;

    pub fn new(org: OrgId, kind: ObjectKind, id: Uuid) -> ObjectKey {
        ObjectKey { org, kind, id, lane: 0 }
    }

    /// Order of bytes equals the order of keys.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(self.org.0.as_bytes());
        bytes[16] = self.kind as u8;
        bytes[17..33].copy_from_slice(self.id.as_bytes());
        bytes[33] = self.lane;
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<ObjectKey> {
        if bytes.len() != Self::BYTES {
            return None;
        }
        Some(ObjectKey {
            org: OrgId(Uuid::from_slice(&bytes[..16]).ok()?),
            kind: ObjectKind::from_byte(bytes[16])?,
            id: Uuid::from_slice(&bytes[17..33]).ok()?,
            lane: bytes[33],
        })
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_key_survives_its_bytes_and_keeps_its_order() {
        let small = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(9));
        let large = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Experiment, Uuid::from_u128(2));
        assert_eq!(ObjectKey::from_bytes(&small.to_bytes()), Some(small));
        assert!(small < large && small.to_bytes() < large.to_bytes());
        assert_eq!(ObjectKey::from_bytes(&[0; 34]), None, "kind 0 does not exist");
    }

    #[test]
    fn groups_and_shards_name_each_other() {
        assert_eq!(GroupId::of_shard(ShardId(0)).shard(), Some(ShardId(0)));
        assert_eq!(GroupId::CATALOG.shard(), None);
    }
}

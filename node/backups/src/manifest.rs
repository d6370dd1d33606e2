//! Contents of the small objects of a backup.

use std::collections::BTreeMap;

use assay_storage_model::{ClusterId, GroupId, LogPosition};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::key::ContentHash;
use crate::layout::{BaseName, Millis, group_name, parse_group};

/// Version of the format of a backup.
pub const FORMAT: u32 = 1;

/// Descriptor of a store, the only object in plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    pub format: u32,
    pub cluster: ClusterId,
    /// Id of the key, which reveals nothing of the key.
    pub key: String,
    pub shards: u16,
    pub created: Millis,
}

/// Object with the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Name in the directory of the replica.
    pub name: String,
    pub bytes: u64,
    pub content: ContentHash,
}

/// State of a group up to an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseManifest {
    #[serde(with = "group_text")]
    pub group: GroupId,
    pub position: PositionParts,
    pub at: Millis,
    /// Version of the program that wrote the state.
    pub program: String,
    /// Stored state, compressed.
    pub kept: StoredFile,
    pub files: Vec<StoredFile>,
}

impl BaseManifest {
    /// Returns the names of all content of the base.
    pub fn contents(&self) -> impl Iterator<Item = &StoredFile> {
        self.files.iter().chain([&self.kept])
    }

    pub fn bytes(&self) -> u64 {
        self.contents().map(|file| file.bytes).sum()
    }
}

/// Position in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionParts {
    pub index: u64,
    pub term: u64,
    pub replica: u64,
}

impl From<LogPosition> for PositionParts {
    fn from(LogPosition { term, replica, index }: LogPosition) -> PositionParts {
        PositionParts { index, term, replica }
    }
}

/// Proof that everything that was acknowledged before a time is in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointManifest {
    pub at: Millis,
    pub cluster: ClusterId,
    pub program: String,
    /// Last index of each group in the store. Everything before the time is at or below it.
    #[serde(with = "group_map")]
    pub groups: BTreeMap<GroupId, u64>,
    /// Newest base of each group. A verification looks for them.
    #[serde(default, with = "group_map")]
    pub bases: BTreeMap<GroupId, BaseName>,
    /// Time in the name of the newest master keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_keys: Option<Millis>,
    /// Whether somebody or the schedule asked for this point, so that lists show it.
    #[serde(default)]
    pub is_requested: bool,
}

/// Content that no base named at a time. It is deleted later, if that is still so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedManifest {
    pub contents: Vec<ContentHash>,
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ContentHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        ContentHash::parse(&text).ok_or_else(|| de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

mod group_text {
    use super::{Deserialize, Deserializer, GroupId, Serializer, de, group_name, parse_group};

    pub fn serialize<S: Serializer>(group: &GroupId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&group_name(*group))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GroupId, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_group(&text).ok_or_else(|| de::Error::custom("a group is `cat` or three digits"))
    }
}

mod group_map {
    use super::{BTreeMap, Deserialize, Deserializer, GroupId, Serialize, Serializer, de, group_name, parse_group};

    pub fn serialize<S: Serializer, V: Serialize>(
        groups: &BTreeMap<GroupId, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(groups.iter().map(|(group, value)| (group_name(*group), value)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<GroupId, V>, D::Error> {
        let found = BTreeMap::<String, V>::deserialize(deserializer)?;
        let parsed = found.into_iter().map(|(text, value)| Some((parse_group(&text)?, value)));
        parsed.collect::<Option<_>>().ok_or_else(|| de::Error::custom("a group is `cat` or three digits"))
    }
}

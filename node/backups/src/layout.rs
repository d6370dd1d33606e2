//! Names of the objects of a backup.
//!
//! ```text
//! backup                                       descriptor, in plain text: format, cluster, id of the key
//! backup.copy                                  the same text, encrypted, so that a change of it is noticed
//! content/<first 2 digits>/<hash>              files of segments and stored states, once each
//! groups/<group>/bases/<index>.<millis>        state of a group at an index, complete at a time
//! groups/<group>/log/<first>-<last>.<millis>   entries of the log; later ones were applied behind this time
//! groups/<group>/large/<index>                 large write that the entry at an index names
//! points/<millis>                              proof that everything before a time is in the store
//! keys/<millis>                                master keys of the cluster from a time on
//! unused/<millis>                              content that no base named at a time
//! ```
//! A group is `cat` or the three digits of a shard. Numbers have a fixed width, so that names sort like numbers.

use std::fmt::{self, Display};

use assay_node_segment_store::StoredName;
use assay_storage_model::{GroupId, ShardId};

use crate::key::ContentHash;
use crate::log_part::ArchivedEntry;

pub const DESCRIPTOR: &str = "backup";
const DESCRIPTOR_COPY: &str = "backup.copy";
pub const POINTS: &str = "points";
pub const CONTENT: &str = "content";
pub const GROUPS: &str = "groups";
pub const KEYS: &str = "keys";
pub const UNUSED: &str = "unused";
const CATALOG: &str = "cat";

/// Milliseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Builds a name from parts that are always valid.
fn name(text: String) -> StoredName {
    StoredName::new(text).expect("names consist of digits, letters and separators")
}

pub fn descriptor() -> StoredName {
    name(DESCRIPTOR.to_owned())
}

pub fn descriptor_copy() -> StoredName {
    name(DESCRIPTOR_COPY.to_owned())
}

pub fn content(hash: &ContentHash) -> StoredName {
    let hash = hash.to_string();
    name(format!("{CONTENT}/{}/{hash}", &hash[..2]))
}

pub fn point(at: Millis) -> StoredName {
    name(format!("{POINTS}/{:015}", at.0))
}

pub fn master_keys(at: Millis) -> StoredName {
    name(format!("{KEYS}/{:015}", at.0))
}

/// Returns the name of a group in paths.
pub fn group_name(group: GroupId) -> String {
    group.shard().map_or_else(|| CATALOG.to_owned(), |shard| format!("{:03}", shard.0))
}

/// Parses the name of a group.
pub fn parse_group(text: &str) -> Option<GroupId> {
    if text == CATALOG {
        return Some(GroupId::CATALOG);
    }
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().map(|shard| GroupId::of_shard(ShardId(shard)))
}

pub fn bases(group: GroupId) -> String {
    format!("{GROUPS}/{}/bases", group_name(group))
}

pub fn log_parts(group: GroupId) -> String {
    format!("{GROUPS}/{}/log", group_name(group))
}

pub fn large_writes(group: GroupId) -> String {
    format!("{GROUPS}/{}/large", group_name(group))
}

pub fn large_write(group: GroupId, index: u64) -> StoredName {
    name(format!("{}/{index:016x}", large_writes(group)))
}

/// Parses the index of a large write.
pub fn parse_large_write(stored: &StoredName) -> Option<u64> {
    hex(stored.last_segment())
}

pub fn unused(at: Millis) -> StoredName {
    name(format!("{UNUSED}/{:015}", at.0))
}

/// Name of a base: the state of a group up to an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct BaseName {
    pub index: u64,
    /// Time at which the state was complete. It contains no write that began later.
    pub at: Millis,
}

impl BaseName {
    pub fn of(self, group: GroupId) -> StoredName {
        name(format!("{}/{:016x}.{:015}", bases(group), self.index, self.at.0))
    }

    pub fn parse(stored: &StoredName) -> Option<BaseName> {
        let (index, at) = stored.last_segment().split_once('.')?;
        Some(BaseName { index: hex(index)?, at: millis(at)? })
    }
}

/// Name of a part of the log: the entries of a group from an index to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPartName {
    pub first: u64,
    pub last: u64,
    /// Time before which no later entry was applied: every entry of an earlier time is in this part or before it.
    pub at: Millis,
}

impl LogPartName {
    pub fn of(self, group: GroupId) -> StoredName {
        name(format!("{}/{:016x}-{:016x}.{:015}", log_parts(group), self.first, self.last, self.at.0))
    }

    pub fn parse(stored: &StoredName) -> Option<LogPartName> {
        let (range, at) = stored.last_segment().split_once('.')?;
        let (first, last) = range.split_once('-')?;
        let found = LogPartName { first: hex(first)?, last: hex(last)?, at: millis(at)? };
        (found.first <= found.last).then_some(found)
    }

    /// Checks that a part has the entries of its name. The error is a clause about the part.
    pub fn check(&self, entries: &[ArchivedEntry]) -> Result<(), String> {
        let ends = (entries.first().map(|e| e.position.index), entries.last().map(|e| e.position.index));
        let is_named = ends == (Some(self.first), Some(self.last));
        if is_named { Ok(()) } else { Err("its entries are not those in its name".into()) }
    }

    /// Returns a name before all parts that begin at this index or behind it, and behind all others.
    pub fn before(group: GroupId, first: u64) -> StoredName {
        name(format!("{}/{first:016x}", log_parts(group)))
    }
}

/// Parses a name that is a time: that of a point, of master keys, or of a list of unused content.
pub fn parse_time(stored: &StoredName) -> Option<Millis> {
    millis(stored.last_segment())
}

fn hex(text: &str) -> Option<u64> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn millis(text: &str) -> Option<Millis> {
    let is_number = text.len() == 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().map(Millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_frozen_and_sort_like_numbers() {
        let shard = GroupId::of_shard(ShardId(7));
        let base = BaseName { index: 255, at: Millis(1_764_500_000_123) };
        assert_eq!(base.of(shard).as_str(), "groups/007/bases/00000000000000ff.001764500000123");
        assert_eq!(BaseName::parse(&base.of(shard)), Some(base));
        let part = LogPartName { first: 256, last: 300, at: Millis(1) };
        let stored = part.of(GroupId::CATALOG);
        assert_eq!(stored.as_str(), "groups/cat/log/0000000000000100-000000000000012c.000000000000001");
        assert_eq!(LogPartName::parse(&stored), Some(part));
        assert!(LogPartName::before(GroupId::CATALOG, 256) < stored);
        assert!(LogPartName::before(GroupId::CATALOG, 257) > stored);
        assert_eq!(parse_time(&point(Millis(5))), Some(Millis(5)));
        assert_eq!(parse_group(&group_name(shard)), Some(shard));
        assert_eq!(parse_group("cat"), Some(GroupId::CATALOG));
        assert_eq!(parse_group("7"), None);
    }
}

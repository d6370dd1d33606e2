//! Index of the entries: existence, sizes and order of eviction. It does no input or output.

use std::collections::{BTreeMap, HashMap};

use assay_storage_model::OrgId;

use crate::decision::MaxAge;
use crate::entry::EntryTimes;

/// Block size of file systems. A file occupies whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// Name of an entry on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntryId {
    pub organization: OrgId,
    pub name: [u8; 32],
}

/// Upper bounds of the cache of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    pub bytes_max: u64,
    pub organization_bytes_max: u64,
    pub entries_max: usize,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits { bytes_max: 2 << 30, organization_bytes_max: 512 << 20, entries_max: 65_536 }
    }
}

#[derive(Clone, Copy, Debug)]
struct IndexedEntry {
    times: EntryTimes,
    bytes: u64,
    /// Position in the order of use.
    used: u64,
    generation: u64,
    /// Time of the last use according to the file.
    written_used_ms: u64,
}

/// Entry that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHit {
    pub times: EntryTimes,
    /// Number that changes with each replacement of the entry.
    pub generation: u64,
    pub written_used_ms: u64,
}

/// Outcome of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexLookup {
    Absent,
    /// The entry is older than the caller accepts.
    TooOld,
    /// The entry has expired. The caller must remove its file.
    Expired,
    Hit(IndexHit),
}

/// Entries of one organization.
#[derive(Debug, Default)]
struct OrganizationEntries {
    bytes: u64,
    by_use: BTreeMap<u64, EntryId>,
}

#[derive(Debug)]
pub(crate) struct EntryIndex {
    limits: CacheLimits,
    entries: HashMap<EntryId, IndexedEntry>,
    by_use: BTreeMap<u64, EntryId>,
    organizations: HashMap<OrgId, OrganizationEntries>,
    bytes: u64,
    next: u64,
}

impl EntryIndex {
    pub fn new(limits: CacheLimits) -> EntryIndex {
        let (entries, by_use, organizations) = (HashMap::new(), BTreeMap::new(), HashMap::new());
        EntryIndex { limits, entries, by_use, organizations, bytes: 0, next: 0 }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether a file of the given length can be stored at all.
    pub fn fits(&self, file_bytes: u64) -> bool {
        let bytes = file_bytes.next_multiple_of(BLOCK_BYTES);
        let CacheLimits { bytes_max, organization_bytes_max, entries_max } = self.limits;
        bytes <= bytes_max && bytes <= organization_bytes_max && entries_max > 0
    }

    /// Looks up an entry and counts that as a use. An expired entry is removed.
    pub fn look_up(&mut self, id: &EntryId, max_age: MaxAge, now_ms: u64) -> IndexLookup {
        let Some(entry) = self.entries.get_mut(id) else { return IndexLookup::Absent };
        if entry.times.is_expired(now_ms) {
            self.remove(id);
            return IndexLookup::Expired;
        }
        if !max_age.admits(entry.times.age_s(now_ms)) {
            return IndexLookup::TooOld;
        }
        let (before, used) = (entry.used, self.next);
        entry.used = used;
        self.next += 1;
        let hit = IndexHit { times: entry.times, generation: entry.generation, written_used_ms: entry.written_used_ms };
        self.by_use.remove(&before);
        self.by_use.insert(used, *id);
        if let Some(organization) = self.organizations.get_mut(&id.organization) {
            organization.by_use.remove(&before);
            organization.by_use.insert(used, *id);
        }
        IndexLookup::Hit(hit)
    }

    /// Records the time of use that the file now contains.
    pub fn note_written_use(&mut self, id: &EntryId, generation: u64, used_ms: u64) {
        if let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.generation == generation) {
            entry.written_used_ms = used_ms;
        }
    }

    /// Adds an entry as the most recently used one, replacing one with the same id.
    ///
    /// Returns the evicted entries, whose files the caller must remove. The file must fit.
    pub fn insert(&mut self, id: EntryId, times: EntryTimes, used_ms: u64, file_bytes: u64) -> Vec<EntryId> {
        self.remove(&id);
        let bytes = file_bytes.next_multiple_of(BLOCK_BYTES);
        let CacheLimits { bytes_max, organization_bytes_max, entries_max } = self.limits;
        let mut evicted = Vec::new();
        while self.organization_bytes(id.organization) + bytes > organization_bytes_max {
            let first = self.organizations.get(&id.organization).and_then(|entries| entries.by_use.values().next());
            let Some(first) = first.copied() else { break };
            self.remove(&first);
            evicted.push(first);
        }
        while self.bytes + bytes > bytes_max || self.len() >= entries_max {
            let Some(first) = self.by_use.values().next().copied() else { break };
            self.remove(&first);
            evicted.push(first);
        }
        let used = self.next;
        self.next += 1;
        let entry = IndexedEntry { times, bytes, used, generation: used, written_used_ms: used_ms };
        self.entries.insert(id, entry);
        self.by_use.insert(used, id);
        let organization = self.organizations.entry(id.organization).or_default();
        organization.bytes += bytes;
        organization.by_use.insert(used, id);
        self.bytes += bytes;
        evicted
    }

    /// Removes an entry. Returns whether it existed.
    pub fn remove(&mut self, id: &EntryId) -> bool {
        let Some(entry) = self.entries.remove(id) else { return false };
        self.by_use.remove(&entry.used);
        self.bytes -= entry.bytes;
        if let Some(organization) = self.organizations.get_mut(&id.organization) {
            organization.bytes -= entry.bytes;
            organization.by_use.remove(&entry.used);
            if organization.by_use.is_empty() {
                self.organizations.remove(&id.organization);
            }
        }
        true
    }

    /// Returns whether an entry exists and was not replaced.
    pub fn has_generation(&self, id: &EntryId, generation: u64) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.generation == generation)
    }

    /// Removes an entry unless it was replaced. Returns whether it was removed.
    pub fn remove_generation(&mut self, id: &EntryId, generation: u64) -> bool {
        self.has_generation(id, generation) && self.remove(id)
    }

    /// Removes all entries of an organization.
    pub fn remove_organization(&mut self, organization: OrgId) {
        let entries = self.organizations.get(&organization).map(|entries| entries.by_use.values().copied());
        for id in entries.map(Iterator::collect::<Vec<_>>).unwrap_or_default() {
            self.remove(&id);
        }
    }

    /// Removes and returns the expired entries.
    pub fn sweep(&mut self, now_ms: u64) -> Vec<EntryId> {
        let expired = self.entries.iter().filter(|(_, entry)| entry.times.is_expired(now_ms));
        let expired: Vec<EntryId> = expired.map(|(id, _)| *id).collect();
        expired.iter().for_each(|id| {
            self.remove(id);
        });
        expired
    }

    fn organization_bytes(&self, organization: OrgId) -> u64 {
        self.organizations.get(&organization).map_or(0, |entries| entries.bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const LIMITS: CacheLimits =
        CacheLimits { bytes_max: 6 * BLOCK_BYTES, organization_bytes_max: 4 * BLOCK_BYTES, entries_max: 5 };
    const WEEK: EntryTimes = EntryTimes { created_ms: 0, ttl_s: 604_800 };

    fn id(organization: u8, name: u8) -> EntryId {
        EntryId { organization: OrgId(Uuid::from_u128(organization.into())), name: [name; 32] }
    }

    fn insert(index: &mut EntryIndex, id: EntryId, blocks: u64) -> Vec<EntryId> {
        index.insert(id, WEEK, 0, blocks * BLOCK_BYTES)
    }

    #[test]
    fn the_entry_used_longest_ago_goes_first() {
        let mut index = EntryIndex::new(LIMITS);
        for name in 1..=3 {
            assert!(insert(&mut index, id(1, name), 1).is_empty());
        }
        assert!(matches!(index.look_up(&id(1, 1), MaxAge::Any, 0), IndexLookup::Hit(_)));
        assert_eq!(insert(&mut index, id(1, 4), 2), [id(1, 2)]);
        assert_eq!(index.look_up(&id(1, 2), MaxAge::Any, 0), IndexLookup::Absent);
        assert_eq!(insert(&mut index, id(1, 5), 4), [id(1, 3), id(1, 1), id(1, 4)]);
    }

    #[test]
    fn an_organization_at_its_limit_evicts_only_its_own() {
        let mut index = EntryIndex::new(LIMITS);
        insert(&mut index, id(2, 1), 1);
        insert(&mut index, id(1, 1), 3);
        assert_eq!(insert(&mut index, id(1, 2), 2), [id(1, 1)], "the other one is older");
        assert_eq!(insert(&mut index, id(3, 1), 4), [id(2, 1)], "the node is full");
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let mut index =
            EntryIndex::new(CacheLimits { bytes_max: u64::MAX, organization_bytes_max: u64::MAX, ..LIMITS });
        let evicted: Vec<EntryId> = (1..=7).flat_map(|name| insert(&mut index, id(name, 1), 1)).collect();
        assert_eq!((evicted, index.len()), (vec![id(1, 1), id(2, 1)], 5));
    }

    #[test]
    fn what_exceeds_a_limit_alone_does_not_fit() {
        let index = EntryIndex::new(LIMITS);
        assert!(index.fits(4 * BLOCK_BYTES) && !index.fits(4 * BLOCK_BYTES + 1));
        assert!(!EntryIndex::new(CacheLimits { entries_max: 0, ..LIMITS }).fits(1));
    }

    #[test]
    fn a_replaced_entry_is_not_removed_by_those_who_read_the_former() {
        let mut index = EntryIndex::new(LIMITS);
        insert(&mut index, id(1, 1), 1);
        let IndexLookup::Hit(first) = index.look_up(&id(1, 1), MaxAge::Any, 0) else { panic!("it is there") };
        let IndexLookup::Hit(again) = index.look_up(&id(1, 1), MaxAge::Any, 0) else { panic!("it is there") };
        assert_eq!(first.generation, again.generation, "a use is no replacement");
        insert(&mut index, id(1, 1), 1);
        assert!(!index.remove_generation(&id(1, 1), first.generation) && index.len() == 1);
        let IndexLookup::Hit(second) = index.look_up(&id(1, 1), MaxAge::Any, 0) else { panic!("it is there") };
        assert!(index.remove_generation(&id(1, 1), second.generation) && index.len() == 0);
    }

    #[test]
    fn what_is_too_old_stays_and_what_is_expired_goes() {
        let mut index = EntryIndex::new(LIMITS);
        index.insert(id(1, 1), EntryTimes { created_ms: 1000, ttl_s: 60 }, 0, 1);
        assert_eq!(index.look_up(&id(1, 1), MaxAge::Seconds(9), 11_000), IndexLookup::TooOld);
        assert!(matches!(index.look_up(&id(1, 1), MaxAge::Seconds(10), 11_000), IndexLookup::Hit(_)));
        assert!(index.sweep(60_999).is_empty());
        assert_eq!(index.look_up(&id(1, 1), MaxAge::Any, 61_000), IndexLookup::Expired);
        assert_eq!((index.len(), index.bytes()), (0, 0));
        index.insert(id(1, 2), EntryTimes { created_ms: 0, ttl_s: 1 }, 0, 1);
        insert(&mut index, id(1, 3), 1);
        assert_eq!(index.sweep(5000), [id(1, 2)]);
    }

    #[derive(Clone, Debug)]
    enum IndexStep {
        Insert(u8, u8, u64),
        Use(u8, u8),
        Remove(u8, u8),
        RemoveOrganization(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<IndexStep>> {
        let one = (1..4_u8, 1..5_u8);
        let step = prop_oneof![
            4 => (one.clone(), 1..5_u64).prop_map(|((org, name), blocks)| IndexStep::Insert(org, name, blocks)),
            3 => one.clone().prop_map(|(org, name)| IndexStep::Use(org, name)),
            1 => one.prop_map(|(org, name)| IndexStep::Remove(org, name)),
            1 => (1..4_u8).prop_map(IndexStep::RemoveOrganization),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        /// Compares the index with a list in order of use, which evicts from the front.
        #[test]
        fn it_keeps_what_a_list_would_keep(steps in steps()) {
            let mut index = EntryIndex::new(LIMITS);
            let mut model: Vec<(EntryId, u64)> = Vec::new();
            for step in steps {
                match step {
                    IndexStep::Insert(org, name, blocks) => {
                        let new = id(org, name);
                        model.retain(|(id, _)| *id != new);
                        let mut expected = Vec::new();
                        let blocks_of = |model: &[(EntryId, u64)], org: Option<OrgId>| -> u64 {
                            let kept = model.iter().filter(|(id, _)| org.is_none_or(|org| id.organization == org));
                            kept.map(|(_, blocks)| blocks).sum()
                        };
                        while blocks_of(&model, Some(new.organization)) + blocks > 4 {
                            let first = model.iter().position(|(id, _)| id.organization == new.organization);
                            expected.push(model.remove(first.expect("it has bytes")).0);
                        }
                        while blocks_of(&model, None) + blocks > 6 || model.len() >= 5 {
                            expected.push(model.remove(0).0);
                        }
                        model.push((new, blocks));
                        prop_assert_eq!(insert(&mut index, new, blocks), expected);
                    }
                    IndexStep::Use(org, name) => {
                        let is_hit = matches!(index.look_up(&id(org, name), MaxAge::Any, 0), IndexLookup::Hit(_));
                        let place = model.iter().position(|(one, _)| *one == id(org, name));
                        prop_assert_eq!(is_hit, place.is_some());
                        if let Some(place) = place {
                            let used = model.remove(place);
                            model.push(used);
                        }
                    }
                    IndexStep::Remove(org, name) => {
                        let was_there = model.iter().any(|(one, _)| *one == id(org, name));
                        model.retain(|(one, _)| *one != id(org, name));
                        prop_assert_eq!(index.remove(&id(org, name)), was_there);
                    }
                    IndexStep::RemoveOrganization(org) => {
                        model.retain(|(one, _)| one.organization != id(org, 0).organization);
                        index.remove_organization(id(org, 0).organization);
                    }
                }
                let blocks: u64 = model.iter().map(|(_, blocks)| blocks).sum();
                prop_assert_eq!((index.len(), index.bytes()), (model.len(), blocks * BLOCK_BYTES));
            }
        }
    }
}

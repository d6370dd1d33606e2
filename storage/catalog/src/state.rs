//! In-memory state of the catalog, which readers share and apply changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use assay_storage_model::catalog::{Record, RecordKind, ShardMap, UniqueKey};
use assay_storage_model::{LogPosition, NodeId, OrgId, ReplicaId};
use uuid::Uuid;

use crate::deleted::Deleted;
use crate::hash::Hash128;
use crate::stored::{Header, Name};

pub type RecordName = (RecordKind, Uuid);

/// Position of a record in the list of its kind and organization: newest first, ties by id.
pub type OrderKey = (RecordKind, Option<OrgId>, Reverse<i64>, Uuid);

/// Memory of a record in addition to its bytes: map nodes and allocations.
const RECORD_OVERHEAD_BYTES: usize = 256;

#[derive(Debug, Default)]
pub struct State {
    pub(crate) applied: Option<LogPosition>,
    pub(crate) membership: Vec<u8>,
    pub(crate) version: u64,
    /// Version of the last change of a record of a kind, since the state was loaded.
    pub(crate) changed: HashMap<RecordKind, u64>,
    pub(crate) loaded: u64,
    /// Lowest ids that were not given out.
    pub(crate) next_node: u64,
    pub(crate) next_replica: u64,
    /// Highest id of a placed replica. A replica that is new to a group must have a higher one.
    pub(crate) highest_replica_placed: u64,
    pub(crate) records: BTreeMap<RecordName, Arc<Record>>,
    pub(crate) order: BTreeSet<OrderKey>,
    pub(crate) taken: HashMap<UniqueKey, RecordName>,
    pub(crate) deleted: Deleted,
    pub(crate) map: Option<Arc<ShardMap>>,
    /// Names of the values that changed since the last seal.
    pub(crate) dirty: BTreeSet<Name>,
    pub(crate) dirty_bytes: usize,
}

impl State {
    pub(crate) fn empty() -> State {
        State { next_node: 1, next_replica: 1, ..State::default() }
    }

    /// Returns the version, which grows with every change. Reads at the same version agree.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the version at which a record of these kinds last changed, or a later one.
    ///
    /// Results derived from these records at this version or a later one are still valid.
    pub fn changed(&self, kinds: &[RecordKind]) -> u64 {
        kinds.iter().filter_map(|kind| self.changed.get(kind)).copied().fold(self.loaded, u64::max)
    }

    pub fn get(&self, kind: RecordKind, id: Uuid) -> Option<&Arc<Record>> {
        self.records.get(&(kind, id))
    }

    /// Returns the record that has this unique key.
    pub fn find(&self, key: &UniqueKey) -> Option<&Arc<Record>> {
        self.records.get(self.taken.get(key)?)
    }

    /// Returns every record of a kind, by id.
    pub fn all(&self, kind: RecordKind) -> impl Iterator<Item = &Arc<Record>> {
        self.records.range((kind, Uuid::nil())..=(kind, Uuid::max())).map(|(_, record)| record)
    }

    /// Returns the lowest ids that were not given out.
    pub fn next_ids(&self) -> (NodeId, ReplicaId) {
        (NodeId(self.next_node), ReplicaId(self.next_replica))
    }

    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Returns the shard map, or `None` before the cluster is initialized.
    pub fn shard_map(&self) -> Option<&Arc<ShardMap>> {
        self.map.as_ref()
    }

    /// Returns a digest that is equal on replicas that applied the same entries.
    ///
    /// It reads all records, so it serves checks and not requests.
    pub fn digest(&self) -> u128 {
        let mut hash = Hash128::default();
        let header = Header { applied: None, entries: 0, sum: 0, ..Header::of(self) };
        hash.update(&header.encode());
        for name in self.names() {
            if let Some(value) = self.value(&name) {
                hash.update(&name.to_bytes());
                hash.update(&(value.len() as u64).to_le_bytes());
                hash.update(&value);
            }
        }
        hash.finish()
    }

    /// Returns the names of all values except header and membership, in a fixed order.
    pub(crate) fn names(&self) -> impl Iterator<Item = Name> {
        let map = self.map.is_some().then_some(Name::Map);
        let pages = self.deleted.pages().map(Name::Deleted);
        map.into_iter().chain(pages).chain(self.records.keys().map(|(kind, id)| Name::Record(*kind, *id)))
    }

    /// Returns the value to store under a name, or `None` if the name is to be deleted.
    pub(crate) fn value(&self, name: &Name) -> Option<Vec<u8>> {
        self.kept(name).map(StoredValue::encode)
    }

    /// Returns the value before its encoding, which is cheap enough to do under the lock.
    pub(crate) fn kept(&self, name: &Name) -> Option<StoredValue> {
        match name {
            Name::Header => None, // made by who stores it, since it counts what is stored
            Name::Membership => Some(StoredValue::Bytes(self.membership.clone())),
            Name::Map => self.map.clone().map(StoredValue::Map),
            Name::Deleted(page) => self.deleted.page(*page).map(StoredValue::Bytes),
            Name::Record(kind, id) => self.records.get(&(*kind, *id)).cloned().map(StoredValue::Record),
        }
    }

    pub(crate) fn mark(&mut self, name: Name, bytes: usize) {
        self.dirty.insert(name);
        self.dirty_bytes += bytes;
    }

    /// Inserts a record, whose unique keys must be free.
    pub(crate) fn insert(&mut self, record: Record) {
        let name = (record.kind, record.id);
        self.order.insert(place(&record));
        for key in &record.keys {
            self.taken.insert(key.clone(), name);
        }
        self.mark(Name::Record(record.kind, record.id), record.body.len() + RECORD_OVERHEAD_BYTES);
        self.records.insert(name, Arc::new(record));
    }

    pub(crate) fn remove(&mut self, name: RecordName) -> Option<Arc<Record>> {
        let record = self.records.remove(&name)?;
        self.order.remove(&place(&record));
        for key in &record.keys {
            self.taken.remove(key);
        }
        self.mark(Name::Record(name.0, name.1), RECORD_OVERHEAD_BYTES);
        Some(record)
    }
}

/// Value that is shared with the state until it is written.
#[derive(Debug)]
pub enum StoredValue {
    Bytes(Vec<u8>),
    Map(Arc<ShardMap>),
    Record(Arc<Record>),
}

impl StoredValue {
    pub fn encode(self) -> Vec<u8> {
        match self {
            StoredValue::Bytes(bytes) => bytes,
            StoredValue::Map(map) => map.encode(),
            StoredValue::Record(record) => record.encode(),
        }
    }
}

fn place(record: &Record) -> OrderKey {
    (record.kind, record.org, Reverse(record.created), record.id)
}

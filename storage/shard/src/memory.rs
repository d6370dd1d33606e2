//! Memory table: row versions since the last seal, with one generation between two seals.
//!
//! A generation only grows. The only change of a version is its end: the id of the write that superseded it. A reader
//! of a generation at version `v` therefore always sees the same rows: those with `xact <= v < end`. Once a generation
//! is being sealed, its later ends are also kept in a list, because the segment is written without them.
//!
//! Only the shard's own thread writes. Readers hold the lock while they copy references.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::AHashMap;
use assay_storage_model::command::Action;
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use bytes::Bytes;
use parking_lot::RwLock;

use crate::scan::next_source;
use crate::text::Text;

/// Memory of a row besides its texts: its slot, three index entries and allocator slack.
const ROW_OVERHEAD_BYTES: usize = 360;
/// End of a chain.
const NONE: u32 = u32::MAX;

/// Version of a row, or a tombstone or comment attached to its id.
#[derive(Clone, Debug)]
pub struct MemoryRow {
    pub key: PaginationKey,
    pub xact: Xact,
    /// Write that superseded this version, or `Xact::MAX`.
    pub end: Xact,
    pub action: Action,
    pub is_root: bool,
    pub created: i64,
    pub id: Text,
    pub span_id: Text,
    pub root_span_id: Text,
    /// Merged row; the body for a comment, and empty for a delete.
    pub doc: Bytes,
    /// Patch of a merge as written; empty for other actions.
    pub patch: Bytes,
    pub rules: Bytes,
    pub audit: Bytes,
}

/// Row with the indexes of the next older rows of the same id and of the same trace.
#[derive(Debug)]
struct Slot {
    row: MemoryRow,
    older_of_id: u32,
    older_of_trace: u32,
}

impl MemoryRow {
    /// Returns whether a read at `v` sees this version as a row.
    pub fn visible(&self, v: Xact) -> bool {
        is_row(self.action) && self.xact <= v && v < self.end
    }

    fn bytes(&self) -> usize {
        ROW_OVERHEAD_BYTES
            + self.id.len() * 2
            + self.root_span_id.len()
            + self.doc.len()
            + self.patch.len()
            + self.audit.len()
    }
}

pub fn is_row(action: Action) -> bool {
    matches!(action, Action::Upsert | Action::Merge)
}

/// Order by pagination key, version and index, each newest first.
type RowOrder = (u64, u64, u32);

fn order(key: PaginationKey, xact: Xact, index: u32) -> RowOrder {
    (!key.0, !xact.0, !index)
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    newest_of_id: AHashMap<Text, u32>,
    newest_of_trace: AHashMap<Text, u32>,
    order: BTreeMap<RowOrder, u32>,
}

/// End that was set after the rotation of the generation.
#[derive(Clone, Copy, Debug)]
pub struct LateEnd {
    pub object: ObjectKey,
    pub index: u32,
    pub end: Xact,
}

#[derive(Debug, Default)]
struct Inner {
    tables: BTreeMap<ObjectKey, Table>,
    rotated: bool,
    late: Vec<LateEnd>,
}

#[derive(Debug)]
pub struct Generation {
    inner: RwLock<Inner>,
    bytes: AtomicUsize,
    rows: AtomicUsize,
    /// Id of this generation in the column cache.
    source: u64,
}

impl Default for Generation {
    fn default() -> Generation {
        Generation {
            inner: RwLock::default(),
            bytes: AtomicUsize::new(0),
            rows: AtomicUsize::new(0),
            source: next_source(),
        }
    }
}

impl Generation {
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Adds a row and returns its index.
    pub fn insert(&self, object: ObjectKey, row: MemoryRow) -> u32 {
        let mut inner = self.inner.write();
        let table = inner.tables.entry(object).or_default();
        let index = u32::try_from(table.slots.len()).expect("a generation is sealed long before 2^32 rows");
        let older_of_id = table.newest_of_id.insert(row.id.clone(), index).unwrap_or(NONE);
        let older_of_trace = if is_row(row.action) {
            table.newest_of_trace.insert(row.root_span_id.clone(), index).unwrap_or(NONE)
        } else {
            NONE
        };
        table.order.insert(order(row.key, row.xact, index), index);
        self.bytes.fetch_add(row.bytes(), Ordering::Relaxed);
        self.rows.fetch_add(1, Ordering::Relaxed);
        table.slots.push(Slot { row, older_of_id, older_of_trace });
        index
    }

    /// Returns the newest version or tombstone of an id with its index, without comments.
    pub fn newest(&self, object: &ObjectKey, id: &str) -> Option<(u32, MemoryRow)> {
        let inner = self.inner.read();
        let table = inner.tables.get(object)?;
        let mut index = *table.newest_of_id.get(id)?;
        while index != NONE {
            let slot = &table.slots[index as usize];
            if slot.row.action != Action::Comment {
                return Some((index, slot.row.clone()));
            }
            index = slot.older_of_id;
        }
        None
    }

    /// Returns everything that was written about an id, newest first.
    pub fn history(&self, object: &ObjectKey, id: &str) -> Vec<(u32, MemoryRow)> {
        let inner = self.inner.read();
        let Some(table) = inner.tables.get(object) else { return Vec::new() };
        let mut index = table.newest_of_id.get(id).copied().unwrap_or(NONE);
        let mut found = Vec::new();
        while index != NONE {
            let slot = &table.slots[index as usize];
            found.push((index, slot.row.clone()));
            index = slot.older_of_id;
        }
        found
    }

    /// Returns the index, key and own id of each current comment on an id.
    pub fn live_comments(&self, object: &ObjectKey, id: &str) -> Vec<(u32, PaginationKey, Text)> {
        let inner = self.inner.read();
        let Some(table) = inner.tables.get(object) else { return Vec::new() };
        let mut index = table.newest_of_id.get(id).copied().unwrap_or(NONE);
        let mut found = Vec::new();
        while index != NONE {
            let Slot { row, older_of_id, .. } = &table.slots[index as usize];
            if row.action == Action::Comment && row.end == Xact::MAX {
                found.push((index, row.key, row.span_id.clone()));
            }
            index = *older_of_id;
        }
        found
    }

    pub fn set_end(&self, object: &ObjectKey, index: u32, end: Xact) {
        let mut inner = self.inner.write();
        if inner.rotated {
            inner.late.push(LateEnd { object: *object, index, end });
        }
        if let Some(table) = inner.tables.get_mut(object) {
            table.slots[index as usize].row.end = end;
        }
    }

    /// Starts to record later ends separately, because the segment is written without them.
    pub fn rotate(&self) {
        self.inner.write().rotated = true;
    }

    pub fn take_late(&self) -> Vec<LateEnd> {
        std::mem::take(&mut self.inner.write().late)
    }

    /// Returns the visible rows of a trace at `v`, newest write first.
    pub fn trace(&self, object: &ObjectKey, root_span_id: &str, v: Xact) -> Vec<MemoryRow> {
        let inner = self.inner.read();
        let Some(table) = inner.tables.get(object) else { return Vec::new() };
        let mut index = table.newest_of_trace.get(root_span_id).copied().unwrap_or(NONE);
        let mut found = Vec::new();
        while index != NONE {
            let slot = &table.slots[index as usize];
            if slot.row.visible(v) {
                found.push(slot.row.clone());
            }
            index = slot.older_of_trace;
        }
        found
    }

    /// Returns up to `limit` visible rows with a pagination key below `before`, newest key first.
    pub fn page(&self, object: &ObjectKey, before: Option<PaginationKey>, v: Xact, limit: usize) -> Vec<MemoryRow> {
        let inner = self.inner.read();
        let Some(table) = inner.tables.get(object) else { return Vec::new() };
        let from = match before {
            Some(key) => Bound::Excluded((!key.0, u64::MAX, u32::MAX)),
            None => Bound::Unbounded,
        };
        let rows = table.order.range((from, Bound::Unbounded)).map(|(_, index)| &table.slots[*index as usize].row);
        rows.filter(|row| row.visible(v)).take(limit).cloned().collect()
    }

    pub fn source(&self) -> u64 {
        self.source
    }

    /// Returns the number of row versions of an object here, including annotations.
    pub fn rows_of(&self, object: &ObjectKey) -> usize {
        self.inner.read().tables.get(object).map_or(0, |table| table.slots.len())
    }

    /// Visits a range of the row versions in write order.
    pub fn each_row(&self, object: &ObjectKey, rows: Range<usize>, each: impl FnMut(&MemoryRow)) {
        let inner = self.inner.read();
        if let Some(table) = inner.tables.get(object) {
            table.slots[rows].iter().map(|slot| &slot.row).for_each(each);
        }
    }

    /// Returns the indexes in write order of a trace's row versions.
    pub fn numbers_of_trace(&self, object: &ObjectKey, root_span_id: &str) -> Vec<u32> {
        let inner = self.inner.read();
        let Some(table) = inner.tables.get(object) else { return Vec::new() };
        let first = table.newest_of_trace.get(root_span_id).copied().filter(|index| *index != NONE);
        let older = |index: &u32| Some(table.slots[*index as usize].older_of_trace).filter(|index| *index != NONE);
        std::iter::successors(first, older).collect()
    }

    pub fn objects(&self) -> Vec<ObjectKey> {
        self.inner.read().tables.keys().copied().collect()
    }

    /// Returns all entries of an object in the order of a segment, each with its index.
    pub fn in_order(&self, object: &ObjectKey) -> Vec<(u32, MemoryRow)> {
        let inner = self.inner.read();
        let Some(table) = inner.tables.get(object) else { return Vec::new() };
        table.order.values().map(|index| (*index, table.slots[*index as usize].row.clone())).collect()
    }
}

//! Replay: all writes to an object in write order, for a caller that repeats them elsewhere.
//!
//! Memory and segments hold rows by their keys, not by their writes. The next writes are therefore selected from all
//! later ones, a part at a time. For rows that were written once both orders are the same, and a part reads little more
//! than itself.
//!
//! History below a floor may be gone and is not returned. For each row that existed at the floor, the last version is
//! returned as a whole document. Its position is that of the write that made the row, so that rows keep their order.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use assay_storage_model::command::Action;
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use assay_storage_segments::{Columns, OwnedRow};
use bytes::Bytes;

use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::memory::{Generation, MemoryRow};
use crate::read::{View, memory_event, segment_event};
use crate::text::Text;

/// Upper bound of the operations that are picked at once. It exceeds the number of operations in one write.
pub const PICKED_MAX: usize = 16_384;
/// Number of rows whose keys are read at once.
const PIECE_ROWS: u32 = 4096;

/// Operation that was found but not yet read. It must be read through the view that found it.
#[derive(Clone, Debug)]
pub struct PastOp {
    pub xact: Xact,
    at: OpLocation,
    /// Whether the document is returned whole instead of as a merge.
    whole: bool,
}

#[derive(Clone, Debug)]
enum OpLocation {
    Memory(Box<MemoryRow>),
    /// Number of the view's segment, and the row in it.
    Segment(usize, u32),
}

/// Operation as written. Fields that a merge leaves open have the values of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenOp {
    pub xact: Xact,
    pub id: Text,
    pub action: Action,
    pub span_id: Text,
    pub root_span_id: Text,
    pub is_root: bool,
    pub created: i64,
    pub doc: Bytes,
    pub rules: Bytes,
    pub audit: Bytes,
}

/// Order by write, and within a write by rows, so that changes of older rows come first.
type ReplayOrder = (Xact, PaginationKey, u32);

/// Selection of the first [`PICKED_MAX`] offered operations.
struct Picked {
    from: Xact,
    at: Xact,
    floor: Xact,
    heap: BinaryHeap<(ReplayOrder, HeapSlot)>,
}

/// Fields that decide the position of an operation.
struct Offered {
    xact: Xact,
    key: PaginationKey,
    index: u32,
    action: Action,
    end: Xact,
}

/// Heap entry, which does not affect the order.
struct HeapSlot(OpLocation);

impl PartialEq for HeapSlot {
    fn eq(&self, _: &HeapSlot) -> bool {
        true
    }
}

impl Eq for HeapSlot {}

impl PartialOrd for HeapSlot {
    fn partial_cmp(&self, other: &HeapSlot) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeapSlot {
    fn cmp(&self, _: &HeapSlot) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Picked {
    fn offer(&mut self, row: Offered, at: impl FnOnce() -> OpLocation) {
        let Offered { xact, key, index, action, end } = row;
        let is_below = xact <= self.floor;
        if xact > self.at || is_below && (end <= self.floor || action == Action::Delete) {
            return;
        }
        let told = if is_below && action != Action::Comment { key.first().min(xact) } else { xact };
        let order = (told, key, index);
        if told < self.from {
            return;
        }
        if self.heap.len() == PICKED_MAX {
            if self.heap.peek().is_some_and(|(last, _)| *last <= order) {
                return;
            }
            self.heap.pop();
        }
        self.heap.push((order, HeapSlot(at())));
    }

    /// Returns whether a group with these first and last writes may hold selected operations.
    fn may_take(&self, first: u64, last: u64) -> bool {
        // Operations at or below the floor may take the position of an earlier write.
        let first = if first <= self.floor.0 { 0 } else { first };
        let is_full = self.heap.len() == PICKED_MAX;
        let beyond = is_full && self.heap.peek().is_some_and(|(worst, _)| worst.0.0 < first);
        last >= self.from.0 && first <= self.at.0 && !beyond
    }
}

impl View {
    /// Returns the first operations of the writes from `from` up to `at`, in their order.
    ///
    /// The result is complete, or holds at least all operations of one write. It includes deletes of existing rows; a
    /// delete that found no row was never stored.
    pub fn past(&self, object: &ObjectKey, from: Xact, at: Xact) -> Result<Vec<PastOp>, ShardError> {
        self.admit(object, at)?;
        let floor = self.object(object).map_or(Xact::ZERO, |record| record.floor);
        let mut picked = Picked { from, at, floor, heap: BinaryHeap::new() };
        for generation in &self.generations {
            of_memory(generation, object, &mut picked);
        }
        let mut groups: Vec<(u64, u64, usize, usize)> = Vec::new();
        for (number, live) in self.segments.iter().enumerate() {
            if live.segment.rows_of(*object).is_empty() || live.meta().xact_min > at {
                continue;
            }
            for group in 0..live.segment.groups() {
                let (first, last) = live.segment.group_bounds(group).map_or((0, u64::MAX), |bounds| bounds.xact);
                groups.push((first, last, number, group));
            }
        }
        // Groups with the earliest writes come first, so that others need not be read.
        groups.sort_unstable();
        for (first, last, number, group) in groups {
            if picked.may_take(first, last) {
                of_group(number, &self.segments[number], group, object, &mut picked)?;
            }
        }
        let sorted = picked.heap.into_sorted_vec();
        Ok(sorted.into_iter().map(|((xact, ..), HeapSlot(at))| PastOp { xact, at, whole: xact <= floor }).collect())
    }

    /// Reads the content of these operations, in their order. Memory use is proportional to that content.
    pub fn past_ops(&self, ops: &[PastOp]) -> Result<Vec<WrittenOp>, ShardError> {
        let mut wanted: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut whole: BTreeSet<(usize, u32)> = BTreeSet::new();
        for op in ops {
            if let OpLocation::Segment(number, row) = op.at {
                wanted.entry(number).or_default().push(row);
                if op.whole {
                    whole.insert((number, row));
                }
            }
        }
        let mut read: BTreeMap<(usize, u32), WrittenOp> = BTreeMap::new();
        for (number, mut rows) in wanted {
            rows.sort_unstable();
            for row in self.segments[number].segment.read(&rows, Columns::All)? {
                let place = (number, row.row);
                read.insert(place, of_segment(row, whole.contains(&place)));
            }
        }
        let mut one = |op: &PastOp| match &op.at {
            OpLocation::Memory(row) => Ok(of_row(row, op.whole)),
            OpLocation::Segment(number, row) => read
                .remove(&(*number, *row))
                .ok_or_else(|| ShardError::Damaged(format!("row {row} is not at the position in its segment's index"))),
        };
        ops.iter().map(|op| Ok(WrittenOp { xact: op.xact, ..one(op)? })).collect()
    }
}

fn of_memory(generation: &Generation, object: &ObjectKey, picked: &mut Picked) {
    let rows = generation.rows_of(object);
    for start in (0..rows).step_by(PIECE_ROWS as usize) {
        let (mut index, end) = (start as u32, rows.min(start + PIECE_ROWS as usize));
        generation.each_row(object, start..end, |row| {
            let MemoryRow { xact, key, action, end, .. } = *row;
            picked.offer(Offered { xact, key, index, action, end }, || OpLocation::Memory(Box::new(row.clone())));
            index += 1;
        });
    }
}

fn of_group(
    number: usize,
    live: &LiveSegment,
    group: usize,
    object: &ObjectKey,
    picked: &mut Picked,
) -> Result<(), ShardError> {
    let (of_object, of_group) = (live.segment.rows_of(*object), live.segment.group_rows(group));
    let (mut start, end) = (of_object.start.max(of_group.start), of_object.end.min(of_group.end));
    while start < end {
        let rows: Vec<u32> = (start..end.min(start + PIECE_ROWS)).collect();
        for row in live.segment.read(&rows, Columns::Keys)? {
            // Within one write, the later operation on a row comes before the earlier one.
            let end = live.end(row.row, row.end);
            let OwnedRow { xact, key, action, .. } = row;
            picked.offer(Offered { xact, key, index: !row.row, action, end }, || OpLocation::Segment(number, row.row));
        }
        start += PIECE_ROWS;
    }
    Ok(())
}

fn of_row(row: &MemoryRow, whole: bool) -> WrittenOp {
    let (id, root_span_id, is_root) = (row.id.clone(), row.root_span_id.clone(), row.is_root);
    let mut row = row.clone();
    if whole && row.action == Action::Merge {
        (row.action, row.patch, row.rules) = (Action::Upsert, Bytes::new(), Bytes::new());
    }
    of_event(memory_event(row), id, root_span_id, is_root)
}

fn of_segment(mut row: OwnedRow, whole: bool) -> WrittenOp {
    if whole && row.action == Action::Merge {
        (row.action, row.patch, row.rules) = (Action::Upsert, None, None);
    }
    let (id, root_span_id, is_root) = (Text::copied(&row.id), Text::copied(&row.root_span_id), row.is_root);
    of_event(segment_event(row), id, root_span_id, is_root)
}

fn of_event(event: crate::read::Event, id: Text, root_span_id: Text, is_root: bool) -> WrittenOp {
    let crate::read::Event { xact, action, created, own_id: span_id, written, rules, audit } = event;
    // The document of a delete is not stored, because it is empty.
    let doc = if action == Action::Delete { Bytes::from_static(b"{}") } else { written };
    WrittenOp { xact, id, action, span_id, root_span_id, is_root, created, doc, rules, audit }
}

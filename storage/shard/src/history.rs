//! Write history of single rows.
//!
//! A lookup costs no more than the index of each segment. Contents are read on demand.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use assay_storage_model::command::Action;
use assay_storage_model::merge::MergeError;
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use assay_storage_segments::{Columns, OwnedRow, SoughtId};
use bytes::Bytes;

use crate::annotations::audit_data;
use crate::error::ShardError;
use crate::memory::MemoryRow;
use crate::read::{Event, View, memory_event, segment_event};
use crate::text::Text;

/// Write to a row that was found but not yet read. It must be read through the view that found it.
#[derive(Clone, Debug)]
pub struct PastWrite {
    pub xact: Xact,
    /// Pagination key of the row.
    pub key: PaginationKey,
    /// Number of earlier writes of the same transaction to the same row.
    pub nth: u16,
    pub action: Action,
    at: WriteLocation,
    /// Version that a delete removed, because the delete itself holds little of the row.
    deleted: Option<WriteLocation>,
}

#[derive(Clone, Debug)]
enum WriteLocation {
    Memory(Box<MemoryRow>),
    /// Number of the view's segment, and the row in it.
    Segment(usize, u32),
}

/// Content of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub action: Action,
    /// Span id of the write or else of the row; empty if neither has one.
    pub span_id: Text,
    pub root_span_id: Text,
    /// Whether the row is a root; `None` for a delete whose row is unknown.
    pub is_root: Option<bool>,
    pub created: i64,
    /// Whole document, patch of a merge, or nothing for a delete.
    pub doc: Bytes,
    audit: Bytes,
}

impl PastWrite {
    /// Returns the approximate memory beyond its own size, in bytes.
    pub fn bytes(&self) -> usize {
        // The view owns the texts in memory.
        let of = |at: &WriteLocation| if matches!(at, WriteLocation::Memory(_)) { size_of::<MemoryRow>() } else { 0 };
        of(&self.at) + self.deleted.as_ref().map_or(0, of)
    }
}

impl Written {
    /// Returns the effect of the write as JSON text, with its origin if one was stated.
    pub fn audit_data(&self) -> Result<Vec<u8>, MergeError> {
        audit_data(self.action, &self.audit)
    }
}

impl View {
    /// Returns the writes to a row up to `at`, newest first.
    ///
    /// Versions that ended at or below the floor are left out, whether or not they are still stored.
    pub fn history(&self, object: &ObjectKey, id: &str, at: Xact) -> Result<Vec<PastWrite>, ShardError> {
        self.admit(object, at)?;
        let floor = self.object(object).map_or(Xact::ZERO, |record| record.floor);
        let is_meant = |action: Action, xact: Xact, end: Xact| match action {
            Action::Comment => false,
            Action::Delete => xact <= at && xact > floor,
            Action::Upsert | Action::Merge => xact <= at && end > floor,
        };
        let mut found = Vec::new();
        for generation in &self.generations {
            let rows = generation.history(object, id).into_iter().map(|(_, row)| row);
            let rows = rows.filter(|row| is_meant(row.action, row.xact, row.end));
            found.extend(rows.map(|row| {
                let (xact, key, action) = (row.xact, row.key, row.action);
                PastWrite { xact, key, nth: 0, action, at: WriteLocation::Memory(Box::new(row)), deleted: None }
            }));
        }
        let sought = SoughtId::new(*object, id);
        for (number, live) in self.segments.iter().enumerate().rev().filter(|(_, live)| live.meta().xact_min <= at) {
            let mut hits = live.segment.find(&sought)?;
            hits.retain(|hit| is_meant(hit.action, hit.xact, live.end(hit.row, hit.end)));
            // Within one transaction, the later write comes first.
            hits.sort_unstable_by_key(|hit| hit.row);
            found.extend(hits.into_iter().map(|hit| {
                let at = WriteLocation::Segment(number, hit.row);
                PastWrite { xact: hit.xact, key: hit.key, nth: 0, action: hit.action, at, deleted: None }
            }));
        }
        // All writes of one transaction to a row are in one place and already in order.
        found.sort_by_key(|write| (Reverse(write.xact), Reverse(write.key)));
        for newer in (0..found.len().saturating_sub(1)).rev() {
            let (before, older) = found.split_at_mut(newer + 1);
            let (write, older) = (&mut before[newer], &older[0]);
            if write.key == older.key {
                write.nth = if write.xact == older.xact { older.nth.saturating_add(1) } else { 0 };
                write.deleted = (write.action == Action::Delete).then(|| older.at.clone());
            }
        }
        Ok(found)
    }

    /// Reads the content of these writes, in their order. Memory use is proportional to that content.
    pub fn written(&self, writes: &[&PastWrite]) -> Result<Vec<Written>, ShardError> {
        let mut wanted: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for write in writes {
            if let WriteLocation::Segment(number, row) = write.at {
                wanted.entry(number).or_default().push(row);
            }
        }
        let mut read: BTreeMap<(usize, u32), Written> = BTreeMap::new();
        for (number, mut rows) in wanted {
            rows.sort_unstable();
            rows.dedup();
            for row in self.segments[number].segment.read(&rows, Columns::All)? {
                read.insert((number, row.row), of_segment(row));
            }
        }
        let one = |write: &&PastWrite| {
            let mut written = match &write.at {
                WriteLocation::Memory(row) => of_memory(row),
                WriteLocation::Segment(number, row) => read.get(&(*number, *row)).cloned().ok_or_else(|| {
                    ShardError::Damaged(format!("row {row} is not at the position in its segment's index"))
                })?,
            };
            if write.action == Action::Delete {
                self.complete(&mut written, write.deleted.as_ref())?;
            }
            Ok(written)
        };
        writes.iter().map(one).collect()
    }

    /// Completes a delete with the span ids of its row, because a delete rarely states more than the id.
    fn complete(&self, delete: &mut Written, deleted: Option<&WriteLocation>) -> Result<(), ShardError> {
        let row = match deleted {
            Some(WriteLocation::Memory(row)) => Some(of_memory(row)),
            Some(WriteLocation::Segment(number, row)) => {
                self.segments[*number].segment.read(&[*row], Columns::Keys)?.pop().map(of_segment)
            }
            None => None,
        };
        delete.is_root = row.as_ref().and_then(|row| row.is_root);
        if let Some(row) = row {
            for (said, known) in [(&mut delete.span_id, row.span_id), (&mut delete.root_span_id, row.root_span_id)] {
                if said.is_empty() {
                    *said = known;
                }
            }
        }
        Ok(())
    }
}

fn of_memory(row: &MemoryRow) -> Written {
    of_event(memory_event(row.clone()), row.root_span_id.clone(), row.is_root)
}

fn of_segment(row: OwnedRow) -> Written {
    let (root_span_id, is_root) = (Text::copied(&row.root_span_id), row.is_root);
    of_event(segment_event(row), root_span_id, is_root)
}

fn of_event(event: Event, root_span_id: Text, is_root: bool) -> Written {
    let Event { action, own_id: span_id, created, written: doc, audit, .. } = event;
    Written { action, span_id, root_span_id, is_root: Some(is_root), created, doc, audit }
}

//! State that apply changes under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_storage_model::{Applied, ObjectKey, PaginationKey, Xact};
use assay_storage_segments::{Columns, OwnedRow, SoughtId};
use parking_lot::RwLock;

use crate::bases::{Base, Bases};
use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::manifest::ObjectRecord;
use crate::memory::{Generation, MemoryRow, is_row};
use crate::read::View;
use crate::requests::Requests;
use crate::text::Text;

pub(crate) type Objects = Arc<RwLock<BTreeMap<ObjectKey, ObjectRecord>>>;

#[derive(Debug)]
pub(crate) struct Core {
    pub applied: Applied,
    pub last: Xact,
    pub objects: Objects,
    /// Object records that changed since the last rotation.
    pub dirty: BTreeSet<ObjectKey>,
    pub requests: Requests,
    pub active: Arc<Generation>,
    pub sealing: Option<Arc<Generation>>,
    /// Last sealed generation. Its documents save reads while rows are still merged onto them.
    pub cached: Option<Arc<Generation>>,
    /// Segments, oldest first. A later one never holds an older version of a row than an earlier one.
    pub segments: Arc<[Arc<LiveSegment>]>,
    pub bases: Bases,
    /// Flag that files may hold rows of a dropped object or history below a floor.
    pub has_remains: bool,
}

/// Location of the live version of a row.
#[derive(Debug)]
pub(crate) enum RowLocation {
    Memory { generation: Arc<Generation>, index: u32 },
    Segment { segment: Arc<LiveSegment>, row: u32 },
}

/// Live version of a row.
#[derive(Debug)]
pub(crate) struct Current {
    pub place: RowLocation,
    pub key: PaginationKey,
    pub xact: Xact,
    /// Content of the row, known at once if the row is in memory.
    base: Option<Base>,
}

impl Core {
    pub fn view(&self) -> View {
        let generations = [Some(&self.active), self.sealing.as_ref()];
        View::new(
            self.last,
            generations.into_iter().flatten().cloned().collect(),
            Arc::clone(&self.segments),
            Arc::clone(&self.objects),
        )
    }

    pub fn change_object(&mut self, object: &ObjectKey, change: impl FnOnce(&mut ObjectRecord)) {
        change(self.objects.write().entry(*object).or_default());
        self.dirty.insert(*object);
    }

    /// Returns the live version of `id`. The newest write decides; a tombstone means that there is none.
    pub fn current(&self, object: &ObjectKey, id: &str) -> Result<Option<Current>, ShardError> {
        for generation in [Some(&self.active), self.sealing.as_ref()].into_iter().flatten() {
            let Some((index, row)) = generation.newest(object, id) else { continue };
            if !is_row(row.action) || row.end != Xact::MAX {
                return Ok(None);
            }
            let place = RowLocation::Memory { generation: Arc::clone(generation), index };
            return Ok(Some(Current { place, key: row.key, xact: row.xact, base: Some(memory_base(row)) }));
        }
        let sought = SoughtId::new(*object, id);
        for live in self.segments.iter().rev() {
            let hits = live.segment.find(&sought)?;
            let mut versions =
                hits.iter().filter(|hit| hit.action != assay_storage_model::command::Action::Comment).peekable();
            if versions.peek().is_none() {
                continue;
            }
            let Some(hit) = versions.find(|hit| is_row(hit.action) && live.end(hit.row, hit.end) == Xact::MAX) else {
                return Ok(None);
            };
            let place = RowLocation::Segment { segment: Arc::clone(live), row: hit.row };
            return Ok(Some(Current { place, key: hit.key, xact: hit.xact, base: None }));
        }
        Ok(None)
    }

    /// Returns the document of the live version, from memory if possible.
    pub fn base(&mut self, object: &ObjectKey, id: &str, current: &Current) -> Result<Base, ShardError> {
        if let Some(base) = &current.base {
            return Ok(base.clone());
        }
        if let Some(base) = self.bases.take(object, id, current.xact) {
            return Ok(base);
        }
        if let Some((_, row)) = self.cached.as_ref().and_then(|generation| generation.newest(object, id))
            && row.xact == current.xact
            && is_row(row.action)
        {
            return Ok(memory_base(row));
        }
        let RowLocation::Segment { segment, row } = &current.place else {
            return Err(ShardError::Damaged(format!("row {id} is in memory without its document")));
        };
        let mut rows = segment.segment.read(&[*row], Columns::Docs)?;
        let row = rows
            .pop()
            .ok_or_else(|| ShardError::Damaged(format!("row {id} is not at the position in its segment's index")))?;
        Ok(base_of(row))
    }

    /// Marks the live version as superseded by the write `end`.
    pub fn supersede(&self, object: &ObjectKey, place: &RowLocation, end: Xact) {
        match place {
            RowLocation::Memory { generation, index } => generation.set_end(object, *index, end),
            RowLocation::Segment { segment, row } => segment.mark(*row, end),
        }
    }
}

fn memory_base(row: MemoryRow) -> Base {
    Base {
        doc: row.doc,
        span_id: row.span_id,
        root_span_id: row.root_span_id,
        is_root: row.is_root,
        created: row.created,
    }
}

pub(crate) fn base_of(row: OwnedRow) -> Base {
    Base {
        doc: row.doc,
        span_id: Text::copied(&row.span_id),
        root_span_id: Text::copied(&row.root_span_id),
        is_root: row.is_root,
        created: row.created,
    }
}

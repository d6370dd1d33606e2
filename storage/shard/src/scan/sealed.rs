//! Units of segments: the rows of one object in a row group.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use assay_storage_model::command::Action;
use assay_storage_model::merge::Step;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::{Kinds, SoughtId, Want};

use super::cache::{ColumnCache, What};
use super::compact::compact;
use super::{Chunk, Rows, Sought, Unit, is_few, part_of};
use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::memory::is_row;

#[derive(Clone, Debug)]
pub(super) struct SealedRows {
    live: Arc<LiveSegment>,
    group: usize,
    /// Range of rows within the segment.
    rows: Range<u32>,
}

/// Rows of a group that a reader of the newest version sees, before marks are considered.
#[derive(Clone, Debug)]
pub(crate) struct Newest {
    /// Rows that were not superseded when the segment was written.
    rows: BooleanBuffer,
    /// Last write that made or superseded a row of the group. The rows are valid for readers from there on.
    from: Xact,
}

pub(super) fn units(
    live: &Arc<LiveSegment>,
    object: ObjectKey,
    at: Xact,
    sought: &Sought,
) -> Result<Vec<Unit>, ShardError> {
    let segment = &live.segment;
    let of_object = segment.rows_of(object);
    if of_object.is_empty() || live.meta().xact_min > at {
        return Ok(Vec::new());
    }
    let picked = picked(live, object, sought)?;
    let mut units = Vec::new();
    for group in 0..segment.groups() {
        let of_group = segment.group_rows(group);
        let rows = of_group.start.max(of_object.start)..of_group.end.min(of_object.end);
        let bounds = segment.group_bounds(group);
        if rows.is_empty() || bounds.as_ref().is_some_and(|bounds| !sought.may_hold(bounds)) {
            continue;
        }
        let picked = picked.as_ref().map(|picked| {
            let within = picked.iter().filter(|row| rows.contains(*row));
            within.map(|row| row - rows.start).collect::<Vec<_>>()
        });
        if picked.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let rows = Rows::Sealed(SealedRows { live: Arc::clone(live), group, rows });
        units.push(Unit { object, at, bounds, picked, rows });
    }
    Ok(units)
}

/// Returns the rows that match by the segment's index, ascending, or `None` if all may match.
fn picked(live: &LiveSegment, object: ObjectKey, sought: &Sought) -> Result<Option<Vec<u32>>, ShardError> {
    let mut picked: Option<Vec<u32>> = None;
    if let Some(ids) = &sought.ids {
        let mut rows = Vec::new();
        for id in ids {
            rows.extend(live.segment.find(&SoughtId::new(object, id))?.iter().map(|hit| hit.row));
        }
        rows.sort_unstable();
        rows.dedup();
        picked = Some(rows);
    }
    if let Some(roots) = &sought.root_span_ids {
        let mut rows = Vec::new();
        for root in roots {
            rows.extend(live.segment.trace(object, root)?);
        }
        rows.sort_unstable();
        rows.dedup();
        if let Some(picked) = &picked {
            rows.retain(|row| picked.binary_search(row).is_ok());
        }
        picked = Some(rows);
    }
    Ok(picked)
}

impl SealedRows {
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn row_bytes(&self) -> usize {
        self.live.segment.row_bytes(self.group)
    }

    fn chunk(&self) -> Chunk {
        Chunk { source: self.live.source(), object: None, number: self.group as u32 }
    }

    /// Returns the position of the unit's first row in its group.
    fn offset(&self) -> usize {
        (self.rows.start - self.live.segment.group_rows(self.group).start) as usize
    }

    pub fn visible(&self, at: Xact) -> Result<BooleanBuffer, ShardError> {
        let newest = self.live.newest(self.group, || self.newest())?;
        let (offset, length) = (self.offset(), self.rows.len());
        let mut bits = BooleanBufferBuilder::new(length);
        if newest.from <= at {
            bits.append_buffer(&newest.rows.slice(offset, length));
        } else {
            bits.append_buffer(&self.visible_then(at)?.slice(offset, length));
        }
        self.live.each_end(self.rows.clone(), |row, end| {
            if end <= at {
                bits.set_bit((row - self.rows.start) as usize, false);
            }
        });
        Ok(bits.finish())
    }

    /// Computes the newest versions in the whole group.
    fn newest(&self) -> Result<Newest, ShardError> {
        let [action, xact, end] = self.fate()?;
        let actions = action.as_primitive::<UInt8Type>();
        let (xacts, ends) = (xact.as_primitive::<UInt64Type>(), end.as_primitive::<UInt64Type>());
        let rows = BooleanBuffer::collect_bool(actions.len(), |row| is_row_of(actions.value(row)) && ends.is_null(row));
        let last = xacts.iter().chain(ends).flatten().max();
        Ok(Newest { rows, from: Xact(last.unwrap_or(0)) })
    }

    /// Returns the rows of the whole group that an older reader sees.
    fn visible_then(&self, at: Xact) -> Result<BooleanBuffer, ShardError> {
        let [action, xact, end] = self.fate()?;
        let actions = action.as_primitive::<UInt8Type>();
        let (xacts, ends) = (xact.as_primitive::<UInt64Type>(), end.as_primitive::<UInt64Type>());
        Ok(BooleanBuffer::collect_bool(actions.len(), |row| {
            is_row_of(actions.value(row)) && xacts.value(row) <= at.0 && (ends.is_null(row) || at.0 < ends.value(row))
        }))
    }

    /// Reads the columns of the group that decide visibility.
    fn fate(&self) -> Result<[ArrayRef; 3], ShardError> {
        let wants = [Want::Action, Want::Xact, Want::End];
        let columns = self.live.segment.read_columns(self.group, self.group_rows(), None, &wants)?;
        Ok(columns.try_into().expect("as many columns as were wanted"))
    }

    fn group_rows(&self) -> Range<u32> {
        self.live.segment.group_rows(self.group)
    }

    pub fn known_kinds(&self, path: &[Step]) -> Option<Kinds> {
        self.live.segment.known_kinds(path)
    }

    pub fn with_words(&self, words: &[&str]) -> Result<Option<BooleanBuffer>, ShardError> {
        let of_group = self.live.segment.rows_with_words(self.group, words)?;
        Ok(of_group.map(|rows| rows.slice(self.offset(), self.rows.len())))
    }

    pub fn with_a_word(&self, is: &dyn Fn(&[u8]) -> bool) -> Result<Option<BooleanBuffer>, ShardError> {
        let of_group = self.live.segment.rows_with_a_word(self.group, is)?;
        Ok(of_group.map(|rows| rows.slice(self.offset(), self.rows.len())))
    }

    pub fn recall(&self, cache: &ColumnCache, name: &str) -> Option<ArrayRef> {
        cache.get(self.chunk(), &What::Found(self.rows.start, name.into()))
    }

    pub fn remember(&self, cache: &ColumnCache, name: &str, found: &ArrayRef) {
        cache.put(self.chunk(), What::Found(self.rows.start, name.into()), found);
    }

    pub fn kinds(&self, cache: &ColumnCache, path: &[Step]) -> Result<Kinds, ShardError> {
        if let Some(known) = self.live.segment.known_kinds(path) {
            return Ok(known);
        }
        if let Some(known) = cache.kinds(self.chunk(), path) {
            return Ok(known);
        }
        let kinds = self.live.segment.path_kinds(self.group, path)?;
        cache.put_kinds(self.chunk(), path, kinds);
        Ok(kinds)
    }

    pub fn read(
        &self,
        cache: &ColumnCache,
        rows: Range<usize>,
        keep: Option<&BooleanBuffer>,
        wants: &[Want],
    ) -> Result<Vec<ArrayRef>, ShardError> {
        let few = is_few(&rows, keep, self.group_rows().len());
        let in_group = self.offset() + rows.start..self.offset() + rows.end;
        let mut columns: Vec<Option<ArrayRef>> = wants
            .iter()
            .map(|want| {
                let kept = if want.is_wide() { None } else { cache.get(self.chunk(), &What::Column(want.clone())) };
                kept.map(|column| part_of(&column, in_group.clone(), keep))
            })
            .collect();
        let worth = |want: &Want| !few || want.is_small() && cache.is_asked_often(self.chunk(), want);
        let missing = (0..wants.len()).filter(|place| columns[*place].is_none());
        let (places, others): (Vec<usize>, Vec<usize>) =
            missing.partition(|place| !wants[*place].is_wide() && worth(&wants[*place]));
        // Columns of the whole group are cached.
        for (place, column) in places.iter().zip(self.fetch(self.group_rows(), None, wants, &places)?) {
            let column = compact(&wants[*place], column);
            cache.put(self.chunk(), What::Column(wants[*place].clone()), &column);
            columns[*place] = Some(part_of(&column, in_group.clone(), keep));
        }
        let within = self.rows.start + rows.start as u32..self.rows.start + rows.end as u32;
        for (place, column) in others.iter().zip(self.fetch(within, keep, wants, &others)?) {
            columns[*place] = Some(column);
        }
        Ok(columns.into_iter().map(|column| column.expect("each was kept or read")).collect())
    }

    fn fetch(
        &self,
        rows: Range<u32>,
        keep: Option<&BooleanBuffer>,
        wants: &[Want],
        places: &[usize],
    ) -> Result<Vec<ArrayRef>, ShardError> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<Want> = places.iter().map(|place| wants[*place].clone()).collect();
        Ok(self.live.segment.read_columns(self.group, rows, keep, &wanted)?)
    }
}

fn is_row_of(action: u8) -> bool {
    Action::from_byte(action).is_some_and(is_row)
}

//! Units of memory: up to some thousand rows of one object in write order.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, StringArray, TimestampMicrosecondArray, UInt8Array, UInt64Array};
use arrow_buffer::BooleanBuffer;
use assay_storage_model::merge::Step;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::{Form, GroupBounds, Kinds, Shredder, Want};

use super::cache::{ColumnCache, What};
use super::compact::compact;
use super::{Chunk, Rows, Sought, Unit, is_few, part_of};
use crate::memory::{Generation, MemoryRow};

/// Number of rows in a unit. Only the last unit of an object has fewer.
const UNIT_ROWS: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct MemoryRows {
    generation: Arc<Generation>,
    object: ObjectKey,
    /// Range of the object's rows in write order.
    rows: Range<usize>,
    /// Mean size of the documents.
    row_bytes: usize,
}

pub(super) fn units(generation: &Arc<Generation>, object: ObjectKey, at: Xact, sought: &Sought) -> Vec<Unit> {
    let all = generation.rows_of(&object);
    let picked = picked(generation, &object, sought);
    let mut units = Vec::new();
    for start in (0..all).step_by(UNIT_ROWS) {
        let rows = start..all.min(start + UNIT_ROWS);
        let picked = picked.as_ref().map(|picked| {
            let within = picked.iter().filter(|row| rows.contains(&(**row as usize)));
            within.map(|row| row - rows.start as u32).collect::<Vec<_>>()
        });
        if picked.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let Some((bounds, bytes)) = extent(generation, &object, rows.clone()) else { continue };
        if !sought.may_hold(&bounds) {
            continue;
        }
        let row_bytes = bytes / rows.len().max(1);
        let rows = Rows::Memory(MemoryRows { generation: Arc::clone(generation), object, rows, row_bytes });
        units.push(Unit { object, at, bounds: Some(bounds), picked, rows });
    }
    units
}

fn picked(generation: &Generation, object: &ObjectKey, sought: &Sought) -> Option<Vec<u32>> {
    let mut picked: Option<Vec<u32>> = None;
    if let Some(ids) = &sought.ids {
        let mut rows: Vec<u32> = ids.iter().flat_map(|id| generation.history(object, id)).map(|(row, _)| row).collect();
        rows.sort_unstable();
        rows.dedup();
        picked = Some(rows);
    }
    if let Some(roots) = &sought.root_span_ids {
        let mut rows: Vec<u32> = roots.iter().flat_map(|root| generation.numbers_of_trace(object, root)).collect();
        rows.sort_unstable();
        rows.dedup();
        if let Some(picked) = &picked {
            rows.retain(|row| picked.binary_search(row).is_ok());
        }
        picked = Some(rows);
    }
    picked
}

/// Returns the bounds of the rows and the size of their documents, or `None` without rows.
fn extent(generation: &Generation, object: &ObjectKey, rows: Range<usize>) -> Option<(GroupBounds, usize)> {
    let (mut bounds, mut bytes): (Option<GroupBounds>, usize) = (None, 0);
    generation.each_row(object, rows, |row| {
        let (key, xact, created) = (row.key.0, row.xact.0, row.created);
        let of = bounds.get_or_insert(GroupBounds { key: (key, key), xact: (xact, xact), created: (created, created) });
        of.key = (of.key.0.min(key), of.key.1.max(key));
        of.xact = (of.xact.0.min(xact), of.xact.1.max(xact));
        of.created = (of.created.0.min(created), of.created.1.max(created));
        bytes += row.doc.len();
    });
    bounds.map(|bounds| (bounds, bytes))
}

impl MemoryRows {
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Returns the cache key of its columns; a unit that still grows is not cached.
    fn chunk(&self) -> Option<Chunk> {
        let number = (self.rows.start / UNIT_ROWS) as u32;
        let whole = self.rows.len() == UNIT_ROWS;
        whole.then(|| Chunk { source: self.generation.source(), object: Some(self.object), number })
    }

    pub fn visible(&self, at: Xact) -> BooleanBuffer {
        let mut bits = Vec::with_capacity(self.rows.len());
        self.generation.each_row(&self.object, self.rows.clone(), |row| bits.push(row.visible(at)));
        BooleanBuffer::from(bits)
    }

    pub fn kinds(&self, cache: &ColumnCache, path: &[Step]) -> Kinds {
        let chunk = self.chunk();
        if let Some(known) = chunk.and_then(|chunk| cache.kinds(chunk, path)) {
            return known;
        }
        let mut shredder = Shredder::new([(path, Form::Json)]);
        for row in self.copies(self.rows.clone(), None) {
            shredder.push(&row.doc);
        }
        let kinds = shredder.finish()[0].1;
        if let Some(chunk) = chunk {
            cache.put_kinds(chunk, path, kinds);
        }
        kinds
    }

    pub fn read(
        &self,
        cache: &ColumnCache,
        rows: Range<usize>,
        keep: Option<&BooleanBuffer>,
        wants: &[Want],
    ) -> Vec<ArrayRef> {
        let few = is_few(&rows, keep, self.rows.len());
        let chunk = self.chunk();
        let mut columns: Vec<Option<ArrayRef>> = wants
            .iter()
            .map(|want| {
                let kept =
                    chunk.filter(|_| !want.is_wide()).and_then(|chunk| cache.get(chunk, &What::Column(want.clone())));
                kept.map(|column| part_of(&column, rows.clone(), keep))
            })
            .collect();
        let lacks = |columns: &[Option<ArrayRef>], whole: bool| -> Vec<usize> {
            let keeps = |place: usize| chunk.is_some() && !few && !wants[place].is_wide();
            (0..wants.len()).filter(|place| columns[*place].is_none() && keeps(*place) == whole).collect()
        };
        let places = lacks(&columns, true);
        if let Some(chunk) = chunk.filter(|_| !places.is_empty()) {
            let copies = self.copies(self.rows.clone(), None);
            for (place, column) in places.iter().zip(columns_of(&copies, wants, &places)) {
                let column = compact(&wants[*place], column);
                cache.put(chunk, What::Column(wants[*place].clone()), &column);
                columns[*place] = Some(part_of(&column, rows.clone(), keep));
            }
        }
        let places = lacks(&columns, false);
        if !places.is_empty() {
            let copies = self.copies(self.rows.start + rows.start..self.rows.start + rows.end, keep);
            for (place, column) in places.iter().zip(columns_of(&copies, wants, &places)) {
                columns[*place] = Some(column);
            }
        }
        columns.into_iter().map(|column| column.expect("each was kept or made")).collect()
    }

    /// Copies the rows, which share their texts with memory, so that the lock is held only briefly.
    fn copies(&self, rows: Range<usize>, keep: Option<&BooleanBuffer>) -> Vec<MemoryRow> {
        let mut copies = Vec::with_capacity(keep.map_or(rows.len(), BooleanBuffer::count_set_bits));
        let mut nth = 0;
        self.generation.each_row(&self.object, rows, |row| {
            if keep.is_none_or(|keep| keep.value(nth)) {
                copies.push(row.clone());
            }
            nth += 1;
        });
        copies
    }
}

/// Returns the wanted columns at these positions.
fn columns_of(rows: &[MemoryRow], wants: &[Want], places: &[usize]) -> Vec<ArrayRef> {
    places.iter().map(|place| column_of(rows, &wants[*place])).collect()
}

fn column_of(rows: &[MemoryRow], want: &Want) -> ArrayRef {
    match want {
        Want::Key => Arc::new(rows.iter().map(|row| Some(row.key.0)).collect::<UInt64Array>()),
        Want::Xact => Arc::new(rows.iter().map(|row| Some(row.xact.0)).collect::<UInt64Array>()),
        Want::End => {
            let end = |row: &MemoryRow| (row.end != Xact::MAX).then_some(row.end.0);
            Arc::new(rows.iter().map(end).collect::<UInt64Array>())
        }
        Want::Action => Arc::new(rows.iter().map(|row| Some(row.action as u8)).collect::<UInt8Array>()),
        Want::Id => Arc::new(rows.iter().map(|row| Some(row.id.as_str())).collect::<StringArray>()),
        Want::SpanId => Arc::new(rows.iter().map(|row| Some(row.span_id.as_str())).collect::<StringArray>()),
        Want::RootSpanId => Arc::new(rows.iter().map(|row| Some(row.root_span_id.as_str())).collect::<StringArray>()),
        Want::IsRoot => Arc::new(rows.iter().map(|row| Some(row.is_root)).collect::<BooleanArray>()),
        Want::Created => Arc::new(rows.iter().map(|row| Some(row.created)).collect::<TimestampMicrosecondArray>()),
        Want::Doc => {
            let text = |row: &MemoryRow| Some(String::from_utf8_lossy(&row.doc).into_owned());
            Arc::new(rows.iter().map(text).collect::<StringArray>())
        }
        Want::Field(name) => {
            let path = [Step::Key(name.clone())];
            field_texts(rows, &path)
        }
        Want::Path(path, form) => {
            let mut shredder = Shredder::new([(path.as_slice(), *form)]);
            rows.iter().for_each(|row| shredder.push(&row.doc));
            shredder.finish().swap_remove(0).0
        }
    }
}

/// Returns the texts of a field as stored, so that a number keeps its spelling.
fn field_texts(rows: &[MemoryRow], path: &[Step]) -> ArrayRef {
    let picker = assay_storage_model::merge::Picker::new([path]);
    let text = |row: &MemoryRow| {
        let mut found = [None];
        picker.pick(&row.doc, &mut found).ok()?;
        found[0].filter(|text| *text != b"null").map(|text| String::from_utf8_lossy(text).into_owned())
    };
    Arc::new(rows.iter().map(text).collect::<StringArray>())
}

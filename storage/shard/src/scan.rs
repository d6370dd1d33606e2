//! Scan of a shard for queries: units of rows of one object, read column by column.
//!
//! A unit is the object's part of a segment's row group, or some rows of memory. The units of a view hold each visible
//! row exactly once, in no order between them. Rows of a segment unit are sorted by key, newest first. Rows of a memory
//! unit are in write order. A unit first reports its visible rows; columns are then read on demand. Short columns are
//! cached for the next query (`cache`). Long columns are read only for the rows that pass the filters.

mod cache;
mod compact;
mod memory;
mod sealed;

use std::ops::Range;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use assay_storage_model::merge::Step;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_segments::{GroupBounds, Kinds, Want};

use crate::error::ShardError;
use crate::read::View;

pub use self::cache::ColumnCache;
use self::compact::widened;
use self::memory::MemoryRows;
pub(crate) use self::sealed::Newest;
use self::sealed::SealedRows;

/// Divisor of the row count below which an uncached column is read for the wanted rows alone.
const FEW_ONE_IN: usize = 16;

/// Bounds of the rows that a scan needs. All other rows lack the requested values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// Range of keys; both ends are included, as in the other ranges.
    pub key: Option<(u64, u64)>,
    pub xact: Option<(u64, u64)>,
    pub created: Option<(i64, i64)>,
    pub ids: Option<Vec<String>>,
    pub root_span_ids: Option<Vec<String>>,
}

impl Sought {
    /// Returns whether rows between these bounds may match.
    fn may_hold(&self, bounds: &GroupBounds) -> bool {
        let meets = |sought: Option<(u64, u64)>, held: (u64, u64)| {
            sought.is_none_or(|(first, last)| first <= held.1 && held.0 <= last)
        };
        meets(self.key, bounds.key)
            && meets(self.xact, bounds.xact)
            && self.created.is_none_or(|(first, last)| first <= bounds.created.1 && bounds.created.0 <= last)
    }
}

/// Group of rows of one object that a scan reads together.
#[derive(Clone, Debug)]
pub struct Unit {
    object: ObjectKey,
    at: Xact,
    bounds: Option<GroupBounds>,
    /// Selected rows within the unit, ascending, if they are known individually.
    picked: Option<Vec<u32>>,
    rows: Rows,
}

#[derive(Clone, Debug)]
enum Rows {
    Memory(MemoryRows),
    Sealed(SealedRows),
}

impl View {
    /// Returns the units that may hold matching rows of an object as of `at`.
    pub fn units(&self, object: &ObjectKey, at: Xact, sought: &Sought) -> Result<Vec<Unit>, ShardError> {
        self.admit(object, at)?;
        let mut units = Vec::new();
        for generation in &self.generations {
            units.extend(memory::units(generation, *object, at, sought));
        }
        for live in self.segments.iter() {
            units.extend(sealed::units(live, *object, at, sought)?);
        }
        Ok(units)
    }
}

impl Unit {
    pub fn object(&self) -> ObjectKey {
        self.object
    }

    /// Returns the number of rows, visible or not.
    pub fn rows(&self) -> usize {
        match &self.rows {
            Rows::Memory(memory) => memory.rows(),
            Rows::Sealed(sealed) => sealed.rows(),
        }
    }

    /// Returns the mean size of a row in bytes before compression. In a segment, it is the mean of the whole group.
    pub fn row_bytes(&self) -> usize {
        match &self.rows {
            Rows::Memory(memory) => memory.row_bytes(),
            Rows::Sealed(sealed) => sealed.row_bytes(),
        }
    }

    /// Returns the bounds of its rows, if known.
    pub fn bounds(&self) -> Option<&GroupBounds> {
        self.bounds.as_ref()
    }

    /// Returns whether its rows are sorted by key, newest first.
    pub fn is_sorted(&self) -> bool {
        matches!(self.rows, Rows::Sealed(_))
    }

    /// Returns the rows that are visible at the scan's version and may match.
    pub fn visible(&self) -> Result<BooleanBuffer, ShardError> {
        let visible = match &self.rows {
            Rows::Memory(memory) => memory.visible(self.at),
            Rows::Sealed(sealed) => sealed.visible(self.at)?,
        };
        Ok(match &self.picked {
            None => visible,
            Some(picked) => &visible & &bits_of(picked, self.rows()),
        })
    }

    /// Returns the kinds of values at a path if they are known without reading rows.
    pub fn known_kinds(&self, path: &[Step]) -> Option<Kinds> {
        match &self.rows {
            Rows::Memory(_) => None,
            Rows::Sealed(sealed) => sealed.known_kinds(path),
        }
    }

    /// Returns the rows that may have all of these words in the indexed fields, or `None` without a word index.
    pub fn with_words(&self, words: &[&str]) -> Result<Option<BooleanBuffer>, ShardError> {
        match &self.rows {
            Rows::Memory(_) => Ok(None),
            Rows::Sealed(sealed) => sealed.with_words(words),
        }
    }

    /// Returns the rows that may have a word for which `is` holds, or `None` without a word index.
    pub fn with_a_word(&self, is: &dyn Fn(&[u8]) -> bool) -> Result<Option<BooleanBuffer>, ShardError> {
        match &self.rows {
            Rows::Memory(_) => Ok(None),
            Rows::Sealed(sealed) => sealed.with_a_word(is),
        }
    }

    /// Returns the value that [`remember`](Self::remember) stored under this name, unless it was evicted.
    pub fn recall(&self, cache: &ColumnCache, name: &str) -> Option<ArrayRef> {
        match &self.rows {
            Rows::Memory(_) => None,
            Rows::Sealed(sealed) => sealed.recall(cache, name),
        }
    }

    /// Caches a result about the rows of a segment for the next query.
    ///
    /// The result must depend only on these rows, visible or not.
    pub fn remember(&self, cache: &ColumnCache, name: &str, found: &ArrayRef) {
        if let Rows::Sealed(sealed) = &self.rows {
            sealed.remember(cache, name, found);
        }
    }

    /// Returns the kinds of values that rows have at a path, visible or not.
    pub fn kinds(&self, cache: &ColumnCache, path: &[Step]) -> Result<Kinds, ShardError> {
        match &self.rows {
            Rows::Memory(memory) => Ok(memory.kinds(cache, path)),
            Rows::Sealed(sealed) => sealed.kinds(cache, path),
        }
    }

    /// Reads columns of a range of rows, or of those selected by `keep`. A column of texts may be a dictionary.
    pub fn read(
        &self,
        cache: &ColumnCache,
        rows: Range<usize>,
        keep: Option<&BooleanBuffer>,
        wants: &[Want],
    ) -> Result<Vec<ArrayRef>, ShardError> {
        match &self.rows {
            Rows::Memory(memory) => Ok(memory.read(cache, rows, keep, wants)),
            Rows::Sealed(sealed) => sealed.read(cache, rows, keep, wants),
        }
    }
}

/// Returns a part of a column of a whole chunk.
fn part_of(column: &ArrayRef, rows: Range<usize>, keep: Option<&BooleanBuffer>) -> ArrayRef {
    let part = column.slice(rows.start, rows.len());
    let part = match keep {
        Some(keep) => filter(&part, &BooleanArray::new(keep.clone(), None)).expect("as many bits as rows"),
        None => part,
    };
    widened(part)
}

/// Returns whether the wanted rows are so few that the others should not be read.
fn is_few(rows: &Range<usize>, keep: Option<&BooleanBuffer>, of: usize) -> bool {
    let wanted = keep.map_or(rows.len(), BooleanBuffer::count_set_bits);
    wanted * FEW_ONE_IN < of
}

fn bits_of(rows: &[u32], length: usize) -> BooleanBuffer {
    let mut bits = arrow_buffer::BooleanBufferBuilder::new(length);
    bits.append_n(length, false);
    rows.iter().for_each(|row| bits.set_bit(*row as usize, true));
    bits.finish()
}

/// Returns a new source number of columns. No two generations or segments of a process share one.
pub(crate) fn next_source() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};

    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Cache key of a chunk of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Chunk {
    source: u64,
    /// Object of the rows, or `None` in a segment, whose groups hold several objects.
    object: Option<ObjectKey>,
    number: u32,
}

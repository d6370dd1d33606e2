//! Cache of columns that were read or extracted from documents, for later queries.
//!
//! The cache holds short columns of whole chunks within its memory budget. The least recently used entries are evicted
//! first, including leftovers of removed segments and generations. Remembered conditions are small and costly to
//! compute, so within their share they are evicted after columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use assay_storage_model::merge::Step;
use assay_storage_segments::{Kinds, Want};
use parking_lot::Mutex;

use super::Chunk;

/// Share of the budget that one column may take.
const SHARE_OF_ONE: usize = 64;
/// Share of the budget that an eviction frees at once, because finding the oldest entries takes a while.
const SHARE_FREED: usize = 8;
/// Share of the budget for kinds, and the same share for counters of reads.
const SHARE_OF_KINDS: usize = 16;
/// Share of the budget for remembered conditions.
const SHARE_OF_FOUND: usize = 4;
/// Number of reads of a column for few rows, after which the next read caches the whole column.
const READ_FOR_FEW_MAX: u8 = 3;
/// Memory of an entry in addition to its array.
const ENTRY_BYTES: usize = 256;

/// Shared cache of columns. All clones share one cache.
#[derive(Clone, Debug)]
pub struct ColumnCache(Arc<Mutex<CachedColumns>>);

#[derive(Debug, Default)]
struct CachedColumns {
    bytes_max: usize,
    bytes: usize,
    /// Number of uses so far.
    now: u64,
    columns: HashMap<(Chunk, What), Column>,
    kinds: HashMap<(Chunk, Vec<Step>), Kinds>,
    /// Number of reads of each uncached column for few rows.
    read_for_few: HashMap<(Chunk, Want), u8>,
}

/// Cached content of a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Column(Want),
    /// Remembered condition on the unit that begins with this row, under the caller's name.
    Found(u32, Box<str>),
}

impl What {
    fn was_read(&self) -> bool {
        matches!(self, What::Column(_))
    }
}

#[derive(Debug)]
struct Column {
    array: ArrayRef,
    bytes: usize,
    used: u64,
}

impl ColumnCache {
    pub fn new(bytes_max: usize) -> ColumnCache {
        ColumnCache(Arc::new(Mutex::new(CachedColumns { bytes_max, ..CachedColumns::default() })))
    }

    /// Returns the cached bytes.
    pub fn bytes(&self) -> usize {
        self.0.lock().bytes
    }

    pub(super) fn get(&self, chunk: Chunk, what: &What) -> Option<ArrayRef> {
        let mut kept = self.0.lock();
        kept.now += 1;
        let now = kept.now;
        let column = kept.columns.get_mut(&(chunk, what.clone()))?;
        column.used = now;
        Some(Arc::clone(&column.array))
    }

    pub(super) fn put(&self, chunk: Chunk, what: What, array: &ArrayRef) {
        let bytes = array.get_array_memory_size() + ENTRY_BYTES;
        let mut kept = self.0.lock();
        if bytes > kept.bytes_max / SHARE_OF_ONE {
            return;
        }
        if kept.bytes + bytes > kept.bytes_max {
            kept.make_room();
        }
        // Each use has its own number, because eviction distinguishes entries by it.
        kept.now += 1;
        let used = kept.now;
        let before = kept.columns.insert((chunk, what), Column { array: Arc::clone(array), bytes, used });
        kept.bytes = kept.bytes + bytes - before.map_or(0, |before| before.bytes);
    }

    /// Returns whether this column was read for few rows so often that it should be cached. Counts this read.
    pub(super) fn is_asked_often(&self, chunk: Chunk, want: &Want) -> bool {
        let mut kept = self.0.lock();
        if kept.read_for_few.len() * ENTRY_BYTES >= kept.bytes_max / SHARE_OF_KINDS {
            kept.bytes -= kept.read_for_few.len() * ENTRY_BYTES;
            kept.read_for_few.clear();
        }
        if kept.bytes + ENTRY_BYTES > kept.bytes_max {
            kept.make_room();
        }
        let known = kept.read_for_few.len();
        let times = kept.read_for_few.entry((chunk, want.clone())).or_default();
        *times = times.saturating_add(1);
        let is_often = *times > READ_FOR_FEW_MAX;
        kept.bytes += (kept.read_for_few.len() - known) * ENTRY_BYTES;
        is_often
    }

    pub(super) fn kinds(&self, chunk: Chunk, path: &[Step]) -> Option<Kinds> {
        self.0.lock().kinds.get(&(chunk, path.to_vec())).copied()
    }

    pub(super) fn put_kinds(&self, chunk: Chunk, path: &[Step], kinds: Kinds) {
        let mut kept = self.0.lock();
        if kept.kinds.len() * ENTRY_BYTES >= kept.bytes_max / SHARE_OF_KINDS {
            kept.bytes -= kept.kinds.len() * ENTRY_BYTES;
            kept.kinds.clear();
        }
        if kept.bytes + ENTRY_BYTES > kept.bytes_max {
            kept.make_room();
        }
        if kept.kinds.insert((chunk, path.to_vec()), kinds).is_none() {
            kept.bytes += ENTRY_BYTES;
        }
    }
}

impl CachedColumns {
    fn make_room(&mut self) {
        let goal = self.bytes_max - self.bytes_max / SHARE_FREED;
        let found: usize = self.of(false).map(|column| column.bytes).sum();
        let too_much = found.saturating_sub(self.bytes_max / SHARE_OF_FOUND);
        self.forget(false, too_much);
        self.forget(true, self.bytes.saturating_sub(goal));
        self.forget(false, self.bytes.saturating_sub(goal));
    }

    /// Returns the columns that were read, or else the remembered conditions.
    fn of(&self, read: bool) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |((_, what), _)| what.was_read() == read).map(|(_, column)| column)
    }

    /// Evicts the least recently used entries of a kind until this many bytes are free.
    fn forget(&mut self, read: bool, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut by_use: Vec<(u64, usize)> = self.of(read).map(|column| (column.used, column.bytes)).collect();
        by_use.sort_unstable();
        let mut freed = 0;
        let oldest = by_use.into_iter().find_map(|(used, size)| {
            if freed >= bytes {
                return Some(used);
            }
            freed += size;
            None
        });
        let stay_from = oldest.unwrap_or(u64::MAX);
        let held = &mut self.bytes;
        self.columns.retain(|(_, what), column| {
            let stays = what.was_read() != read || column.used >= stay_from;
            *held -= if stays { 0 } else { column.bytes };
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    fn chunk(source: u64) -> Chunk {
        Chunk { source, object: None, number: 0 }
    }

    #[test]
    fn what_was_used_longest_ago_goes_and_all_stays_within_its_bytes() {
        let cache = ColumnCache::new(64 * 1024);
        let array: ArrayRef = Arc::new(Int64Array::from(vec![7; 64]));
        for source in 0..500 {
            cache.put(chunk(source), What::Column(Want::Key), &array);
            assert!(cache.get(chunk(0), &What::Column(Want::Key)).is_some(), "used all the time, source {source}");
            assert!(cache.bytes() <= 64 * 1024);
        }
        assert!(cache.get(chunk(1), &What::Column(Want::Key)).is_none());
        assert!(cache.get(chunk(499), &What::Column(Want::Key)).is_some());
        assert!(cache.get(chunk(499), &What::Column(Want::Xact)).is_none());
    }

    #[test]
    fn what_was_found_out_goes_after_columns_unless_it_is_too_much() {
        let cache = ColumnCache::new(64 * 1024);
        let array: ArrayRef = Arc::new(Int64Array::from(vec![7; 64]));
        let found = |number: u64| (chunk(number), What::Found(0, "a condition".into()));
        let path = [Step::Key("a".into())];
        cache.put_kinds(chunk(0), &path, Kinds::INT);
        cache.put(found(0).0, found(0).1, &array);
        for source in 0..500 {
            cache.put(chunk(source), What::Column(Want::Key), &array);
        }
        assert!(cache.get(chunk(0), &found(0).1).is_some() && cache.kinds(chunk(0), &path).is_some());
        for number in 0..500 {
            cache.put(found(number).0, found(number).1, &array);
            assert!(cache.bytes() <= 64 * 1024);
        }
        cache.put(chunk(501), What::Column(Want::Key), &array);
        assert!(cache.get(chunk(0), &found(0).1).is_none() && cache.get(chunk(499), &found(499).1).is_some());
        let left = (0..500).filter(|number| cache.get(found(*number).0, &found(*number).1).is_some()).count();
        let room = 64 * 1024 / SHARE_OF_FOUND + 64 * 1024 / SHARE_FREED;
        assert!(left * array.get_array_memory_size() <= room, "{left} of what was found out");
    }

    #[test]
    fn what_is_asked_for_a_few_rows_again_and_again_is_known() {
        let cache = ColumnCache::new(64 * 1024);
        let times = (0..10).position(|_| cache.is_asked_often(chunk(0), &Want::Created));
        assert_eq!(times, Some(usize::from(READ_FOR_FEW_MAX)));
        assert!(cache.is_asked_often(chunk(0), &Want::Created) && !cache.is_asked_often(chunk(0), &Want::Key));
        for source in 1..1000 {
            assert!(!cache.is_asked_often(chunk(source), &Want::Created));
            assert!(cache.bytes() <= 64 * 1024 / SHARE_OF_KINDS);
        }
        assert!(!cache.is_asked_often(chunk(0), &Want::Created), "forgotten among so many");
    }

    #[test]
    fn a_column_that_is_too_large_is_not_kept() {
        let cache = ColumnCache::new(64 * 1024);
        let large: ArrayRef = Arc::new(Int64Array::from(vec![7; 1024]));
        cache.put(chunk(1), What::Column(Want::Key), &large);
        assert_eq!(cache.bytes(), 0);
        let path = [Step::Key("a".into())];
        cache.put_kinds(chunk(1), &path, Kinds::INT);
        assert_eq!((cache.kinds(chunk(1), &path), cache.kinds(chunk(2), &path)), (Some(Kinds::INT), None));
        for source in 0..1000 {
            cache.put_kinds(chunk(source), &path, Kinds::INT);
        }
        assert!(cache.bytes() <= 64 * 1024);
    }
}

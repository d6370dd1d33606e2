//! Positions of deleted records in their lists.
//!
//! They let a client get the next page even if its cursor names a record that was deleted meanwhile. Their number is
//! bounded: the oldest deletions are forgotten first.

use std::collections::{HashMap, VecDeque};

use assay_storage_model::catalog::RecordKind;
use uuid::Uuid;

/// Upper bound of the remembered deletions.
pub const DELETED_KEPT_MAX: usize = 65_536;
/// Number of deletions in one stored value, which keeps it below the store's limit of 4 KiB.
pub const DELETED_PER_PAGE: u64 = 64;

const BYTES_EACH: usize = 8 + 2 + 16 + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedRecord {
    pub kind: RecordKind,
    pub id: Uuid,
    pub created: i64,
}

/// Last deletions in order, numbered from 0 over the life of the catalog.
#[derive(Clone, Debug, Default)]
pub struct Deleted {
    first: u64,
    kept: VecDeque<DeletedRecord>,
    by_id: HashMap<(RecordKind, Uuid), u64>,
}

impl Deleted {
    pub fn created(&self, kind: RecordKind, id: Uuid) -> Option<i64> {
        let number = self.by_id.get(&(kind, id))?;
        self.kept.get(usize::try_from(number - self.first).ok()?).map(|record| record.created)
    }

    /// Adds a deletion and returns the changed pages: its own, and one whose deletions are all forgotten.
    pub fn push(&mut self, record: DeletedRecord) -> (u64, Option<u64>) {
        let number = self.next();
        self.by_id.insert((record.kind, record.id), number);
        self.kept.push_back(record);
        let forgotten = if self.kept.len() > DELETED_KEPT_MAX { self.forget_oldest() } else { None };
        (number / DELETED_PER_PAGE, forgotten)
    }

    fn forget_oldest(&mut self) -> Option<u64> {
        let oldest = self.kept.pop_front()?;
        let key = (oldest.kind, oldest.id);
        if self.by_id.get(&key) == Some(&self.first) {
            self.by_id.remove(&key);
        }
        self.first += 1;
        self.first.is_multiple_of(DELETED_PER_PAGE).then(|| self.first / DELETED_PER_PAGE - 1)
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    pub fn pages(&self) -> impl Iterator<Item = u64> {
        let end = if self.kept.is_empty() { 0 } else { (self.next() - 1) / DELETED_PER_PAGE + 1 };
        (self.first / DELETED_PER_PAGE)..end
    }

    /// Returns the bytes of a page, or `None` if all of its deletions are forgotten.
    pub fn page(&self, page: u64) -> Option<Vec<u8>> {
        let from = (page * DELETED_PER_PAGE).max(self.first);
        let to = ((page + 1) * DELETED_PER_PAGE).min(self.next());
        let mut bytes = Vec::new();
        for number in from..to {
            let record = self.kept.get(usize::try_from(number - self.first).ok()?)?;
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&record.kind.0.to_le_bytes());
            bytes.extend_from_slice(record.id.as_bytes());
            bytes.extend_from_slice(&record.created.to_le_bytes());
        }
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Loads pages in order. A page may start with forgotten deletions.
    pub fn load<'a>(first: u64, next: u64, pages: impl Iterator<Item = &'a [u8]>) -> Result<Deleted, String> {
        let mut deleted = Deleted { first, ..Deleted::default() };
        for page in pages {
            let (records, rest) = page.as_chunks::<BYTES_EACH>();
            if !rest.is_empty() {
                return Err("a page of deleted records is truncated".into());
            }
            records.iter().try_for_each(|bytes| deleted.load_one(bytes))?;
        }
        if deleted.next() != next {
            return Err(format!("deleted records end at {}, the header says {next}", deleted.next()));
        }
        Ok(deleted)
    }

    fn load_one(&mut self, bytes: &[u8; BYTES_EACH]) -> Result<(), String> {
        let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        let record = DeletedRecord {
            kind: RecordKind(u16::from_le_bytes(bytes[8..10].try_into().expect("2 bytes"))),
            id: Uuid::from_bytes(bytes[10..26].try_into().expect("16 bytes")),
            created: i64::from_le_bytes(bytes[26..34].try_into().expect("8 bytes")),
        };
        if number < self.first {
            return Ok(());
        }
        if number != self.next() {
            return Err(format!("deleted record {number} stands where {} should", self.next()));
        }
        self.by_id.insert((record.kind, record.id), number);
        self.kept.push_back(record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: usize) -> DeletedRecord {
        DeletedRecord { kind: RecordKind(1), id: Uuid::from_u128(number as u128), created: number as i64 }
    }

    #[test]
    fn the_oldest_are_forgotten_page_by_page_and_the_rest_reads_back() {
        let mut deleted = Deleted::default();
        let mut forgotten = Vec::new();
        for number in 0..DELETED_KEPT_MAX + 130 {
            let (page, gone) = deleted.push(numbered(number));
            assert_eq!(page, number as u64 / DELETED_PER_PAGE);
            forgotten.extend(gone);
        }
        assert_eq!(forgotten, [0, 1]);
        assert_eq!(deleted.created(RecordKind(1), Uuid::from_u128(129)), None);
        assert_eq!(deleted.created(RecordKind(1), Uuid::from_u128(130)), Some(130));
        let pages: Vec<_> = deleted.pages().filter_map(|page| deleted.page(page)).collect();
        let loaded = Deleted::load(deleted.first(), deleted.next(), pages.iter().map(Vec::as_slice)).expect("loads");
        assert_eq!(loaded.kept, deleted.kept);
        assert!(Deleted::load(deleted.first(), deleted.next(), pages[1..].iter().map(Vec::as_slice)).is_err());
        assert!(Deleted::load(0, 1, [&pages[0][..7]].into_iter()).is_err());
    }

    #[test]
    fn an_id_deleted_twice_stands_where_it_stood_last() {
        let mut deleted = Deleted::default();
        for created in [5, 9] {
            deleted.push(DeletedRecord { created, ..numbered(1) });
        }
        assert_eq!(deleted.created(RecordKind(1), Uuid::from_u128(1)), Some(9));
    }
}

//! The `.ids` file: indexes that find rows without reading them, and the checksums of the rows' file.
//!
//! ```text
//! pages of ids, pages of traces, key of each row          read a page at a time; wide or packed by the segment's format
//! objects, filter, three directories, sums of the rows    in memory while the segment is open
//! sums of all above, trailer                              checked first
//! ```
//! Sections start on multiples of 4 KiB. The trailer is the last 256 bytes, little-endian: `magic, format u16, 0 u16,
//! rows u32, seq, xact base, key base, length of the rows' file u64, its block u32, CRC of its sums u32, CRC of our own
//! sums u32, 0 u32, (offset u64, length u64) of each section, zeros, CRC of all that u32`.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use assay_storage_disk::DiskFile;
use assay_storage_model::command::Action;
use assay_storage_model::segment::{FileKind, FileMeta, SegmentMeta};
use assay_storage_model::{ObjectKey, PaginationKey, Xact};

use crate::blocks::{SumWriter, Verified};
use crate::error::SegmentError;
use crate::index::builder::{HAS_END, IndexBuilder, key_base};
use crate::index::filter::Filter;
use crate::index::hash::Hasher;
use crate::index::keys::KeyPages;
use crate::index::page::{Directory, KeyForm, PAGE_BYTES, take_difference, take_number};
use crate::row::{IdHit, SoughtId};

const MAGIC: &[u8; 8] = b"ASSAYIDS";
const TRAILER_BYTES: usize = 256;
const CRC_AT: usize = TRAILER_BYTES - 4;
const SECTIONS_AT: usize = 64;
const SECTIONS: usize = 10;
const OBJECT_ENTRY_BYTES: usize = ObjectKey::BYTES + 4;
/// Upper bound of the length of an index entry; see `columns::VALUE_BYTES_MAX`.
const PAGE_SPAN_MAX: u64 = 1 << 30;

/// Numbers of the sections in the order of the file.
mod section {
    pub const IDS: usize = 0;
    pub const TRACES: usize = 1;
    pub const KEYS: usize = 2;
    pub const OBJECTS: usize = 3;
    pub const FILTER: usize = 4;
    pub const ID_PAGES: usize = 5;
    pub const TRACE_PAGES: usize = 6;
    pub const KEY_PAGES: usize = 7;
    pub const ROWS_SUMS: usize = 8;
    pub const OWN_SUMS: usize = 9;
}

/// Content of the trailer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trailer {
    format: u16,
    rows: u32,
    seq: u64,
    xact_base: u64,
    key_base: u64,
    rows_length: u64,
    rows_block: u32,
    rows_sums_crc: u32,
    own_sums_crc: u32,
    sections: [(u64, u64); SECTIONS],
}

impl Trailer {
    fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = Vec::with_capacity(TRAILER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        for number in [self.seq, self.xact_base, self.key_base, self.rows_length] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.rows_block, self.rows_sums_crc, self.own_sums_crc, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (offset, length) in self.sections {
            bytes.extend_from_slice(&offset.to_le_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        bytes.resize(CRC_AT, 0);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes.try_into().expect("256 bytes")
    }

    /// Decodes a trailer, and returns `None` if its magic or checksum is wrong.
    fn decode(bytes: &[u8; TRAILER_BYTES]) -> Option<Trailer> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
        if &bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..CRC_AT]) != u32_at(CRC_AT) {
            return None;
        }
        let section = |number: usize| (u64_at(SECTIONS_AT + number * 16), u64_at(SECTIONS_AT + number * 16 + 8));
        Some(Trailer {
            format: u16::from_le_bytes([bytes[8], bytes[9]]),
            rows: u32_at(12),
            seq: u64_at(16),
            xact_base: u64_at(24),
            key_base: u64_at(32),
            rows_length: u64_at(40),
            rows_block: u32_at(48),
            rows_sums_crc: u32_at(52),
            own_sums_crc: u32_at(56),
            sections: std::array::from_fn(section),
        })
    }

    /// Returns whether sections are consecutive, each on a page, and end where the trailer starts.
    fn fits(&self, file_length: u64) -> bool {
        let ends = self.sections.map(|(offset, length)| offset.checked_add(length));
        let ordered = (1..SECTIONS).all(|next| {
            let (offset, _) = self.sections[next];
            offset.is_multiple_of(PAGE_BYTES as u64) && ends[next - 1].is_some_and(|end| end <= offset)
        });
        let (own_sums, own_sums_length) = self.sections[section::OWN_SUMS];
        ordered
            && self.sections[0].0 == 0
            && own_sums_length == own_sums / PAGE_BYTES as u64 * 4
            && ends[SECTIONS - 1].and_then(|end| end.checked_add(TRAILER_BYTES as u64)) == Some(file_length)
            && self.rows_block > 0
    }
}

/// Description of the file of rows in the sidecar.
pub(crate) struct RowsFile {
    /// Format of the segment.
    pub format: u16,
    pub length: u64,
    pub block_bytes: u32,
    pub sums: Vec<u32>,
}

impl RowsFile {
    /// Returns the sums as bytes, with their checksum.
    fn table(&self) -> (Vec<u8>, u32) {
        let table: Vec<u8> = self.sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let crc = crc32c::crc32c(&table);
        (table, crc)
    }

    pub fn meta(&self) -> FileMeta {
        FileMeta { kind: FileKind::Rows, length: self.length, crc: self.table().1 }
    }
}

/// Writes the whole sidecar to `out`, which the caller syncs.
pub(crate) fn write(
    out: &mut SumWriter,
    seq: u64,
    index: &mut IndexBuilder,
    rows_file: &RowsFile,
) -> Result<FileMeta, SegmentError> {
    let mut sections = [(0, 0); SECTIONS];
    let filter = index.filter();

    let id_pages = index.write_ids(0, &mut |page: &[u8]| out.put(page))?;
    sections[section::IDS] = (0, out.length());
    let start = out.length();
    let first_page = page_number(start)?;
    let trace_pages = index.write_traces(first_page, &mut |page: &[u8]| out.put(page))?;
    sections[section::TRACES] = (start, out.length() - start);

    let (keys, key_pages) = KeyPages::encode(KeyForm::of(rows_file.format), &index.keys);
    let objects = index.objects.iter().flat_map(|(object, row)| {
        let mut entry = object.to_bytes().to_vec();
        entry.extend_from_slice(&row.to_le_bytes());
        entry
    });
    let (rows_sums, rows_sums_crc) = rows_file.table();
    let whole = [
        (section::KEYS, keys),
        (section::OBJECTS, objects.collect()),
        (section::FILTER, filter.to_bytes()),
        (section::ID_PAGES, id_pages.to_bytes()),
        (section::TRACE_PAGES, trace_pages.to_bytes()),
        (section::KEY_PAGES, key_pages),
        (section::ROWS_SUMS, rows_sums),
    ];
    for (number, bytes) in whole {
        sections[number] = (out.length(), bytes.len() as u64);
        out.put(&bytes)?;
        out.pad_to(PAGE_BYTES)?;
    }
    let own_sums: Vec<u8> = out.sums().iter().flat_map(|sum| sum.to_le_bytes()).collect();
    sections[section::OWN_SUMS] = (out.length(), own_sums.len() as u64);
    out.put(&own_sums)?;
    let trailer = Trailer {
        format: rows_file.format,
        rows: index.rows(),
        seq,
        xact_base: index.xact_base,
        key_base: index.key_base,
        rows_length: rows_file.length,
        rows_block: rows_file.block_bytes,
        rows_sums_crc,
        own_sums_crc: crc32c::crc32c(&own_sums),
        sections,
    };
    let bytes = trailer.encode();
    out.put(&bytes)?;
    let crc = u32::from_le_bytes(bytes[CRC_AT..].try_into().expect("4"));
    Ok(FileMeta { kind: FileKind::Ids, length: out.length(), crc })
}

fn page_number(offset: u64) -> Result<u32, SegmentError> {
    let limit = u64::from(u32::MAX) * PAGE_BYTES as u64;
    u32::try_from(offset / PAGE_BYTES as u64).map_err(|_| SegmentError::TooLarge { what: "bytes of ids", limit })
}

/// Open sidecar.
#[derive(Debug)]
pub(crate) struct Sidecar {
    file: Verified,
    form: KeyForm,
    rows: u32,
    xact_base: u64,
    key_base: u64,
    keys_at: u64,
    objects: Vec<(ObjectKey, u32)>,
    filter: Filter,
    id_pages: Directory,
    trace_pages: Directory,
    key_pages: KeyPages,
}

impl Sidecar {
    /// Checks the trailer against the manifest, and all content kept in memory against the trailer.
    pub fn open(
        file: Arc<dyn DiskFile>,
        path: &Path,
        meta: &SegmentMeta,
        ids: &FileMeta,
        rows: &FileMeta,
    ) -> Result<(Sidecar, RowsFile), SegmentError> {
        let trailer = read_trailer(&*file, path, meta, ids)?;
        let bad = |offset: u64, what: &str| SegmentError::damaged(path, offset, what);
        if trailer.rows_length != rows.length || trailer.rows_sums_crc != rows.crc {
            return Err(bad(ids.length - TRAILER_BYTES as u64, "it belongs to another rows file"));
        }
        let (own_sums_at, own_sums_length) = trailer.sections[section::OWN_SUMS];
        let mut own_sums = vec![0; own_sums_length as usize];
        file.read_at(own_sums_at, &mut own_sums).map_err(SegmentError::io(path))?;
        if crc32c::crc32c(&own_sums) != trailer.own_sums_crc {
            return Err(bad(own_sums_at, "the table of checksums does not match its own"));
        }
        let file = Verified::new(file, path, own_sums_at, PAGE_BYTES as u64, numbers(&own_sums));
        let section = |number: usize| {
            let (offset, length) = trailer.sections[number];
            file.read(offset..offset + length).map(|bytes| (offset, bytes))
        };

        let (at, bytes) = section(section::ROWS_SUMS)?;
        let blocks = rows.length.div_ceil(u64::from(trailer.rows_block));
        if bytes.len() as u64 != blocks * 4 || crc32c::crc32c(&bytes) != trailer.rows_sums_crc {
            return Err(bad(at, "the checksums of the rows do not match their own"));
        }
        let rows_file = RowsFile {
            format: meta.format,
            length: rows.length,
            block_bytes: trailer.rows_block,
            sums: numbers(&bytes),
        };
        let (at, bytes) = section(section::OBJECTS)?;
        let objects = objects_from(&bytes, trailer.rows).ok_or_else(|| bad(at, "the table of objects is invalid"))?;
        let (at, bytes) = section(section::FILTER)?;
        let filter = Filter::from_bytes(&bytes).ok_or_else(|| bad(at, "the filter is invalid"))?;
        let directory = |number: usize, pages: usize| {
            let (start, length) = trailer.sections[pages];
            let (at, bytes) = section(number)?;
            let end = page_number(start + length)?;
            Directory::from_bytes(&bytes, end).ok_or_else(|| bad(at, "the directory of pages is invalid"))
        };
        let id_pages = directory(section::ID_PAGES, section::IDS)?;
        let trace_pages = directory(section::TRACE_PAGES, section::TRACES)?;
        let (at, bytes) = section(section::KEY_PAGES)?;
        let (keys_at, keys_length) = trailer.sections[section::KEYS];
        let form = KeyForm::of(meta.format);
        let key_pages = KeyPages::decode(form, &bytes, trailer.rows, keys_length)
            .ok_or_else(|| bad(at, "the directory of keys is invalid"))?;
        let Trailer { rows, xact_base, key_base, .. } = trailer;
        let sidecar = Sidecar {
            file,
            form,
            rows,
            xact_base,
            key_base,
            keys_at,
            objects,
            filter,
            id_pages,
            trace_pages,
            key_pages,
        };
        Ok((sidecar, rows_file))
    }

    pub fn objects(&self) -> &[(ObjectKey, u32)] {
        &self.objects
    }

    /// Checks every block of the file.
    pub fn check_all(&self) -> Vec<String> {
        self.file.check_all()
    }

    pub fn memory_bytes(&self) -> usize {
        self.file.memory_bytes()
            + self.filter.memory_bytes()
            + self.id_pages.memory_bytes()
            + self.trace_pages.memory_bytes()
            + self.key_pages.memory_bytes()
            + size_of_val(&self.objects[..])
    }

    pub fn rows_of(&self, object: ObjectKey) -> Range<u32> {
        match self.ordinal(object) {
            Some(at) => self.objects[at].1..self.objects.get(at + 1).map_or(self.rows, |next| next.1),
            None => 0..0,
        }
    }

    fn ordinal(&self, object: ObjectKey) -> Option<usize> {
        self.objects.binary_search_by_key(&object, |(known, _)| *known).ok()
    }

    pub fn may_contain(&self, sought: &SoughtId<'_>) -> bool {
        self.filter.may_contain(sought.hash) && self.ordinal(sought.object).is_some()
    }

    /// Returns all versions of an id, newest first.
    pub fn find(&self, sought: &SoughtId<'_>) -> Result<Vec<IdHit>, SegmentError> {
        let mut hits = Vec::new();
        self.lookup(sought.object, &self.id_pages, sought.hash, sought.id, |mut payload| {
            let hit = self.id_hit(&mut payload)?;
            hits.push(hit);
            payload.is_empty().then_some(())
        })?;
        hits.sort_unstable_by_key(|hit| (std::cmp::Reverse(hit.xact), hit.row));
        Ok(hits)
    }

    fn id_hit(&self, payload: &mut &[u8]) -> Option<IdHit> {
        let row = self.row_number(take_number(payload)?)?;
        let xact = Xact(take_difference(payload, self.xact_base)?);
        let key = PaginationKey(take_difference(payload, key_base(self.form, xact, self.key_base))?);
        let (&action, rest) = payload.split_first()?;
        *payload = rest;
        let end = if action & HAS_END != 0 { Some(Xact(take_difference(payload, xact.0)?)) } else { None };
        Some(IdHit { row, xact, key, end, action: Action::from_byte(action & !HAS_END)? })
    }

    /// Returns the rows of a trace, ascending.
    pub fn trace(&self, object: ObjectKey, root_span_id: &str) -> Result<Vec<u32>, SegmentError> {
        let mut rows = Vec::new();
        let hash = Hasher::new(object).trace(root_span_id);
        self.lookup(object, &self.trace_pages, hash, root_span_id, |mut payload| {
            let mut row = 0_u64;
            for _ in 0..take_number(&mut payload)? {
                row = row.checked_add(take_number(&mut payload)?)?;
                rows.push(self.row_number(row)?);
            }
            payload.is_empty().then_some(())
        })?;
        rows.sort_unstable();
        Ok(rows)
    }

    fn row_number(&self, row: u64) -> Option<u32> {
        u32::try_from(row).ok().filter(|row| *row < self.rows)
    }

    /// Calls `found` with the payload of each entry of this text. `found` returns `None` for an invalid payload.
    fn lookup(
        &self,
        object: ObjectKey,
        pages: &Directory,
        hash: u64,
        text: &str,
        mut found: impl FnMut(&[u8]) -> Option<()>,
    ) -> Result<(), SegmentError> {
        if !self.filter.may_contain(hash) {
            return Ok(());
        }
        let Some(ordinal) = self.ordinal(object) else { return Ok(()) };
        let mut sought = Vec::new();
        self.form.put_text(&mut sought, text.as_bytes());
        for (start, end) in pages.pages_of(hash) {
            let bytes = u64::from(start) * PAGE_BYTES as u64..u64::from(end) * PAGE_BYTES as u64;
            let bad = || SegmentError::damaged(self.file.path(), bytes.start, "a page of the index is invalid");
            if bytes.end - bytes.start > PAGE_SPAN_MAX {
                return Err(bad());
            }
            let page = self.file.read(bytes.clone())?;
            for entry in self.form.entries(&page).ok_or_else(bad)? {
                let entry = entry.ok_or_else(bad)?;
                if entry.ordinal == ordinal as u64 && entry.text == sought {
                    found(entry.payload).ok_or_else(bad)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the first row of the object whose key is below `key`, or the end of its rows.
    pub fn first_row_below(&self, object: ObjectKey, key: PaginationKey) -> Result<u32, SegmentError> {
        let rows = self.rows_of(object);
        if rows.is_empty() {
            return Ok(rows.end);
        }
        let (page, within, bytes) = self.key_pages.page_below(rows, key.0);
        let bytes = self.file.read(self.keys_at + bytes.start..self.keys_at + bytes.end)?;
        Ok(within.start + page.at_or_above(&within, &bytes, key.0))
    }
}

/// Reads the trailer and checks it against its checksum and the manifest. The caller has checked the file's length.
fn read_trailer(file: &dyn DiskFile, path: &Path, meta: &SegmentMeta, ids: &FileMeta) -> Result<Trailer, SegmentError> {
    let bad = |what: &str| SegmentError::damaged(path, ids.length.saturating_sub(TRAILER_BYTES as u64), what);
    let at = ids.length.checked_sub(TRAILER_BYTES as u64).ok_or_else(|| bad("it is shorter than its trailer"))?;
    let mut bytes = [0; TRAILER_BYTES];
    file.read_at(at, &mut bytes).map_err(SegmentError::io(path))?;
    let trailer = Trailer::decode(&bytes).ok_or_else(|| bad("the trailer does not match its checksum"))?;
    if bytes[CRC_AT..] != ids.crc.to_le_bytes() {
        return Err(bad("the trailer is not the one that the manifest names"));
    }
    if trailer.format != meta.format
        || trailer.rows != meta.rows
        || trailer.seq != meta.seq
        || !trailer.fits(ids.length)
    {
        return Err(bad("the trailer is invalid"));
    }
    Ok(trailer)
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)).collect()
}

/// Decodes the table of objects. Returns `None` unless objects and their first rows ascend from 0 within the segment.
fn objects_from(bytes: &[u8], rows: u32) -> Option<Vec<(ObjectKey, u32)>> {
    let (entries, rest) = bytes.as_chunks::<OBJECT_ENTRY_BYTES>();
    let entry = |bytes: &[u8; OBJECT_ENTRY_BYTES]| {
        let (object, row) = bytes.split_at(ObjectKey::BYTES);
        Some((ObjectKey::from_bytes(object)?, u32::from_le_bytes(row.try_into().ok()?)))
    };
    let objects: Vec<_> = entries.iter().map(entry).collect::<Option<_>>()?;
    let ascend = objects.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
    let bounded = match (objects.first(), objects.last()) {
        (Some(first), Some(last)) => first.1 == 0 && last.1 < rows,
        _ => rows == 0,
    };
    (rest.is_empty() && ascend && bounded).then_some(objects)
}

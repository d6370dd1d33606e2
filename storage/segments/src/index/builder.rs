//! Builder of the sidecar, which collects the entry of each row while rows are written, and then writes them sorted.
//!
//! Until the segment is finished, memory for each row is about 60 bytes and the length of the id.

use std::collections::HashMap;

use assay_storage_model::{ObjectKey, PaginationKey, Xact};

use super::filter::Filter;
use super::hash::Hasher;
use super::page::{Directory, KeyForm, PageWriter, put_difference, put_number, take_bytes, take_number};
use crate::error::SegmentError;
use crate::row::RowHeader;

/// Upper bound of the rows in one entry of a trace. Longer traces have several entries.
const TRACE_ENTRY_ROWS: usize = 512;
/// Flag in the action of a payload that is followed by an end.
pub(crate) const HAS_END: u8 = 0x80;
/// Upper bound of the rows of one segment. The next number marks a row that a merge dropped.
pub(crate) const ROWS_MAX: u32 = u32::MAX - 1;
/// Upper bound of the size of trace ids in one segment.
const TRACE_TEXT_BYTES_MAX: usize = u32::MAX as usize;

/// Content of the sidecar.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    seq: u64,
    form: KeyForm,
    /// Objects with their first rows.
    pub objects: Vec<(ObjectKey, u32)>,
    /// Pagination key of each row.
    pub keys: Vec<u64>,
    /// Bases of stored differences, from the first row.
    pub xact_base: u64,
    pub key_base: u64,
    xacts: Option<(Xact, Xact)>,
    last: Option<(PaginationKey, Xact)>,
    /// Hash of each id, and the start of its entry in `id_entries`.
    ids: Vec<(u64, u64)>,
    id_entries: Vec<u8>,
    /// Hash of each trace's id, the start of its text in `trace_texts`, and the row.
    traces: Vec<(u64, u32, u32)>,
    /// Object ordinal, length and text of each trace's id.
    trace_texts: Vec<u8>,
    /// Position of the text of each trace of the current object, by hash.
    known_traces: HashMap<u64, u32>,
    /// Hasher of the current object.
    hasher: Option<Hasher>,
    /// Hash and text position of the previous row's trace, if that row is of the same object.
    last_trace: Option<(u64, u32)>,
    payload: Vec<u8>,
}

/// Returns the base of a key's difference. A row that was never replaced has the key of its own transaction.
pub(crate) fn key_base(form: KeyForm, xact: Xact, first: u64) -> u64 {
    match form {
        KeyForm::Wide => first,
        KeyForm::Packed => PaginationKey::new(xact, 0).0,
    }
}

impl IndexBuilder {
    /// Creates a builder for a segment of this format.
    pub fn new(seq: u64, format: u16) -> IndexBuilder {
        IndexBuilder {
            seq,
            form: KeyForm::of(format),
            objects: Vec::new(),
            keys: Vec::new(),
            xact_base: 0,
            key_base: 0,
            xacts: None,
            last: None,
            ids: Vec::new(),
            id_entries: Vec::new(),
            traces: Vec::new(),
            trace_texts: Vec::new(),
            known_traces: HashMap::new(),
            hasher: None,
            last_trace: None,
            payload: Vec::new(),
        }
    }

    pub fn rows(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Returns the smallest and largest transaction id.
    pub fn xacts(&self) -> Option<(Xact, Xact)> {
        self.xacts
    }

    /// Adds the next row, which must not sort before the last.
    pub fn push(&mut self, row: &RowHeader<'_>, root_span_id: &str) -> Result<(), SegmentError> {
        let number = self.rows();
        if number == ROWS_MAX {
            return Err(SegmentError::TooLarge { what: "rows", limit: u64::from(ROWS_MAX) });
        }
        if self.trace_texts.len() + root_span_id.len() + 32 > TRACE_TEXT_BYTES_MAX {
            return Err(SegmentError::TooLarge { what: "bytes of trace ids", limit: TRACE_TEXT_BYTES_MAX as u64 });
        }
        self.check_order(row)?;
        if number == 0 {
            (self.xact_base, self.key_base) = (row.xact.0, row.key.0);
        }
        let (min, max) = self.xacts.unwrap_or((row.xact, row.xact));
        self.xacts = Some((min.min(row.xact), max.max(row.xact)));
        self.last = Some((row.key, row.xact));
        self.keys.push(row.key.0);

        let hasher = *self.hasher.get_or_insert_with(|| Hasher::new(row.object));
        self.push_id(number, row, hasher.id(row.id));
        self.push_trace(number, root_span_id, hasher.trace(root_span_id));
        Ok(())
    }

    fn check_order(&mut self, row: &RowHeader<'_>) -> Result<(), SegmentError> {
        let object = self.objects.last().map(|(object, _)| *object);
        let new_object = object.is_none_or(|last| last < row.object);
        let follows =
            new_object || (object == Some(row.object) && self.last.is_some_and(|last| (row.key, row.xact) <= last));
        if !follows {
            return Err(SegmentError::OutOfOrder { seq: self.seq, row: self.rows() });
        }
        if new_object {
            self.objects.push((row.object, self.rows()));
            self.known_traces.clear();
            (self.hasher, self.last_trace) = (None, None);
        }
        Ok(())
    }

    fn ordinal(&self) -> u64 {
        self.objects.len() as u64 - 1
    }

    fn push_id(&mut self, number: u32, row: &RowHeader<'_>, hash: u64) {
        self.payload.clear();
        put_number(&mut self.payload, u64::from(number));
        put_difference(&mut self.payload, row.xact.0, self.xact_base);
        put_difference(&mut self.payload, row.key.0, key_base(self.form, row.xact, self.key_base));
        self.payload.push(row.action as u8 | if row.end.is_some() { HAS_END } else { 0 });
        if let Some(end) = row.end {
            put_difference(&mut self.payload, end.0, row.xact.0);
        }
        let ordinal = self.ordinal();
        self.ids.push((hash, self.id_entries.len() as u64));
        self.form.put_entry(&mut self.id_entries, ordinal, row.id.as_bytes(), &self.payload);
    }

    fn push_trace(&mut self, number: u32, root_span_id: &str, hash: u64) {
        let again = self.last_trace.filter(|(last, _)| *last == hash).map(|(_, start)| start);
        let known = again.or_else(|| self.known_traces.get(&hash).copied());
        let text = known.filter(|&start| self.trace_text(start).1 == root_span_id.as_bytes()).unwrap_or_else(|| {
            let start = self.trace_texts.len() as u32;
            let ordinal = self.ordinal();
            put_number(&mut self.trace_texts, ordinal);
            put_number(&mut self.trace_texts, root_span_id.len() as u64);
            self.trace_texts.extend_from_slice(root_span_id.as_bytes());
            self.known_traces.insert(hash, start);
            start
        });
        self.last_trace = Some((hash, text));
        self.traces.push((hash, text, number));
    }

    fn trace_text(&self, start: u32) -> (u64, &[u8]) {
        let mut rest = &self.trace_texts[start as usize..];
        let ordinal = take_number(&mut rest).expect("written above");
        (ordinal, take_bytes(&mut rest).expect("written above"))
    }

    /// Returns a filter over the hashes of all ids and traces. It sorts them, so that equal ones are adjacent.
    pub fn filter(&mut self) -> Filter {
        self.ids.sort_unstable();
        self.traces.sort_unstable();
        let ids = self.ids.chunk_by(|a, b| a.0 == b.0).map(|same| same[0].0);
        let traces = self.traces.chunk_by(|a, b| a.0 == b.0).map(|same| same[0].0);
        let mut filter = Filter::with_room_for(ids.clone().count() + traces.clone().count());
        ids.chain(traces).for_each(|hash| filter.insert(hash));
        filter
    }

    /// Writes the pages of all ids, the first one at `start`. It must follow `filter`.
    pub fn write_ids<E>(&self, start: u32, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<Directory, E> {
        let mut pages = PageWriter::new(self.form, start);
        for &(hash, at) in &self.ids {
            let entry = &self.id_entries[at as usize..];
            let length = self.form.entry_length(entry).expect("written above");
            pages.push(hash, &entry[..length], out)?;
        }
        pages.finish(out)
    }

    /// Writes the pages of all traces, the first one at `start`. It must follow `filter`.
    pub fn write_traces<E>(&self, start: u32, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<Directory, E> {
        let mut pages = PageWriter::new(self.form, start);
        let (mut payload, mut body) = (Vec::new(), Vec::new());
        for trace in self.traces.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for piece in trace.chunks(TRACE_ENTRY_ROWS) {
                payload.clear();
                put_number(&mut payload, piece.len() as u64);
                let mut last = 0;
                for &(_, _, row) in piece {
                    put_number(&mut payload, u64::from(row - last));
                    last = row;
                }
                let (ordinal, text) = self.trace_text(piece[0].1);
                body.clear();
                self.form.put_entry(&mut body, ordinal, text, &payload);
                pages.push(piece[0].0, &body, out)?;
            }
        }
        pages.finish(out)
    }
}

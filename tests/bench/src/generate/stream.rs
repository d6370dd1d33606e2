//! Order of one object's writes, and the distribution of the writes of a shard's objects over log entries.
//!
//! A write takes the merges that are due, then new rows. A merge never shares a write with its start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use assay_storage_model::command::{Action, Command, RowOp, Write};
use assay_storage_model::entry::{ENTRY_BYTES_MAX, Entry, EntryBuilder};
use assay_storage_model::{ObjectKey, Xact};
use bytes::Bytes;

use super::Workload;
use super::dice::{Dice, derive};
use super::events::GeneratedEvents;
use super::expected::Expected;
use super::row::{Family, Part, Row};
use super::words::Vocabulary;

/// A write is closed before its documents pass this, unless it has one row only; so it travels in the log.
pub const WRITE_BYTES_MAX: usize = 448 << 10;
/// A merge comes this many writes after its start, at the most.
const SOON_WRITES: u64 = 4;
/// Upper bound of the bytes that a row's encoding adds to its document.
const ROW_OVERHEAD_BYTES: usize = 192;
/// Upper bound of the bytes that a write's encoding and its frame in an entry add.
const WRITE_OVERHEAD_BYTES: usize = 96;
/// Free space below which an entry is full.
const ROOM_BYTES_MIN: usize = 8 << 10;

/// One encoded `Write` command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedWrite {
    pub command: Bytes,
    pub assigned: Xact,
    /// Row operations, merges among them.
    pub operations: u32,
    pub merges: u32,
    /// Merges to rows written long ago.
    pub late_merges: u32,
    pub merged: Merged,
    /// Bytes of the documents.
    pub doc_bytes: u64,
}

/// The writes of one object, without end.
#[derive(Debug)]
pub struct ObjectStream {
    n: u64,
    object: ObjectKey,
    family: Family,
    rows_per_write: usize,
    late_writes: u64,
    writes: u64,
    rows: u64,
    last: Xact,
    /// Merges to come: the write they are due in, and the row.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    arena: Vec<u8>,
}

/// Function that renders a row into the arena.
type Render = fn(&Row, Part, &Vocabulary, &mut Vec<u8>);

/// One row operation whose document lies in the arena.
pub(super) struct Planned {
    pub row: Row,
    pub part: Part,
    pub doc: Range<usize>,
}

impl ObjectStream {
    pub fn new(workload: &Workload, n: u64) -> ObjectStream {
        let family = workload.family(n);
        ObjectStream {
            n,
            object: workload.object(n),
            rows_per_write: workload.rows_per_write.max(1),
            late_writes: workload.late_writes.max(SOON_WRITES),
            writes: 0,
            rows: 0,
            last: Xact::at_micros(u64::try_from(family.start_micros).unwrap_or(0)),
            family,
            due: BinaryHeap::new(),
            arena: Vec::new(),
        }
    }

    pub fn number(&self) -> u64 {
        self.n
    }

    pub fn object(&self) -> ObjectKey {
        self.object
    }

    /// Rows started so far; their numbers are below this.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Returns the expected content once everything yielded so far is applied.
    pub fn expected(&self) -> Expected {
        Expected::new(self.n, self.family.clone(), self.rows, self.due.iter().map(|Reverse((_, row))| *row).collect())
    }

    /// The next write, as large as a write may be.
    pub fn next_write(&mut self) -> GeneratedWrite {
        self.write_within(WRITE_BYTES_MAX)
    }

    /// The next write, closed before it passes `bytes_max`. It has one row at least, however large.
    pub fn write_within(&mut self, bytes_max: usize) -> GeneratedWrite {
        let (planned, arena) = self.fill(bytes_max, Row::render);
        let newest = planned.iter().map(|op| op.row.created).max().unwrap_or(0);
        self.last = self.last.next().max(Xact::at_micros(u64::try_from(newest).unwrap_or(0)));
        let write = self.encode(&planned, &arena);
        self.arena = arena;
        write
    }

    /// The same write as a client sends it, in place of `next_write`.
    pub fn next_events(&mut self) -> GeneratedEvents {
        let (planned, arena) = self.fill(WRITE_BYTES_MAX, Row::render_event);
        let events = GeneratedEvents::new(&planned, &arena);
        self.arena = arena;
        events
    }

    /// Takes rows for one write and has each rendered to the arena.
    fn fill(&mut self, bytes_max: usize, render: Render) -> (Vec<Planned>, Vec<u8>) {
        let words = Vocabulary::shared();
        let mut arena = std::mem::take(&mut self.arena);
        arena.clear();
        let mut planned = Vec::with_capacity(self.rows_per_write);
        while planned.len() < self.rows_per_write {
            let (row, part) = self.peek();
            let after = arena.len() + row.bytes_max(part) + (planned.len() + 1) * ROW_OVERHEAD_BYTES;
            if !planned.is_empty() && after > bytes_max {
                break;
            }
            self.take(&row, part);
            let start = arena.len();
            render(&row, part, words, &mut arena);
            planned.push(Planned { row, part, doc: start..arena.len() });
        }
        self.writes += 1;
        (planned, arena)
    }

    /// Returns the smallest space in which the next write has a row.
    pub fn next_bytes_max(&self) -> usize {
        let (row, part) = self.peek();
        row.bytes_max(part) + ROW_OVERHEAD_BYTES
    }

    fn peek(&self) -> (Row, Part) {
        match self.due.peek() {
            Some(Reverse((write, number))) if *write <= self.writes => (self.family.row(*number), Part::Finish),
            _ => {
                let row = self.family.row(self.rows);
                let part = if row.two_steps { Part::Start } else { Part::Whole };
                (row, part)
            }
        }
    }

    fn take(&mut self, row: &Row, part: Part) {
        if part == Part::Finish {
            self.due.pop();
            return;
        }
        self.rows += 1;
        if part == Part::Start {
            let mut dice = Dice::new(derive(self.family.seed ^ 1, row.number));
            let wait =
                if row.late { self.late_writes + dice.below(self.late_writes) } else { 1 + dice.below(SOON_WRITES) };
            self.due.push(Reverse((self.writes + wait, row.number)));
        }
    }

    fn encode(&self, planned: &[Planned], arena: &[u8]) -> GeneratedWrite {
        let rows = planned.iter().map(|op| row_op(op, arena)).collect();
        let write = Write { object: self.object, assigned: self.last, request: None, rows };
        let merges = planned.iter().filter(|op| op.part == Part::Finish);
        GeneratedWrite {
            command: Bytes::from(Command::Write(write).encode()),
            assigned: self.last,
            operations: planned.len() as u32,
            merges: merges.clone().count() as u32,
            late_merges: merges.clone().filter(|op| op.row.late).count() as u32,
            merged: Merged { object: self.object, ids: merges.map(|op| op.row.id().to_owned()).collect() },
            doc_bytes: arena.len() as u64,
        }
    }
}

fn row_op<'a>(op: &'a Planned, arena: &'a [u8]) -> RowOp<'a> {
    RowOp {
        id: op.row.id(),
        action: if op.part == Part::Finish { Action::Merge } else { Action::Upsert },
        span_id: op.row.span_id(),
        root_span_id: op.row.root_span_id(),
        is_root: op.row.is_root(),
        created: op.row.created,
        doc: &arena[op.doc.clone()],
        rules: b"",
        audit: b"",
    }
}

/// One full log entry.
#[derive(Clone, Debug)]
pub struct GeneratedEntry {
    /// Bytes of the log entry.
    pub bytes: Bytes,
    /// Proposed commands: slices of the same bytes.
    pub commands: Vec<Bytes>,
    /// Targets of merges, object by object; objects without merges are left out.
    pub merged: Vec<Merged>,
    pub counts: Counts,
}

/// Rows of one object that a write merges into; the writer has them without decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    pub object: ObjectKey,
    pub ids: Vec<String>,
}

/// Content of entries, in counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Row operations, merges among them.
    pub operations: u64,
    pub merges: u64,
    pub late_merges: u64,
    pub doc_bytes: u64,
}

impl Counts {
    /// Rows that were started.
    pub fn rows(&self) -> u64 {
        self.operations - self.merges
    }

    pub fn add(&mut self, write: &GeneratedWrite) {
        self.operations += u64::from(write.operations);
        self.merges += u64::from(write.merges);
        self.late_merges += u64::from(write.late_merges);
        self.doc_bytes += write.doc_bytes;
    }

    pub fn join(&mut self, other: &Counts) {
        self.operations += other.operations;
        self.merges += other.merges;
        self.late_merges += other.late_merges;
        self.doc_bytes += other.doc_bytes;
    }
}

/// Log entries of up to 1 MiB, filled by several objects in turn (those of one shard).
#[derive(Debug)]
pub struct EntryStream {
    objects: Vec<ObjectStream>,
    next: usize,
}

impl EntryStream {
    /// `objects` must not be empty.
    pub fn new(workload: &Workload, objects: &[u64]) -> EntryStream {
        assert!(!objects.is_empty(), "an entry needs at least one object");
        EntryStream { objects: objects.iter().map(|n| workload.stream(*n)).collect(), next: 0 }
    }

    pub fn objects(&self) -> &[ObjectStream] {
        &self.objects
    }

    pub fn next_entry(&mut self) -> GeneratedEntry {
        let mut builder = EntryBuilder::default();
        let mut counts = Counts::default();
        let mut merged = Vec::new();
        loop {
            let room = ENTRY_BYTES_MAX.saturating_sub(builder.len() + WRITE_OVERHEAD_BYTES);
            let stream = &mut self.objects[self.next];
            let full = room < ROOM_BYTES_MIN || room < stream.next_bytes_max();
            if full && !builder.is_empty() {
                break;
            }
            let write = stream.write_within(room.min(WRITE_BYTES_MAX));
            self.next = (self.next + 1) % self.objects.len();
            builder.push(&write.command);
            counts.add(&write);
            merged.extend(Some(write.merged).filter(|merged| !merged.ids.is_empty()));
        }
        let bytes = builder.finish();
        let commands = match Entry::decode(&bytes) {
            Ok(Entry::Commands(commands)) => commands,
            other => unreachable!("an entry just built reads back, and not as {other:?}"),
        };
        GeneratedEntry { bytes, commands, merged, counts }
    }
}

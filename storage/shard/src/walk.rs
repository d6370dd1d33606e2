//! Iterator over the visible rows of one object, newest pagination key first, across memory and segments.
//!
//! Each source is read in growing pieces, and only if it may hold the next key. A page of the newest rows therefore
//! reads memory and the newest segments only, regardless of the number of segments.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use assay_storage_segments::Columns;

use crate::error::ShardError;
use crate::live_segment::LiveSegment;
use crate::memory::{Generation, MemoryRow, is_row};
use crate::text::Text;

const PIECE_ROWS_FIRST: usize = 128;
const PIECE_ROWS_MAX: usize = 4096;

/// Position of a visible row, with the fields that are known without its document.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub key: PaginationKey,
    pub root_span_id: Text,
    pub from: From,
}

#[derive(Clone, Debug)]
pub(crate) enum From {
    Memory(Box<MemoryRow>),
    /// Position in the view's list of segments, and the row.
    Segment(usize, u32),
}

enum Source {
    Memory { generation: Arc<Generation> },
    Segment { number: usize, live: Arc<LiveSegment>, next_row: Option<u32>, end_row: u32 },
}

struct Feed {
    source: Source,
    buffer: VecDeque<Step>,
    /// Upper bound of the keys of this feed's rows that are not in the buffer.
    bound: PaginationKey,
    piece: usize,
    done: bool,
}

pub(crate) struct Walk {
    object: ObjectKey,
    at: Xact,
    before: Option<PaginationKey>,
    feeds: Vec<Feed>,
}

impl Walk {
    pub fn new(
        generations: &[Arc<Generation>],
        segments: &[Arc<LiveSegment>],
        object: ObjectKey,
        at: Xact,
        before: Option<PaginationKey>,
    ) -> Walk {
        let below = before.map_or(PaginationKey::MAX, |key| PaginationKey(key.0.saturating_sub(1)));
        let feed = |source, bound| Feed {
            source,
            buffer: VecDeque::new(),
            bound,
            piece: PIECE_ROWS_FIRST,
            done: before == Some(PaginationKey(0)),
        };
        let mut feeds: Vec<Feed> = generations
            .iter()
            .map(|generation| feed(Source::Memory { generation: Arc::clone(generation) }, below))
            .collect();
        for (number, live) in segments.iter().enumerate() {
            let rows = live.segment.rows_of(object);
            if rows.is_empty() || live.meta().xact_min > at {
                continue;
            }
            let bound = below.min(live.meta().key_max);
            feeds.push(feed(
                Source::Segment { number, live: Arc::clone(live), next_row: None, end_row: rows.end },
                bound,
            ));
        }
        Walk { object, at, before, feeds }
    }

    pub fn next(&mut self) -> Result<Option<Step>, ShardError> {
        loop {
            let best = self
                .feeds
                .iter_mut()
                .filter(|feed| !feed.done || !feed.buffer.is_empty())
                .max_by_key(|feed| feed.front());
            let Some(best) = best else { return Ok(None) };
            match best.buffer.pop_front() {
                Some(step) => return Ok(Some(step)),
                None => best.fill(&self.object, self.at, self.before)?,
            }
        }
    }
}

impl Feed {
    fn front(&self) -> PaginationKey {
        self.buffer.front().map_or(self.bound, |step| step.key)
    }

    fn fill(&mut self, object: &ObjectKey, at: Xact, before: Option<PaginationKey>) -> Result<(), ShardError> {
        let wanted = self.piece;
        self.piece = (self.piece * 2).min(PIECE_ROWS_MAX);
        match &mut self.source {
            Source::Memory { generation } => {
                let from = if self.bound == PaginationKey::MAX { None } else { Some(PaginationKey(self.bound.0 + 1)) };
                let rows = generation.page(object, from, at, wanted);
                self.done = rows.len() < wanted;
                self.buffer.extend(rows.into_iter().map(|row| Step {
                    key: row.key,
                    root_span_id: row.root_span_id.clone(),
                    from: From::Memory(Box::new(row)),
                }));
            }
            Source::Segment { number, live, next_row, end_row } => {
                let start = match (*next_row, before) {
                    (Some(row), _) => row,
                    (None, Some(key)) => live.segment.first_row_below(*object, key)?,
                    (None, None) => live.segment.rows_of(*object).start,
                };
                let end = (start + u32::try_from(wanted).expect("a piece is small")).min(*end_row);
                let rows: Vec<u32> = (start..end).collect();
                let read = if rows.is_empty() { Vec::new() } else { live.segment.read(&rows, Columns::Keys)? };
                if let Some(last) = read.last() {
                    self.bound = self.bound.min(last.key);
                }
                self.buffer.extend(
                    read.into_iter()
                        .filter(|row| is_row(row.action) && row.xact <= at && at < live.end(row.row, row.end))
                        .map(|row| Step {
                            key: row.key,
                            root_span_id: Text::copied(&row.root_span_id),
                            from: From::Segment(*number, row.row),
                        }),
                );
                *next_row = Some(end);
                self.done = end >= *end_row;
            }
        }
        if let (Source::Memory { .. }, Some(last)) = (&self.source, self.buffer.back()) {
            // Keys of visible rows are unique, so the next piece starts below the last.
            self.bound = PaginationKey(last.key.0.saturating_sub(1));
            self.done |= last.key.0 == 0;
        }
        Ok(())
    }
}

//! Rows of a leaf in the order of their keys, returned part by part.

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, Rows};

use crate::EngineError;
use crate::leaf::ordered_spans::SpanRows;
use crate::leaf::spans::SpanSelection;
use crate::leaf::{Ask, run, sampled};
use crate::partial::Partial;
use crate::results::batch::RankedBatch;
use crate::rows::output::{Page, order_of};
use crate::rows::rank::{Position, Rank};
use crate::scan::ScanContext;
use crate::scan::filter::Filter;
use crate::scan::source::{Shared, Source, pieces, sought};
use crate::scheduling::watch::Watch;

/// Number of traces or writes in the first part. Later parts have as many as their bytes allow.
const UNITS_AT_FIRST: u64 = 64;
const UNITS_AT_ONCE_MAX: u64 = 16_000;

/// Rows of a query on this node. It keeps its sources, so that all parts are read at the same version.
#[derive(Debug)]
pub struct LeafRows {
    sources: Vec<Source>,
    ask: Ask,
    state: LeafState,
}

#[derive(Debug)]
enum LeafState {
    Begun,
    Spans(SpanRows),
    /// Rows of other shapes, and the number of traces or writes in the next part.
    Pages(u64),
    /// Groups.
    Groups(Partial),
    /// Computed rows of a result without pages, and the number of returned rows.
    Whole(RankedBatch, usize),
    Ended,
}

impl LeafRows {
    /// Creates the rows of a query after `ask.after`. A part has about `ask.bytes`.
    pub fn new(sources: Vec<Source>, ask: Ask) -> LeafRows {
        LeafRows { sources, ask, state: LeafState::Begun }
    }

    /// Returns whether there are no more rows.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, LeafState::Ended) || self.ask.limit == Some(0)
    }

    /// Returns the next part. There is always a first part.
    pub fn next(&mut self, bound: &Bound, shared: &Shared, watch: &Watch) -> Result<Partial, EngineError> {
        if let LeafState::Begun = self.state {
            self.state = self.begin(bound, shared, watch)?;
        }
        if let LeafState::Groups(_) = self.state
            && let LeafState::Groups(part) = std::mem::replace(&mut self.state, LeafState::Ended)
        {
            return Ok(part);
        }
        let batch = match &mut self.state {
            LeafState::Whole(batch, read) => {
                let part = slice(batch, *read, self.ask.bytes);
                *read += part.ranks.len();
                if *read == batch.ranks.len() {
                    self.state = LeafState::Ended;
                }
                return Ok(Partial::of_batch(part));
            }
            LeafState::Spans(rows) => {
                let context = ScanContext { sources: &self.sources, shared, watch, env: watch.env(bound.tz_offset) };
                let filter = Filter::of(bound.filter.as_ref(), &context.env);
                let seen = SpanSelection { filter, traces: None, sampled: sampled(bound, &self.ask) };
                let batch = rows.next(bound, &context, &seen, &page(&self.ask))?;
                if rows.has_ended() {
                    self.state = LeafState::Ended;
                }
                batch
            }
            LeafState::Pages(units) => {
                let limit = self.ask.limit.map_or(*units, |limit| limit.min(*units));
                let part = run(bound, &self.sources, shared, watch, &Ask { limit: Some(limit), ..self.ask })?;
                let is_last = part.is_last(bound, Some(limit));
                let batch = part.into_batch()?;
                let (counted, bytes) = (counted(bound, &batch), batch.text_bytes());
                let most = self.ask.bytes.unwrap_or(usize::MAX);
                if is_last {
                    self.state = LeafState::Ended;
                } else if let Some(each) = (bytes as u64).checked_div(counted) {
                    *units = (most as u64 / each.max(1)).clamp(1, UNITS_AT_ONCE_MAX);
                }
                batch
            }
            LeafState::Begun | LeafState::Groups(_) | LeafState::Ended => {
                self.state = LeafState::Ended;
                RankedBatch::default()
            }
        };
        self.advance(bound, &batch);
        Ok(Partial::of_batch(batch))
    }

    fn begin(&self, bound: &Bound, shared: &Shared, watch: &Watch) -> Result<LeafState, EngineError> {
        if !bound.has_pages() {
            let part = run(bound, &self.sources, shared, watch, &Ask { bytes: None, ..self.ask })?;
            return Ok(match part.is_groups() {
                true => LeafState::Groups(part),
                false => LeafState::Whole(part.into_batch()?, 0),
            });
        }
        let is_of_spans = matches!(bound.rows, Rows::Objects { shape: Shape::Spans, .. });
        if !is_of_spans || bound.audit_log || bound.unpivoted_filter.is_some() {
            return Ok(LeafState::Pages(UNITS_AT_FIRST));
        }
        Ok(match sought(&bound.bounds) {
            Some(sought) => LeafState::Spans(SpanRows::new(order_of(bound), pieces(&self.sources, &sought)?)),
            None => LeafState::Ended,
        })
    }

    /// Continues after the rows of a part.
    fn advance(&mut self, bound: &Bound, batch: &RankedBatch) {
        if let Some(last) = batch.ranks.last() {
            self.ask.after = Some(position(bound, last));
        }
        self.ask.limit = self.ask.limit.map(|limit| limit.saturating_sub(counted(bound, batch)));
    }
}

/// Returns the position of a row, after which the next page begins.
pub(crate) fn position(bound: &Bound, rank: &Rank) -> Position {
    if bound.audit_log { rank.position_of_write() } else { rank.position() }
}

/// Returns the number of rows or of their traces, as counted by a limit.
pub(crate) fn counted(bound: &Bound, batch: &RankedBatch) -> u64 {
    if !counts_traces(bound) {
        return batch.ranks.len() as u64;
    }
    // The rows of a trace are adjacent.
    let changes = batch.ranks.windows(2).filter(|pair| pair[0].trace() != pair[1].trace()).count();
    (changes + usize::from(!batch.ranks.is_empty())) as u64
}

/// Returns whether limits count traces.
pub(crate) fn counts_traces(bound: &Bound) -> bool {
    matches!(bound.rows, Rows::Objects { shape: Shape::Traces | Shape::Summary, .. })
}

fn page(ask: &Ask) -> Page {
    let limit = ask.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    Page { limit, traces: usize::MAX, bytes: ask.bytes, after: ask.after, seed: ask.seed }
}

/// Returns rows from `from` on, of about `bytes`.
fn slice(batch: &RankedBatch, from: usize, bytes: Option<usize>) -> RankedBatch {
    let rest = batch.ranks.len() - from;
    let mut sum = 0;
    let fitting = (from..batch.ranks.len()).position(|row| {
        sum += batch.columns.iter().map(|column| column.cell_bytes(row)).sum::<usize>();
        bytes.is_some_and(|bytes| sum >= bytes)
    });
    let rows = fitting.map_or(rest, |last| last + 1);
    let columns = batch.columns.iter().map(|column| column.slice(from, rows)).collect();
    RankedBatch { ranks: batch.ranks[from..from + rows].to_vec(), columns }
}

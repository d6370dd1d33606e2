//! Spans in the order of their sort keys: the first rows are selected by their keys and then read completely.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use assay_node_btql::bound::{Bound, BoundExpr, Field, Key, Order, SortKey};
use assay_node_btql::values::Value;
use assay_node_expressions::aggregates::{text_at, value_at};

use crate::EngineError;
use crate::groups::Typed;
use crate::leaf::spans::{SpanSelection, each_part};
use crate::results::ResultColumn;
use crate::results::batch::RankedBatch;
use crate::rows::output::{Page, Part, columns_of, order_of, shown};
use crate::rows::rank::{Rank, Top, Weigh, cut_traces};
use crate::scan::ScanContext;
use crate::scan::each_of_few;
use crate::scan::filter::{KnownRows, WIDE_ROWS, is_wide};
use crate::scan::source::ScanUnit;
use crate::scheduling::watch::MemoryHold;
use crate::traces::Traces;

/// Divisor of a page's bytes. Remaining rows up to this share are read together with the page.
const REST_ONE_IN: usize = 2;
/// Number of rows that are selected before the first part is read, with its growth and upper bound.
const AHEAD_AT_FIRST: usize = 2_000;
const AHEAD_GROWTH: usize = 8;
const AHEAD_MAX: usize = 1 << 16;

/// Runs a query with ordered rows.
pub(crate) fn run(
    bound: &Bound,
    context: &ScanContext<'_>,
    mut pieces: Vec<ScanUnit>,
    seen: &SpanSelection<'_>,
    page: &Page,
) -> Result<Part, EngineError> {
    let order = order_of(bound);
    sort_pieces(&mut pieces, &order);
    let best = best(&order, context, &pieces, seen, page)?;
    read(bound, &order, context, &pieces, best, page)
}

/// Selected row that was not read yet.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    piece: u32,
    row: u32,
}

impl Weigh for Candidate {
    fn bytes(&self) -> usize {
        size_of::<Candidate>()
    }
}

/// First sort key, if units know its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leading {
    Key,
    Xact,
    Created,
}

/// Returns the first sort key, and whether it is descending.
fn leading(order: &Order) -> Option<(Leading, bool)> {
    match order {
        Order::Key { by: Key::Pagination, descending } => Some((Leading::Key, *descending)),
        Order::Key { by: Key::Xact, descending } => Some((Leading::Xact, *descending)),
        Order::Sorted(keys) => match keys.first() {
            Some(SortKey { expr: BoundExpr::Field(Field::Column("created"), steps), descending, .. })
                if steps.is_empty() =>
            {
                Some((Leading::Created, *descending))
            }
            _ => None,
        },
    }
}

impl Leading {
    fn of_unit(self, piece: &ScanUnit) -> Option<(u64, u64)> {
        let bounds = piece.unit.bounds()?;
        Some(match self {
            Leading::Key => bounds.key,
            Leading::Xact => bounds.xact,
            Leading::Created => (ordered(bounds.created.0), ordered(bounds.created.1)),
        })
    }

    fn of_rank(self, rank: &Rank) -> Option<u64> {
        match (self, rank.sort.first()) {
            (Leading::Key, _) => Some(rank.place),
            (Leading::Xact, _) => Some(rank.xact),
            (Leading::Created, Some(Value::Stored(micros) | Value::Time(micros))) => Some(ordered(*micros)),
            (Leading::Created, _) => None,
        }
    }
}

/// Maps signed numbers to unsigned ones in the same order.
fn ordered(signed: i64) -> u64 {
    signed.cast_unsigned() ^ 1 << 63
}

/// Sorts units by their known bounds, in the order of the query.
fn sort_pieces(pieces: &mut [ScanUnit], order: &Order) {
    let Some((leading, descending)) = leading(order) else { return };
    let ends = |piece: &ScanUnit| leading.of_unit(piece).unwrap_or((0, u64::MAX));
    if descending {
        pieces.sort_by_key(|piece| std::cmp::Reverse(ends(piece).1));
    } else {
        pieces.sort_by_key(|piece| ends(piece).0);
    }
}

/// Selects the first rows by their sort keys only.
fn best(
    order: &Order,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    seen: &SpanSelection<'_>,
    page: &Page,
) -> Result<Vec<(Rank, Candidate)>, EngineError> {
    let of_rows = Outcome { order, page, worst: AtomicU64::new(worst_of(order)), is_of_traces: seen.traces.is_some() };
    let keys: Vec<&BoundExpr> = match order {
        Order::Sorted(keys) => keys.iter().map(|key| &key.expr).collect(),
        Order::Key { .. } => Vec::new(),
    };
    let start = || (Top::new(page.limit), context.watch.hold());
    let made = each_of_few(context, pieces, start, |(top, held), number, piece| {
        if of_rows.is_beyond(piece) {
            return Ok(());
        }
        context.watch.scanned(piece.unit.rows());
        if seen.traces.is_some() || seen.sampled.is_some() || keys.iter().any(|key| is_wide(key)) {
            let selected = seen.select(context, piece)?;
            offer(context, piece, number, &selected, &keys, seen.traces, &of_rows, top)?;
        } else {
            in_order(context, piece, number, seen, &keys, &of_rows, top)?;
        }
        top.cut(order);
        of_rows.note(top.worst());
        held.now(top.bytes())
    })?;
    let mut all = Top::new(page.limit);
    made.into_iter().for_each(|(top, _)| all.merge(top, order));
    let mut best = all.finish(order);
    if seen.traces.is_some() {
        cut_traces(&mut best, |(rank, _)| rank.trace(), page.traces);
    }
    Ok(best)
}

/// Selects rows of a unit in their order. If the filter reads long columns, rows after the last needed one are not
/// read.
fn in_order(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    number: usize,
    seen: &SpanSelection<'_>,
    keys: &[&BoundExpr],
    of_rows: &Outcome<'_>,
    top: &mut Top<Candidate>,
) -> Result<(), EngineError> {
    let (order, unit, source) = (of_rows.order, &piece.unit, &context.sources[piece.source]);
    let (selected, rest) = seen.filter.narrow(context, unit, source)?;
    let Some(rest) = rest else {
        return offer(context, piece, number, &selected, keys, None, of_rows, top);
    };
    // Rows with a cached result go first, because no row after the worst of them has to be read.
    let KnownRows { found, open } = rest.known(context, &selected);
    offer(context, piece, number, &found, keys, None, of_rows, top)?;
    top.cut(order);
    let mut all = Top::before(top.worst().cloned());
    offer(context, piece, number, &open, keys, None, of_rows, &mut all)?;
    for candidates in all.finish(order).chunks(WIDE_ROWS) {
        top.cut(order);
        if !top.takes(&candidates[0].0, order) {
            break;
        }
        let mut wanted = BooleanBufferBuilder::new(selected.len());
        wanted.append_n(selected.len(), false);
        candidates.iter().for_each(|(_, candidate)| wanted.set_bit(candidate.row as usize, true));
        let found = rest.select(context, wanted.finish())?;
        for (rank, candidate) in candidates.iter().filter(|(_, candidate)| found.value(candidate.row as usize)) {
            top.offer(rank.clone(), *candidate, order);
        }
    }
    Ok(())
}

/// Bound that all threads share. Once a thread has enough rows, no thread reads rows after its worst one.
struct Outcome<'q> {
    order: &'q Order,
    page: &'q Page,
    worst: AtomicU64,
    is_of_traces: bool,
}

fn worst_of(order: &Order) -> u64 {
    match leading(order) {
        Some((_, true)) => 0,
        _ => u64::MAX,
    }
}

impl Outcome<'_> {
    /// Returns whether no row of the unit can be among the best.
    fn is_beyond(&self, piece: &ScanUnit) -> bool {
        let Some((leading, descending)) = leading(self.order).filter(|_| !self.is_of_traces) else { return false };
        let Some((least, most)) = leading.of_unit(piece) else { return false };
        let worst = self.worst.load(Relaxed);
        let is_worse = if descending { most < worst } else { least > worst };
        let end = self.page.after.map(|after| if leading == Leading::Xact { after.xact } else { after.place });
        let is_before = end.is_some_and(|end| if descending { least > end } else { most < end });
        is_worse || is_before
    }

    fn note(&self, worst: Option<&Rank>) {
        let (Some((leading, descending)), Some(worst)) = (leading(self.order), worst) else { return };
        let Some(at) = leading.of_rank(worst) else { return };
        if descending {
            self.worst.fetch_max(at, Relaxed);
        } else {
            self.worst.fetch_min(at, Relaxed);
        }
    }
}

/// Offers the selected rows of a unit to the best rows.
#[allow(clippy::too_many_arguments, reason = "what a thread knows of the unit at hand")]
fn offer(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    number: usize,
    selected: &BooleanBuffer,
    keys: &[&BoundExpr],
    traces: Option<&Traces>,
    of_rows: &Outcome<'_>,
    top: &mut Top<Candidate>,
) -> Result<(), EngineError> {
    let Outcome { order, page, .. } = of_rows;
    let object = context.sources[piece.source].number;
    let mut exprs = keys.to_vec();
    let xact = BoundExpr::Field(Field::Column("_xact_id"), Vec::new());
    let root = BoundExpr::Field(Field::Column("root_span_id"), Vec::new());
    exprs.push(&xact);
    if traces.is_some() {
        exprs.push(&root);
    }
    let mut rows = selected.set_indices();
    each_part(context, piece, selected, &exprs, true, |columns, row_keys, _| {
        let xacts = columns[keys.len()].0.as_primitive::<UInt64Type>();
        for (nth, key) in row_keys.iter().enumerate() {
            let row = rows.next().unwrap_or_default() as u32;
            let (mut place, mut xact) = (*key, xacts.value(nth));
            if let Some(traces) = traces {
                let trace = traces.of(piece.source, text_at(&columns[keys.len() + 1].0, nth));
                (place, xact) = trace.map_or((place, xact), |trace| (trace.place, trace.xact));
            }
            let mut rank = Rank { sort: Vec::new(), place, xact, object, key: *key, nth: 0 };
            if page.after.is_some_and(|after| !rank.is_behind(&after, order)) {
                continue;
            }
            if !keys.is_empty() {
                rank.sort =
                    columns[..keys.len()].iter().map(|(array, ty)| value_at(array, *ty, nth).into_owned()).collect();
            }
            top.offer(rank, Candidate { piece: number as u32, row }, order);
        }
        Ok(())
    })?;
    Ok(())
}

/// Reads the selected columns of the best rows in their order. If the page may end early, reads only as many rows as
/// needed.
fn read(
    bound: &Bound,
    order: &Order,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    best: Vec<(Rank, Candidate)>,
    page: &Page,
) -> Result<Part, EngineError> {
    let (batches, rows) = read_until(bound, context, pieces, &best, page.bytes, &mut SizeRatio::default())?;
    Ok(Part::Batch { batch: RankedBatch::merge(&batches, order, page.limit)?, is_cut: rows < best.len() })
}

/// Bytes of the rows that were read, and their expected bytes.
#[derive(Clone, Copy, Debug, Default)]
struct SizeRatio {
    read: usize,
    expected: usize,
}

impl SizeRatio {
    /// Returns the expected bytes of rows that will have slightly more than this number of bytes.
    fn expectation(self, bytes: usize) -> usize {
        match self {
            SizeRatio { expected: 0, .. } => bytes,
            SizeRatio { read: 0, .. } => usize::MAX,
            SizeRatio { read, expected } => {
                (bytes.saturating_add(bytes / 8) as f64 * expected as f64 / read as f64) as usize
            }
        }
    }
}

/// Reads rows until their texts have `most` bytes. Also returns the number of rows.
fn read_until(
    bound: &Bound,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    best: &[(Rank, Candidate)],
    most: Option<usize>,
    ratio: &mut SizeRatio,
) -> Result<(Vec<RankedBatch>, usize), EngineError> {
    let mut held = context.watch.hold();
    let Some(most) = most else {
        return Ok((read_some(bound, context, pieces, best, &mut held)?, best.len()));
    };
    let mut batches = Vec::new();
    let expected: Vec<usize> = pieces.iter().map(|piece| piece.unit.row_bytes()).collect();
    // Earlier rows may have had hardly any texts. So the expectation never exceeds the one without any experience.
    let (mut rest, mut wanted) = (best, ratio.expectation(most).clamp(1, most.max(1)));
    let mut bytes = 0;
    while !rest.is_empty() && bytes < most {
        let mut ahead = 0;
        let reach = rest.iter().position(|(_, candidate)| {
            ahead += expected[candidate.piece as usize];
            ahead >= wanted
        });
        // A short rest is read together with the other rows.
        let behind = |last: usize| rest[last + 1..].iter().map(|(_, candidate)| expected[candidate.piece as usize]);
        let reach = reach.filter(|last| !fits(behind(*last), wanted / REST_ONE_IN));
        let (next, later) = rest.split_at(reach.map_or(rest.len(), |last| last + 1));
        let read = read_some(bound, context, pieces, next, &mut held)?;
        let read_bytes = read.iter().map(RankedBatch::text_bytes).sum::<usize>();
        let expected = next.iter().map(|(_, candidate)| expected[candidate.piece as usize]).sum();
        *ratio = SizeRatio { read: read_bytes, expected };
        bytes += read_bytes;
        batches.extend(read);
        // The stored size is compressed and covers all columns, so the ratio corrects the next expectation.
        let left = ratio.expectation(most.saturating_sub(bytes));
        (rest, wanted) = (later, left.clamp(1, wanted.saturating_mul(2)));
    }
    Ok((batches, best.len() - rest.len()))
}

/// Returns whether the sum is at most `most`, without visiting all of a long rest.
fn fits(sizes: impl Iterator<Item = usize>, most: usize) -> bool {
    let mut sum = 0;
    for size in sizes {
        sum += size;
        if sum > most {
            return false;
        }
    }
    true
}

/// Spans in the order of their keys, read one part at a time.
///
/// Rows are selected far ahead of the read part, so that a long result visits each unit only a few times.
#[derive(Debug)]
pub(crate) struct SpanRows {
    pieces: Vec<ScanUnit>,
    order: Order,
    /// Selected rows, and the number of them that were read.
    best: Vec<(Rank, Candidate)>,
    read: usize,
    /// Number of rows to select next.
    ahead: usize,
    /// Whether there may be rows after the selected ones.
    goes_on: bool,
    ratio: SizeRatio,
}

impl SpanRows {
    pub fn new(order: Order, mut pieces: Vec<ScanUnit>) -> SpanRows {
        sort_pieces(&mut pieces, &order);
        SpanRows {
            pieces,
            order,
            best: Vec::new(),
            read: 0,
            ahead: AHEAD_AT_FIRST,
            goes_on: true,
            ratio: SizeRatio::default(),
        }
    }

    pub fn has_ended(&self) -> bool {
        !self.goes_on && self.read == self.best.len()
    }

    /// Returns the next rows after `page.after`, at most `page.limit` and about `page.bytes`.
    pub fn next(
        &mut self,
        bound: &Bound,
        context: &ScanContext<'_>,
        seen: &SpanSelection<'_>,
        page: &Page,
    ) -> Result<RankedBatch, EngineError> {
        if self.read == self.best.len() {
            let limit = self.ahead.min(page.limit);
            self.best = best(&self.order, context, &self.pieces, seen, &Page { limit, ..*page })?;
            (self.read, self.goes_on) = (0, self.best.len() == limit);
            self.ahead = (self.ahead * AHEAD_GROWTH).min(AHEAD_MAX);
        }
        let rest = &self.best[self.read..];
        let rest = &rest[..rest.len().min(page.limit)];
        let (batches, rows) = read_until(bound, context, &self.pieces, rest, page.bytes, &mut self.ratio)?;
        self.read += rows;
        RankedBatch::merge(&batches, &self.order, usize::MAX)
    }
}

/// Reads the selected columns of some rows.
fn read_some(
    bound: &Bound,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    some: &[(Rank, Candidate)],
    held: &mut MemoryHold,
) -> Result<Vec<RankedBatch>, EngineError> {
    let mut by_piece: Vec<Vec<(&Rank, u32)>> = pieces.iter().map(|_| Vec::new()).collect();
    for (rank, Candidate { piece, row }) in some {
        by_piece[*piece as usize].push((rank, *row));
    }
    by_piece.iter_mut().for_each(|rows| rows.sort_unstable_by_key(|(_, row)| *row));
    let (wanted, of_pieces): (Vec<_>, Vec<_>) =
        by_piece.into_iter().zip(pieces).filter(|(rows, _)| !rows.is_empty()).unzip();
    let of_pieces: Vec<ScanUnit> = of_pieces.into_iter().cloned().collect();
    let columns = columns_of(bound);
    let exprs: Vec<&BoundExpr> = columns.iter().map(|(expr, _)| expr).collect();
    let start = || (Vec::<RankedBatch>::new(), context.watch.hold(), 0);
    let made = each_of_few(context, &of_pieces, start, |(made, held, bytes), number, piece| {
        let rows = &wanted[number];
        let mut selected = BooleanBufferBuilder::new(piece.unit.rows());
        selected.append_n(piece.unit.rows(), false);
        rows.iter().for_each(|(_, row)| selected.set_bit(*row as usize, true));
        let mut ranks = rows.iter().map(|(rank, _)| *rank);
        each_part(context, piece, &selected.finish(), &exprs, false, |found, _, rows| {
            let columns = found.iter().zip(&columns).map(|(typed, (_, length))| column(typed, rows, *length));
            let columns = columns.collect::<Result<_, _>>()?;
            let batch = RankedBatch { ranks: ranks.by_ref().take(rows).cloned().collect(), columns };
            *bytes += batch.bytes();
            made.push(batch);
            held.now(*bytes)
        })
    })?;
    let bytes = made.iter().map(|(_, _, bytes)| bytes).sum();
    let batches = made.into_iter().flat_map(|(made, ..)| made).collect();
    held.more(bytes)?;
    Ok(batches)
}

/// Converts an evaluated column to a result column, with previews of at most `length` characters.
fn column((array, ty): &Typed, rows: usize, length: Option<i64>) -> Result<ResultColumn, EngineError> {
    if length.is_none() {
        return ResultColumn::new(array, *ty);
    }
    let values: Vec<_> = (0..rows).map(|row| shown(value_at(array, *ty, row).into_owned(), length)).collect();
    ResultColumn::from_values(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_expected_to_be_like_those_before() {
        let ratio = |read, expected| SizeRatio { read, expected };
        assert_eq!(SizeRatio::default().expectation(800), 800);
        // Four bytes were read for each expected one, and an eighth is added.
        assert_eq!(ratio(4000, 1000).expectation(800), 225);
        assert_eq!(ratio(0, 1000).expectation(800), usize::MAX, "rows without texts");
    }
}

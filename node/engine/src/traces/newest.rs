//! Selection of the newest traces of a page without a scan of all traces.
//!
//! The position of a trace is the key of its root or, without a root, of its first span. So every trace positioned in a
//! range of keys has a span with a key in that range. The newest rows after the previous page define such a range. All
//! traces of its rows are read, so the traces positioned in the range are complete. If they fill a page, nothing else
//! is read. If a condition leaves too few, the range grows a few times. After that, all traces are scanned as for any
//! other order.

use ahash::AHashSet;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use assay_node_btql::bound::{Bound, Key, Order, Output};
use assay_storage_segments::Want;
use assay_storage_shard::Sought;

use crate::EngineError;
use crate::rows::output::{Page, order_of};
use crate::scan::ScanContext;
use crate::scan::blind;
use crate::scan::source::{ScanUnit, pieces};
use crate::traces::units::of_roots;
use crate::traces::{self, Roots, SelectedTrace};

/// Number of rows in the first range for each trace of a page.
const ROWS_PER_TRACE: usize = 16;
/// Upper bound of the ranges that are tried, which is lower with a condition. Each range has `GROWTH` times the rows of
/// the previous one.
const RANGES_MAX: usize = 4;
const RANGES_OF_CONDITION_MAX: usize = 2;
const GROWTH: usize = 8;
/// Upper bound of the rows of a range, whose keys are in memory.
const ROWS_MAX: usize = 1 << 18;
/// Upper bound of looked-up traces. For more traces, a full scan is as fast.
const TRACES_MAX: usize = 4096;

/// Range of keys that ends where the previous page ended.
struct Range {
    from: u64,
    to: u64,
    pieces: Vec<ScanUnit>,
}

/// Returns all selected traces down to some key: at least a page, or all traces. Returns `None` if this method cannot
/// find them.
pub(crate) fn newest(
    bound: &Bound,
    context: &ScanContext<'_>,
    page: &Page,
) -> Result<Option<Vec<SelectedTrace>>, EngineError> {
    if !is_for(bound) || page.limit > TRACES_MAX {
        return Ok(None);
    }
    let (to, order) = (page.after.map_or(u64::MAX, |after| after.place), order_of(bound));
    let mut all = pieces(context.sources, &Sought { key: Some((0, to)), ..Sought::default() })?;
    all.sort_by_key(|piece| std::cmp::Reverse(ends(piece)));
    let mut rows = page.limit.saturating_mul(ROWS_PER_TRACE).max(1);
    let is_conditional =
        bound.traces.as_ref().is_some_and(|traces| traces.condition.is_some() || traces.spans.is_some());
    let ranges = if is_conditional { RANGES_OF_CONDITION_MAX } else { RANGES_MAX };
    for _ in 0..ranges {
        if rows > ROWS_MAX {
            break;
        }
        let range = Range::of(&all, context, to, rows)?;
        let Some(among) = range.traces(context)? else { return Ok(None) };
        let of_traces = of_roots(context, among.iter().map(|roots| roots.iter().map(|root| String::from(&**root))))?;
        let mut found = traces::select(context, &of_traces, bound.traces.as_ref(), Some(&among))?;
        found.retain(|found| found.trace.place >= range.from);
        let is_behind =
            |found: &&SelectedTrace| page.after.is_none_or(|after| found.rank(context).is_behind(&after, &order));
        if range.from == 0 || found.iter().filter(is_behind).count() >= page.limit {
            return Ok(Some(found));
        }
        rows = rows.saturating_mul(GROWTH);
    }
    Ok(None)
}

/// Returns whether the method applies: all rows or traces, newest first, with none excluded later.
fn is_for(bound: &Bound) -> bool {
    let newest_first =
        matches!(&bound.output, Output::Rows { order: Order::Key { by: Key::Pagination, descending: true }, .. });
    let has_having = bound.traces.as_ref().is_some_and(|traces| traces.having.is_some());
    let all_are_rows = bound.unpivot.is_empty() && bound.unpivoted_filter.is_none() && !has_having;
    newest_first && all_are_rows && bound.sample.is_none() && bound.bounds.root_span_ids.is_none()
}

/// Returns the highest key that rows of a unit may have.
fn ends(piece: &ScanUnit) -> u64 {
    piece.unit.bounds().map_or(u64::MAX, |bounds| bounds.key.1)
}

impl Range {
    /// Returns a range with about this many rows, and the units of its rows. `all` is ordered, the newest first.
    fn of(all: &[ScanUnit], context: &ScanContext<'_>, to: u64, rows: usize) -> Result<Range, EngineError> {
        let (mut keys, mut taken, mut from) = (Vec::new(), 0, 0);
        for piece in all {
            context.watch.check()?;
            if keys.len() >= rows {
                // Rows of this unit and of later ones may have keys up to this bound.
                from = ends(piece).saturating_add(1);
                break;
            }
            taken += 1;
            let visible = blind::visible(&piece.unit, &context.sources[piece.source], context.shared)?;
            let columns = piece.unit.read(&context.shared.cache, 0..visible.len(), None, &[Want::Key])?;
            let of_unit = columns[0].as_primitive::<UInt64Type>();
            keys.extend(visible.set_indices().map(|row| of_unit.value(row)).filter(|key| *key <= to));
        }
        if keys.len() > rows {
            let (_, nth, _) = keys.select_nth_unstable_by(rows - 1, |left, right| right.cmp(left));
            from = from.max(*nth);
        }
        Ok(Range { from, to, pieces: all[..taken].to_vec() })
    }

    /// Returns the traces of the rows in the range, or `None` if there are too many to look up.
    fn traces(&self, context: &ScanContext<'_>) -> Result<Option<Vec<Roots>>, EngineError> {
        let mut of_sources: Vec<Roots> = vec![AHashSet::new(); context.sources.len()];
        for piece in &self.pieces {
            context.watch.check()?;
            let of_source = &mut of_sources[piece.source];
            traces::roots(context, piece, &self.rows_of(context, piece)?, |root| {
                if !of_source.contains(root) {
                    of_source.insert(root.into());
                }
            })?;
            if of_sources.iter().map(|roots| roots.len()).sum::<usize>() > TRACES_MAX {
                return Ok(None);
            }
        }
        Ok(Some(of_sources))
    }

    fn rows_of(&self, context: &ScanContext<'_>, piece: &ScanUnit) -> Result<BooleanBuffer, EngineError> {
        let visible = blind::visible(&piece.unit, &context.sources[piece.source], context.shared)?;
        let columns = piece.unit.read(&context.shared.cache, 0..visible.len(), None, &[Want::Key])?;
        let keys = columns[0].as_primitive::<UInt64Type>();
        let mut bits = BooleanBufferBuilder::new(visible.len());
        bits.append_n(visible.len(), false);
        for row in visible.set_indices().filter(|row| (self.from..=self.to).contains(&keys.value(*row))) {
            bits.set_bit(row, true);
        }
        Ok(bits.finish())
    }
}

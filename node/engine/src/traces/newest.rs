//! The traces of a first page, newest first, without looking at all of them.
//!
//! A trace stands at the key of its root, or of its first span where it has none; either way it has a span with the key it
//! stands at. So all traces that stand in a range of keys are among those that have a span with a key in the range. Of the
//! newest rows behind a page such a range is made, the traces of its rows are looked up whole, and those that stand in it are
//! all there are: where they are enough for a page, nothing else need be read. Where they are not, because a condition
//! leaves few, the range grows a few times, and then everything is looked through as for any other order.

use ahash::AHashSet;
use arrow::array::{AsArray, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::UInt64Type;
use assay_node_btql::bound::{Bound, Key, Order, Output};
use assay_storage_segments::Want;
use assay_storage_shard::Sought;

use crate::EngineError;
use crate::rows::output::{Page, order_of};
use crate::scan::Scene;
use crate::scan::source::{Piece, pieces};
use crate::traces::units::of_roots;
use crate::traces::{self, Found, Roots};

/// Rows that the first range has for each trace of a page.
const ROWS_PER_TRACE: usize = 16;
/// Ranges that are tried, fewer where a condition may leave next to nothing, and how many times the rows of the one before each
/// has.
const RANGES_MAX: usize = 4;
const RANGES_OF_CONDITION_MAX: usize = 2;
const GROWTH: usize = 8;
/// Rows of a range, whose keys are held.
const ROWS_MAX: usize = 1 << 18;
/// Traces that are looked up; of more, to look through everything is as fast.
const TRACES_MAX: usize = 4096;

/// A range of keys that ends where the page before did.
struct Range {
    from: u64,
    to: u64,
    pieces: Vec<Piece>,
}

/// All selected traces down to some key, at least a page of them or all there are. None where this is no way to find them.
pub(crate) fn newest(bound: &Bound, scene: &Scene<'_>, page: &Page) -> Result<Option<Vec<Found>>, EngineError> {
    if !is_for(bound) || page.limit > TRACES_MAX {
        return Ok(None);
    }
    let (to, order) = (page.after.map_or(u64::MAX, |after| after.place), order_of(bound));
    let mut all = pieces(scene.sources, &Sought { key: Some((0, to)), ..Sought::default() })?;
    all.sort_by_key(|piece| std::cmp::Reverse(ends(piece)));
    let mut rows = page.limit.saturating_mul(ROWS_PER_TRACE).max(1);
    let is_conditional =
        bound.traces.as_ref().is_some_and(|traces| traces.condition.is_some() || traces.spans.is_some());
    let ranges = if is_conditional { RANGES_OF_CONDITION_MAX } else { RANGES_MAX };
    for _ in 0..ranges {
        if rows > ROWS_MAX {
            break;
        }
        let range = Range::of(&all, scene, to, rows)?;
        let Some(among) = range.traces(scene)? else { return Ok(None) };
        let of_traces = of_roots(scene, among.iter().map(|roots| roots.iter().map(|root| String::from(&**root))))?;
        let mut found = traces::select(scene, &of_traces, bound.traces.as_ref(), Some(&among))?;
        found.retain(|found| found.trace.place >= range.from);
        let is_behind = |found: &&Found| page.after.is_none_or(|after| found.rank(scene).is_behind(&after, &order));
        if range.from == 0 || found.iter().filter(is_behind).count() >= page.limit {
            return Ok(Some(found));
        }
        rows = rows.saturating_mul(GROWTH);
    }
    Ok(None)
}

/// Rows or traces as they are, newest first, none of them left out behind this.
fn is_for(bound: &Bound) -> bool {
    let newest_first =
        matches!(&bound.output, Output::Rows { order: Order::Key { by: Key::Pagination, descending: true }, .. });
    let has_having = bound.traces.as_ref().is_some_and(|traces| traces.having.is_some());
    let all_are_rows = bound.unpivot.is_empty() && bound.unpivoted_filter.is_none() && !has_having;
    newest_first && all_are_rows && bound.sample.is_none() && bound.bounds.root_span_ids.is_none()
}

/// The highest key that its rows may have.
fn ends(piece: &Piece) -> u64 {
    piece.unit.bounds().map_or(u64::MAX, |bounds| bounds.key.1)
}

impl Range {
    /// With about so many rows, and every row that there is in it. `all` are in order, the newest first.
    fn of(all: &[Piece], scene: &Scene<'_>, to: u64, rows: usize) -> Result<Range, EngineError> {
        let (mut keys, mut taken, mut from) = (Vec::new(), 0, 0);
        for piece in all {
            scene.watch.check()?;
            if keys.len() >= rows {
                // Rows of this unit and of those behind may have keys up to this one.
                from = ends(piece).saturating_add(1);
                break;
            }
            taken += 1;
            let visible = piece.unit.visible()?;
            let columns = piece.unit.read(&scene.shared.cache, 0..visible.len(), None, &[Want::Key])?;
            let of_unit = columns[0].as_primitive::<UInt64Type>();
            keys.extend(visible.set_indices().map(|row| of_unit.value(row)).filter(|key| *key <= to));
        }
        if keys.len() > rows {
            let (_, nth, _) = keys.select_nth_unstable_by(rows - 1, |left, right| right.cmp(left));
            from = from.max(*nth);
        }
        Ok(Range { from, to, pieces: all[..taken].to_vec() })
    }

    /// The traces of its rows. None where they are too many to be looked up.
    fn traces(&self, scene: &Scene<'_>) -> Result<Option<Vec<Roots>>, EngineError> {
        let mut of_sources: Vec<Roots> = vec![AHashSet::new(); scene.sources.len()];
        for piece in &self.pieces {
            scene.watch.check()?;
            let of_source = &mut of_sources[piece.source];
            traces::roots(scene, piece, &self.rows_of(scene, piece)?, |root| {
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

    fn rows_of(&self, scene: &Scene<'_>, piece: &Piece) -> Result<BooleanBuffer, EngineError> {
        let visible = piece.unit.visible()?;
        let columns = piece.unit.read(&scene.shared.cache, 0..visible.len(), None, &[Want::Key])?;
        let keys = columns[0].as_primitive::<UInt64Type>();
        let mut bits = BooleanBufferBuilder::new(visible.len());
        bits.append_n(visible.len(), false);
        for row in visible.set_indices().filter(|row| (self.from..=self.to).contains(&keys.value(*row))) {
            bits.set_bit(row, true);
        }
        Ok(bits.finish())
    }
}

//! Rows of shape spans, processed column by column: filtered, then grouped or ordered (`ordered_spans`).

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_buffer::BooleanBuffer;
use assay_node_btql::bound::{Bound, BoundExpr, Field, Groups, Output};
use assay_node_btql::values::Value;
use assay_node_expressions::aggregates::{RowPositions, text_at, value_at};
use assay_storage_segments::Want;

use crate::EngineError;
use crate::groups::{GroupTable, Typed};
use crate::leaf::ordered_spans;
use crate::leaf::unpivoted::ByKey;
use crate::leaf::unpivoted_elements::ByElement;
use crate::rows::output::{Flowing, Outlet, Page, Part};
use crate::rows::rank::Rank;
use crate::scan::ScanContext;
use crate::scan::each;
use crate::scan::filter::{Filter, Parts, rows_at_once};
use crate::scan::inputs::{Compiled, Rows};
use crate::scan::sampling::Sampled;
use crate::scan::source::ScanUnit;
use crate::scheduling::watch::MemoryHold;
use crate::traces::Traces;

/// Number of rows processed by value between two checks whether others wait.
const CHECKED_ROWS: usize = 64;

/// Selection of visible spans by a filter, of all or of some traces.
#[derive(Debug)]
pub(crate) struct SpanSelection<'t> {
    pub filter: Filter,
    /// Selected traces, for shapes that select traces.
    pub traces: Option<&'t Traces>,
    /// Sample of single spans.
    pub sampled: Option<Sampled>,
}

impl SpanSelection<'_> {
    pub fn select(&self, context: &ScanContext<'_>, piece: &ScanUnit) -> Result<BooleanBuffer, EngineError> {
        let source = &context.sources[piece.source];
        let mut selected = self.filter.select(context, &piece.unit, source)?;
        if let Some(traces) = self.traces {
            selected = traces.narrow(context, piece, selected)?;
        }
        if let Some(sampled) = &self.sampled {
            selected = sampled.narrow(context, piece, selected)?;
        }
        Ok(selected)
    }
}

/// Runs a query over units of spans, for any output.
pub(crate) fn run(
    bound: &Bound,
    context: &ScanContext<'_>,
    pieces: Vec<ScanUnit>,
    seen: &SpanSelection<'_>,
    page: &Page,
) -> Result<Part, EngineError> {
    let is_unpivoted = !bound.unpivot.is_empty() || bound.unpivoted_filter.is_some();
    match &bound.output {
        Output::Groups(groups) if is_unpivoted && let Some(by_key) = ByKey::of(bound, groups, page) => {
            unpivoted(bound, &by_key, context, &pieces, seen, page)
        }
        Output::Groups(groups) if is_unpivoted && let Some(by_element) = ByElement::of(bound, groups, page) => {
            let start = || (Part::new(bound, page), context.watch.hold());
            let made = each(context, &pieces, start, |(part, held), _, piece| {
                by_element.push(context, piece, seen, part, held)
            })?;
            Part::together(made.into_iter().map(|(part, _)| part).collect(), bound, page)
        }
        _ if is_unpivoted => one_by_one(bound, context, &pieces, seen, page),
        Output::Groups(groups) => grouped(bound, groups, context, &pieces, seen, page),
        Output::Rows { .. } | Output::Infer(_) => ordered_spans::run(bound, context, pieces, seen, page),
    }
}

fn grouped(
    bound: &Bound,
    groups: &Groups,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    seen: &SpanSelection<'_>,
    page: &Page,
) -> Result<Part, EngineError> {
    let aggregated: Vec<Option<BoundExpr>> = groups.aggregates.iter().map(|aggregate| aggregate.of.clone()).collect();
    let start = || (Part::new(bound, page), context.watch.hold());
    let made = each(context, pieces, start, |(part, held), _, piece| {
        let selected = seen.select(context, piece)?;
        push_groups(context, piece, &selected, &groups.dimensions, &aggregated, part, held)
    })?;
    Part::together(made.into_iter().map(|(part, _)| part).collect(), bound, page)
}

/// Adds the selected rows of a unit to their groups.
pub(crate) fn push_groups(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    selected: &BooleanBuffer,
    dimensions: &[BoundExpr],
    aggregated: &[Option<BoundExpr>],
    part: &mut Part,
    held: &mut MemoryHold,
) -> Result<(), EngineError> {
    let Part::Groups(table) = part else { return Err(EngineError::Damaged) };
    let exprs: Vec<&BoundExpr> = dimensions.iter().chain(aggregated.iter().flatten()).collect();
    if exprs.is_empty() {
        return table.push_count(selected.count_set_bits());
    }
    let with_keys = table.needs_positions();
    each_part(context, piece, selected, &exprs, with_keys, |columns, keys, rows| {
        let mut columns = columns.into_iter();
        let dimensions: Vec<_> = columns.by_ref().take(dimensions.len()).collect();
        let values: Vec<_> = aggregated.iter().map(|of| of.as_ref().and_then(|_| columns.next())).collect();
        let object = context.sources[piece.source].number;
        table.push(rows, &dimensions, &values, &RowPositions { keys, object })
    })?;
    hold_groups(table, held)
}

/// Holds the memory of groups. Without enough memory, exact counts of distinct values become approximate.
pub(crate) fn hold_groups(table: &mut GroupTable, held: &mut MemoryHold) -> Result<(), EngineError> {
    let is_held = held.now(table.bytes());
    if is_held.is_err() {
        table.approximate();
        return held.now(table.bytes());
    }
    is_held
}

/// Groups the members of unpivoted objects: by key in units with known keys, otherwise by row.
fn unpivoted(
    bound: &Bound,
    by_key: &ByKey<'_>,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    seen: &SpanSelection<'_>,
    page: &Page,
) -> Result<Part, EngineError> {
    let start = || (Part::new(bound, page), context.watch.hold(), Vec::new());
    let made = each(context, pieces, start, |(part, held, others), _, piece| {
        if !by_key.push(context, piece, seen, part, held)? {
            others.push(piece.clone());
        }
        Ok(())
    })?;
    let (mut parts, mut others) = (Vec::new(), Vec::new());
    for (part, _, of_thread) in made {
        parts.push(part);
        others.extend(of_thread);
    }
    if !others.is_empty() {
        parts.push(one_by_one(bound, context, &others, seen, page)?);
    }
    Part::together(parts, bound, page)
}

/// Passes the columns of a unit's selected rows to `take`, in parts if they are long. Also passes the keys of the rows,
/// if they are requested, and the number of rows.
pub(crate) fn each_part(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    selected: &BooleanBuffer,
    exprs: &[&BoundExpr],
    with_keys: bool,
    mut take: impl FnMut(Vec<Typed>, &[u64], usize) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let count = selected.count_set_bits();
    if count == 0 {
        return Ok(());
    }
    let ScanUnit { unit, source } = piece;
    let compiled =
        Compiled::new(unit, &context.sources[*source], context.shared, count, exprs.iter().copied(), &context.env)?;
    let at_once = || if compiled.is_wide() { rows_at_once(context, unit) } else { usize::MAX };
    let mut parts = Parts::of(selected);
    while let Some(range) = parts.next(at_once()) {
        let kept = selected.slice(range.start, range.len());
        let count = kept.count_set_bits();
        if count == 0 {
            continue;
        }
        context.watch.check()?;
        let keep = (count < kept.len()).then_some(&kept);
        let wants: &[Want] = if with_keys { &[Want::Key] } else { &[] };
        let keys = unit.read(&context.shared.cache, range.clone(), keep, wants)?;
        let keys = keys.first().map_or(&[][..], |keys| keys.as_primitive::<UInt64Type>().values());
        take(compiled.run(&Rows { range, keep })?, keys, count)?;
    }
    Ok(())
}

/// Processes rows by their values.
fn one_by_one(
    bound: &Bound,
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    seen: &SpanSelection<'_>,
    page: &Page,
) -> Result<Part, EngineError> {
    let outlet = Outlet::new(bound, page, &context.env, context.watch)?;
    let exprs: Vec<BoundExpr> = outlet.slots.exprs();
    // The unpivot itself fills the slots of its columns.
    let is_stored = |expr: &&BoundExpr| !matches!(expr, BoundExpr::Field(Field::Unpivoted(_), _));
    let stored: Vec<&BoundExpr> = exprs.iter().filter(is_stored).collect();
    let xact = BoundExpr::Field(Field::Column("_xact_id"), Vec::new());
    let root = BoundExpr::Field(Field::Column("root_span_id"), Vec::new());
    let all: Vec<&BoundExpr> = stored.iter().copied().chain([&xact, &root]).collect();
    let made = each(
        context,
        pieces,
        || (outlet.start(), context.watch.hold()),
        |(part, held), _, piece| {
            let selected = seen.select(context, piece)?;
            let object = context.sources[piece.source].number;
            each_part(context, piece, &selected, &all, true, |columns, keys, _| {
                for (row, key) in keys.iter().enumerate() {
                    if row % CHECKED_ROWS == 0 {
                        context.watch.check()?;
                    }
                    let mut values = columns.iter().map(|(array, ty)| value_at(array, *ty, row).into_owned());
                    let slots = exprs.iter().map(|expr| match is_stored(&expr) {
                        true => values.next().unwrap_or(Value::Null),
                        false => Value::Null,
                    });
                    let slots = slots.collect();
                    let (xacts, roots) = (&columns[stored.len()].0, &columns[stored.len() + 1].0);
                    let (mut place, mut xact) = (*key, xacts.as_primitive::<UInt64Type>().value(row));
                    if let Some(traces) = seen.traces {
                        let trace = traces.of(piece.source, text_at(roots, row));
                        (place, xact) = trace.map_or((place, xact), |trace| (trace.place, trace.xact));
                    }
                    let rank = Rank { sort: Vec::new(), place, xact, object, key: *key, nth: 0 };
                    outlet.push(Flowing { slots, rank }, part, held)?;
                }
                held.now(part.bytes())
            })
        },
    )?;
    Part::together(made.into_iter().map(|(part, _)| part).collect(), bound, page)
}

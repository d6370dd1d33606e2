//! Rows of shape summary: the needed columns of the spans are read and rolled up one trace at a time (`summary`).

use ahash::{AHashMap, AHashSet};
use arrow_array::cast::AsArray;
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{Aggregate, Bound, BoundExpr, Derived, Field, Order, Output};
use assay_node_btql::columns::COMPARISON_KEY;
use assay_node_btql::values::Value;
use assay_node_expressions::Program;
use assay_node_expressions::aggregates::{text_at, value_at};
use assay_storage_model::{PaginationKey, Xact};
use assay_storage_segments::Want;

use crate::EngineError;
use crate::groups::GroupTable;
use crate::leaf::spans::each_part;
use crate::rows::output::{Flowing, Outlet, Page, Part, order_of};
use crate::rows::rank::value_bytes;
use crate::rows::row_expressions::{Slots, holds, stepped, values_asked};
use crate::scan::ScanContext;
use crate::scan::blind;
use crate::scan::each;
use crate::scan::filter::Filter;
use crate::scheduling::watch::MemoryHold;
use crate::summary::{self, Span, Trace};
use crate::traces::units::pieces_of;
use crate::traces::{SelectedTrace, Traces, first};

/// Upper bound of the traces in memory.
const TRACES_AT_ONCE: usize = 4096;

/// Multiple of a page's traces above which sort keys are read first. All other columns are then read for the best
/// traces only.
const WORTH_TWO_LOOKS: usize = 2;

/// Path of at most two steps: a column or a member of one.
type Read = (&'static str, Option<String>);

/// Plan for converting traces to rows, and the rows to a result.
struct RollUp<'b> {
    outlet: Outlet,
    /// Paths to read of each span for the summary itself.
    reads: Vec<Read>,
    /// Additional paths for expressions on single spans.
    of_spans: Slots,
    comparison: Option<Program>,
    weighted: Vec<(&'b str, Program)>,
    weights: Slots,
    having: Option<Having<'b>>,
}

struct Having<'b> {
    condition: Program,
    slots: Slots,
    aggregates: &'b [Aggregate],
    aggregated: Vec<Option<Program>>,
}

/// Span with the columns that were read.
struct SpanRow<'r> {
    reads: &'r [Read],
    values: Vec<Value<'static>>,
    /// Values for expressions on spans.
    slots: Vec<Value<'static>>,
    key: u64,
    is_seen: bool,
    is_root: bool,
}

impl Span for SpanRow<'_> {
    fn column(&self, name: &'static str) -> Value<'_> {
        let place = self.reads.iter().position(|(column, member)| *column == name && member.is_none());
        place.map_or(Value::Null, |place| self.values[place].view())
    }

    fn member(&self, column: &'static str, key: &str) -> Value<'_> {
        let of_path = |(name, member): &Read| *name == column && member.as_deref() == Some(key);
        match self.reads.iter().position(of_path) {
            Some(place) => self.values[place].view(),
            None => stepped(self.column(column), &[Step::Key(key.to_owned())]),
        }
    }
}

pub(crate) fn run(
    bound: &Bound,
    context: &ScanContext<'_>,
    mut found: Vec<SelectedTrace>,
    page: &Page,
) -> Result<Part, EngineError> {
    let has_having = bound.traces.as_ref().is_some_and(|traces| traces.having.is_some());
    let all_are_rows = bound.unpivot.is_empty() && bound.unpivoted_filter.is_none() && !has_having;
    match &bound.output {
        Output::Rows { order: Order::Key { .. }, .. } | Output::Infer(_) if all_are_rows => {
            found = first(found, context, &order_of(bound), page.after, page.limit);
        }
        Output::Rows { order, .. } if all_are_rows && found.len() > page.limit.saturating_mul(WORTH_TWO_LOOKS) => {
            let output = Output::Rows { columns: Vec::new(), order: order.clone() };
            let placed = rolled_up(&Bound { output, ..bound.clone() }, context, &found, page)?;
            let Part::Rows(top) = placed else { return Err(EngineError::Damaged) };
            let best: AHashSet<(u32, u64)> = top.finish(order).iter().map(|(rank, _)| rank.trace()).collect();
            found.retain(|found| best.contains(&found.rank(context).trace()));
        }
        _ => {}
    }
    rolled_up(bound, context, &found, page)
}

fn rolled_up(
    bound: &Bound,
    context: &ScanContext<'_>,
    found: &[SelectedTrace],
    page: &Page,
) -> Result<Part, EngineError> {
    let roll_up = RollUp::new(bound, context, page)?;
    let filter = Filter::of(bound.traces.as_ref().and_then(|traces| traces.spans.as_ref()), &context.env);
    let (mut part, mut held) = (roll_up.outlet.start(), context.watch.hold());
    for found in found.chunks(TRACES_AT_ONCE) {
        context.watch.check()?;
        let spans = roll_up.spans(context, found, &filter)?;
        for (found, spans) in found.iter().zip(spans) {
            roll_up.push(context, found, spans, &mut part, &mut held)?;
        }
        held.now(part.bytes())?;
    }
    Ok(part)
}

impl<'b> RollUp<'b> {
    fn new(bound: &'b Bound, context: &ScanContext<'_>, page: &Page) -> Result<RollUp<'b>, EngineError> {
        let outlet = Outlet::new(bound, page, &context.env, context.watch)?;
        let (mut of_spans, mut weights) = (Slots::default(), Slots::default());
        let comparison = bound.comparison_key.as_ref().map(|key| of_spans.compile(key, &context.env)).transpose()?;
        let weighted = bound.weighted_scores.iter();
        let weighted = weighted.map(|(name, expr)| Ok((name.as_str(), weights.compile(expr, &context.env)?)));
        let weighted = weighted.collect::<Result<Vec<_>, EngineError>>()?;
        let having = bound.traces.as_ref().and_then(|traces| traces.having.as_ref());
        let having = having.map(|(condition, aggregates)| {
            let mut slots = Slots::default();
            let condition = slots.compile(condition, &context.env)?;
            let aggregated = aggregates
                .iter()
                .map(|aggregate| aggregate.of.as_ref().map(|of| of_spans.compile(of, &context.env)).transpose());
            let aggregated = aggregated.collect::<Result<_, EngineError>>()?;
            Ok::<_, EngineError>(Having { condition, slots, aggregates, aggregated })
        });
        let having = having.transpose()?;
        let mut reads: Vec<Read> = Vec::new();
        let of_having = having.iter().flat_map(|having| &having.slots.fields);
        for (field, steps) in outlet.slots.fields.iter().chain(&weights.fields).chain(of_having) {
            reads.extend(reads_of(field, steps, !weighted.is_empty()));
        }
        reads.sort();
        reads.dedup();
        Ok(RollUp { outlet, reads, of_spans, comparison, weighted, weights, having })
    }

    /// Returns the spans of each trace, selected or not, in the order of their keys.
    fn spans(
        &self,
        context: &ScanContext<'_>,
        found: &[SelectedTrace],
        filter: &Filter,
    ) -> Result<Vec<Vec<SpanRow<'_>>>, EngineError> {
        let traces = Traces::from_found(found, context.sources.len());
        let number = |(number, found): (usize, &SelectedTrace)| ((found.source, found.root_span_id.clone()), number);
        let numbers: AHashMap<(usize, Box<str>), usize> = found.iter().enumerate().map(number).collect();
        let exprs = self.exprs();
        let exprs: Vec<&BoundExpr> = exprs.iter().collect();
        let pieces = pieces_of(context, found)?;
        let start = || (Vec::<(usize, SpanRow<'_>)>::new(), context.watch.hold(), 0);
        let made = each(context, &pieces, start, |(made, held, bytes), _, piece| {
            let visible = blind::visible(&piece.unit, &context.sources[piece.source], context.shared)?;
            let all = traces.narrow(context, piece, visible)?;
            let seen = filter.select(context, &piece.unit, &context.sources[piece.source])?;
            let wants = [Want::RootSpanId, Want::IsRoot];
            let fixed = piece.unit.read(&context.shared.cache, 0..all.len(), Some(&all), &wants)?;
            let (roots, is_root) = (&fixed[0], fixed[1].as_boolean());
            let mut rows = all.set_indices().enumerate();
            each_part(context, piece, &all, &exprs, true, |columns, keys, _| {
                for (nth, key) in keys.iter().enumerate() {
                    let Some((number, row)) = rows.next() else { return Err(EngineError::Damaged) };
                    let values = columns.iter().map(|(array, ty)| value_at(array, *ty, nth).into_owned());
                    let mut values: Vec<Value<'static>> = values.collect();
                    let slots = values.split_off(self.reads.len());
                    *bytes += values.iter().chain(&slots).map(value_bytes).sum::<usize>();
                    let (is_seen, is_root) = (seen.value(row), is_root.value(number));
                    let span = SpanRow { reads: &self.reads, values, slots, key: *key, is_seen, is_root };
                    let trace = (piece.source, Box::<str>::from(text_at(roots, number)));
                    made.push((*numbers.get(&trace).ok_or(EngineError::Damaged)?, span));
                }
                held.now(*bytes)
            })
        })?;
        let mut all: Vec<Vec<SpanRow<'_>>> = found.iter().map(|_| Vec::new()).collect();
        made.into_iter().flat_map(|(made, ..)| made).for_each(|(number, span)| all[number].push(span));
        all.iter_mut().for_each(|spans| spans.sort_by_key(|span| span.key));
        Ok(all)
    }

    /// Returns all expressions to read of a span.
    fn exprs(&self) -> Vec<BoundExpr> {
        let of_read = |(column, member): &Read| {
            BoundExpr::Field(Field::Column(column), member.iter().map(|key| Step::Key(key.clone())).collect())
        };
        self.reads.iter().map(of_read).chain(self.of_spans.exprs()).collect()
    }

    fn push(
        &self,
        context: &ScanContext<'_>,
        found: &SelectedTrace,
        spans: Vec<SpanRow<'_>>,
        part: &mut Part,
        held: &mut MemoryHold,
    ) -> Result<(), EngineError> {
        let root = spans.iter().position(|span| span.is_root);
        let seen: Vec<&SpanRow<'_>> = spans.iter().filter(|span| span.is_seen).collect();
        if seen.is_empty() {
            return Ok(());
        }
        let root = root.map(|root| &spans[root]);
        let trace = Trace {
            spans: &seen,
            root: root.as_ref(),
            key: PaginationKey(found.trace.place),
            xact: Xact(found.trace.xact),
            prices: &context.shared.prices,
        };
        let scores = self.scores(&trace)?;
        let of_root = |key: &Program| root.map_or(Ok(Value::Null), |root| key.value(&root.slots));
        let comparison = self.comparison.as_ref().map(of_root).transpose()?;
        let comparison = comparison.map_or(Value::Null, |of_root| summary::comparison_key(&of_root));
        let value = |field: &Field, steps: &[Step]| self.value(&trace, scores.as_ref(), &comparison, field, steps);
        if let Some(having) = &self.having
            && !having.holds(context, &seen, &value)?
        {
            return Ok(());
        }
        let slots = self.outlet.slots.fields.iter().map(|(field, steps)| value(field, steps)).collect();
        self.outlet.push(Flowing { slots, rank: found.rank(context) }, part, held)
    }

    /// Returns the scores with weighted ones, or `None` without weighted scores.
    fn scores(&self, trace: &Trace<'_, &SpanRow<'_>>) -> Result<Option<Value<'static>>, EngineError> {
        if self.weighted.is_empty() {
            return Ok(None);
        }
        let slots = self.weights.fields.iter();
        let slots = slots.map(|(field, steps)| self.value(trace, None, &Value::Null, field, steps));
        let slots: Vec<Value<'static>> = slots.collect();
        let mut scores = trace.column("scores");
        for (name, weighted) in &self.weighted {
            summary::weigh(&mut scores, name, weighted.value(&slots)?);
        }
        Ok(Some(scores))
    }

    fn value(
        &self,
        trace: &Trace<'_, &SpanRow<'_>>,
        scores: Option<&Value<'static>>,
        comparison: &Value<'static>,
        field: &Field,
        steps: &[Step],
    ) -> Value<'static> {
        match (field, steps) {
            (Field::Derived(Derived::EstimatedCost), _) => trace.metric("estimated_cost"),
            (Field::Column("scores"), _) if let Some(scores) = scores => stepped(scores.view(), steps),
            (Field::Column(COMPARISON_KEY), _) => stepped(comparison.view(), steps),
            (Field::Column(name), [Step::Key(key), rest @ ..]) => stepped(trace.member(name, key), rest),
            (Field::Column(name), _) => stepped(trace.column(name), steps),
            // Other fields are set by their producers.
            _ => Value::Null,
        }
    }
}

/// Returns the paths to read of spans for a field of their summary.
fn reads_of(field: &Field, steps: &[Step], is_weighted: bool) -> Vec<Read> {
    match (field, steps) {
        (Field::Derived(Derived::EstimatedCost), _) => summary::reads("metrics", Some("estimated_cost")),
        (Field::Column("scores"), _) if is_weighted => summary::reads("scores", None),
        (Field::Column(name), [Step::Key(key), ..]) => summary::reads(name, Some(key)),
        (Field::Column(name), _) => summary::reads(name, None),
        _ => Vec::new(),
    }
}

impl Having<'_> {
    /// Returns whether the condition holds. Aggregates are over the visible spans, and columns are those of the summary
    /// (D-89).
    fn holds(
        &self,
        context: &ScanContext<'_>,
        seen: &[&SpanRow<'_>],
        value: &impl Fn(&Field, &[Step]) -> Value<'static>,
    ) -> Result<bool, EngineError> {
        context.watch.check()?;
        let mut table = GroupTable::new(self.aggregates, 0);
        for span in seen {
            table.push_row(Vec::new(), &values_asked(&self.aggregated, &span.slots)?, span.key, 0)?;
        }
        let made = table.finish(false)?;
        let group = made.groups().next();
        let slots = self.slots.fields.iter().map(|(field, steps)| match field {
            Field::Aggregate(_) => stepped(group.map_or(Value::Null, |group| group.field(field)), steps),
            _ => value(field, steps),
        });
        holds(&self.condition, &slots.collect::<Vec<_>>())
    }
}

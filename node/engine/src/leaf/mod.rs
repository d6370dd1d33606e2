//! Part of a query that runs on a node with its objects.
//!
//! An object and its traces are completely on one node. So only groups, or rows that may be on the page, leave the
//! node.

mod audit;
mod ordered_spans;
mod rows;
mod spans;
mod summaries;
mod unpivoted;
mod unpivoted_elements;

use assay_node_btql::ast::{Amount, Shape};
use assay_node_btql::bound::{Bound, Order, Output, Rows, TraceCondition};
use assay_storage_shard::Sought;

use crate::EngineError;
use crate::partial::Partial;
use crate::rows::output::{Page, Part, order_of};
use crate::rows::rank::Position;
use crate::scan::ScanContext;
use crate::scan::each;
use crate::scan::filter::Filter;
use crate::scan::sample_hashes::{self, Lowest, Rate};
use crate::scan::sampling::{Cut, Hash, Sampled, hashes};
use crate::scan::source::{Shared, Source, pieces, sought};
use crate::scheduling::watch::Watch;
use crate::traces::newest::newest;
use crate::traces::units::{FETCHED_TRACES_MAX, of_roots, pieces_of};
use crate::traces::{self, Roots, SelectedTrace, Traces};
use spans::SpanSelection;

pub use rows::LeafRows;
pub(crate) use rows::{counted, counts_traces, position};

/// Divisor of the rows. A condition that selects a larger share is not used to select traces.
const FEW_ONE_IN: usize = 8;
/// Bytes of a candidate trace.
const ROOT_BYTES: usize = 80;

/// Parameters of a leaf in addition to the query.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ask {
    /// Upper bound of the rows or traces, or `None` for all.
    pub limit: Option<u64>,
    /// Bytes of texts after which the result may end early, for queries of single rows.
    pub bytes: Option<usize>,
    pub after: Option<Position>,
    /// Highest hash in a sample of fixed size, after all nodes have reported their hashes.
    pub until: Option<Hash>,
    /// Seed of the hashes of distinct values, which is the same on all nodes.
    pub seed: u64,
}

/// Runs the query over the objects of this node.
pub fn run(
    bound: &Bound,
    sources: &[Source],
    shared: &Shared,
    watch: &Watch,
    ask: &Ask,
) -> Result<Partial, EngineError> {
    let context = ScanContext { sources, shared, watch, env: watch.env(bound.tz_offset) };
    let limit = ask.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let Ask { bytes, after, seed, .. } = *ask;
    let page = Page { limit: limit_of(bound, limit), traces: usize::MAX, bytes, after, seed };
    let part = match shape_of(bound)? {
        Shape::Spans if bound.audit_log => audit::run(bound, &context, sampled(bound, ask), &page)?,
        Shape::Spans => {
            let sampled = sampled(bound, ask);
            let seen = SpanSelection { filter: Filter::of(bound.filter.as_ref(), &context.env), traces: None, sampled };
            match sought(&bound.bounds) {
                Some(sought) => spans::run(bound, &context, pieces(sources, &sought)?, &seen, &page)?,
                None => Part::new(bound, &page),
            }
        }
        Shape::Traces => of_traces(bound, &context, ask, &page)?,
        Shape::Summary => {
            // A limit counts traces, and one trace may become several rows.
            let limit = if bound.unpivot.is_empty() { page.limit } else { usize::MAX };
            summaries::run(bound, &context, selected(bound, &context, ask, &page)?, &Page { limit, ..page })?
        }
    };
    Partial::of(part, bound)
}

/// Returns the lowest hashes, at most as many as the sample has.
pub fn lowest(bound: &Bound, sources: &[Source], shared: &Shared, watch: &Watch) -> Result<Vec<Hash>, EngineError> {
    let Some((Amount::Count(count), seed)) = bound.sample else { return Ok(Vec::new()) };
    let context = ScanContext { sources, shared, watch, env: watch.env(bound.tz_offset) };
    let mut all = Lowest::new(count);
    if bound.audit_log {
        audit::ids(bound, &context, |id, object| all.offer(sample_hashes::hash(seed, id), object))?;
        return Ok(all.into_sorted());
    }
    if shape_of(bound)? != Shape::Spans {
        for found in traces_of(bound, &context)? {
            all.offer(sample_hashes::hash(seed, &found.root_span_id), sources[found.source].number);
        }
        return Ok(all.into_sorted());
    }
    let Some(sought) = sought(&bound.bounds) else { return Ok(Vec::new()) };
    let filter = Filter::of(bound.filter.as_ref(), &context.env);
    let pieces = pieces(sources, &sought)?;
    let made = each(
        &context,
        &pieces,
        || Lowest::new(count),
        |lowest, _, piece| {
            let selected = filter.select(&context, &piece.unit, &sources[piece.source])?;
            hashes(&context, piece, &selected, seed, |(hash, object)| lowest.offer(hash, object))
        },
    )?;
    made.into_iter().for_each(|lowest| all.merge(lowest));
    Ok(all.into_sorted())
}

fn shape_of(bound: &Bound) -> Result<Shape, EngineError> {
    match &bound.rows {
        Rows::Objects { shape, .. } => Ok(*shape),
        Rows::Query(_) => Err(EngineError::Refused("a query within another is run before that".into())),
    }
}

/// Returns the limit of rows, which for `infer` is its budget.
fn limit_of(bound: &Bound, limit: usize) -> usize {
    match &bound.output {
        Output::Infer(infer) => usize::try_from(infer.budget).unwrap_or(usize::MAX),
        Output::Rows { .. } | Output::Groups(_) => limit,
    }
}

fn sampled(bound: &Bound, ask: &Ask) -> Option<Sampled> {
    let (amount, seed) = bound.sample?;
    let cut = match amount {
        Amount::Rate(rate) => Cut::Rate(Rate::of(rate)),
        Amount::Count(_) => Cut::Until(ask.until),
    };
    Some(Sampled { seed, cut })
}

/// Returns the selected and sampled traces. If the newest come first, they may be only those that a page needs.
fn selected(
    bound: &Bound,
    context: &ScanContext<'_>,
    ask: &Ask,
    page: &Page,
) -> Result<Vec<SelectedTrace>, EngineError> {
    if let Some(found) = newest(bound, context, page)? {
        return Ok(found);
    }
    let mut found = traces_of(bound, context)?;
    if let Some(sampled) = sampled(bound, ask) {
        found.retain(|found| sampled.takes(&found.root_span_id, context.sources[found.source].number));
    }
    Ok(found)
}

fn traces_of(bound: &Bound, context: &ScanContext<'_>) -> Result<Vec<SelectedTrace>, EngineError> {
    let among = candidates(bound, context)?;
    let many = among.iter().flatten().map(|roots| roots.len()).sum::<usize>();
    let mut held = context.watch.hold();
    held.now(many * ROOT_BYTES)?;
    let few = among.as_ref().filter(|_| many <= FETCHED_TRACES_MAX);
    let all = match few {
        Some(roots) => of_roots(context, roots.iter().map(|roots| roots.iter().map(|root| String::from(&**root))))?,
        None => pieces(context.sources, &Sought::default())?,
    };
    traces::select(context, &all, bound.traces.as_ref(), among.as_deref())
}

/// Returns the ids of candidate traces, if one condition alone leaves few of them.
fn candidates(bound: &Bound, context: &ScanContext<'_>) -> Result<Option<Vec<Roots>>, EngineError> {
    let condition = bound.traces.as_ref().and_then(|traces| traces.condition.as_ref());
    let needed = match condition {
        Some(TraceCondition::AnySpan(expr)) => Some(expr),
        Some(TraceCondition::And(of)) => of.iter().find_map(|of| match of {
            TraceCondition::AnySpan(expr) => Some(expr),
            _ => None,
        }),
        _ => None,
    };
    if let Some(roots) = &bound.bounds.root_span_ids {
        let roots: Roots = roots.iter().map(|root| root.as_str().into()).collect();
        return Ok(Some(vec![roots; context.sources.len()]));
    }
    let Some(needed) = needed else { return Ok(None) };
    // The bounds of the query may differ from those of this condition.
    let filter = Filter::of(Some(needed), &context.env);
    let pieces = pieces(context.sources, &Sought::default())?;
    let start = || (Gathered::new(context.sources.len()), context.watch.hold());
    let made = each(context, &pieces, start, |(gathered, held), _, piece| {
        if gathered.is_most() {
            return Ok(());
        }
        let selected = filter.select(context, &piece.unit, &context.sources[piece.source])?;
        gathered.rows += selected.len();
        gathered.selected += selected.count_set_bits();
        traces::roots(context, piece, &selected, |root| {
            if !gathered.roots[piece.source].contains(root) {
                gathered.roots[piece.source].insert(root.into());
            }
        })?;
        held.now(gathered.len() * ROOT_BYTES)
    })?;
    let mut all = Gathered::new(context.sources.len());
    for (gathered, _) in made {
        if gathered.is_most() {
            return Ok(None);
        }
        for (all, roots) in all.roots.iter_mut().zip(gathered.roots) {
            all.extend(roots);
        }
    }
    Ok(Some(all.roots))
}

/// Ids of traces with a span that a condition selects, found so far.
struct Gathered {
    roots: Vec<Roots>,
    rows: usize,
    selected: usize,
}

impl Gathered {
    fn new(sources: usize) -> Gathered {
        Gathered { roots: vec![Roots::new(); sources], rows: 0, selected: 0 }
    }

    fn len(&self) -> usize {
        self.roots.iter().map(|roots| roots.len()).sum()
    }

    /// Returns whether the condition selects so many rows that applying it first is not worthwhile.
    fn is_most(&self) -> bool {
        self.len() > FETCHED_TRACES_MAX && self.selected * FEW_ONE_IN > self.rows
    }
}

/// Returns the visible spans of the selected traces.
fn of_traces(bound: &Bound, context: &ScanContext<'_>, ask: &Ask, page: &Page) -> Result<Part, EngineError> {
    let mut found = selected(bound, context, ask, page)?;
    let order = order_of(bound);
    let is_listed = matches!(&bound.output, Output::Rows { order: Order::Key { .. }, .. });
    if is_listed && bound.unpivot.is_empty() {
        found = traces::first(found, context, &order, page.after, page.limit);
    }
    let spans = bound.traces.as_ref().and_then(|traces| traces.spans.as_ref());
    let traces = Traces::from_found(&found, context.sources.len());
    let seen = SpanSelection { filter: Filter::of(spans, &context.env), traces: Some(&traces), sampled: None };
    // A limit counts traces, and all of their rows are returned.
    let is_of_rows = matches!(bound.output, Output::Infer(_));
    let (limit, traces) = if is_of_rows { (page.limit, usize::MAX) } else { (usize::MAX, page.limit) };
    spans::run(bound, context, pieces_of(context, &found)?, &seen, &Page { limit, traces, bytes: None, ..*page })
}

//! Selection of traces, and the position of each trace (btql.md, sections 7 and 13).
//!
//! The spans of a trace may be in any unit. A scan reads the short columns of every span: its trace id, key, and root
//! flag. Conditions apply to single spans. Each trace has one bit for each condition.

pub(crate) mod newest;
pub(crate) mod units;

use ahash::{AHashMap, AHashSet};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_buffer::BooleanBuffer;
use arrow_buffer::BooleanBufferBuilder;
use assay_node_btql::bound::{Order, TraceCondition, TraceFilter};
use assay_node_expressions::Env;
use assay_node_expressions::Type;
use assay_node_expressions::aggregates::text_at;
use assay_storage_segments::Want;

use crate::EngineError;
use crate::groups::codes::Codes;
use crate::rows::rank::{Position, Rank};
use crate::scan::ScanContext;
use crate::scan::blind;
use crate::scan::each;
use crate::scan::filter::Filter;
use crate::scan::source::ScanUnit;

/// Upper bound of the conditions on single spans in one query.
const CONDITIONS_MAX: usize = 128;
/// Bytes of a trace in addition to its id.
const TRACE_BYTES: usize = 96;

/// Position of a trace of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TracePosition {
    /// Key of the root span or, without a root, of the first span.
    pub place: u64,
    /// Last transaction that changed any of the spans.
    pub xact: u64,
    pub has_root: bool,
}

/// Trace ids of a source.
pub(crate) type Roots = AHashSet<Box<str>>;

/// Positions of traces by their ids, for each source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    of_sources: Vec<AHashMap<Box<str>, TracePosition>>,
}

/// State of a trace during the scan of its spans.
#[derive(Clone, Copy, Debug)]
struct TraceScan {
    first: u64,
    root: Option<u64>,
    xact: u64,
    /// Bit of each condition that some span satisfies.
    satisfied: u128,
}

/// Selected trace with its source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SelectedTrace {
    pub source: usize,
    pub root_span_id: Box<str>,
    pub trace: TracePosition,
}

/// Conditions on single spans, and their combination for a trace.
struct Conditions<'c> {
    spans: Vec<Filter>,
    of_trace: Option<&'c TraceCondition>,
    /// Index of the condition that visible spans satisfy.
    seen: Option<usize>,
}

impl Traces {
    pub fn of(&self, source: usize, root_span_id: &str) -> Option<TracePosition> {
        self.of_sources.get(source)?.get(root_span_id).copied()
    }

    pub fn from_found(found: &[SelectedTrace], sources: usize) -> Traces {
        let mut of_sources: Vec<AHashMap<Box<str>, TracePosition>> = (0..sources).map(|_| AHashMap::new()).collect();
        for SelectedTrace { source, root_span_id, trace } in found {
            of_sources[*source].insert(root_span_id.clone(), *trace);
        }
        Traces { of_sources }
    }

    /// Narrows the selected spans of a unit to those of these traces.
    pub fn narrow(
        &self,
        context: &ScanContext<'_>,
        piece: &ScanUnit,
        selected: BooleanBuffer,
    ) -> Result<BooleanBuffer, EngineError> {
        let rows = selected.len();
        if selected.count_set_bits() == 0 {
            return Ok(selected);
        }
        let columns = piece.unit.read(&context.shared.cache, 0..rows, Some(&selected), &[Want::RootSpanId])?;
        let codes = Codes::of(&columns[0], Type::Text);
        let is_one = |row: &u32| self.of(piece.source, text_at(&columns[0], *row as usize)).is_some();
        let is_one: Vec<bool> = codes.first.iter().map(is_one).collect();
        let mut bits = BooleanBufferBuilder::new(rows);
        bits.append_n(rows, false);
        for (place, code) in selected.set_indices().zip(&codes.of_rows) {
            if is_one[*code as usize] {
                bits.set_bit(place, true);
            }
        }
        Ok(bits.finish())
    }
}

impl<'c> Conditions<'c> {
    fn of(filter: Option<&'c TraceFilter>, env: &Env) -> Result<Conditions<'c>, EngineError> {
        let mut spans = Vec::new();
        let of_trace = filter.and_then(|filter| filter.condition.as_ref());
        of_trace.into_iter().for_each(|condition| about_spans(condition, env, &mut spans));
        let seen = filter.and_then(|filter| filter.spans.as_ref()).map(|expr| {
            spans.push(Filter::of(Some(expr), env));
            spans.len() - 1
        });
        if spans.len() > CONDITIONS_MAX {
            return Err(EngineError::Refused(format!("a query has at most {CONDITIONS_MAX} conditions about spans")));
        }
        Ok(Conditions { spans, of_trace, seen })
    }

    fn select(&self, met: &TraceScan) -> bool {
        let is_seen = self.seen.is_none_or(|bit| met.satisfied >> bit & 1 == 1);
        is_seen && self.of_trace.is_none_or(|condition| holds(condition, met.satisfied, &mut 0))
    }
}

/// Collects conditions on spans in the order of [`holds`].
fn about_spans(condition: &TraceCondition, env: &Env, spans: &mut Vec<Filter>) {
    match condition {
        TraceCondition::AnySpan(expr) => spans.push(Filter::of(Some(expr), env)),
        TraceCondition::Not(of) => about_spans(of, env, spans),
        TraceCondition::And(of) | TraceCondition::Or(of) => of.iter().for_each(|of| about_spans(of, env, spans)),
    }
}

fn holds(condition: &TraceCondition, satisfied: u128, next: &mut u32) -> bool {
    // Each condition is visited, whatever the others return, so that bits keep their places.
    let mut each = |of: &[TraceCondition]| of.iter().map(|of| holds(of, satisfied, next)).collect::<Vec<bool>>();
    match condition {
        TraceCondition::And(of) => each(of).into_iter().all(|held| held),
        TraceCondition::Or(of) => each(of).into_iter().any(|held| held),
        TraceCondition::Not(of) => !holds(of, satisfied, next),
        TraceCondition::AnySpan(_) => {
            let held = satisfied >> *next & 1 == 1;
            *next += 1;
            held
        }
    }
}

/// Selects traces with a visible span, among `among` if it is given.
pub(crate) fn select(
    context: &ScanContext<'_>,
    pieces: &[ScanUnit],
    filter: Option<&TraceFilter>,
    among: Option<&[Roots]>,
) -> Result<Vec<SelectedTrace>, EngineError> {
    let conditions = Conditions::of(filter, &context.env)?;
    let sources = context.sources.len();
    let start = || (vec![AHashMap::<Box<str>, TraceScan>::new(); sources], context.watch.hold());
    let made = each(context, pieces, start, |(met, held), _, piece| {
        meet(context, piece, &conditions, among.map(|among| &among[piece.source]), &mut met[piece.source])?;
        let all: usize = met.iter().map(|met| met.len()).sum();
        held.now(all * TRACE_BYTES)
    })?;
    let mut made = made.into_iter();
    let Some((mut all, _)) = made.next() else { return Ok(Vec::new()) };
    for (others, _) in made {
        for (all, others) in all.iter_mut().zip(others) {
            for (root, met) in others {
                all.entry(root).and_modify(|known| known.and(&met)).or_insert(met);
            }
        }
    }
    let found = all.into_iter().enumerate().flat_map(|(source, met)| {
        let selected = met.into_iter().filter(|(_, met)| conditions.select(met));
        selected.map(move |(root_span_id, met)| SelectedTrace { source, root_span_id, trace: met.trace() })
    });
    Ok(found.collect())
}

fn meet(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    conditions: &Conditions<'_>,
    among: Option<&Roots>,
    all: &mut AHashMap<Box<str>, TraceScan>,
) -> Result<(), EngineError> {
    let ScanUnit { unit, source } = piece;
    let visible = blind::visible(unit, &context.sources[*source], context.shared)?;
    if visible.count_set_bits() == 0 {
        return Ok(());
    }
    let wants = [Want::RootSpanId, Want::Key, Want::Xact, Want::IsRoot];
    let columns = unit.read(&context.shared.cache, 0..visible.len(), None, &wants)?;
    let codes = Codes::of(&columns[0], Type::Text);
    let (keys, xacts) = (columns[1].as_primitive::<UInt64Type>(), columns[2].as_primitive::<UInt64Type>());
    let is_root = columns[3].as_boolean();
    let root = |row: u32| text_at(&columns[0], row as usize);
    let may_be = |row: &u32| among.is_none_or(|among| among.contains(root(*row)));
    let may_be: Vec<bool> = codes.first.iter().map(may_be).collect();
    let mut met: Vec<Option<TraceScan>> = vec![None; codes.first.len()];
    for row in visible.set_indices().filter(|row| may_be[codes.of_rows[*row] as usize]) {
        let (key, xact) = (keys.value(row), xacts.value(row));
        let one = TraceScan { first: key, root: is_root.value(row).then_some(key), xact, satisfied: 0 };
        match &mut met[codes.of_rows[row] as usize] {
            Some(known) => known.and(&one),
            none => *none = Some(one),
        }
    }
    for (number, filter) in conditions.spans.iter().enumerate() {
        for row in filter.select(context, unit, &context.sources[*source])?.set_indices() {
            if let Some(met) = &mut met[codes.of_rows[row] as usize] {
                met.satisfied |= 1 << number;
            }
        }
    }
    for (met, row) in met.into_iter().zip(&codes.first) {
        let Some(met) = met else { continue };
        let root = root(*row);
        match all.get_mut(root) {
            Some(known) => known.and(&met),
            None => drop(all.insert(root.into(), met)),
        }
    }
    Ok(())
}

impl TraceScan {
    fn and(&mut self, other: &TraceScan) {
        self.first = self.first.min(other.first);
        self.root = match (self.root, other.root) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.xact = self.xact.max(other.xact);
        self.satisfied |= other.satisfied;
    }

    fn trace(&self) -> TracePosition {
        TracePosition { place: self.root.unwrap_or(self.first), xact: self.xact, has_root: self.root.is_some() }
    }
}

/// Passes the trace ids of the selected rows to `take`. An id may repeat.
pub(crate) fn roots(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    selected: &BooleanBuffer,
    mut take: impl FnMut(&str),
) -> Result<(), EngineError> {
    if selected.count_set_bits() == 0 {
        return Ok(());
    }
    let columns = piece.unit.read(&context.shared.cache, 0..selected.len(), Some(selected), &[Want::RootSpanId])?;
    let codes = Codes::of(&columns[0], Type::Text);
    codes.first.iter().for_each(|row| take(text_at(&columns[0], *row as usize)));
    Ok(())
}

impl SelectedTrace {
    pub fn rank(&self, context: &ScanContext<'_>) -> Rank {
        let TracePosition { place, xact, .. } = self.trace;
        Rank { sort: Vec::new(), place, xact, object: context.sources[self.source].number, key: place, nth: 0 }
    }
}

/// Returns the first traces after a page, in their order.
pub(crate) fn first(
    mut found: Vec<SelectedTrace>,
    context: &ScanContext<'_>,
    order: &Order,
    after: Option<Position>,
    limit: usize,
) -> Vec<SelectedTrace> {
    found.retain(|found| after.is_none_or(|after| found.rank(context).is_behind(&after, order)));
    if found.len() > limit && limit > 0 {
        found.select_nth_unstable_by(limit - 1, |left, right| left.rank(context).compare(&right.rank(context), order));
    }
    found.truncate(limit);
    found.sort_by(|left, right| left.rank(context).compare(&right.rank(context), order));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_node_btql::bound::{BoundExpr, Datum};

    #[test]
    fn conditions_keep_their_bits_whatever_holds() {
        let any = || TraceCondition::AnySpan(BoundExpr::Const(Datum::Boolean(true)));
        let not = |of| TraceCondition::Not(Box::new(of));
        let condition = TraceCondition::And(vec![
            TraceCondition::Or(vec![any(), any()]),
            not(any()),
            TraceCondition::Or(vec![not(TraceCondition::And(vec![any(), any()])), any()]),
        ]);
        let mut spans = Vec::new();
        about_spans(&condition, &Env::default(), &mut spans);
        assert_eq!(spans.len(), 6);
        for satisfied in 0..64_u128 {
            let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|bit| satisfied >> bit & 1 == 1);
            assert_eq!(holds(&condition, satisfied, &mut 0), (a || b) && !c && (!(d && e) || f), "{satisfied:b}");
        }
    }
}

//! Audit of single rows, write by write (D-90).
//!
//! Each write is a result row with the columns that it wrote. The filter names the ids. The writes of a page are chosen
//! before any of them is read.

use std::collections::BTreeMap;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{Bound, Derived, Field, Order, Output};
use assay_node_btql::values::Value;
use assay_node_expressions::Program;
use assay_storage_model::merge::{DocField, doc_fields};
use assay_storage_segments::Want;
use assay_storage_shard::{PastWrite, Sought, Written};

use crate::EngineError;
use crate::price::Prices;
use crate::rows::output::{Flowing, Outlet, Page, Part, order_of};
use crate::rows::rank::Rank;
use crate::rows::row_expressions::{Slots, holds, stepped};
use crate::scan::ScanContext;
use crate::scan::blind;
use crate::scan::inputs::PRICED_TOKENS;
use crate::scan::sampling::Sampled;
use crate::scan::source::Source;
use crate::scheduling::watch::MemoryHold;

/// Number of writes that are read at once.
const WRITES_AT_ONCE: usize = 16;
/// Number of transaction bits that differ between transactions, and number of bits for the index within one.
const XACT_BITS: u32 = 48;
const NTH_BITS: u32 = u16::BITS;

/// Write that was not read yet.
struct UnreadWrite<'b> {
    id: &'b str,
    /// Index of the source on this node.
    source: usize,
    write: PastWrite,
    rank: Rank,
    /// Whether its reader may see human scores.
    shows_scores: bool,
}

/// Row whose writes a reviewer may see.
#[derive(Clone, Copy, Debug)]
struct ReadableRow {
    /// Pagination key, which differs from that of an earlier row with the same id.
    key: u64,
    shows_scores: bool,
}

/// Write that was read.
struct WriteRow<'r> {
    id: &'r str,
    source: &'r Source,
    prices: &'r Prices,
    write: &'r PastWrite,
    written: &'r Written,
    fields: Vec<DocField<'r>>,
    /// Scores without human ones, for a reader who may not see those.
    masked_scores: Option<String>,
    audit_data: String,
}

/// Condition on each write.
struct Condition {
    slots: Slots,
    program: Option<Program>,
}

pub(crate) fn run(
    bound: &Bound,
    context: &ScanContext<'_>,
    sampled: Option<Sampled>,
    page: &Page,
) -> Result<Part, EngineError> {
    let outlet = Outlet::new(bound, page, &context.env, context.watch)?;
    let condition = Condition::of(bound, context)?;
    let (mut part, mut grown, mut held) = (outlet.start(), context.watch.hold(), context.watch.hold());
    let is_wanted = |id: &str, rank: &Rank| {
        sampled.as_ref().is_none_or(|sampled| sampled.takes(id, rank.object)) && outlet.is_on_page(rank)
    };
    let found = found(bound, context, is_wanted, &mut held)?;
    for found in found.chunks(WRITES_AT_ONCE) {
        if outlet.is_full(&mut part, &found[0].rank) {
            break;
        }
        each(context, &condition, found, |found, row| {
            let slots = outlet.slots.fill(|field| row.value(field));
            outlet.push(Flowing { slots, rank: found.rank.clone() }, &mut part, &mut grown)
        })?;
        grown.now(part.bytes())?;
    }
    Ok(part)
}

/// Passes each id with a selected write to `take`, once and with the number of its object.
pub(crate) fn ids(
    bound: &Bound,
    context: &ScanContext<'_>,
    mut take: impl FnMut(&str, u32),
) -> Result<(), EngineError> {
    let condition = Condition::of(bound, context)?;
    let mut held = context.watch.hold();
    let mut found = found(bound, context, |_, _| true, &mut held)?;
    found.sort_by_key(|found| (found.source, found.id));
    for of_id in found.chunk_by(|left, right| (left.source, left.id) == (right.source, right.id)) {
        let mut is_selected = false;
        for found in of_id.chunks(WRITES_AT_ONCE) {
            each(context, &condition, found, |_, _| {
                is_selected = true;
                Ok(())
            })?;
            if is_selected {
                take(of_id[0].id, of_id[0].rank.object);
                break;
            }
        }
    }
    Ok(())
}

/// Returns all writes to the rows that the query names, in its order.
fn found<'b>(
    bound: &'b Bound,
    context: &ScanContext<'_>,
    is_wanted: impl Fn(&str, &Rank) -> bool,
    held: &mut MemoryHold,
) -> Result<Vec<UnreadWrite<'b>>, EngineError> {
    let order = order_of(bound);
    let mut ids: Vec<&str> = bound.bounds.ids.iter().flatten().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let xacts = bound.bounds.xact.from.unwrap_or(0)..=bound.bounds.xact.to.unwrap_or(u64::MAX);
    let mut all = Vec::new();
    for (number, source) in context.sources.iter().enumerate() {
        let readable = readable(context, number, &ids)?;
        for id in &ids {
            context.watch.check()?;
            let row = readable.as_ref().map(|readable| readable.get(*id));
            if let Some(None) = row {
                continue;
            }
            let row = row.flatten();
            for write in source.view.history(&source.object, id, source.at)? {
                let rank = rank(&write, source, bound, &order);
                let is_readable = row.is_none_or(|row| row.key == write.key.0);
                if is_readable && xacts.contains(&write.xact.0) && is_wanted(id, &rank) {
                    held.more(size_of::<UnreadWrite<'_>>() + write.bytes())?;
                    let shows_scores = row.is_none_or(|row| row.shows_scores);
                    all.push(UnreadWrite { id, source: number, write, rank, shows_scores });
                }
            }
        }
    }
    all.sort_by(|left, right| left.rank.compare(&right.rank, &order));
    if matches!(bound.output, Output::Groups(_)) {
        // Aggregates that collect values need them in the order of the writes.
        all.reverse();
    }
    Ok(all)
}

/// Returns the rows whose writes the reader of a source may see, by their ids. Returns `None` if there is no mask.
///
/// Not among them are reviews of others, and rows that the reader has to review first: their writes reveal other scores.
/// A deleted row is not among them either, because nothing tells any more whether it had reviews.
fn readable(
    context: &ScanContext<'_>,
    number: usize,
    ids: &[&str],
) -> Result<Option<BTreeMap<String, ReadableRow>>, EngineError> {
    let source = &context.sources[number];
    let Some(blind) = &source.blind else { return Ok(None) };
    let sought = Sought { ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()), ..Sought::default() };
    let mut readable = BTreeMap::new();
    for unit in source.view.units(&source.object, source.at, &sought)? {
        let visible = blind::visible(&unit, source, context.shared)?;
        let wants = [vec![Want::Id, Want::Key, blind::assignees_path()], blind::deciding().into()].concat();
        let columns = unit.read(&context.shared.cache, 0..visible.len(), None, &wants)?;
        let (found, keys) = (columns[0].as_string::<i32>(), columns[1].as_primitive::<UInt64Type>());
        let (assignees, submitters) = (columns[2].as_string::<i32>(), columns[3].as_string::<i32>());
        let shows_scores = blind::shown(blind, [&columns[3], &columns[4], &columns[5]]);
        // The ids are sorted.
        for row in visible.set_indices().filter(|row| ids.binary_search(&found.value(*row)).is_ok()) {
            let submitters = submitters.is_valid(row).then(|| submitters.value(row));
            let is_reviewed = submitters.is_some() || assignees.is_valid(row);
            if !is_reviewed || blind.has_submitted(submitters) {
                let of_row = ReadableRow { key: keys.value(row), shows_scores: shows_scores.value(row) };
                readable.insert(found.value(row).to_owned(), of_row);
            }
        }
    }
    Ok(Some(readable))
}

/// Returns the rank of a write. Writes to one row share its key, and those of one transaction also share that.
///
/// So `key` holds the order of the writes, where other rows have their own key. Later writes have higher values, unless
/// the newest come first.
fn rank(write: &PastWrite, source: &Source, bound: &Bound, order: &Order) -> Rank {
    let since = write.xact.0 & ((1 << XACT_BITS) - 1);
    let later = since << NTH_BITS | u64::from(write.nth);
    let is_turned = !matches!(bound.output, Output::Groups(_)) && matches!(order, Order::Key { descending: true, .. });
    let key = if is_turned { !later } else { later };
    Rank { sort: Vec::new(), place: write.key.0, xact: write.xact.0, object: source.number, key, nth: 0 }
}

/// Reads writes and passes those that satisfy the condition to `take`.
fn each(
    context: &ScanContext<'_>,
    condition: &Condition,
    found: &[UnreadWrite<'_>],
    mut take: impl FnMut(&UnreadWrite<'_>, &WriteRow<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    context.watch.check()?;
    let mut held = context.watch.hold();
    for of_source in found.chunk_by(|left, right| left.source == right.source) {
        let source = &context.sources[of_source[0].source];
        let writes: Vec<&PastWrite> = of_source.iter().map(|found| &found.write).collect();
        let read = source.view.written(&writes)?;
        held.now(read.iter().map(|written| written.doc.len()).sum())?;
        for (found, written) in of_source.iter().zip(&read) {
            let row = WriteRow::new(found, source, &context.shared.prices, written)?;
            if condition.holds(&row)? {
                take(found, &row)?;
            }
        }
    }
    Ok(())
}

impl Condition {
    fn of(bound: &Bound, context: &ScanContext<'_>) -> Result<Condition, EngineError> {
        let mut slots = Slots::default();
        let program = bound.filter.as_ref().map(|filter| slots.compile(filter, &context.env)).transpose()?;
        Ok(Condition { slots, program })
    }

    fn holds(&self, row: &WriteRow<'_>) -> Result<bool, EngineError> {
        let Some(program) = &self.program else { return Ok(true) };
        holds(program, &self.slots.fill(|field| row.value(field)))
    }
}

impl<'r> WriteRow<'r> {
    fn new(
        found: &'r UnreadWrite<'_>,
        source: &'r Source,
        prices: &'r Prices,
        written: &'r Written,
    ) -> Result<WriteRow<'r>, EngineError> {
        let fields = if written.doc.is_empty() { Ok(Vec::new()) } else { doc_fields(&written.doc) };
        let fields = fields.map_err(|_| EngineError::Damaged)?;
        let masked_scores = source.blind.as_deref().filter(|_| !found.shows_scores).and_then(|blind| {
            let (_, scores) = fields.iter().find(|(name, _)| name == "scores")?;
            blind::without_human(blind, std::str::from_utf8(scores).ok()?)
        });
        let audit_data = written.audit_data().map_err(|_| EngineError::Damaged)?;
        Ok(WriteRow {
            id: found.id,
            source,
            prices,
            write: &found.write,
            written,
            fields,
            masked_scores,
            audit_data: String::from_utf8(audit_data).map_err(|_| EngineError::Damaged)?,
        })
    }

    fn value(&self, field: &Field) -> Value<'_> {
        match field {
            Field::Column(name) => self.column(name),
            Field::Derived(Derived::EstimatedCost) => self.cost(),
            _ => Value::Null,
        }
    }

    /// Returns a column. Identity columns are those of the row, and all others are as written.
    fn column(&self, name: &str) -> Value<'_> {
        let said = |text: &'r str| if text.is_empty() { Value::Null } else { Value::Text(text.into()) };
        match name {
            "_pagination_key" => Value::Text(self.write.key.to_string().into()),
            "_xact_id" => Value::Xact(self.write.xact.0),
            "id" => Value::Text(self.id.into()),
            "span_id" => said(self.written.span_id.as_str()),
            "root_span_id" => said(self.written.root_span_id.as_str()),
            "is_root" => self.written.is_root.map_or(Value::Null, Value::Boolean),
            "created" => Value::Stored(self.written.created),
            "org_id" | "project_id" | "log_id" | "experiment_id" | "dataset_id" | "prompt_session_id" => {
                self.source.constant(name).map_or(Value::Null, |text| Value::Text(text.into()))
            }
            // Comments are stored apart from rows.
            "comments" => Value::Null,
            "audit_data" => Value::read(&self.audit_data),
            "scores" if let Some(scores) = &self.masked_scores => Value::read(scores),
            _ => {
                let text = self.fields.iter().find(|(known, _)| known == name).map(|(_, text)| *text);
                text.and_then(|text| std::str::from_utf8(text).ok()).map_or(Value::Null, Value::read)
            }
        }
    }

    /// Returns the logged cost, or the cost computed from the tokens of this write alone.
    fn cost(&self) -> Value<'static> {
        let member = |column: &str, key: &str| stepped(self.column(column), &[Step::Key(key.to_owned())]);
        match member("metrics", "estimated_cost") {
            Value::Null => {
                let tokens = PRICED_TOKENS.map(|key| member("metrics", key));
                let (model, kind) = (member("metadata", "model"), member("span_attributes", "type"));
                self.prices.cost_of(&model, &kind, tokens.each_ref())
            }
            logged => logged,
        }
    }
}

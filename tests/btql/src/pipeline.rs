//! Order of evaluation (btql.md, section 12).

use std::cmp::Ordering;

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, BoundExpr, Field, Key, Order, Output, Rows, SortKey, Unpivot};

use crate::aggregate::aggregate;
use crate::data::Dataset;
use crate::row::{EvalContext, Row, Scope};
use crate::scalar::{evaluate, is_true};
use crate::shapes::kept;
use crate::value::{Value, order};
use crate::{cursor, groups, infer, sample, shapes, summary};

/// D-41: what is cut to a preview, and how long one is of a summary (section 7.1).
const PREVIEWED: [&str; 5] = ["input", "output", "expected", "error", "metadata"];
const PREVIEW_LENGTH: i64 = 124;

#[derive(Debug)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// The pagination key of the last row.
    pub cursor: Option<String>,
}

pub fn table(bound: &Bound, data: &Dataset) -> Result<Table, String> {
    let world = EvalContext { tz_offset: bound.tz_offset, prices: &data.prices };
    let rows = source(bound, data, world)?;
    let rows = match bound.sample {
        Some((amount, seed)) => sample::sample(rows, amount, seed)?,
        None => rows,
    };
    let rows = bound.unpivot.iter().try_fold(rows, |rows, unpivot| unpivoted(rows, unpivot, world))?;
    let rows = kept(rows, bound.unpivoted_filter.as_ref(), world)?;
    let rows = of_traces_that_have(bound, rows, world)?;
    let mut table = match &bound.output {
        Output::Rows { columns, order } => return listed(bound, columns, order, rows, world),
        Output::Groups(of) => groups::table(of, rows, world)?,
        Output::Infer(infer) => {
            let rows = ordered(bound, &Order::Key { by: Key::Pagination, descending: true }, rows, world)?;
            infer::table(infer, &rows, world)?
        }
    };
    if bound.cursor.is_some() {
        return Err("this query has no pages".into());
    }
    table.rows.truncate(limit(bound));
    Ok(table)
}

fn limit(bound: &Bound) -> usize {
    bound.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

fn source(bound: &Bound, data: &Dataset, world: EvalContext<'_>) -> Result<Vec<Row>, String> {
    match &bound.rows {
        Rows::Objects { kind, named, names, shape } => {
            shapes::rows(bound, *shape, &data.named(*kind, *named, names)?, world)
        }
        Rows::Query(inner) => {
            let inner = table(inner, data)?.rows.into_iter().map(|inner| Row { inner, ..Row::default() });
            kept(inner.collect(), bound.filter.as_ref(), world)
        }
    }
}

/// D-82: a row for each member or element that is not null.
fn unpivoted(rows: Vec<Row>, unpivot: &Unpivot, world: EvalContext<'_>) -> Result<Vec<Row>, String> {
    let mut all = Vec::new();
    for row in rows {
        let named: Vec<(Option<String>, Value)> = match evaluate(&unpivot.of, Scope::of_row(world, &row))? {
            Value::Object(of) => of.into_iter().map(|(key, value)| (Some(key), value)).collect(),
            Value::Array(of) if unpivot.key.is_none() => of.into_iter().map(|value| (None, value)).collect(),
            _ => Vec::new(),
        };
        for (key, value) in named.into_iter().filter(|(_, value)| !value.is_null()) {
            let mut row = row.clone();
            if let (Some(name), Some(key)) = (&unpivot.key, key) {
                row.unpivoted.push((name.clone(), Value::Text(key)));
            }
            row.unpivoted.push((unpivot.value.clone(), value));
            all.push(row);
        }
    }
    Ok(all)
}

/// D-89: HAVING without groups is about a summary's row, and its aggregates about the trace's spans.
fn of_traces_that_have(bound: &Bound, rows: Vec<Row>, world: EvalContext<'_>) -> Result<Vec<Row>, String> {
    let having = bound.traces.as_ref().and_then(|traces| traces.having.as_ref());
    let Some((having, aggregates)) = having else { return Ok(rows) };
    let mut kept = Vec::new();
    for row in rows {
        let spans: Vec<&Row> = row.trace.iter().flat_map(|trace| &trace.spans).collect();
        let values = aggregates.iter().map(|of| aggregate(of, &spans, world)).collect::<Result<Vec<_>, _>>()?;
        if is_true(having, Scope { aggregates: Some(&values), ..Scope::of_row(world, &row) })? {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Rows that are not grouped.
fn listed(
    bound: &Bound,
    columns: &[(String, BoundExpr)],
    order: &Order,
    rows: Vec<Row>,
    world: EvalContext<'_>,
) -> Result<Table, String> {
    let mut rows = ordered(bound, order, rows, world)?;
    if let Some(cursor) = &bound.cursor {
        rows = behind(cursor, order, rows)?;
    }
    let rows = limited(rows, limit(bound));
    let cursor = rows.last().filter(|_| bound.has_pages()).map(|row| place(row).to_owned());
    let mut projected = Vec::new();
    for row in &rows {
        let values = columns.iter().map(|(_, expr)| {
            let value = evaluate(expr, Scope::of_row(world, row))?;
            Ok(match preview_length(bound, expr) {
                Some(length) => summary::preview(value, length),
                None => value,
            })
        });
        projected.push(values.collect::<Result<Vec<_>, String>>()?);
    }
    Ok(Table { columns: columns.iter().map(|(name, _)| name.clone()).collect(), rows: projected, cursor })
}

/// Returns the preview length of a column that is selected unchanged.
fn preview_length(bound: &Bound, expr: &BoundExpr) -> Option<i64> {
    let is_summary = matches!(&bound.rows, Rows::Objects { shape: Shape::Summary, .. });
    let default = is_summary.then_some(PREVIEW_LENGTH);
    match expr {
        BoundExpr::Field(Field::Column(name), steps) if steps.is_empty() && PREVIEWED.contains(name) => {
            bound.preview_length.or(default)
        }
        _ => None,
    }
}

/// The key that gives a row its place: that of its trace, if it has one (D-36, D-76).
fn place(row: &Row) -> &str {
    row.trace.as_ref().map_or(row.key(), |trace| &trace.key)
}

fn xact(row: &Row) -> u64 {
    row.trace.as_ref().map_or(row.xact(), |trace| trace.xact)
}

fn ordered(bound: &Bound, order: &Order, mut rows: Vec<Row>, world: EvalContext<'_>) -> Result<Vec<Row>, String> {
    match (order, &bound.rows) {
        // A query within FROM has an order already.
        (Order::Key { .. }, Rows::Query(_)) => Ok(rows),
        (Order::Key { by, descending }, Rows::Objects { .. }) => {
            rows.sort_by(|left, right| {
                let by_xact = if *by == Key::Xact { xact(left).cmp(&xact(right)) } else { Ordering::Equal };
                let by_key = place(left).cmp(place(right));
                let directed = |of: Ordering| if *descending { of.reverse() } else { of };
                let number = |row: &Row| row.trace.as_ref().map(|trace| trace.number);
                directed(by_xact.then(by_key))
                    .then_with(|| number(left).cmp(&number(right)))
                    .then_with(|| if left.trace.is_some() { left.key().cmp(right.key()) } else { Ordering::Equal })
            });
            Ok(rows)
        }
        (Order::Sorted(keys), _) => {
            // D-81: what the keys leave alike comes newest first.
            rows.sort_by(|left, right| right.key().cmp(left.key()));
            let mut keyed = Vec::new();
            for row in rows {
                let values = keys.iter().map(|key| evaluate(&key.expr, Scope::of_row(world, &row)));
                keyed.push((values.collect::<Result<Vec<_>, _>>()?, row));
            }
            Ok(sorted(keyed, keys))
        }
    }
}

/// Sorts by evaluated keys; the order is otherwise stable.
pub fn sorted<T>(mut keyed: Vec<(Vec<Value>, T)>, keys: &[SortKey]) -> Vec<T> {
    let compared = |(key, (left, right)): (&SortKey, (&Value, &Value))| match (left.is_null(), right.is_null()) {
        (false, false) if key.descending => order(right, left),
        (false, false) => order(left, right),
        (left, right) if key.nulls_first => right.cmp(&left),
        (left, right) => left.cmp(&right),
    };
    keyed.sort_by(|(left, _), (right, _)| {
        let pairs = keys.iter().zip(left.iter().zip(right));
        pairs.map(compared).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    keyed.into_iter().map(|(_, row)| row).collect()
}

/// Returns the rows after the end of that page.
fn behind(cursor: &str, order: &Order, rows: Vec<Row>) -> Result<Vec<Row>, String> {
    let key = cursor::key_of(cursor)?;
    match order {
        Order::Key { by: Key::Pagination, descending } => {
            let is_behind = |row: &Row| if *descending { place(row) < key.as_str() } else { place(row) > key.as_str() };
            Ok(rows.into_iter().filter(is_behind).collect())
        }
        Order::Key { by: Key::Xact, .. } => {
            let last = rows.iter().rposition(|row| place(row) == key);
            let last = last.ok_or_else(|| format!("Invalid cursor `{cursor}`"))?;
            Ok(rows.into_iter().skip(last + 1).collect())
        }
        Order::Sorted(_) => Err("this query has no pages".into()),
    }
}

/// So many rows, or so many traces and all rows of them (D-36).
fn limited(rows: Vec<Row>, limit: usize) -> Vec<Row> {
    let mut traces: Vec<usize> = Vec::new();
    let mut kept = Vec::new();
    for (count, row) in rows.into_iter().enumerate() {
        let is_within = match &row.trace {
            None => count < limit,
            Some(trace) if traces.contains(&trace.number) => true,
            Some(trace) if traces.len() < limit => {
                traces.push(trace.number);
                true
            }
            Some(_) => false,
        };
        if is_within {
            kept.push(row);
        }
    }
    kept
}

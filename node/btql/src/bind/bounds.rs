//! Bounds that a filter implies: ranges of times, transactions and keys, and ids. Data outside of them is not read;
//! without bounds everything is read, and a note reports that.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ast::Shape;
use crate::bound::{Bound, BoundExpr, Bounds, Datum, Field, Function, Note, Range, Rows, TraceCondition};
use crate::columns::Kind;
use crate::error::QueryError;

const NO_BOUNDS: &str = "No filters available for segment elimination. Add a range filter on created, _xact_id, or \
                         _pagination_key, or scope to a specific root_span_id or id.";

pub(super) fn find(bound: &mut Bound) {
    let mut conditions = Vec::new();
    conditions.extend(&bound.filter);
    if let Some(condition) = bound.traces.as_ref().and_then(|traces| traces.condition.as_ref()) {
        spans_needed(condition, &mut conditions);
    }
    let found = conditions.iter().map(|condition| bounds_of(condition)).fold(Bounds::default(), both);
    let names_ids = conditions.iter().any(|condition| names_id(condition));
    bound.bounds = found;
    let Rows::Objects { kind, .. } = &bound.rows else { return };
    let reads_all = bound.bounds == Bounds::default() && !names_ids;
    if reads_all && kind.has_spans() {
        bound.notes.push(Note {
            code: "missingSegmentEliminationSpecs",
            message: NO_BOUNDS.into(),
            blocks_strict: *kind == Kind::ProjectLogs,
        });
    }
}

/// Checks the scope of an audit query (D-90): single rows, or all prompts and functions.
pub(super) fn of_audit(bound: &Bound) -> Result<(), QueryError> {
    match &bound.rows {
        // The query within was looked at by itself.
        Rows::Query(_) | Rows::Objects { kind: Kind::Prompt | Kind::Function, .. } => Ok(()),
        Rows::Objects { shape: Shape::Traces | Shape::Summary, .. } => {
            Err(QueryError::new("audit_log shows what was written to single rows, which are of shape spans"))
        }
        Rows::Objects { .. } if bound.bounds.ids.is_some() => Ok(()),
        Rows::Objects { .. } => {
            Err(QueryError::new("audit_log shows what was written to single rows: filter by id, with = or IN"))
        }
    }
}

/// Adds the bounds of a condition on traces. Any span may satisfy it, so only a single condition implies bounds.
fn spans_needed<'b>(condition: &'b TraceCondition, found: &mut Vec<&'b BoundExpr>) {
    match condition {
        TraceCondition::AnySpan(expr) => found.push(expr),
        TraceCondition::And(of) => {
            // Each is about a span of its own; the first that has bounds finds the traces.
            let bounded = of.iter().find_map(|of| match of {
                TraceCondition::AnySpan(expr) if bounds_of(expr) != Bounds::default() => Some(expr),
                _ => None,
            });
            found.extend(bounded);
        }
        TraceCondition::Not(_) | TraceCondition::Or(_) => {}
    }
}

/// Returns whether an equality with an id occurs anywhere (D-91).
fn names_id(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Call(Function::Eq | Function::In, args) => args.iter().any(
            |arg| matches!(arg, BoundExpr::Field(Field::Column("id" | "root_span_id"), steps) if steps.is_empty()),
        ),
        BoundExpr::Call(Function::And | Function::Or, of) => of.iter().any(names_id),
        _ => false,
    }
}

fn bounds_of(expr: &BoundExpr) -> Bounds {
    match expr {
        BoundExpr::Call(Function::And, of) => of.iter().map(bounds_of).fold(Bounds::default(), both),
        BoundExpr::Call(Function::Or, of) => of.iter().map(bounds_of).reduce(either).unwrap_or_default(),
        BoundExpr::Call(function, args) => match args.as_slice() {
            [BoundExpr::Field(Field::Column(column), steps), value] if steps.is_empty() => {
                of_column(column, function, value)
            }
            [value, BoundExpr::Field(Field::Column(column), steps)] if steps.is_empty() => {
                mirrored(function).map(|function| of_column(column, &function, value)).unwrap_or_default()
            }
            _ => Bounds::default(),
        },
        _ => Bounds::default(),
    }
}

fn mirrored(function: &Function) -> Option<Function> {
    Some(match function {
        Function::Eq => Function::Eq,
        Function::Lt => Function::Gt,
        Function::Le => Function::Ge,
        Function::Gt => Function::Lt,
        Function::Ge => Function::Le,
        _ => return None,
    })
}

fn of_column(column: &str, function: &Function, value: &BoundExpr) -> Bounds {
    let mut bounds = Bounds::default();
    match (column, value) {
        ("created", BoundExpr::Const(Datum::Time(time))) => bounds.created = range(function, *time),
        ("_xact_id", BoundExpr::Const(value)) => {
            if let Some(xact) = xact(value) {
                bounds.xact = range(function, xact);
            }
        }
        ("_pagination_key", BoundExpr::Const(Datum::Text(key))) => bounds.pagination_key = range(function, key.clone()),
        ("id", value) => bounds.ids = named(function, value),
        ("root_span_id", value) => bounds.root_span_ids = named(function, value),
        _ => {}
    }
    bounds
}

fn xact(value: &Datum) -> Option<u64> {
    match value {
        Datum::Integer(number) => u64::try_from(*number).ok(),
        Datum::Unsigned(number) => Some(*number),
        Datum::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns a range. Excluded ends are part of it, since the filter removes them.
fn range<T: Clone>(function: &Function, value: T) -> Range<T> {
    match function {
        Function::Eq => Range { from: Some(value.clone()), to: Some(value) },
        Function::Lt | Function::Le => Range { from: None, to: Some(value) },
        Function::Gt | Function::Ge => Range { from: Some(value), to: None },
        _ => Range::default(),
    }
}

fn named(function: &Function, value: &BoundExpr) -> Option<Vec<String>> {
    match (function, value) {
        (Function::Eq, BoundExpr::Const(Datum::Text(id))) => Some(vec![id.clone()]),
        (Function::In, BoundExpr::Const(Datum::Json(Value::Array(ids)))) => {
            ids.iter().map(|id| id.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

fn both(one: Bounds, other: Bounds) -> Bounds {
    Bounds {
        created: inner(one.created, other.created),
        xact: inner(one.xact, other.xact),
        pagination_key: inner(one.pagination_key, other.pagination_key),
        ids: common(one.ids, other.ids),
        root_span_ids: common(one.root_span_ids, other.root_span_ids),
    }
}

fn either(one: Bounds, other: Bounds) -> Bounds {
    let union = |one: Option<Vec<String>>, other: Option<Vec<String>>| {
        one.zip(other).map(|(mut one, other)| {
            one.extend(other);
            one
        })
    };
    Bounds {
        created: hull(one.created, other.created),
        xact: hull(one.xact, other.xact),
        pagination_key: hull(one.pagination_key, other.pagination_key),
        ids: union(one.ids, other.ids),
        root_span_ids: union(one.root_span_ids, other.root_span_ids),
    }
}

fn common(one: Option<Vec<String>>, other: Option<Vec<String>>) -> Option<Vec<String>> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let other: BTreeSet<String> = other.into_iter().collect();
            Some(one.into_iter().filter(|id| other.contains(id)).collect())
        }
        (one, other) => one.or(other),
    }
}

fn inner<T: Ord>(one: Range<T>, other: Range<T>) -> Range<T> {
    let narrower = |one: Option<T>, other: Option<T>, pick: fn(T, T) -> T| match (one, other) {
        (Some(one), Some(other)) => Some(pick(one, other)),
        (one, other) => one.or(other),
    };
    Range { from: narrower(one.from, other.from, T::max), to: narrower(one.to, other.to, T::min) }
}

fn hull<T: Ord>(one: Range<T>, other: Range<T>) -> Range<T> {
    let wider =
        |one: Option<T>, other: Option<T>, pick: fn(T, T) -> T| one.zip(other).map(|(one, other)| pick(one, other));
    Range { from: wider(one.from, other.from, T::min), to: wider(one.to, other.to, T::max) }
}

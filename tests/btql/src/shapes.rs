//! Rows of a shape from the rows of objects (btql.md, sections 7 and 13): matching spans, or traces with a matching
//! span.

use std::rc::Rc;

use assay_node_btql::ast::Shape;
use assay_node_btql::bound::{Bound, BoundExpr, TraceCondition, TraceFilter};
use serde_json::Value as Json;

use crate::data::Object;
use crate::row::{EvalContext, Row, Scope, TraceOf};
use crate::scalar::is_true;
use crate::summary;

pub fn rows(bound: &Bound, shape: Shape, objects: &[&Object], world: EvalContext<'_>) -> Result<Vec<Row>, String> {
    if shape == Shape::Spans {
        let all = objects.iter().flat_map(|object| object.rows.iter().map(Row::of_span));
        return kept(all.collect(), bound.filter.as_ref(), world);
    }
    let nothing = TraceFilter { condition: None, spans: None, having: None };
    let filter = bound.traces.as_ref().unwrap_or(&nothing);
    let mut rows = Vec::new();
    for (number, spans) in traces(objects).into_iter().enumerate() {
        let selected = filter.condition.as_ref().map_or(Ok(true), |condition| holds(condition, &spans, world))?;
        let seen = if selected { kept(spans.clone(), filter.spans.as_ref(), world)? } else { Vec::new() };
        if seen.is_empty() {
            continue;
        }
        let trace = Rc::new(trace_of(number, &spans, seen));
        if shape == Shape::Traces {
            rows.extend(trace.spans.iter().map(|span| Row { trace: Some(Rc::clone(&trace)), ..span.clone() }));
        } else {
            let fields = Rc::new(summary::of(bound, root(&spans), &trace, world)?);
            rows.push(Row { fields, trace: Some(trace), ..Row::default() });
        }
    }
    Ok(rows)
}

pub fn kept(rows: Vec<Row>, filter: Option<&BoundExpr>, world: EvalContext<'_>) -> Result<Vec<Row>, String> {
    let Some(filter) = filter else { return Ok(rows) };
    let mut kept = Vec::new();
    for row in rows {
        if is_true(filter, Scope::of_row(world, &row))? {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// D-34: rows of one object with the same `root_span_id`, by key.
fn traces(objects: &[&Object]) -> Vec<Vec<Row>> {
    let mut traces: Vec<(usize, Json, Vec<Row>)> = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        for fields in &object.rows {
            let id = fields.get("root_span_id").cloned().unwrap_or_default();
            let row = Row::of_span(fields);
            match traces.iter_mut().find(|(object, other, _)| *object == number && *other == id) {
                Some((_, _, rows)) => rows.push(row),
                None => traces.push((number, id, vec![row])),
            }
        }
    }
    for (_, _, rows) in &mut traces {
        rows.sort_by(|left, right| left.key().cmp(right.key()));
    }
    traces.into_iter().map(|(_, _, rows)| rows).collect()
}

/// The first span that is one.
fn root(spans: &[Row]) -> Option<&Row> {
    spans.iter().find(|span| span.column("is_root").truth() == Some(true))
}

fn trace_of(number: usize, spans: &[Row], seen: Vec<Row>) -> TraceOf {
    let first = root(spans).unwrap_or(&spans[0]);
    TraceOf {
        number,
        root_span_id: first.column("root_span_id").to_text().unwrap_or_default(),
        key: first.key().to_owned(),
        xact: spans.iter().map(Row::xact).max().unwrap_or_default(),
        spans: seen,
    }
}

/// D-86.
fn holds(condition: &TraceCondition, spans: &[Row], world: EvalContext<'_>) -> Result<bool, String> {
    match condition {
        TraceCondition::AnySpan(expr) => {
            for span in spans {
                if is_true(expr, Scope::of_row(world, span))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        TraceCondition::Not(of) => Ok(!holds(of, spans, world)?),
        TraceCondition::And(of) => {
            let held = of.iter().map(|of| holds(of, spans, world)).collect::<Result<Vec<_>, _>>()?;
            Ok(held.into_iter().all(|held| held))
        }
        TraceCondition::Or(of) => {
            let held = of.iter().map(|of| holds(of, spans, world)).collect::<Result<Vec<_>, _>>()?;
            Ok(held.into_iter().any(|held| held))
        }
    }
}

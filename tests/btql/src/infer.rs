//! Inferred schema below columns (D-85): for each path and type, its frequency and its most frequent values.

use assay_node_btql::bound::{INFERRED, Infer};

use crate::pipeline::{Table, sorted};
use crate::row::{EvalContext, Row, Scope};
use crate::scalar::{evaluate, stepped, type_of};
use crate::value::{Value, order, same};

const TOP_VALUES_MAX: usize = 10;

struct FieldValues {
    path: Vec<String>,
    kind: &'static str,
    values: Vec<Value>,
}

/// Infers from rows in the order of a query without a sort.
pub fn table(infer: &Infer, rows: &[Row], world: EvalContext<'_>) -> Result<Table, String> {
    let mut found: Vec<FieldValues> = Vec::new();
    for row in rows.iter().take(usize::try_from(infer.budget).unwrap_or(usize::MAX)) {
        for path in &infer.paths {
            let value = stepped(Scope::of_row(world, row).field(&path.field)?, &path.steps);
            look(path.name.clone(), value, infer.depth, &mut found);
        }
    }
    found.sort_by(|left, right| left.path.cmp(&right.path).then(left.kind.cmp(right.kind)));
    let mut keyed = Vec::new();
    for found in found {
        let path = Value::Array(found.path.iter().map(Value::text).collect());
        let count = Value::Int(found.values.len() as i128);
        let inner = vec![path, Value::text(found.kind), count, top_values(&found.values)];
        let row = Row { inner, ..Row::default() };
        let keys = infer.sort.iter().map(|key| evaluate(&key.expr, Scope::of_row(world, &row)));
        keyed.push((keys.collect::<Result<Vec<_>, _>>()?, row.inner));
    }
    Ok(Table { columns: INFERRED.map(str::to_owned).into(), rows: sorted(keyed, &infer.sort), cursor: None })
}

fn look(path: Vec<String>, value: Value, depth: u64, found: &mut Vec<FieldValues>) {
    if let Value::Object(of) = &value
        && (path.len() as u64) < depth
    {
        for (key, member) in of {
            look([path.clone(), vec![key.clone()]].concat(), member.clone(), depth, found);
        }
    }
    let kind = type_of(&value);
    match found.iter_mut().find(|other| other.path == path && other.kind == kind) {
        Some(other) => other.values.push(value),
        None => found.push(FieldValues { path, kind, values: vec![value] }),
    }
}

/// Returns the most frequent scalars first, without nulls.
fn top_values(values: &[Value]) -> Value {
    let mut counts: Vec<(Value, i128)> = Vec::new();
    let is_single = |value: &&Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
    for value in values.iter().filter(is_single) {
        match counts.iter_mut().find(|(other, _)| same(other, value)) {
            Some((_, count)) => *count += 1,
            None => counts.push((value.clone(), 1)),
        }
    }
    counts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| order(&left.0, &right.0)));
    counts.truncate(TOP_VALUES_MAX);
    let entry = |(value, count)| Value::Object(vec![("value".into(), value), ("count".into(), Value::Int(count))]);
    Value::Array(counts.into_iter().map(entry).collect())
}

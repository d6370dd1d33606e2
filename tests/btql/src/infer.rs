//! What is found below columns (D-85): for each path and type, how often, and which values most often.

use assay_node_btql::ast::Step;
use assay_node_btql::bound::Field;

use crate::pipeline::Table;
use crate::row::{Row, Scope, World};
use crate::scalar::type_of;
use crate::value::{Value, order, same};

/// Of steps in a path, the column's name among them.
const DEPTH_MAX: usize = 5;
const TOP_VALUES_MAX: usize = 10;

struct Found {
    path: Vec<String>,
    kind: &'static str,
    values: Vec<Value>,
}

/// Of rows in the order in which a query without a sort would give them.
pub fn table(paths: &[(Field, Vec<Step>)], rows: &[Row], budget: u64, world: World<'_>) -> Result<Table, String> {
    let mut found: Vec<Found> = Vec::new();
    for row in rows.iter().take(usize::try_from(budget).unwrap_or(usize::MAX)) {
        for (field, steps) in paths {
            let mut path = vec![name(field)];
            let mut value = Scope::of_row(world, row).field(field)?;
            for step in steps {
                (path, value) = match step {
                    Step::Key(key) => ([path, vec![key.clone()]].concat(), value.member(key)),
                    Step::Index(index) => ([path, vec![index.to_string()]].concat(), value.element(*index)),
                };
            }
            look(path, value, &mut found);
        }
    }
    let row = |found: Found| {
        let path = Value::Array(found.path.iter().map(Value::text).collect());
        let count = Value::Int(found.values.len() as i128);
        vec![path, Value::text(found.kind), count, top_values(&found.values)]
    };
    found.sort_by(|left, right| left.path.cmp(&right.path).then(left.kind.cmp(right.kind)));
    let columns = ["name", "type", "count", "top_values"].map(str::to_owned).into();
    Ok(Table { columns, rows: found.into_iter().map(row).collect(), cursor: None })
}

fn name(field: &Field) -> String {
    match field {
        Field::Column(name) => (*name).to_owned(),
        Field::Unpivoted(name) | Field::Pivoted(name) => name.clone(),
        other => format!("{other:?}"),
    }
}

fn look(path: Vec<String>, value: Value, found: &mut Vec<Found>) {
    if let Value::Object(of) = &value
        && path.len() < DEPTH_MAX
    {
        for (key, member) in of {
            look([path.clone(), vec![key.clone()]].concat(), member.clone(), found);
        }
    }
    let kind = type_of(&value);
    match found.iter_mut().find(|other| other.path == path && other.kind == kind) {
        Some(other) => other.values.push(value),
        None => found.push(Found { path, kind, values: vec![value] }),
    }
}

/// Of what is neither null nor made of others, the most frequent first.
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

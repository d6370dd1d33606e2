//! Result of an engine, in a form in which results of different engines can be compared.
//!
//! Equal are: numbers within a billionth of each other, whatever their type; times in different spellings; an object's
//! members in any order; and absent values, be they null, missing, or an empty list or object (a list is never null in
//! ClickHouse, and members that are null are not kept).

use std::collections::BTreeMap;

use assay_storage_model::event::parse_created;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const RELATIVE: f64 = 1e-9;
/// Characters of a row that differs that are shown.
const SHOWN_CHARS: usize = 600;

/// Rows as lists of values, in the order of the columns' names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryResult {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl QueryResult {
    /// Creates a result from rows as objects; columns are those of the first row.
    pub fn of_objects(objects: Vec<Value>) -> QueryResult {
        let columns: Vec<String> = match objects.first() {
            Some(Value::Object(first)) => first.keys().cloned().collect(),
            _ => Vec::new(),
        };
        let row = |object: Value| columns.iter().map(|name| object.get(name).cloned().unwrap_or_default()).collect();
        let rows = objects.into_iter().map(row).collect();
        QueryResult { columns, rows }
    }

    /// The same with columns in this order; none of another name.
    fn in_order_of(&self, columns: &[String]) -> Result<Vec<Vec<Value>>, String> {
        let place = |name: &String| self.columns.iter().position(|own| own == name);
        let places: Option<Vec<usize>> = columns.iter().map(place).collect();
        match places {
            Some(places) if self.columns.len() == columns.len() => {
                Ok(self.rows.iter().map(|row| places.iter().map(|at| canonical(&row[*at])).collect()).collect())
            }
            _ => Err(format!("columns {:?}, and {columns:?}", self.columns)),
        }
    }
}

/// The first difference, if there is one. Where the order of rows is not defined they may come in any.
pub fn difference(one: &QueryResult, other: &QueryResult, is_ordered: bool) -> Option<String> {
    if one.rows.is_empty() && other.rows.is_empty() {
        return None;
    }
    let columns = &one.columns;
    let (mut left, mut right) = match (one.in_order_of(columns), other.in_order_of(columns)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(said), _) | (_, Err(said)) => return Some(said),
    };
    if left.len() != right.len() {
        return Some(format!("{} rows, and {}", left.len(), right.len()));
    }
    if !is_ordered {
        left.sort_by_cached_key(|row| sort_key(row));
        right.sort_by_cached_key(|row| sort_key(row));
    }
    let at = left.iter().zip(&right).position(|(left, right)| !same_list(left, right))?;
    Some(format!("row {}: {}, and {}", at + 1, shown(&left[at]), shown(&right[at])))
}

/// Returns the value without absent parts, with times as microseconds.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), canonical(value)));
            let members: BTreeMap<String, Value> = members.filter(|(_, value)| !value.is_null()).collect();
            if members.is_empty() { Value::Null } else { Value::Object(Map::from_iter(members)) }
        }
        Value::Array(elements) if elements.is_empty() => Value::Null,
        Value::Array(elements) => Value::Array(elements.iter().map(canonical).collect()),
        // A year at its beginning: other texts are not looked at for long.
        Value::String(text) if text.starts_with("20") => match parse_created(text) {
            Some(micros) => micros.into(),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

fn same_list(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one == other,
            _ => close(one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN)),
        },
        (Value::Array(one), Value::Array(other)) => same_list(one, other),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= RELATIVE * one.abs().max(other.abs())
}

/// Returns a key of the parts with a unique spelling: a fraction may differ in its last digits.
fn sort_key(row: &[Value]) -> String {
    let certain = |value: &Value| match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if number.fract() == 0.0 { format!("{number:020.0}") } else { String::new() }
        }
        other => other.to_string(),
    };
    row.iter().map(certain).collect::<Vec<_>>().join("\u{1}")
}

fn shown(row: &[Value]) -> String {
    Value::Array(row.to_vec()).to_string().chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(one: Value, other: Value, is_ordered: bool) -> Option<String> {
        let of = |rows: Value| QueryResult::of_objects(rows.as_array().expect("rows").clone());
        difference(&of(one), &of(other), is_ordered)
    }

    #[test]
    fn the_same_said_in_other_words_is_equal() {
        let one = json!([{"t": "2026-10-01T00:00:00Z", "n": 1, "x": 0.1, "l": [], "o": {"a": null, "b": {"c": 1}}}]);
        let other = json!([{"x": 0.100000000001, "n": 1.0, "t": "2026-10-01T00:00:00.000000Z", "l": null, "o": {"b": {"c": 1.0}}}]);
        assert_eq!(check(one, other, true), None);
        assert_eq!(check(json!([]), json!([]), true), None);
    }

    #[test]
    fn rows_may_come_in_any_order_unless_it_is_defined() {
        let (one, other) =
            (json!([{"a": 2, "f": 0.5}, {"a": 10, "f": 1.5}]), json!([{"a": 10, "f": 1.5}, {"a": 2, "f": 0.5}]));
        assert_eq!(check(one.clone(), other.clone(), false), None);
        assert!(check(one, other, true).is_some_and(|said| said.starts_with("row 1: ")));
    }

    #[test]
    fn what_differs_is_named() {
        for (one, other) in [
            (json!([{"a": 1}]), json!([{"a": 2}])),
            (json!([{"a": "x"}]), json!([{"a": 1}])),
            (json!([{"a": 1.0}]), json!([{"a": 1.00000001}])),
            (json!([{"a": 1}]), json!([{"a": 1}, {"a": 1}])),
            (json!([{"a": 1}]), json!([{"b": 1}])),
            (json!([{"a": 1}]), json!([{"a": null}])),
            (json!([{"a": [1, 2]}]), json!([{"a": [2, 1]}])),
            (json!([{"a": 1}]), json!([])),
        ] {
            assert!(check(one.clone(), other.clone(), false).is_some(), "{one} {other}");
        }
    }
}

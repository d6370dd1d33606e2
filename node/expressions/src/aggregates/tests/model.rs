//! Reference model of aggregates: all values at once, in order.

use std::cmp::Ordering;

use assay_node_btql::bound::{Aggregate, Aggregation};
use assay_node_btql::values::{Value, in_order, same};

const TOLERANCE: f64 = 1e-9;
/// Tolerance relative to the summands, where they are much larger than the sum.
const ROUNDING: f64 = 1e-13;

pub(super) struct Row {
    pub place: (u64, u32),
    pub value: Value<'static>,
}

/// Complains where an aggregate of rows is not what was found.
pub(super) fn expect(aggregate: &Aggregate, mut rows: Vec<Row>, found: &Value<'_>, what: &str) {
    rows.sort_by_key(|row| row.place);
    let mut values: Vec<Value<'static>> = Vec::new();
    for Row { value, .. } in rows {
        let is_new = || !values.iter().any(|other| same(other, &value));
        if !value.is_null() && (!aggregate.distinct || is_new()) {
            values.push(value);
        }
    }
    let numbers: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    let expected = over(&aggregate.function, values, &numbers);
    let size = numbers.iter().fold(0.0, |size, number| number.abs() + size);
    let is_rounded = match aggregate.function {
        Aggregation::Sum => matches!(expected, Value::Float(_)) || size > 9e15,
        _ => matches!(aggregate.function, Aggregation::Avg | Aggregation::Stddev | Aggregation::Percentile(_)),
    };
    let alike = match (expected.as_f64(), found.as_f64()) {
        (Some(left), Some(right)) if is_rounded => {
            (left - right).abs() <= TOLERANCE * left.abs().max(right.abs()) + ROUNDING * size
        }
        _ => expected == *found,
    };
    assert!(alike, "{what}: {expected:?} is meant, {found:?} is found");
}

fn over(function: &Aggregation, values: Vec<Value<'static>>, numbers: &[f64]) -> Value<'static> {
    let or_null = |value: Option<Value<'static>>| value.unwrap_or(Value::Null);
    let count = numbers.len() as f64;
    match function {
        Aggregation::Count => Value::Integer(values.len() as i64),
        Aggregation::Min => or_null(values.into_iter().reduce(|left, right| better(left, right, Ordering::Less))),
        Aggregation::Max => or_null(values.into_iter().reduce(|left, right| better(left, right, Ordering::Greater))),
        Aggregation::AnyValue | Aggregation::First => or_null(values.into_iter().next()),
        Aggregation::Last => or_null(values.into_iter().next_back()),
        Aggregation::ArrayAgg if values.is_empty() => Value::Null,
        Aggregation::ArrayAgg => Value::List(values),
        Aggregation::StringAgg(_) if values.is_empty() => Value::Null,
        Aggregation::StringAgg(between) => {
            let texts: Vec<String> = values.iter().filter_map(|value| Some(value.to_text()?.into_owned())).collect();
            Value::Text(texts.join(between).into())
        }
        _ if numbers.is_empty() => Value::Null,
        Aggregation::Sum => sum(&values),
        Aggregation::Avg => Value::float(numbers.iter().sum::<f64>() / count),
        Aggregation::Percentile(share) => percentile(numbers, *share),
        Aggregation::Stddev if numbers.len() < 2 => Value::Null,
        Aggregation::Stddev => {
            let mean = numbers.iter().sum::<f64>() / count;
            let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
            Value::float((squares / (count - 1.0)).sqrt())
        }
    }
}

/// Returns the better value. Among different values of equal rank it is the one with the smaller text.
fn better(left: Value<'static>, right: Value<'static>, wanted: Ordering) -> Value<'static> {
    let is_right = match in_order(&right, &left) {
        Ordering::Equal => right.to_json() < left.to_json(),
        order => order == wanted,
    };
    if is_right { right } else { left }
}

/// Whole as long as all are.
fn sum(values: &[Value<'_>]) -> Value<'static> {
    let whole = values.iter().filter_map(Value::as_whole).sum();
    let floats: Vec<f64> =
        values.iter().filter_map(|value| if let Value::Float(float) = value { Some(*float) } else { None }).collect();
    if floats.is_empty() { Value::whole(whole) } else { Value::float(whole as f64 + floats.iter().sum::<f64>()) }
}

fn percentile(numbers: &[f64], share: f64) -> Value<'static> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = share * (sorted.len() - 1) as f64;
    let below = rank.floor() as usize;
    let high = sorted[(below + 1).min(sorted.len() - 1)];
    Value::float(sorted[below] + (rank - below as f64) * (high - sorted[below]))
}

//! Aggregates (btql.md, section 11.7): exact, and without nulls.

use assay_node_btql::bound::{Aggregate, Aggregation};

use crate::row::{EvalContext, Row, Scope};
use crate::scalar::evaluate;
use crate::value::{Value, order, same};

/// Aggregates rows in the order of their pagination keys.
pub fn aggregate(aggregate: &Aggregate, rows: &[&Row], world: EvalContext<'_>) -> Result<Value, String> {
    let Some(of) = &aggregate.of else { return Ok(Value::Int(rows.len() as i128)) };
    let mut values = Vec::new();
    for row in rows {
        let value = evaluate(of, Scope::of_row(world, row))?;
        let is_new = || !values.iter().any(|other| same(other, &value));
        if !value.is_null() && (!aggregate.distinct || is_new()) {
            values.push(value);
        }
    }
    Ok(over(&aggregate.function, values))
}

fn over(function: &Aggregation, values: Vec<Value>) -> Value {
    let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    match function {
        Aggregation::Count => Value::Int(values.len() as i128),
        Aggregation::Sum => sum(&values),
        Aggregation::Avg => mean(&values),
        Aggregation::Min => or_null(values.into_iter().min_by(order)),
        Aggregation::Max => or_null(values.into_iter().max_by(order)),
        Aggregation::AnyValue | Aggregation::First => or_null(values.into_iter().next()),
        Aggregation::Last => or_null(values.into_iter().next_back()),
        Aggregation::Percentile(share) => percentile(&values, *share),
        Aggregation::Stddev => stddev(&values),
        Aggregation::ArrayAgg if values.is_empty() => Value::Null,
        Aggregation::ArrayAgg => Value::Array(values),
        Aggregation::StringAgg(_) if values.is_empty() => Value::Null,
        Aggregation::StringAgg(between) => {
            let texts: Vec<String> = values.iter().filter_map(Value::to_text).collect();
            Value::Text(texts.join(between))
        }
    }
}

/// Returns the numbers: other values are left out (D-75), and a boolean is 0 or 1 (D-51).
fn numbers(values: &[Value]) -> Vec<f64> {
    values.iter().filter_map(Value::as_f64).collect()
}

/// Returns the sum: an integer for integers, as long as 64 bits hold it.
pub fn sum(values: &[Value]) -> Value {
    let numbers: Vec<Value> = values.iter().filter_map(Value::number).collect();
    let whole = |number: &Value| if let Value::Int(number) = number { Some(*number) } else { None };
    match numbers.iter().map(whole).collect::<Option<Vec<_>>>() {
        Some(whole) if whole.is_empty() => Value::Null,
        Some(whole) => Value::int(whole.into_iter().sum()),
        None => Value::float(numbers.iter().filter_map(Value::as_f64).sum()),
    }
}

pub fn mean(values: &[Value]) -> Value {
    let numbers = numbers(values);
    if numbers.is_empty() {
        return Value::Null;
    }
    Value::float(numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Between the two closest ranks in proportion.
fn percentile(values: &[Value], share: f64) -> Value {
    let mut numbers = numbers(values);
    numbers.sort_by(f64::total_cmp);
    let Some(last) = numbers.len().checked_sub(1) else { return Value::Null };
    let rank = share * last as f64;
    let below = rank.floor();
    let low = numbers[below as usize];
    let high = numbers[(below as usize + 1).min(last)];
    Value::float(low + (rank - below) * (high - low))
}

/// Returns the sample standard deviation: with one value there is none.
fn stddev(values: &[Value]) -> Value {
    let mut numbers = numbers(values);
    let count = numbers.len() as f64;
    if numbers.len() < 2 {
        return Value::Null;
    }
    // Counted from the first one, so that equal numbers do not deviate by the rounding of their mean.
    let first = numbers[0];
    numbers.iter_mut().for_each(|number| *number -= first);
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Value::float((squares / (count - 1.0)).sqrt())
}

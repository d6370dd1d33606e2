//! Arithmetic on values: whole numbers stay whole within 64 bits; an undefined result is null.

use assay_node_btql::bound::Function;
use assay_node_btql::calendar;
use assay_node_btql::values::Value;

const MICROS_PER_SECOND: f64 = 1e6;

/// `+ - * / %`.
pub(crate) fn arithmetic(function: &Function, left: &Value<'_>, right: &Value<'_>) -> Value<'static> {
    if is_of_time(left) || is_of_time(right) {
        return of_times(function, left, right).unwrap_or(Value::Null);
    }
    if let (Some(left), Some(right)) = (left.as_whole(), right.as_whole()) {
        return of_wholes(function, left, right);
    }
    let (Some(left), Some(right)) = (left.as_f64(), right.as_f64()) else { return Value::Null };
    match function {
        Function::Add => Value::float(left + right),
        Function::Sub => Value::float(left - right),
        Function::Mul => Value::float(left * right),
        // D-62: null by zero.
        Function::Div if right != 0.0 => Value::float(left / right),
        Function::Mod if right != 0.0 => Value::float(left % right),
        _ => Value::Null,
    }
}

/// Computes with whole numbers of 64 bits, signed or unsigned.
fn of_wholes(function: &Function, left: i128, right: i128) -> Value<'static> {
    match function {
        Function::Add => Value::whole(left + right),
        Function::Sub => Value::whole(left - right),
        // A product has at most 128 bits, and its sign needs one of them.
        Function::Mul => match left.checked_mul(right) {
            Some(product) => Value::whole(product),
            None => Value::float(left as f64 * right as f64),
        },
        // D-62: real, and null by zero.
        Function::Div if right != 0 => Value::float(left as f64 / right as f64),
        Function::Mod if right != 0 => Value::whole(left % right),
        _ => Value::Null,
    }
}

fn is_of_time(value: &Value<'_>) -> bool {
    matches!(value, Value::Time(_) | Value::Stored(_) | Value::Interval(_))
}

/// Arithmetic of times and intervals (D-63).
fn of_times(function: &Function, left: &Value<'_>, right: &Value<'_>) -> Option<Value<'static>> {
    use Value::{Interval, Stored, Time};
    let moved = |time: i64, by| calendar::moved(time, by).map(Time);
    match (function, left, right) {
        (Function::Sub, Time(left) | Stored(left), Time(right) | Stored(right)) => {
            Some(Value::float((*left as f64 - *right as f64) / MICROS_PER_SECOND))
        }
        (Function::Add, Time(time) | Stored(time), Interval(by))
        | (Function::Add, Interval(by), Time(time) | Stored(time)) => moved(*time, *by),
        (Function::Sub, Time(time) | Stored(time), Interval(by)) => moved(*time, calendar::negative(*by)?),
        (Function::Add, Interval(left), Interval(right)) => calendar::sum(*left, *right).map(Interval),
        (Function::Sub, Interval(left), Interval(right)) => {
            calendar::sum(*left, calendar::negative(*right)?).map(Interval)
        }
        _ => None,
    }
}

pub(super) fn minus(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Interval(interval) => calendar::negative(*interval).map_or(Value::Null, Value::Interval),
        Value::Float(number) => Value::float(-number),
        other => other.as_whole().map_or(Value::Null, |number| Value::whole(-number)),
    }
}

/// Truncates to a whole number; none if the value is no number or too large.
pub(crate) fn truncated(value: &Value<'_>) -> Option<i128> {
    let whole = match value {
        Value::Float(number) => Value::whole(number.trunc() as i128),
        other => return other.as_whole(),
    };
    whole.as_whole()
}

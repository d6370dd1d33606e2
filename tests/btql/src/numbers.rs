//! Arithmetic (btql.md, sections 9 and 10): integers stay integers within 64 bits, and undefined results are null.

use assay_node_btql::bound::{Function, NumberFunction};

use crate::times;
use crate::value::Value;

const MICROS_PER_SECOND: f64 = 1e6;

/// `+ - * / %`.
pub fn arithmetic(function: &Function, left: &Value, right: &Value) -> Value {
    if let Some(value) = of_times(function, left, right) {
        return value;
    }
    let (Some(left), Some(right)) = (left.number(), right.number()) else { return Value::Null };
    if let (Value::Int(left), Value::Int(right)) = (&left, &right) {
        return of_ints(function, *left, *right);
    }
    let float = |value: &Value| value.as_f64().expect("it is a number");
    let (left, right) = (float(&left), float(&right));
    match function {
        Function::Add => Value::float(left + right),
        Function::Sub => Value::float(left - right),
        Function::Mul => Value::float(left * right),
        Function::Div if right != 0.0 => Value::float(left / right),
        Function::Mod if right != 0.0 => Value::float(left % right),
        _ => Value::Null,
    }
}

fn of_ints(function: &Function, left: i128, right: i128) -> Value {
    match function {
        Function::Add => Value::int(left + right),
        Function::Sub => Value::int(left - right),
        // The product of two 64-bit numbers has at most 128 bits, and the sign needs one of them.
        Function::Mul => left.checked_mul(right).map_or_else(|| Value::float(left as f64 * right as f64), Value::int),
        // D-62: real, and null by zero.
        Function::Div if right != 0 => Value::float(left as f64 / right as f64),
        Function::Mod if right != 0 => Value::int(left % right),
        _ => Value::Null,
    }
}

/// D-63: times and intervals. None where neither is one.
fn of_times(function: &Function, left: &Value, right: &Value) -> Option<Value> {
    use Value::{Interval, Time};
    let moved = |time: i64, by: Option<_>| by.and_then(|by| times::moved(time, by)).map_or(Value::Null, Value::time);
    let interval = |interval: Option<_>| interval.map_or(Value::Null, Interval);
    Some(match (function, left, right) {
        (Function::Sub, Time(left), Time(right)) => {
            Value::float((left.micros as f64 - right.micros as f64) / MICROS_PER_SECOND)
        }
        (Function::Add, Time(time), Interval(by)) | (Function::Add, Interval(by), Time(time)) => {
            moved(time.micros, Some(*by))
        }
        (Function::Sub, Time(time), Interval(by)) => moved(time.micros, times::negative(*by)),
        (Function::Add, Interval(left), Interval(right)) => interval(times::sum(*left, *right)),
        (Function::Sub, Interval(left), Interval(right)) => {
            interval(times::negative(*right).and_then(|right| times::sum(*left, right)))
        }
        (_, Time(_) | Interval(_), _) | (_, _, Time(_) | Interval(_)) => Value::Null,
        _ => return None,
    })
}

pub fn minus(value: &Value) -> Value {
    match (value, value.number()) {
        (Value::Interval(interval), _) => times::negative(*interval).map_or(Value::Null, Value::Interval),
        (_, Some(Value::Int(number))) => Value::int(-number),
        (_, Some(Value::Float(number))) => Value::float(-number),
        _ => Value::Null,
    }
}

/// D-72: half away from zero, behind so many digits.
pub fn round(value: &Value, digits: i32) -> Value {
    match value.number() {
        Some(Value::Int(number)) if digits >= 0 => Value::Int(number),
        Some(number) => {
            let number = number.as_f64().expect("it is a number");
            let scale = 10f64.powi(digits.abs());
            Value::float(if digits >= 0 { (number * scale).round() / scale } else { (number / scale).round() * scale })
        }
        None => Value::Null,
    }
}

/// Applies a function to one number; an integer stays one if possible.
pub fn of_one(function: NumberFunction, value: &Value) -> Value {
    let Some(number) = value.number() else { return Value::Null };
    if let Value::Int(number) = number {
        match function {
            NumberFunction::Abs => return Value::int(number.abs()),
            NumberFunction::Floor | NumberFunction::Ceil => return Value::Int(number),
            _ => {}
        }
    }
    let number = number.as_f64().expect("it is a number");
    Value::float(match function {
        NumberFunction::Abs => number.abs(),
        NumberFunction::Floor => number.floor(),
        NumberFunction::Ceil => number.ceil(),
        NumberFunction::Sqrt => number.sqrt(),
        NumberFunction::Ln => number.ln(),
        NumberFunction::Log10 => number.log10(),
        _ => f64::NAN,
    })
}

/// A whole number, toward zero; None of what is none or too large.
pub fn truncated(value: &Value) -> Option<i128> {
    let whole = match value.number()? {
        Value::Int(number) => Value::Int(number),
        Value::Float(number) => Value::int(number.trunc() as i128),
        _ => return None,
    };
    match whole {
        Value::Int(number) => Some(number),
        _ => None,
    }
}

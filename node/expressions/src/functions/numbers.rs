//! Entries of functions of numbers. An undefined result is null; a whole number stays whole where possible.

use assay_node_btql::bound::NumberFunction;
use assay_node_btql::values::Value;

use super::{Evaluate, FunctionEntry};
use crate::result_types::{first, float, of_any_sign, of_whole};
use crate::scalar::truncated;
use crate::types::{Type, ValueType};

pub(super) fn entry(of: NumberFunction) -> FunctionEntry {
    use NumberFunction as F;
    match of {
        F::Round => FunctionEntry::new(rounded, Evaluate::All(|_, args, _| round(args))),
        F::Abs => {
            let absolute = |of: &Value<'_>| of_number(of, |whole| Value::whole(whole.abs()), f64::abs);
            FunctionEntry::new(|args, second| of_any_sign(first(args, second)), Evaluate::One(absolute))
        }
        F::Floor => FunctionEntry::new(whole, Evaluate::One(|of| of_number(of, Value::whole, f64::floor))),
        F::Ceil => FunctionEntry::new(whole, Evaluate::One(|of| of_number(of, Value::whole, f64::ceil))),
        F::Sqrt => FunctionEntry::new(float, Evaluate::One(|of| of_float(of, f64::sqrt))),
        F::Ln => FunctionEntry::new(float, Evaluate::One(|of| of_float(of, f64::ln))),
        F::Log10 => FunctionEntry::new(float, Evaluate::One(|of| of_float(of, f64::log10))),
        F::Pow => FunctionEntry::new(float, Evaluate::Two(pow)),
    }
}

/// Type of a number without its fraction.
fn whole(args: &[ValueType], _: Option<&Value<'_>>) -> ValueType {
    of_whole(first(args, None))
}

/// Type of ROUND: with digits that are negative, or not known yet, whole numbers may become floats.
fn rounded(args: &[ValueType], digits: Option<&Value<'_>>) -> ValueType {
    let first = first(args, None);
    let keeps_whole = match digits {
        None => args.len() == 1,
        Some(digits) => digits.as_f64().is_some_and(|digits| digits >= 0.0),
    };
    match first.ty {
        _ if keeps_whole => of_whole(first),
        Type::Float | Type::Null => first,
        // Numbers that may be whole or not: only JSON texts hold both.
        _ => ValueType::of(Type::Json),
    }
}

fn round(args: &[Value<'_>]) -> Value<'static> {
    match args {
        [of] => round_to(of, 0),
        [of, digits] => {
            let digits = truncated(digits).and_then(|digits| i32::try_from(digits).ok());
            digits.map_or(Value::Null, |digits| round_to(of, digits))
        }
        _ => Value::Null,
    }
}

/// Rounds half away from zero to a number of digits (D-72).
fn round_to(value: &Value<'_>, digits: i32) -> Value<'static> {
    if let Some(number) = value.as_whole().filter(|_| digits >= 0) {
        return Value::whole(number);
    }
    let Some(number) = value.as_f64() else { return Value::Null };
    let scale = 10f64.powi(digits.saturating_abs());
    Value::float(if digits >= 0 { (number * scale).round() / scale } else { (number / scale).round() * scale })
}

fn of_number(value: &Value<'_>, of_whole: fn(i128) -> Value<'static>, of_float: fn(f64) -> f64) -> Value<'static> {
    match value.as_whole() {
        Some(number) => of_whole(number),
        None => self::of_float(value, of_float),
    }
}

fn of_float(value: &Value<'_>, of: fn(f64) -> f64) -> Value<'static> {
    value.as_f64().map_or(Value::Null, |number| Value::float(of(number)))
}

fn pow(base: &Value<'_>, power: &Value<'_>) -> Value<'static> {
    match (base.as_f64(), power.as_f64()) {
        (Some(base), Some(power)) => Value::float(base.powf(power)),
        _ => Value::Null,
    }
}

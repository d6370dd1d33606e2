//! Functions of values (btql.md, sections 11.1 to 11.4). Functions of texts take the text of any value (D-59).

use assay_node_btql::ast::Unit;
use assay_node_btql::bound::{
    ConditionalFunction, JsonFunction, NumberFunction, ScalarFunction, TextFunction, TimeFunction,
};
use regex::Regex;
use serde_json::Value as Json;

use crate::scalar::{time, type_of};
use crate::value::{Value, equal, order};
use crate::{numbers, text, times};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Evaluates a function. An undefined result is null, also of arguments that are missing.
pub fn call(function: ScalarFunction, args: &[Value], tz_offset: i32) -> Value {
    match function {
        ScalarFunction::Text(function) => of_texts(function, args).unwrap_or(Value::Null),
        ScalarFunction::Number(function) => of_numbers(function, args).unwrap_or(Value::Null),
        ScalarFunction::Time(function) => of_times(function, args, tz_offset).unwrap_or(Value::Null),
        ScalarFunction::Json(function) => of_json(function, args).unwrap_or(Value::Null),
        ScalarFunction::Conditional(function) => one_of(function, args).unwrap_or(Value::Null),
    }
}

fn of_texts(function: TextFunction, args: &[Value]) -> Option<Value> {
    use TextFunction as F;
    let text = |number: usize| args.get(number).and_then(Value::to_text);
    let whole = |number: usize| args.get(number).and_then(numbers::truncated);
    Some(match function {
        F::Lower => Value::Text(text(0)?.to_lowercase()),
        F::Upper => Value::Text(text(0)?.to_uppercase()),
        F::Length => length(args.first()?),
        F::Substring if args.len() == 3 => Value::Text(text::substring(&text(0)?, whole(1)?, Some(whole(2)?))?),
        F::Substring => Value::Text(text::substring(&text(0)?, whole(1)?, None)?),
        F::Trim => Value::text(text(0)?.trim()),
        F::Replace => Value::Text(text::replace(&text(0)?, &text(1)?, &text(2)?)),
        F::SplitPart => Value::Text(text::split_part(&text(0)?, &text(1)?, whole(2)?)?),
        F::StartsWith => Value::Bool(text(0)?.starts_with(&text(1)?)),
        F::EndsWith => Value::Bool(text(0)?.ends_with(&text(1)?)),
        F::Left => Value::Text(text::left(&text(0)?, whole(1)?)),
        F::Right => Value::Text(text::right(&text(0)?, whole(1)?)),
        F::Levenshtein => Value::Int(text::levenshtein(&text(0)?, &text(1)?) as i128),
        F::RegexpExtract => {
            let group = if args.len() == 3 { whole(2)? } else { 0 };
            let found = Regex::new(&text(1)?).ok()?;
            Value::text(found.captures(&text(0)?)?.get(usize::try_from(group).ok()?)?.as_str())
        }
        F::Similarity => Value::float(text::similarity(&text(0)?, &text(1)?)),
    })
}

fn of_numbers(function: NumberFunction, args: &[Value]) -> Option<Value> {
    use NumberFunction as F;
    let first = args.first()?;
    Some(match function {
        F::Round if args.len() == 1 => numbers::round(first, 0),
        F::Round => numbers::round(first, i32::try_from(numbers::truncated(args.get(1)?)?).ok()?),
        F::Pow => Value::float(first.as_f64()?.powf(args.get(1)?.as_f64()?)),
        F::Abs | F::Floor | F::Ceil | F::Sqrt | F::Ln | F::Log10 => numbers::of_one(function, first),
    })
}

fn of_times(function: TimeFunction, args: &[Value], tz_offset: i32) -> Option<Value> {
    match function {
        TimeFunction::ToUnixTime => match time(args.first()?)? {
            whole if whole % MICROS_PER_SECOND == 0 => Some(Value::Int((whole / MICROS_PER_SECOND).into())),
            micros => Some(Value::float(micros as f64 / MICROS_PER_SECOND as f64)),
        },
        TimeFunction::DateDiff => {
            let [Value::Text(unit), start, end] = args else { return None };
            let number = |of: &Value| Some(times::number_of(time(of)?, Unit::of(unit)?, tz_offset));
            Some(Value::Int((number(end)? - number(start)?).into()))
        }
    }
}

fn of_json(function: JsonFunction, args: &[Value]) -> Option<Value> {
    let first = args.first()?;
    Some(match function {
        JsonFunction::JsonExtract => json_extract(first, args.get(1)?),
        JsonFunction::ObjectKeys => match first {
            Value::Object(of) => Value::Array(of.iter().map(|(key, _)| Value::text(key)).collect()),
            _ => Value::Null,
        },
        JsonFunction::ToJson => Value::of_json(&first.to_json()),
        JsonFunction::TypeOf => Value::text(type_of(first)),
    })
}

fn one_of(function: ConditionalFunction, args: &[Value]) -> Option<Value> {
    use ConditionalFunction as F;
    let mut given = args.iter().filter(|arg| !arg.is_null());
    match function {
        F::Coalesce => given.next().cloned(),
        F::Least => given.min_by(|left, right| order(left, right)).cloned(),
        F::Greatest => given.max_by(|left, right| order(left, right)).cloned(),
        F::NullIf => args.first().filter(|first| equal(first, &args[1]) != Some(true)).cloned(),
    }
}

/// D-69.
fn length(of: &Value) -> Value {
    let length = match of {
        Value::Array(of) => of.len(),
        Value::Object(of) => of.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Interval(_) => return Value::Null,
        text => text.to_text().map_or(0, |text| text.chars().count()),
    };
    Value::Int(length as i128)
}

/// The member of just that name, of an object or of the text of one (D-70).
fn json_extract(of: &Value, key: &Value) -> Value {
    let Value::Text(key) = key else { return Value::Null };
    match of {
        Value::Text(text) => {
            serde_json::from_str::<Json>(text).map_or(Value::Null, |json| Value::of_json(&json).member(key))
        }
        other => other.member(key),
    }
}

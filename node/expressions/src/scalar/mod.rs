//! Functions and operators on single values (btql.md, sections 9 to 11): the reference that kernels must agree with.
//!
//! A function of texts takes the text of any value: for JSON the compact text, as LIKE does (D-59). Nothing fails: an
//! undefined result is null (D-52).

mod casts;
mod levenshtein;
mod numbers;
mod texts;

use std::cmp::Ordering;

use assay_node_btql::bound::Function;
use assay_node_btql::calendar;
use assay_node_btql::values::{Value, all, any, compare, contains, equal, in_order, is_in};
use assay_storage_model::merge::Picker;

use crate::bounds::Spent;
use crate::prepared::{Call, Prepared};

pub(crate) use numbers::arithmetic;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Evaluates a call for one row.
pub(crate) fn apply(call: &Call, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
    if !spent.works_on_row() {
        return Value::Null;
    }
    let found = found(call, args, spent);
    // What these two make is counted before it is there.
    let is_counted = matches!(call.function, Function::Concat { .. } | Function::Replace);
    if is_counted || spent.take(found.heap_bytes()) { found } else { Value::Null }
}

fn found(call: &Call, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
    use Function as F;
    let truths = || args.iter().map(Value::truth);
    let found = |best: Option<&Value<'_>>| best.map_or(Value::Null, |best| best.clone().into_owned());
    let given = || args.iter().filter(|arg| !arg.is_null());
    match (&call.function, args) {
        (F::And, _) => Value::truth_of(all(truths())),
        (F::Or, _) => Value::truth_of(any(truths())),
        (F::Not, [of]) => Value::truth_of(of.truth().map(|truth| !truth)),
        (F::IsNull, [of]) => Value::Boolean(of.is_null()),
        (F::IsNotNull, [of]) => Value::Boolean(!of.is_null()),
        (F::Array, _) => Value::List(args.iter().map(|arg| arg.clone().into_owned()).collect()),
        (F::Object(keys), _) => {
            let members = keys.iter().cloned().zip(args.iter().map(|arg| arg.clone().into_owned()));
            Value::Members(members.collect())
        }
        (F::Get(steps), [of]) => match &call.prepared {
            Prepared::Picker(picker) => of.stepped(steps, picker),
            _ => of.stepped(steps, &Picker::new([steps.as_slice()])),
        },
        (F::Coalesce, _) => found(given().next()),
        (F::Least, _) => found(given().min_by(|left, right| in_order(left, right))),
        (F::Greatest, _) => found(given().max_by(|left, right| in_order(left, right))),
        (F::Concat { skips_nulls }, _) => texts::concat(args, *skips_nulls, spent),
        (F::Round, [of]) => numbers::round(of, 0),
        (F::Round, [of, digits]) => numbers::round_to(of, digits),
        (F::Substring | F::Replace | F::SplitPart, _) => texts::of_three(&call.function, args, spent),
        (_, [of]) => of_one(call, of),
        (_, [left, right]) => of_two(call, left, right, spent),
        _ => Value::Null,
    }
}

fn of_two(call: &Call, left: &Value<'_>, right: &Value<'_>, spent: &Spent<'_>) -> Value<'static> {
    use Function as F;
    let ordered = |wanted: fn(Ordering) -> bool| Value::truth_of(compare(left, right).map(wanted));
    let same = || equal(left, right).unwrap_or(left.is_null() && right.is_null());
    match &call.function {
        F::Eq => Value::truth_of(equal(left, right)),
        F::Ne => Value::truth_of(equal(left, right).map(|equal| !equal)),
        F::Lt => ordered(Ordering::is_lt),
        F::Le => ordered(Ordering::is_le),
        F::Gt => ordered(Ordering::is_gt),
        F::Ge => ordered(Ordering::is_ge),
        F::Same => Value::Boolean(same()),
        F::NotSame => Value::Boolean(!same()),
        F::In => Value::truth_of(match &call.prepared {
            Prepared::List(list) => is_in(left, &list.values),
            _ => is_in(left, right),
        }),
        F::Includes => Value::truth_of(contains(left, right)),
        // D-60: of tags, null is empty.
        F::TagsInclude if left.is_null() => Value::truth_of(contains(&Value::List(Vec::new()), right)),
        F::TagsInclude => Value::truth_of(contains(left, right)),
        F::Add | F::Sub | F::Mul | F::Div | F::Mod => arithmetic(&call.function, left, right),
        F::Pow => match (left.as_f64(), right.as_f64()) {
            (Some(base), Some(power)) => Value::float(base.powf(power)),
            _ => Value::Null,
        },
        F::NullIf if equal(left, right) == Some(true) => Value::Null,
        F::NullIf => left.clone().into_owned(),
        F::JsonExtract => casts::json_extract(left, right),
        _ => texts::of_two(call, left, right, spent),
    }
}

fn of_one(call: &Call, of: &Value<'_>) -> Value<'static> {
    use Function as F;
    let text = |made: Option<String>| made.map_or(Value::Null, |text| Value::Text(text.into()));
    match &call.function {
        F::Minus => numbers::minus(of),
        F::Abs | F::Floor | F::Ceil | F::Sqrt | F::Ln | F::Log10 => numbers::of_one(&call.function, of),
        F::Cast(to) => casts::cast(of, *to, call.tz_offset),
        F::ToInterval => match of {
            Value::Interval(interval) => Value::Interval(*interval),
            Value::Text(text) => calendar::interval(text).map_or(Value::Null, Value::Interval),
            _ => Value::Null,
        },
        F::Truncate { unit, many } => {
            let start = of.as_time().and_then(|time| calendar::truncate(time, *unit, *many, call.tz_offset));
            start.map_or(Value::Null, Value::Time)
        }
        F::DatePart(part) => {
            let part = of.as_time().and_then(|time| calendar::part(time, *part, call.tz_offset));
            part.map_or(Value::Null, Value::Integer)
        }
        F::ToUnixTime => of.as_time().map_or(Value::Null, unix_time),
        F::Lower => text(of.to_text().map(|text| text.to_lowercase())),
        F::Upper => text(of.to_text().map(|text| text.to_uppercase())),
        F::Trim => text(of.to_text().map(|text| text.trim().to_owned())),
        F::Length => length(of),
        F::ObjectKeys => match &*of.opened() {
            Value::Members(of) => Value::List(of.iter().map(|(key, _)| Value::Text(key.clone().into())).collect()),
            _ => Value::Null,
        },
        F::ToJson => casts::to_json(of),
        F::TypeOf => Value::Text(type_of(of).into()),
        _ => Value::Null,
    }
}

pub(crate) fn unix_time(micros: i64) -> Value<'static> {
    if micros % MICROS_PER_SECOND == 0 {
        Value::Integer(micros / MICROS_PER_SECOND)
    } else {
        Value::float(micros as f64 / MICROS_PER_SECOND as f64)
    }
}

/// D-69.
fn length(of: &Value<'_>) -> Value<'static> {
    let length = match &*of.opened() {
        Value::List(of) => of.len(),
        Value::Members(of) => of.len(),
        text @ (Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_)) => {
            text.to_text().map_or(0, |text| text.chars().count())
        }
        _ => return Value::Null,
    };
    Value::whole(length as i128)
}

/// Name of a value's type, as `infer` reports it (D-85).
fn type_of(of: &Value<'_>) -> &'static str {
    match of {
        Value::Null => "null",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => "number",
        Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_) | Value::Interval(_) => "string",
        Value::Array(_) | Value::List(_) => "array",
        Value::Object(_) | Value::Members(_) => "object",
    }
}

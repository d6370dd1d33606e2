//! Calls on single values (btql.md, sections 9 to 11): the reference that kernels must agree with. Operators are here, and
//! functions in `functions`. Nothing fails: an undefined result is null (D-52).

mod casts;
mod numbers;
mod texts;

use std::cmp::Ordering;

use assay_node_btql::bound::Function;
use assay_node_btql::calendar;
use assay_node_btql::values::{Value, all, any, compare, contains, equal, is_in};
use assay_storage_model::merge::Picker;

use crate::bounds::Spent;
use crate::prepared::{Call, Prepared};

pub(crate) use casts::cast;
pub(crate) use numbers::{arithmetic, truncated};

/// Evaluates a call for one row.
pub(crate) fn apply(call: &Call, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
    if !spent.works_on_row() {
        return Value::Null;
    }
    let (found, has_taken) = match &call.entry {
        Some(entry) => (entry.apply(call, args, spent), entry.takes_memory),
        None => (found(call, args, spent), matches!(call.function, Function::Concat { .. })),
    };
    if has_taken || spent.take(found.heap_bytes()) { found } else { Value::Null }
}

fn found(call: &Call, args: &[Value<'_>], spent: &Spent<'_>) -> Value<'static> {
    use Function as F;
    let truths = || args.iter().map(Value::truth);
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
        (F::Concat { skips_nulls }, _) => texts::concat(args, *skips_nulls, spent),
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
        _ => texts::of_two(call, left, right, spent),
    }
}

fn of_one(call: &Call, of: &Value<'_>) -> Value<'static> {
    use Function as F;
    match &call.function {
        F::Minus => numbers::minus(of),
        F::Cast(to) => cast(of, *to, call.tz_offset),
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
        _ => Value::Null,
    }
}

//! Entries of functions of times.

use assay_node_btql::ast::Unit;
use assay_node_btql::bound::{DatePart, TimeFunction};
use assay_node_btql::calendar;
use assay_node_btql::values::Value;

use super::{Evaluate, FunctionEntry};
use crate::result_types::float;
use crate::types::{Type, ValueType};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MONTHS_PER_YEAR: i64 = 12;

pub(super) fn entry(of: TimeFunction) -> FunctionEntry {
    match of {
        TimeFunction::ToUnixTime => {
            FunctionEntry::new(float, Evaluate::One(|of| of.as_time().map_or(Value::Null, unix_time)))
        }
        TimeFunction::DateDiff => FunctionEntry::new(
            |_, _| ValueType::of(Type::Int),
            Evaluate::All(|call, args, _| date_diff(args, call.tz_offset).map_or(Value::Null, Value::Integer)),
        ),
    }
}

fn unix_time(micros: i64) -> Value<'static> {
    if micros % MICROS_PER_SECOND == 0 {
        Value::Integer(micros / MICROS_PER_SECOND)
    } else {
        Value::float(micros as f64 / MICROS_PER_SECOND as f64)
    }
}

/// DATE_DIFF: the number of starts of a unit, in local time, that lie after the one time and not after the other.
fn date_diff(args: &[Value<'_>], tz_offset: i32) -> Option<i64> {
    let [Value::Text(unit), start, end] = args else { return None };
    let unit = Unit::of(unit)?;
    let number = |time: i64| match unit {
        Unit::Year => calendar::part(time, DatePart::Unit(Unit::Year), tz_offset),
        Unit::Month => {
            let year = calendar::part(time, DatePart::Unit(Unit::Year), tz_offset)?;
            Some(year * MONTHS_PER_YEAR + calendar::part(time, DatePart::Unit(Unit::Month), tz_offset)?)
        }
        _ => calendar::truncate(time, unit, 1, tz_offset),
    };
    let (start, end) = (number(start.as_time()?)?, number(end.as_time()?)?);
    let between = end.checked_sub(start)?;
    Some(match unit {
        Unit::Year | Unit::Month => between,
        _ => between / calendar::size(unit),
    })
}

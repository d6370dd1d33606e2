//! Functions by name (btql.md, section 11): their number of arguments, and their function of the engine.

use std::ops::RangeInclusive;

use crate::ast::{Type, Unit};
use crate::bound::{Aggregation, BoundExpr, DatePart, Datum, Function};

/// Target of a call.
#[derive(Clone, Debug)]
pub(super) enum CallTarget {
    /// Arguments are the engine's as they are.
    Plain(Function),
    Aggregate(AggregateName),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AggregateName {
    Count,
    CountDistinct,
    Sum,
    Avg,
    Min,
    Max,
    AnyValue,
    Percentile,
    Median,
    Stddev,
    ArrayAgg,
    StringAgg,
    First,
    Last,
}

/// Function that needs more than its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Now,
    CurrentDate,
    DateTrunc,
    DatePart,
    Search,
    EstimatedCost,
    Includes,
    AnySpan,
    FilterSpans,
    Interval,
}

const MANY: usize = 1_000;

pub(super) fn known(name: &str) -> Option<(CallTarget, RangeInclusive<usize>)> {
    let plain = |function, args| Some((CallTarget::Plain(function), args));
    let special = |special, args| Some((CallTarget::Special(special), args));
    let truncate = |unit| plain(Function::Truncate { unit, many: 1 }, 1..=1);
    match name {
        "second" => truncate(Unit::Second),
        "minute" => truncate(Unit::Minute),
        "hour" => truncate(Unit::Hour),
        "day" => truncate(Unit::Day),
        "week" => truncate(Unit::Week),
        "month" => truncate(Unit::Month),
        "year" => truncate(Unit::Year),
        "now" | "current_timestamp" => special(Special::Now, 0..=0),
        "current_date" => special(Special::CurrentDate, 0..=0),
        "date_trunc" => special(Special::DateTrunc, 2..=2),
        "date_part" => special(Special::DatePart, 2..=2),
        "to_unixtime" => plain(Function::ToUnixTime, 1..=1),
        "lower" => plain(Function::Lower, 1..=1),
        "upper" => plain(Function::Upper, 1..=1),
        "concat" => plain(Function::Concat { skips_nulls: true }, 1..=MANY),
        "length" | "len" => plain(Function::Length, 1..=1),
        "substring" | "substr" => plain(Function::Substring, 2..=3),
        "trim" => plain(Function::Trim, 1..=1),
        "replace" => plain(Function::Replace, 3..=3),
        "split_part" => plain(Function::SplitPart, 3..=3),
        "starts_with" => plain(Function::StartsWith, 2..=2),
        "ends_with" => plain(Function::EndsWith, 2..=2),
        "left" => plain(Function::Left, 2..=2),
        "right" => plain(Function::Right, 2..=2),
        "levenshtein" => plain(Function::Levenshtein, 2..=2),
        "similarity" => plain(Function::Similarity, 2..=2),
        "contains" | "includes" | "array_contains" => special(Special::Includes, 2..=2),
        "json_extract" => plain(Function::JsonExtract, 2..=2),
        "object_keys" => plain(Function::ObjectKeys, 1..=1),
        "to_json" => plain(Function::ToJson, 1..=1),
        "typeof" => plain(Function::TypeOf, 1..=1),
        "coalesce" => plain(Function::Coalesce, 1..=MANY),
        "ifnull" => plain(Function::Coalesce, 2..=2),
        "nullif" => plain(Function::NullIf, 2..=2),
        "least" => plain(Function::Least, 1..=MANY),
        "greatest" => plain(Function::Greatest, 1..=MANY),
        "round" => plain(Function::Round, 1..=2),
        "abs" => plain(Function::Abs, 1..=1),
        "floor" => plain(Function::Floor, 1..=1),
        "ceil" | "ceiling" => plain(Function::Ceil, 1..=1),
        "sqrt" => plain(Function::Sqrt, 1..=1),
        "ln" => plain(Function::Ln, 1..=1),
        "log10" => plain(Function::Log10, 1..=1),
        "pow" | "power" => plain(Function::Pow, 2..=2),
        "to_string" => plain(Function::Cast(Type::Text), 1..=1),
        "to_boolean" => plain(Function::Cast(Type::Boolean), 1..=1),
        "to_integer" => plain(Function::Cast(Type::Integer), 1..=1),
        "to_number" => plain(Function::Cast(Type::Number), 1..=1),
        "to_date" => plain(Function::Cast(Type::Date), 1..=1),
        "to_datetime" => plain(Function::Cast(Type::Timestamp), 1..=1),
        "to_interval" => special(Special::Interval, 1..=1),
        "search" => special(Special::Search, 1..=1),
        "estimated_cost" => special(Special::EstimatedCost, 0..=0),
        "any_span" => special(Special::AnySpan, 1..=1),
        "filter_spans" => special(Special::FilterSpans, 1..=1),
        _ => aggregate(name),
    }
}

fn aggregate(name: &str) -> Option<(CallTarget, RangeInclusive<usize>)> {
    use AggregateName as A;
    let aggregate = |aggregate, args| Some((CallTarget::Aggregate(aggregate), args));
    match name {
        "count" => aggregate(A::Count, 1..=1),
        "count_distinct" => aggregate(A::CountDistinct, 1..=1),
        "sum" => aggregate(A::Sum, 1..=1),
        "avg" => aggregate(A::Avg, 1..=1),
        "min" => aggregate(A::Min, 1..=1),
        "max" => aggregate(A::Max, 1..=1),
        "any_value" => aggregate(A::AnyValue, 1..=1),
        "percentile" => aggregate(A::Percentile, 2..=2),
        "median" => aggregate(A::Median, 1..=1),
        "stddev" => aggregate(A::Stddev, 1..=1),
        "array_agg" => aggregate(A::ArrayAgg, 1..=1),
        "string_agg" => aggregate(A::StringAgg, 1..=2),
        "first" => aggregate(A::First, 1..=1),
        "last" => aggregate(A::Last, 1..=1),
        _ => None,
    }
}

/// Binds an aggregate with its second argument, which must be constant. The first one is its operand.
pub(super) fn aggregation(name: AggregateName, second: Option<&BoundExpr>) -> Result<Aggregation, &'static str> {
    use AggregateName as A;
    let number = |expr: &BoundExpr| match expr {
        BoundExpr::Const(Datum::Integer(number)) => Some(*number as f64),
        BoundExpr::Const(Datum::Float(number)) => Some(*number),
        _ => None,
    };
    Ok(match name {
        A::Count | A::CountDistinct => Aggregation::Count,
        A::Sum => Aggregation::Sum,
        A::Avg => Aggregation::Avg,
        A::Min => Aggregation::Min,
        A::Max => Aggregation::Max,
        A::AnyValue => Aggregation::AnyValue,
        A::Median => Aggregation::Percentile(0.5),
        A::Percentile => {
            let share = second.and_then(number).filter(|share| (0.0..=1.0).contains(share));
            Aggregation::Percentile(share.ok_or("percentile takes a number between 0 and 1 behind its expression")?)
        }
        A::Stddev => Aggregation::Stddev,
        A::ArrayAgg => Aggregation::ArrayAgg,
        A::StringAgg => match second {
            None => Aggregation::StringAgg(",".into()),
            Some(BoundExpr::Const(Datum::Text(between))) => Aggregation::StringAgg(between.clone()),
            Some(_) => return Err("string_agg takes a text as its second argument"),
        },
        A::First => Aggregation::First,
        A::Last => Aggregation::Last,
    })
}

/// Parses a bin such as `'day'` or `'15 minutes'` (D-65). Weeks, months and years have no number.
pub(super) fn bin(text: &str) -> Option<(Unit, u32)> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let (many, unit) = match words.next() {
        None => (1, Unit::of(first)?),
        Some(unit) => (first.parse().ok().filter(|many| *many > 0)?, Unit::of(unit)?),
    };
    let alone = matches!(unit, Unit::Week | Unit::Month | Unit::Year);
    let fine = !matches!(unit, Unit::Millisecond | Unit::Microsecond) && (many == 1 || !alone);
    (fine && words.next().is_none()).then_some((unit, many))
}

pub(super) fn date_part(name: &str) -> Option<DatePart> {
    Some(match name.to_ascii_lowercase().as_str() {
        "dow" | "dayofweek" => DatePart::DayOfWeek,
        "doy" | "dayofyear" => DatePart::DayOfYear,
        "quarter" => DatePart::Quarter,
        "epoch" => DatePart::Epoch,
        name => DatePart::Unit(Unit::of(name)?),
    })
}

/// Returns a function with a similar name, for errors.
pub(super) fn near(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 30] = [
        "count",
        "count_distinct",
        "sum",
        "avg",
        "min",
        "max",
        "any_value",
        "percentile",
        "date_trunc",
        "now",
        "lower",
        "upper",
        "concat",
        "length",
        "substring",
        "replace",
        "coalesce",
        "round",
        "json_extract",
        "search",
        "estimated_cost",
        "any_span",
        "filter_spans",
        "to_string",
        "to_number",
        "to_datetime",
        "current_date",
        "nullif",
        "least",
        "greatest",
    ];
    let bare = |name: &str| name.replace('_', "");
    NAMES.into_iter().find(|known| {
        bare(known) == bare(name)
            || known.len() > 3 && (name.starts_with(known) || known.starts_with(name) && name.len() > 3)
    })
}

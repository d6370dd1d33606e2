//! Values of attributes as JSON, JSON in texts, and times.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use crate::proto::{AnyValue, KeyValue, any_value};

/// Upper bound of the nesting of parsed texts. A row has at most 64 levels, and its fields need some of them.
const PARSED_DEPTH_MAX: usize = 48;

/// Converts a value. Returns `None` if it is nested deeper than `depth` levels.
pub(crate) fn of_any(value: Option<AnyValue>, depth: usize) -> Option<Value> {
    use any_value::Value as Any;
    let Some(value) = value.and_then(|value| value.value) else { return Some(Value::Null) };
    let below = depth.checked_sub(1);
    Some(match value {
        Any::String(text) => Value::String(text),
        Any::Bool(flag) => Value::Bool(flag),
        Any::Int(number) => Value::from(number),
        Any::Double(number) => of_double(number),
        Any::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
        Any::Array(array) => {
            let below = below?;
            Value::Array(array.values.into_iter().map(|value| of_any(Some(value), below)).collect::<Option<_>>()?)
        }
        Any::List(list) => Value::Object(of_pairs(list.values, below?)?),
    })
}

pub(crate) fn of_pairs(pairs: Vec<KeyValue>, depth: usize) -> Option<Map<String, Value>> {
    pairs.into_iter().map(|pair| Some((pair.key, of_any(pair.value, depth)?))).collect()
}

/// Converts a double. Values that JSON lacks become texts.
fn of_double(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => Value::from("NaN"),
        None => Value::from(if number > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

/// Parses a text that contains JSON within the nesting limit.
pub(crate) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value| is_within(value, PARSED_DEPTH_MAX))
}

/// Parses a text that contains JSON. Other texts, and numbers in texts, are unchanged.
pub(crate) fn parse_meant(value: Value) -> Value {
    match &value {
        Value::String(text) if text.trim_start().starts_with(['{', '[', '"']) => parse(text).unwrap_or(value),
        _ => value,
    }
}

fn is_within(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(values) => depth > 0 && values.iter().all(|value| is_within(value, depth - 1)),
        Value::Object(map) => depth > 0 && map.values().all(|value| is_within(value, depth - 1)),
        _ => true,
    }
}

/// Returns a number, which may also be in a text.
pub(crate) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => match text.trim().parse::<i64>() {
            Ok(number) => Some(number.into()),
            Err(_) => text.trim().parse().ok().and_then(Number::from_f64),
        },
        _ => None,
    }
}

/// Merges `over` into `under`, including nested objects.
pub(crate) fn merge(under: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            (Some(under), value) => *under = value,
            (None, value) => drop(under.insert(key, value)),
        }
    }
}

const NANOS_OF_SECOND: u64 = 1_000_000_000;
const SECONDS_OF_DAY: u64 = 86_400;

pub(crate) fn seconds(nanos: u64) -> Value {
    // Whole seconds are converted separately, because current nanoseconds have more digits than a float.
    Value::from((nanos / NANOS_OF_SECOND) as f64 + (nanos % NANOS_OF_SECOND) as f64 / NANOS_OF_SECOND as f64)
}

/// Formats a time as `2024-01-31T23:59:59.000001Z`.
pub(crate) fn iso(nanos: u64) -> String {
    let (seconds, micros) = (nanos / NANOS_OF_SECOND, nanos % NANOS_OF_SECOND / 1000);
    let (year, month, day) = date(seconds / SECONDS_OF_DAY);
    let time = seconds % SECONDS_OF_DAY;
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Returns the date of a day since 1970. Its years begin in March, so a leap day is the last of its year.
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_dates_of_the_calendar() {
        for (nanos, said) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_709_970_518_123_456_789, "2024-03-09T07:48:38.123456Z"),
            (1_735_689_599_999_999_999, "2024-12-31T23:59:59.999999Z"),
            (u64::MAX, "2554-07-21T23:34:33.709551Z"),
        ] {
            assert_eq!(iso(nanos), said);
        }
        assert_eq!(seconds(1_709_970_518_500_000_000), json!(1_709_970_518.5));
    }

    #[test]
    fn text_that_is_meant_as_json_becomes_it_and_other_text_stays() {
        let check = |text: &str, value: Value| assert_eq!(parse_meant(Value::from(text)), value);
        check(" [1]", json!([1]));
        check("\"a\"", json!("a"));
        check("{no", json!("{no"));
        check("42", json!("42"));
        check("true", json!("true"));
        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        check(&deep, json!(deep));
    }

    #[test]
    fn numbers_may_be_text() {
        assert_eq!(number(&json!("12")), Some(12.into()));
        assert_eq!(number(&json!(" 1.5")), Number::from_f64(1.5));
        assert_eq!(number(&json!("NaN")), None);
        assert_eq!(number(&json!(true)), None);
    }

    #[test]
    fn objects_are_merged_within_each_other() {
        let map = |value: Value| value.as_object().cloned().expect("an object");
        let mut under = map(json!({"a": {"b": 1, "c": 2}, "d": 3}));
        merge(&mut under, map(json!({"a": {"b": 4}, "d": {"e": 5}})));
        assert_eq!(Value::Object(under), json!({"a": {"b": 4, "c": 2}, "d": {"e": 5}}));
    }
}

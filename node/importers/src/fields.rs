//! Readers of JSON fields, as sources spell them.

use assay_storage_model::event::{format_micros, parse_created};
use serde_json::{Map, Number, Value};

const MICROS: f64 = 1e6;
const NANOS: f64 = 1e9;

/// Returns a text that is not empty.
pub(crate) fn text<'v>(of: &'v Value, key: &str) -> Option<&'v str> {
    of.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns a text or a number as a text.
pub(crate) fn id(of: &Value, key: &str) -> Option<String> {
    match of.get(key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a number, which some sources write as a text.
pub(crate) fn number(of: &Value, key: &str) -> Option<f64> {
    number_of(of.get(key)?)
}

pub(crate) fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

/// Returns a number as JSON, as an integer where it is one.
pub(crate) fn json_number(number: f64) -> Value {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

pub(crate) fn object<'v>(of: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    of.get(key).and_then(Value::as_object)
}

pub(crate) fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts of a list.
pub(crate) fn texts(of: &Value, key: &str) -> Vec<String> {
    list(of, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns a time in ISO 8601 with `T` and a zone. Exports of databases write a space, and no zone.
pub(crate) fn iso(text: &str) -> String {
    let mut iso = text.trim().replacen(' ', "T", 1);
    let has_zone = iso.ends_with('Z') || iso.get(10..).is_some_and(|time| time.contains(['+', '-']));
    if !has_zone && iso.contains('T') {
        iso.push('Z');
    }
    iso
}

/// Returns seconds since 1970 of a time in ISO 8601.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    parse_created(&iso(text)).map(|micros| micros as f64 / MICROS)
}

/// Returns a time field in ISO 8601, if it is one.
pub(crate) fn time(of: &Value, key: &str) -> Option<String> {
    text(of, key).map(iso).filter(|time| parse_created(time).is_some())
}

/// Returns seconds of a number of nanoseconds, which JSON may write as a text.
pub(crate) fn seconds_of_nanos(of: &Value, key: &str) -> Option<f64> {
    number(of, key).filter(|nanos| *nanos > 0.0).map(|nanos| nanos / NANOS)
}

/// Returns ISO 8601 of microseconds since 1970, in UTC.
pub fn time_text(micros: i64) -> String {
    format_micros(micros)
}

/// Returns ISO 8601 of seconds since 1970, in UTC.
pub(crate) fn iso_of_seconds(seconds: f64) -> String {
    format_micros((seconds * MICROS).round() as i64)
}

/// Returns the value of a text that is JSON of an object or a list, and other values as they are.
pub(crate) fn parsed(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    let is_json = text.trim_start().starts_with(['{', '[', '"']);
    if is_json && let Ok(parsed) = serde_json::from_str(text) { parsed } else { value.clone() }
}

/// Returns an object, also if it is written as JSON text.
pub(crate) fn parsed_object(of: &Value, key: &str) -> Map<String, Value> {
    match of.get(key).map(parsed) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_of_exports_are_times() {
        assert_eq!(iso("2024-05-29 13:46:19.963000"), "2024-05-29T13:46:19.963000Z");
        assert_eq!(iso("2024-05-29T13:46:19+02:00"), "2024-05-29T13:46:19+02:00");
        assert_eq!(seconds("1970-01-01T00:00:01.5Z"), Some(1.5));
        assert_eq!(seconds("yesterday"), None);
        for time in ["1970-01-01T00:00:00.000Z", "2024-02-29T23:59:59.250Z", "2026-11-30T13:00:00.000001Z"] {
            assert_eq!(iso_of_seconds(seconds(time).unwrap()), time);
        }
    }

    #[test]
    fn numbers_and_objects_may_be_texts() {
        let row = json!({"cost": "0.25", "usage": "{\"input\": 3}", "name": "7", "bad": "x"});
        assert_eq!((number(&row, "cost"), number(&row, "bad")), (Some(0.25), None));
        assert_eq!(parsed_object(&row, "usage"), *json!({"input": 3}).as_object().unwrap());
        assert_eq!(parsed(&row["name"]), json!("7"), "a text that is a number stays a text");
        assert_eq!((json_number(3.0), json_number(0.5)), (json!(3), json!(0.5)));
    }
}

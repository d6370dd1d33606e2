//! Fields of requests: texts, times, objects, and segments of paths.

use assay_storage_model::event::{format_micros, parse_created};
use serde_json::{Map, Number, Value};

/// Field of a request that is invalid, with the correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField(pub String);

impl std::fmt::Display for BadField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadField {}

/// Upper bound of the characters of a value in an error text.
const SHOWN_CHARS_MAX: usize = 80;

pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

/// Returns a field that is present and not null.
pub(crate) fn given<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}

/// Returns a text field, or `None` if it is missing, null or empty.
pub(crate) fn text<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, BadField> {
    match given(body, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(BadField(format!("`{name}` has to be a string"))),
    }
}

pub(crate) fn needed<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, BadField> {
    text(body, name)?.ok_or_else(|| BadField(format!("`{name}` is missing or empty")))
}

/// Returns a time field in microseconds.
pub(crate) fn time(body: &Map<String, Value>, name: &str) -> Result<Option<i64>, BadField> {
    let Some(text) = text(body, name)? else { return Ok(None) };
    let wrong = || BadField(format!("`{name}` is `{}`; it has to be an ISO 8601 time", shown(text)));
    parse_created(text).map(Some).ok_or_else(wrong)
}

/// Returns a list of texts, or `None` if it is missing.
pub(crate) fn texts(body: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, BadField> {
    let wrong = || BadField(format!("`{name}` has to be a list of strings"));
    match given(body, name) {
        None => Ok(None),
        Some(Value::Array(items)) => {
            let each = items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong));
            each.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// Returns the ISO form of microseconds.
pub(crate) fn iso(micros: i64) -> Value {
    Value::from(format_micros(micros))
}

/// Returns the seconds of microseconds, as metrics have them.
pub(crate) fn seconds(micros: i64) -> Value {
    Value::from(micros as f64 / 1_000_000.0)
}

/// Returns the ISO form of the seconds in a metric.
pub(crate) fn iso_of_seconds(value: Option<&Value>) -> Option<Value> {
    let seconds = value?.as_f64().filter(|seconds| seconds.is_finite())?;
    Some(iso((seconds * 1_000_000.0).round() as i64))
}

/// Parses a text that contains JSON; other texts stay.
pub(crate) fn parsed_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Returns an object, which may be in a text.
pub(crate) fn object_of(value: Option<&Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map.clone(),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        },
        _ => Map::new(),
    }
}

pub(crate) fn number_of(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => text.trim().parse().ok().and_then(Number::from_f64),
        _ => None,
    }
}

/// Decodes the percent encoding of a segment of a path. Invalid bytes are refused.
pub fn decoded_segment(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next()?)? << 4 | digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_segment_is_decoded_once() {
        for (sent, meant) in [("a", "a"), ("a%2Fb%20c", "a/b c"), ("%25", "%"), ("%252F", "%2F"), ("%C3%A9", "é")] {
            assert_eq!(decoded_segment(sent).as_deref(), Some(meant));
        }
        for wrong in ["%", "%2", "%zz", "%ff", "%00"] {
            assert_eq!(decoded_segment(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn fields_of_a_wrong_type_are_named() {
        let body = json!({"a": 1, "t": "now", "l": ["a", 1], "e": "", "n": null});
        let body = body.as_object().expect("an object");
        assert_eq!(text(body, "a"), Err(BadField("`a` has to be a string".into())));
        assert_eq!((text(body, "e"), text(body, "n"), text(body, "x")), (Ok(None), Ok(None), Ok(None)));
        assert!(time(body, "t").expect_err("no time").0.contains("ISO 8601"));
        assert!(texts(body, "l").is_err());
        assert!(needed(body, "e").is_err());
    }

    #[test]
    fn seconds_of_metrics_are_times() {
        assert_eq!(iso_of_seconds(Some(&json!(1_709_970_518.5))), Some(json!("2024-03-09T07:48:38.500Z")));
        assert_eq!(iso_of_seconds(Some(&json!("x"))), None);
        assert_eq!(seconds(1_500_000), json!(1.5));
    }
}

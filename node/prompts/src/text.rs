//! Texts of JSON values as JavaScript writes them, which is what templates were written for.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Floats below this are written without an exponent when they have no fraction.
const PLAIN_FLOAT_MAX: f64 = 1e21;
/// Blanks that JSON is indented by, at most as in JavaScript.
const INDENT_MAX: usize = 10;

/// Returns a string as it is, null as the empty text, and any other value as compact JSON.
pub(crate) fn display_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => json_text(other),
    }
}

/// Returns compact JSON. A float without a fraction is written without one: `1`, not `1.0`.
pub(crate) fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, JavaScriptNumbers));
    written.expect("a JSON value has string keys, and writing to memory does not fail");
    String::from_utf8(bytes).expect("JSON is written in UTF-8")
}

/// Returns JSON over several lines, each level indented by some blanks.
pub(crate) fn indented_json_text(value: &Value, blanks: usize) -> String {
    let (mut bytes, indent) = (Vec::new(), " ".repeat(blanks.min(INDENT_MAX)));
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    let written = whole_numbers(value).serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    written.expect("a JSON value has string keys, and writing to memory does not fail");
    String::from_utf8(bytes).expect("JSON is written in UTF-8")
}

/// Returns the value with floats that have no fraction as whole numbers.
fn whole_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = number.as_f64().map(float_text);
            text.and_then(|text| text.parse::<i64>().ok()).map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(whole_numbers).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, member)| (name.clone(), whole_numbers(member))).collect())
        }
        other => other.clone(),
    }
}

/// Returns a float as JavaScript prints it.
pub(crate) fn float_text(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    if float.fract() == 0.0 && float.abs() < PLAIN_FLOAT_MAX {
        // the shortest digits that mean this float, without an exponent
        return float.to_string();
    }
    let mut bytes = Vec::new();
    match CompactFormatter.write_f64(&mut bytes, float) {
        Ok(()) => String::from_utf8(bytes).expect("a float is written in ASCII"),
        Err(_) => float.to_string(),
    }
}

/// Compact JSON but for floats.
struct JavaScriptNumbers;

impl Formatter for JavaScriptNumbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float_text(value).as_bytes())
    }
}

/// Returns the first `chars` characters of a text.
pub(crate) fn prefix(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_in_javascript() {
        let cases = [
            (json!("a \"b\""), "a \"b\""),
            (json!(null), ""),
            (json!(true), "true"),
            (json!(42), "42"),
            (json!(1.0), "1"),
            (json!(-0.0), "0"),
            (json!(0.5), "0.5"),
            (json!(123456789012345680000.0), "123456789012345680000"),
            (json!({"b": 1.0, "a": [1, null, "x"]}), r#"{"b":1,"a":[1,null,"x"]}"#),
        ];
        for (value, expected) in cases {
            assert_eq!(display_text(&value), expected);
        }
    }

    #[test]
    fn indented_json_has_a_line_for_each_value() {
        let text = indented_json_text(&json!({"a": [1.0, 0.5], "b": {}}), 2);
        assert_eq!(text, "{\n  \"a\": [\n    1,\n    0.5\n  ],\n  \"b\": {}\n}");
    }

    #[test]
    fn a_prefix_ends_between_characters() {
        assert_eq!(prefix("aüb", 2), "aü");
        assert_eq!(prefix("aüb", 9), "aüb");
    }
}

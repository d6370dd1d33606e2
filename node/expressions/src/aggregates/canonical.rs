//! Canonical bytes: equal for values that are equal for GROUP BY and DISTINCT (`values::same`), and for no others.

use std::borrow::Cow;

use assay_node_btql::ast::Unit;
use assay_node_btql::level;
use assay_node_btql::values::Value;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const WHOLE: u8 = 3;
const BEYOND: u8 = 4;
const FLOAT: u8 = 5;
const TEXT: u8 = 6;
const TIME: u8 = 7;
const MONTHS: u8 = 8;
const MICROS: u8 = 9;
const LIST: u8 = 10;
const MEMBERS: u8 = 11;
const BROKEN_ARRAY: u8 = 12;
const BROKEN_OBJECT: u8 = 13;

/// 2^64, and -2^63.
const WHOLE_BELOW: f64 = 18_446_744_073_709_551_616.0;
const WHOLE_FROM: f64 = -9_223_372_036_854_775_808.0;

/// Appends them. Where they end can be told from them alone, so that those of several values may stand behind each other.
pub fn canonical_bytes(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Boolean(boolean) => out.push(if *boolean { TRUE } else { FALSE }),
        Value::Integer(number) => put_whole((*number).into(), out),
        Value::Unsigned(number) => put_whole((*number).into(), out),
        Value::Float(number) => match whole_of(*number) {
            Some(whole) => put_whole(whole, out),
            None => put(FLOAT, number.to_bits(), out),
        },
        Value::Text(text) => put_text(TEXT, text, out),
        // A text of digits, and the same as one.
        Value::Xact(xact) => put_text(TEXT, &xact.to_string(), out),
        Value::Time(micros) | Value::Stored(micros) => put(TIME, micros.cast_unsigned(), out),
        Value::Interval(of) => {
            let counts_months = matches!(of.unit, Unit::Month | Unit::Year);
            out.push(if counts_months { MONTHS } else { MICROS });
            let size = i128::from(of.value) * i128::from(assay_node_btql::calendar::size(of.unit));
            out.extend_from_slice(&size.to_le_bytes());
        }
        Value::Array(json) => put_opened(BROKEN_ARRAY, json, value, out),
        Value::Object(json) => put_opened(BROKEN_OBJECT, json, value, out),
        Value::List(of) => {
            put(LIST, of.len() as u64, out);
            level(|| of.iter().for_each(|element| canonical_bytes(element, out)));
        }
        Value::Members(of) => {
            let mut members: Vec<_> = of.iter().collect();
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            put(MEMBERS, members.len() as u64, out);
            level(|| {
                for (key, member) in members {
                    put_text(TEXT, key, out);
                    canonical_bytes(member, out);
                }
            });
        }
    }
}

/// Canonical bytes of a text.
pub fn canonical_text(text: &str, out: &mut Vec<u8>) {
    put_text(TEXT, text, out);
}

/// A text that is no JSON is the same as itself.
fn put_opened(broken: u8, json: &str, value: &Value<'_>, out: &mut Vec<u8>) {
    match value.opened() {
        Cow::Owned(opened) if !opened.is_null() => canonical_bytes(&opened, out),
        _ => put_text(broken, json, out),
    }
}

/// The whole number that a float equals, if it has 64 bits: they compare as equal.
fn whole_of(float: f64) -> Option<i128> {
    let is_whole = float.fract() == 0.0 && (WHOLE_FROM..WHOLE_BELOW).contains(&float);
    is_whole.then_some(float as i128)
}

fn put_whole(number: i128, out: &mut Vec<u8>) {
    match i64::try_from(number) {
        Ok(number) => put(WHOLE, number.cast_unsigned(), out),
        // Of 64 bits without a sign, by where it comes from.
        Err(_) => put(BEYOND, number as u64, out),
    }
}

fn put(kind: u8, bits: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&bits.to_le_bytes());
}

fn put_text(kind: u8, text: &str, out: &mut Vec<u8>) {
    put(kind, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use assay_node_btql::ast::Interval;
    use assay_node_btql::values::same;

    use super::*;

    fn bytes(value: &Value<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        canonical_bytes(value, &mut out);
        out
    }

    fn samples() -> Vec<Value<'static>> {
        let interval = |value, unit| Value::Interval(Interval { value, unit });
        let json = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "1.5",
            "9007199254740993",
            "9007199254740992.0",
            "1152921504606846976",
            "1152921504606846976.0",
            "9223372036854775808",
            "9223372036854775808.0",
            "18446744073709551615",
            "1e19",
            "10000000000000000000",
            "1e20",
            "1e300",
            "\"\"",
            "\"1\"",
            "\"true\"",
            "\"1970-01-01T00:00:00Z\"",
            "[]",
            "{}",
            "[1,[2.0,null]]",
            "[1.0, [2,null]]",
            "[[1],2]",
            "[1,2]",
            "[12]",
            r#"{"a":1,"b":{"c":"x"}}"#,
            r#"{"b": {"c": "x"}, "a": 1.0}"#,
            r#"{"a":1,"b":{"c":"y"}}"#,
            r#"{"a":1}"#,
            r#"{"a":null}"#,
            r#"["a",1]"#,
            "[",
            "{",
        ];
        let mut samples: Vec<Value<'static>> = json.iter().map(|json| Value::read(json).into_owned()).collect();
        samples.extend([
            Value::Xact(1),
            Value::Xact(12),
            Value::Text("12".into()),
            Value::Time(0),
            Value::Stored(0),
            Value::Time(1),
            interval(1, Unit::Year),
            interval(12, Unit::Month),
            interval(12, Unit::Microsecond),
            interval(1, Unit::Day),
            interval(24, Unit::Hour),
            Value::List(vec![Value::Integer(1), Value::Integer(2)]),
            Value::List(vec![Value::Xact(1)]),
            Value::List(vec![Value::Text("1".into())]),
            Value::List(vec![Value::Time(0)]),
            Value::Members(vec![("b".into(), Value::Null), ("a".into(), Value::Integer(1))]),
            Value::Object(r#"{"a":1,"b":null}"#.into()),
            Value::Array("[".into()),
            Value::Object("[".into()),
        ]);
        samples
    }

    #[test]
    fn bytes_are_the_same_where_values_are() {
        for left in &samples() {
            for right in &samples() {
                assert_eq!(bytes(left) == bytes(right), same(left, right), "{left:?} and {right:?}");
            }
        }
    }

    #[test]
    fn no_bytes_begin_as_others_do() {
        for left in &samples() {
            for right in &samples() {
                let (left_bytes, right_bytes) = (bytes(left), bytes(right));
                let is_prefix = right_bytes.starts_with(&left_bytes);
                assert!(!is_prefix || left_bytes == right_bytes, "{left:?} and {right:?}");
            }
        }
    }
}

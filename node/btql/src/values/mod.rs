//! What values are and how they compare (btql.md, section 9), over JSON texts as they are stored: nothing is parsed that
//! is not looked at. An engine that knows more of a column does better; where it does not, this is what is true.

mod like;
mod order;
mod search;

use std::borrow::Cow;

use assay_storage_model::event::{format_micros, parse_created};
use serde_json::Value as Tree;

pub use like::Like;
pub use order::{canonical, compare, contains, in_order, same};
pub use search::Words;

/// A value, read as far as its outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(Cow<'a, str>),
    /// Microseconds since the epoch.
    Time(i64),
    /// The JSON text of an array.
    Array(&'a [u8]),
    /// The JSON text of an object.
    Object(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Of a JSON text that is stored; what is damaged is null.
    pub fn read(json: &'a [u8]) -> Value<'a> {
        match json.first() {
            Some(b'"') => text_of(json).map_or(Value::Null, Value::Text),
            Some(b'{') => Value::Object(json),
            Some(b'[') => Value::Array(json),
            Some(b't') => Value::Boolean(true),
            Some(b'f') => Value::Boolean(false),
            Some(b'-' | b'0'..=b'9') => std::str::from_utf8(json).map_or(Value::Null, number),
            _ => Value::Null,
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// D-50: what a condition makes of it.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Boolean(boolean) => Some(*boolean),
            Value::Integer(number) => Some(*number != 0),
            Value::Unsigned(number) => Some(*number != 0),
            Value::Float(number) => Some(*number != 0.0),
            _ => None,
        }
    }

    /// The text itself, or the JSON text of anything else (D-59, D-74).
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Value::Null => return None,
            Value::Boolean(boolean) => Cow::Borrowed(if *boolean { "true" } else { "false" }),
            Value::Integer(number) => Cow::Owned(number.to_string()),
            Value::Unsigned(number) => Cow::Owned(number.to_string()),
            Value::Float(number) => Cow::Owned(Tree::from(*number).to_string()),
            Value::Text(text) => Cow::Borrowed(text),
            Value::Time(micros) => Cow::Owned(format_micros(*micros)),
            Value::Array(json) | Value::Object(json) => String::from_utf8_lossy(json),
        })
    }

    /// As a number, where it is one; booleans are 0 and 1 (D-51).
    pub fn as_number(&self) -> Option<Value<'static>> {
        match self {
            Value::Boolean(boolean) => Some(Value::Integer((*boolean).into())),
            Value::Integer(number) => Some(Value::Integer(*number)),
            Value::Unsigned(number) => Some(Value::Unsigned(*number)),
            Value::Float(number) => Some(Value::Float(*number)),
            _ => None,
        }
    }

    pub fn as_time(&self) -> Option<i64> {
        match self {
            Value::Time(micros) => Some(*micros),
            Value::Text(text) => parse_created(text.trim()),
            _ => None,
        }
    }
}

/// What is between the quotes.
fn text_of(json: &[u8]) -> Option<Cow<'_, str>> {
    let inside = json.get(1..json.len().checked_sub(1)?)?;
    if !inside.contains(&b'\\') {
        return std::str::from_utf8(inside).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(json).ok().map(Cow::Owned)
}

/// A text that looks like a number, as that number: digits with a sign, a point and an exponent, and nothing else.
pub fn number(text: &str) -> Value<'static> {
    let looks = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'))
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'));
    if !looks {
        return Value::Null;
    }
    if let Ok(whole) = text.parse() {
        return Value::Integer(whole);
    }
    if let Ok(whole) = text.parse() {
        return Value::Unsigned(whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Float(number),
        _ => Value::Null,
    }
}

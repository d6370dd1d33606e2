//! Values of the language and their comparison (btql.md, section 9), over stored JSON texts that are parsed only as far as
//! needed. Kernels over typed columns are faster; these functions are their reference. Also patterns (`pattern`, `like`, `extractor`),
//! words (`search`), and times (`calendar`, `time_units`).

pub mod calendar;
mod contains;
mod extractor;
mod json;
mod like;
mod order;
mod pattern;
mod search;
pub mod time_units;

use std::borrow::Cow;

use assay_storage_model::event::{format_micros, parse_created};

pub use contains::{all, any, contains, is_in};
pub use extractor::Extractor;
pub use json::picked_text;
pub use like::Like;
pub use order::{canonical, compare, equal, fraction_and_whole, in_order, same};
pub use pattern::{PATTERN_BYTES_MAX, Pattern, PatternError};
pub use search::Words;

use crate::time_units::Interval;

/// Up to here a float and a whole number that are equal are the same value, and it is the whole number.
pub const SAFE: u64 = 1 << 53;

/// A value, read as far as its outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Beyond what `Integer` holds.
    Unsigned(u64),
    /// Finite, and no whole number within [`SAFE`]; see [`Value::float`].
    Float(f64),
    Text(Cow<'a, str>),
    /// Microseconds since the epoch, of a time that was computed.
    Time(i64),
    /// One that a row has: it is shown as it was stored, with milliseconds.
    Stored(i64),
    /// A transaction: a text of digits that compares as the number it is.
    Xact(u64),
    Interval(Interval),
    /// The JSON text of an array.
    Array(Cow<'a, str>),
    /// The JSON text of an object.
    Object(Cow<'a, str>),
    /// An array of values that were computed.
    List(Vec<Value<'a>>),
    /// An object of such.
    Members(Vec<(String, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// Reads a stored JSON text; a damaged one is null.
    pub fn read(json: &'a str) -> Value<'a> {
        match json.as_bytes().first() {
            Some(b'"') => text_of(json).map_or(Value::Null, Value::Text),
            Some(b'{') => Value::Object(Cow::Borrowed(json)),
            Some(b'[') => Value::Array(Cow::Borrowed(json)),
            Some(b't') => Value::Boolean(true),
            Some(b'f') => Value::Boolean(false),
            Some(b'-' | b'0'..=b'9') => number(json),
            _ => Value::Null,
        }
    }

    /// Approximate memory on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Text(text) | Value::Array(text) | Value::Object(text) => text.len(),
            Value::List(of) => of.iter().map(|of| size_of::<Value<'_>>() + of.heap_bytes()).sum(),
            Value::Members(of) => {
                of.iter().map(|(key, of)| size_of::<(String, Value<'_>)>() + key.len() + of.heap_bytes()).sum()
            }
            _ => 0,
        }
    }

    /// JSON has neither infinity nor NaN: they are null. What equals a whole number is that number, however it came about:
    /// a typed column cannot tell 1.0 from 1, and what cannot be told apart must not differ.
    pub fn float(number: f64) -> Value<'static> {
        if !number.is_finite() {
            Value::Null
        } else if number.fract() == 0.0 && number.abs() <= SAFE as f64 {
            Value::Integer(number as i64)
        } else {
            Value::Float(number)
        }
    }

    /// A whole number; what 64 bits do not hold is a float.
    pub fn whole(number: i128) -> Value<'static> {
        if let Ok(number) = i64::try_from(number) {
            Value::Integer(number)
        } else if let Ok(number) = u64::try_from(number) {
            Value::Unsigned(number)
        } else {
            Value::float(number as f64)
        }
    }

    pub fn truth_of(truth: Option<bool>) -> Value<'static> {
        truth.map_or(Value::Null, Value::Boolean)
    }

    pub fn into_owned(self) -> Value<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            Value::Null => Value::Null,
            Value::Boolean(boolean) => Value::Boolean(boolean),
            Value::Integer(number) => Value::Integer(number),
            Value::Unsigned(number) => Value::Unsigned(number),
            Value::Float(number) => Value::Float(number),
            Value::Text(text) => Value::Text(owned(text)),
            Value::Time(micros) => Value::Time(micros),
            Value::Stored(micros) => Value::Stored(micros),
            Value::Xact(xact) => Value::Xact(xact),
            Value::Interval(interval) => Value::Interval(interval),
            Value::Array(json) => Value::Array(owned(json)),
            Value::Object(json) => Value::Object(owned(json)),
            Value::List(of) => Value::List(of.into_iter().map(Value::into_owned).collect()),
            Value::Members(of) => Value::Members(of.into_iter().map(|(key, of)| (key, of.into_owned())).collect()),
        }
    }

    /// Borrows the value without copying its text.
    pub fn view(&self) -> Value<'_> {
        match self {
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::Array(json) => Value::Array(Cow::Borrowed(json)),
            Value::Object(json) => Value::Object(Cow::Borrowed(json)),
            other => other.clone(),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Value::Integer(_) | Value::Unsigned(_) | Value::Float(_))
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
            Value::Text(text) | Value::Array(text) | Value::Object(text) => Cow::Borrowed(text),
            Value::Time(micros) => Cow::Owned(shown(*micros)),
            Value::Stored(micros) => Cow::Owned(format_micros(*micros)),
            Value::Xact(xact) => Cow::Owned(xact.to_string()),
            Value::Interval(of) => Cow::Owned(format!("{} {}", of.value, of.unit.name())),
            Value::Unsigned(_) | Value::Float(_) | Value::List(_) | Value::Members(_) => Cow::Owned(self.to_json()),
        })
    }

    /// Returns the value as a number; booleans are 0 and 1 (D-51).
    pub fn as_number(&self) -> Option<Value<'static>> {
        match self {
            Value::Boolean(boolean) => Some(Value::Integer((*boolean).into())),
            Value::Integer(number) => Some(Value::Integer(*number)),
            Value::Unsigned(number) => Some(Value::Unsigned(*number)),
            Value::Float(number) => Some(Value::Float(*number)),
            _ => None,
        }
    }

    /// Float of a number or a boolean.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            other => other.as_whole().map(|number| number as f64),
        }
    }

    /// Whole number of a whole number or a boolean.
    pub fn as_whole(&self) -> Option<i128> {
        match self {
            Value::Boolean(boolean) => Some((*boolean).into()),
            Value::Integer(number) => Some((*number).into()),
            Value::Unsigned(number) => Some((*number).into()),
            _ => None,
        }
    }

    /// A time, or what a text says.
    pub fn as_time(&self) -> Option<i64> {
        match self {
            Value::Time(micros) | Value::Stored(micros) => Some(*micros),
            Value::Text(text) => parse_created(text.trim()),
            _ => None,
        }
    }
}

/// D-66: to the second, and more only where there is more.
fn shown(micros: i64) -> String {
    let mut text = format_micros(micros);
    if text.ends_with(".000Z") {
        text.truncate(text.len() - ".000Z".len());
        text.push('Z');
    }
    text
}

/// Returns the text between the quotes of a JSON text.
fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.get(1..json.len().checked_sub(1)?)?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
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
    text.parse().map_or(Value::Null, Value::float)
}

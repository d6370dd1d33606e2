//! Value of an expression for one row, and comparison of values (btql.md, section 9).

use std::cmp::Ordering;

use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::bound::Datum;
use assay_storage_model::event::parse_created;
use serde_json::{Map, Number, Value as Json};

use crate::times;

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    /// A 64-bit integer, signed or unsigned; see [`Value::int`].
    Int(i128),
    Float(f64),
    Text(String),
    Time(Time),
    /// A text of digits that compares as the number it is.
    Xact(u64),
    Interval(Interval),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// Microseconds since the epoch. What nothing was computed of comes back as it was stored.
#[derive(Clone, Debug)]
pub struct Time {
    pub micros: i64,
    pub stored: Option<String>,
}

impl Value {
    /// A whole number; what 64 bits do not hold is a float.
    pub fn int(number: i128) -> Value {
        let fits = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number);
        if fits { Value::Int(number) } else { Value::Float(number as f64) }
    }

    /// JSON has neither infinity nor NaN: they are null.
    pub fn float(number: f64) -> Value {
        if number.is_finite() { Value::Float(number) } else { Value::Null }
    }

    /// Normalizes a number equal to a 53-bit integer to that integer: 1.0 is 1, as in storage. Arrays and objects are
    /// unchanged.
    pub fn settled(self) -> Value {
        const SAFE: f64 = (1_u64 << 53) as f64;
        match self {
            Value::Float(number) if number.fract() == 0.0 && number.abs() <= SAFE => Value::Int(number as i128),
            other => other,
        }
    }

    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    pub fn time(micros: i64) -> Value {
        Value::Time(Time { micros, stored: None })
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn of_datum(datum: &Datum) -> Value {
        match datum {
            Datum::Null => Value::Null,
            Datum::Boolean(boolean) => Value::Bool(*boolean),
            Datum::Integer(number) => Value::Int((*number).into()),
            Datum::Unsigned(number) => Value::Int((*number).into()),
            Datum::Float(number) => Value::float(*number),
            Datum::Text(text) => Value::Text(text.clone()),
            Datum::Time(micros) => Value::time(*micros),
            Datum::Interval(interval) => Value::Interval(*interval),
            Datum::Json(json) => Value::of_json(json),
        }
    }

    pub fn of_json(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(boolean) => Value::Bool(*boolean),
            Json::Number(number) => of_number(number),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(of) => Value::Array(of.iter().map(Value::of_json).collect()),
            Json::Object(of) => {
                Value::Object(of.iter().map(|(key, member)| (key.clone(), Value::of_json(member))).collect())
            }
        }
    }

    pub fn to_json(&self) -> Json {
        match self {
            Value::Null => Json::Null,
            Value::Bool(boolean) => Json::Bool(*boolean),
            Value::Int(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => Number::from_f64(*number as f64).map_or(Json::Null, Json::Number),
            },
            Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Value::Text(text) => Json::String(text.clone()),
            Value::Time(time) => Json::String(time.text()),
            Value::Xact(xact) => Json::String(xact.to_string()),
            Value::Interval(interval) => Json::String(times::interval_text(*interval)),
            Value::Array(of) => Json::Array(of.iter().map(Value::to_json).collect()),
            Value::Object(of) => {
                Json::Object(of.iter().map(|(key, member)| (key.clone(), member.to_json())).collect::<Map<_, _>>())
            }
        }
    }

    /// D-50: what a condition takes it for.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Bool(boolean) => Some(*boolean),
            Value::Int(number) => Some(*number != 0),
            Value::Float(number) => Some(*number != 0.0),
            _ => None,
        }
    }

    pub fn of_truth(truth: Option<bool>) -> Value {
        truth.map_or(Value::Null, Value::Bool)
    }

    /// D-51: what arithmetic takes it for.
    pub fn number(&self) -> Option<Value> {
        match self {
            Value::Bool(boolean) => Some(Value::Int((*boolean).into())),
            Value::Int(_) | Value::Float(_) => Some(self.clone()),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self.number()? {
            Value::Int(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    }

    /// D-74: of a text the text, of anything else its compact JSON. None of null.
    pub fn to_text(&self) -> Option<String> {
        match self.to_json() {
            Json::Null => None,
            Json::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    pub fn member(&self, key: &str) -> Value {
        match self {
            Value::Object(of) => of.iter().find(|(name, _)| name == key).map_or(Value::Null, |(_, of)| of.clone()),
            _ => Value::Null,
        }
    }

    /// Returns an element, counted from the end if negative.
    pub fn element(&self, index: i64) -> Value {
        let Value::Array(of) = self else { return Value::Null };
        let place = if index < 0 { index + of.len() as i64 } else { index };
        usize::try_from(place).ok().and_then(|place| of.get(place)).cloned().unwrap_or(Value::Null)
    }
}

impl Time {
    fn text(&self) -> String {
        self.stored.clone().unwrap_or_else(|| times::format(self.micros))
    }
}

fn of_number(number: &Number) -> Value {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => Value::Int(whole.into()),
        (None, Some(whole), _) => Value::Int(whole.into()),
        (None, None, Some(float)) => Value::float(float),
        (None, None, None) => Value::Null,
    }
}

/// A text that looks like a number: a sign, digits, a fraction, an exponent, and nothing else.
pub fn number_in(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_one = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && unsigned.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    if !is_one {
        return None;
    }
    if unsigned.chars().all(|c| c.is_ascii_digit())
        && let Ok(whole) = text.parse::<i128>()
    {
        return Some(Value::int(whole));
    }
    text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float)
}

/// D-47: `=`. Null if either is.
pub fn equal(left: &Value, right: &Value) -> Option<bool> {
    use Value::{Array, Object};
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Array(_), Array(_)) | (Object(_), Object(_)) => Some(same(left, right)),
        _ => Some(compare(left, right) == Some(Ordering::Equal)),
    }
}

/// D-47: `<` and the like. None of what has no order.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    use Value::{Bool, Float, Int, Text, Xact};
    match (left, right) {
        (Bool(left), Bool(right)) => Some(left.cmp(right)),
        (Text(left), Text(right)) => Some(left.cmp(right)),
        (Int(_) | Float(_), Int(_) | Float(_)) => compare_numbers(left, right),
        (Int(_) | Float(_), Text(text)) => compare_numbers(left, &number_in(text)?),
        (Value::Time(left), Value::Time(right)) => Some(left.micros.cmp(&right.micros)),
        (Value::Time(left), Text(text)) => Some(left.micros.cmp(&parse_created(text.trim())?)),
        (Xact(left), Xact(right)) => Some(left.cmp(right)),
        (Xact(left), Text(_) | Int(_) | Float(_)) => compare(&Int((*left).into()), right),
        (Text(_), Int(_) | Float(_) | Value::Time(_) | Xact(_)) | (Int(_) | Float(_), Xact(_)) => {
            compare(right, left).map(Ordering::reverse)
        }
        (Value::Interval(left), Value::Interval(right)) => compare_intervals(*left, *right),
        _ => None,
    }
}

fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Int(left), Value::Float(right)) => Some(int_with_float(*left, *right)),
        (Value::Float(left), Value::Int(right)) => Some(int_with_float(*right, *left).reverse()),
        _ => None,
    }
}

/// Exact: a float of such size is whole, or lies between two neighbours that an i128 has.
fn int_with_float(int: i128, float: f64) -> Ordering {
    const BEYOND: f64 = 1e30;
    if float.abs() >= BEYOND {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let below = float.floor();
    int.cmp(&(below as i128)).then(if float > below { Ordering::Less } else { Ordering::Equal })
}

/// Months with months, and what is always as long with what is.
fn compare_intervals(left: Interval, right: Interval) -> Option<Ordering> {
    let is_months = |of: Interval| matches!(of.unit, Unit::Month | Unit::Year);
    if is_months(left) != is_months(right) {
        return None;
    }
    Some(times::interval_size(left).cmp(&times::interval_size(right)))
}

/// Returns whether both are the same for GROUP BY and DISTINCT: JSON equality, and null is null.
pub fn same(left: &Value, right: &Value) -> bool {
    use Value::{Array, Float, Int, Object, Text, Xact};
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Text(text), Xact(xact)) | (Xact(xact), Text(text)) => *text == xact.to_string(),
        (Text(_), Int(_) | Float(_) | Value::Time(_)) | (Int(_) | Float(_) | Value::Time(_), Text(_)) => false,
        (Int(_) | Float(_), Xact(_)) | (Xact(_), Int(_) | Float(_)) => false,
        (Array(left), Array(right)) => left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r)),
        (Object(left), Object(right)) => {
            let has = |(key, member): &(String, Value)| {
                right.iter().any(|(other, found)| other == key && same(member, found))
            };
            left.len() == right.len() && left.iter().all(has)
        }
        _ => compare(left, right) == Some(Ordering::Equal),
    }
}

/// Total order of all values (D-75): null, booleans, numbers, texts; arrays and objects by their text.
pub fn order(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) | Value::Time(_) | Value::Xact(_) | Value::Interval(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    let as_texts = || left.to_text().cmp(&right.to_text());
    rank(left).cmp(&rank(right)).then_with(|| match rank(left) {
        0 => Ordering::Equal,
        1..=3 => compare(left, right).unwrap_or_else(as_texts),
        _ => as_texts(),
    })
}

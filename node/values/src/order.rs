//! Order and equality of values.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value as Tree;

use super::{Value, number};
use crate::calendar::{self, is_calendar};
use crate::time_units::Interval;

/// As operators compare (D-47): none where the kinds have no order between them, which is an ordering that is null and an
/// equality that is false.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    use Value::{Boolean, Stored, Text, Time, Xact};
    match (left, right) {
        (Boolean(left), Boolean(right)) => Some(left.cmp(right)),
        (Text(left), Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())), // code points in order
        (Time(left) | Stored(left), Time(right) | Stored(right)) => Some(left.cmp(right)),
        (Time(left) | Stored(left), Text(_)) => right.as_time().map(|right| left.cmp(&right)),
        (Text(_), Time(right) | Stored(right)) => left.as_time().map(|left| left.cmp(right)),
        (Xact(left), Xact(right)) => Some(left.cmp(right)),
        (Xact(xact), _) if is_text_or_number(right) => compare(&Value::whole((*xact).into()), right),
        (_, Xact(xact)) if is_text_or_number(left) => compare(left, &Value::whole((*xact).into())),
        (Value::Interval(left), Value::Interval(right)) => intervals(*left, *right),
        (Text(left), _) if right.is_number() => numbers(&number(left), right),
        (_, Text(right)) if left.is_number() => numbers(left, &number(right)),
        (left, right) if left.is_number() && right.is_number() => numbers(left, right),
        _ => None,
    }
}

fn is_text_or_number(value: &Value<'_>) -> bool {
    value.is_number() || matches!(value, Value::Text(_))
}

/// Whether `=` holds: null if either is; arrays and objects by what is in them, whatever the order of keys.
pub fn equal(left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
    use Value::{Array, List, Members, Object};
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Array(_) | List(_), Array(_) | List(_)) | (Object(_) | Members(_), Object(_) | Members(_)) => {
            Some(same(left, right))
        }
        _ => Some(compare(left, right) == Some(Ordering::Equal)),
    }
}

/// Whether both are the same to GROUP BY and to DISTINCT: JSON equality, and null is null.
pub fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    use Value::{Array, List, Members, Null, Object, Text, Xact};
    match (left, right) {
        (Null, Null) => true,
        (Array(left), Array(right)) | (Object(left), Object(right)) if left == right => true,
        (Array(_) | Object(_), _) => matches!(left.opened(), Cow::Owned(left) if !left.is_null() && same(&left, right)),
        (_, Array(_) | Object(_)) => {
            matches!(right.opened(), Cow::Owned(right) if !right.is_null() && same(left, &right))
        }
        (List(left), List(right)) => left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r)),
        (Members(left), Members(right)) => {
            let has = |(key, member): &(String, Value<'_>)| {
                right.iter().any(|(other, found)| other == key && same(member, found))
            };
            left.len() == right.len() && left.iter().all(has)
        }
        (Text(text), Xact(xact)) | (Xact(xact), Text(text)) => *text == xact.to_string(),
        (Text(_), Text(_)) => left == right,
        (Text(_), _) | (_, Text(_)) => false,
        (Xact(_), other) | (other, Xact(_)) if other.is_number() => false,
        _ => compare(left, right) == Some(Ordering::Equal),
    }
}

/// Whole numbers exactly, and beside fractions without rounding them.
fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    let whole = |value: &Value<'_>| match value {
        Value::Boolean(_) => None,
        other => other.as_whole(),
    };
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Float(left), right) => Some(fraction_and_whole(*left, whole(right)?)),
        (left, Value::Float(right)) => Some(fraction_and_whole(*right, whole(left)?).reverse()),
        _ => Some(whole(left)?.cmp(&whole(right)?)),
    }
}

/// Exactly; of a float that is finite.
pub fn fraction_and_whole(fraction: f64, whole: i128) -> Ordering {
    const FAR: f64 = 1e30; // beyond any whole number, within any i128
    if fraction.abs() >= FAR {
        return if fraction > 0.0 { Ordering::Greater } else { Ordering::Less };
    }
    let floor = fraction.floor();
    (floor as i128).cmp(&whole).then(if fraction > floor { Ordering::Greater } else { Ordering::Equal })
}

/// Months with months, and what is always as long with what is.
fn intervals(left: Interval, right: Interval) -> Option<Ordering> {
    let size = |of: Interval| i128::from(of.value) * i128::from(calendar::size(of.unit));
    (is_calendar(left.unit) == is_calendar(right.unit)).then(|| size(left).cmp(&size(right)))
}

/// The order in which anything sorts (D-75, D-81): null, booleans, numbers, texts and what is shown as one, arrays, objects;
/// arrays and objects by their texts.
pub fn in_order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    let rank = |value: &Value<'_>| match value {
        Value::Null => 0,
        Value::Boolean(_) => 1,
        Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => 2,
        Value::Text(_) | Value::Time(_) | Value::Stored(_) | Value::Xact(_) | Value::Interval(_) => 3,
        Value::Array(_) | Value::List(_) => 4,
        Value::Object(_) | Value::Members(_) => 5,
    };
    let as_texts = || left.to_text().cmp(&right.to_text());
    rank(left).cmp(&rank(right)).then_with(|| match rank(left) {
        0 => Ordering::Equal,
        1..=3 => compare(left, right).unwrap_or_else(as_texts),
        _ => as_texts(),
    })
}

/// A JSON text that is the same for all that are the same: keys in order, numbers in one form.
pub fn canonical(json: &str) -> Cow<'_, str> {
    let scalar = !json.starts_with(['{', '[']);
    if scalar && !json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Cow::Borrowed(json);
    }
    let Ok(tree) = serde_json::from_str::<Tree>(json) else { return Cow::Borrowed(json) };
    let mut out = String::with_capacity(json.len());
    put_canonical(&mut out, &tree);
    if out == json { Cow::Borrowed(json) } else { Cow::Owned(out) }
}

fn put_canonical(out: &mut String, tree: &Tree) {
    match tree {
        Tree::Array(of) => {
            out.push('[');
            for (number, element) in of.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                put_canonical(out, element);
            }
            out.push(']');
        }
        Tree::Object(of) => {
            let mut members: Vec<_> = of.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (number, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                out.push_str(&Tree::from(key.as_str()).to_string());
                out.push(':');
                put_canonical(out, value);
            }
            out.push('}');
        }
        Tree::Number(number) => {
            // 1.0 is 1, and so is any float that equals a number of 64 bits.
            let is_whole = |float: &f64| float.fract() == 0.0 && (i64::MIN as f64..u64::MAX as f64).contains(float);
            match number.as_f64().filter(|float| number.is_f64() && is_whole(float)) {
                Some(float) => out.push_str(&(float as i128).to_string()),
                None => out.push_str(&number.to_string()),
            }
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Value<'_> {
        Value::read(json)
    }

    #[test]
    fn kinds_compare_as_they_are_decided_to() {
        use Ordering::{Equal, Greater, Less};
        for (left, right, expected) in [
            ("1", "1.0", Some(Equal)),
            ("9007199254740993", "9007199254740992.0", Some(Greater)),
            ("18446744073709551615", "9223372036854775807", Some(Greater)),
            ("-1", "18446744073709551615", Some(Less)),
            ("1e300", "18446744073709551615", Some(Greater)),
            ("5", "\"5\"", Some(Equal)),
            ("5", "\"5.5\"", Some(Less)),
            ("5", "\" 5.5 \"", None),
            ("5", "\"five\"", None),
            ("5", "\"inf\"", None),
            ("\"10\"", "\"9\"", Some(Less)),
            ("\"a\"", "\"\u{1f600}\"", Some(Less)),
            ("false", "true", Some(Less)),
            ("true", "1", None),
            ("null", "null", None),
            ("[1]", "[1]", None),
        ] {
            assert_eq!(compare(&read(left), &read(right)), expected, "{left} {right}");
            assert_eq!(compare(&read(right), &read(left)), expected.map(Ordering::reverse), "{right} {left}");
        }
        let noon = Value::Time(43_200_000_000);
        assert_eq!(compare(&noon, &read("\"1970-01-01T12:00Z\"")), Some(Ordering::Equal));
        assert_eq!(compare(&noon, &read("\"then\"")), None);
    }

    #[test]
    fn structures_are_the_same_by_what_is_in_them() {
        assert!(same(&read(r#"{"a":1,"b":[2,{"c":null}]}"#), &read(r#"{"b":[2.0,{"c":null}],"a":1}"#)));
        assert!(!same(&read("[1,2]"), &read("[2,1]")));
        assert!(!same(&read("{}"), &read("[]")));
    }

    #[test]
    fn anything_sorts() {
        let sorted = ["null", "false", "true", "-1.5", "2", "\"\"", "\"a\"", "[1]", "{}"];
        for (at, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(in_order(&read(left), &read(right)), at.cmp(&other), "{left} {right}");
            }
        }
    }
}

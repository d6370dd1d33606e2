//! Which of two values comes first, and whether they are the same.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value as Tree;

use super::{Value, number};

/// As operators compare (D-47): none where the kinds have no order between them, which is an ordering that is null and an
/// equality that is false.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())), // code points in order
        (Value::Time(left), Value::Time(right)) => Some(left.cmp(right)),
        (Value::Time(left), Value::Text(_)) => right.as_time().map(|right| left.cmp(&right)),
        (Value::Text(_), Value::Time(right)) => left.as_time().map(|left| left.cmp(right)),
        (Value::Text(left), _) if is_number(right) => numbers(&number(left.trim()), right),
        (_, Value::Text(right)) if is_number(left) => numbers(left, &number(right.trim())),
        _ => numbers(left, right),
    }
}

/// Whether `=` holds: arrays and objects by what is in them, whatever the order of keys.
pub fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) | (Value::Object(left), Value::Object(right)) => {
            left == right || canonical(left) == canonical(right)
        }
        _ => compare(left, right) == Some(Ordering::Equal),
    }
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Integer(_) | Value::Unsigned(_) | Value::Float(_))
}

/// Whole numbers exactly, and beside fractions without rounding them.
fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    let whole = |value: &Value<'_>| match value {
        Value::Integer(number) => Some(i128::from(*number)),
        Value::Unsigned(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Float(left), right) => Some(fraction_and_whole(*left, whole(right)?)),
        (left, Value::Float(right)) => Some(fraction_and_whole(*right, whole(left)?).reverse()),
        _ => Some(whole(left)?.cmp(&whole(right)?)),
    }
}

fn fraction_and_whole(fraction: f64, whole: i128) -> Ordering {
    const FAR: f64 = 1e30; // beyond any whole number, within any i128
    if fraction.abs() >= FAR {
        return if fraction > 0.0 { Ordering::Greater } else { Ordering::Less };
    }
    let floor = fraction.floor();
    (floor as i128).cmp(&whole).then(if fraction > floor { Ordering::Greater } else { Ordering::Equal })
}

/// The order in which anything sorts (D-75, D-81): null, booleans, numbers, times, texts, arrays, objects.
pub fn in_order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    let rank = |value: &Value<'_>| match value {
        Value::Null => 0,
        Value::Boolean(_) => 1,
        Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => 2,
        Value::Time(_) => 3,
        Value::Text(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    rank(left).cmp(&rank(right)).then_with(|| match (left, right) {
        (Value::Array(left), Value::Array(right)) | (Value::Object(left), Value::Object(right)) => {
            canonical(left).cmp(&canonical(right))
        }
        _ => compare(left, right).unwrap_or(Ordering::Equal),
    })
}

/// A JSON text that is the same for all that are the same: keys in order, numbers in one form.
pub fn canonical(json: &[u8]) -> Cow<'_, [u8]> {
    let scalar = !matches!(json.first(), Some(b'{' | b'['));
    if scalar && !matches!(json.first(), Some(b'-' | b'0'..=b'9')) {
        return Cow::Borrowed(json);
    }
    let Ok(tree) = serde_json::from_slice::<Tree>(json) else { return Cow::Borrowed(json) };
    let mut out = Vec::with_capacity(json.len());
    put_canonical(&mut out, &tree);
    if out == json { Cow::Borrowed(json) } else { Cow::Owned(out) }
}

fn put_canonical(out: &mut Vec<u8>, tree: &Tree) {
    match tree {
        Tree::Array(of) => {
            out.push(b'[');
            for (number, element) in of.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                put_canonical(out, element);
            }
            out.push(b']');
        }
        Tree::Object(of) => {
            let mut members: Vec<_> = of.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (number, (key, value)) in members.into_iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(Tree::from(key.as_str()).to_string().as_bytes());
                out.push(b':');
                put_canonical(out, value);
            }
            out.push(b'}');
        }
        Tree::Number(number) => {
            // 1.0 is 1 where nothing is lost by saying so.
            let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15);
            match whole {
                Some(float) => out.extend_from_slice((float as i64).to_string().as_bytes()),
                None => out.extend_from_slice(number.to_string().as_bytes()),
            }
        }
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
}

/// D-60: whether `needle` is in `haystack`; none of null.
pub fn contains(haystack: &Value<'_>, needle: &Value<'_>) -> Option<bool> {
    if haystack.is_null() || needle.is_null() {
        return None;
    }
    if let (Value::Text(haystack), Some(needle)) = (haystack, needle.to_text()) {
        return Some(haystack.contains(&*needle));
    }
    let tree = |value: &Value<'_>| -> Option<Tree> {
        match value {
            Value::Array(json) | Value::Object(json) => serde_json::from_slice(json).ok(),
            Value::Boolean(boolean) => Some(Tree::from(*boolean)),
            Value::Integer(number) => Some(Tree::from(*number)),
            Value::Unsigned(number) => Some(Tree::from(*number)),
            Value::Float(number) => Some(Tree::from(*number)),
            Value::Text(text) => Some(Tree::from(&**text)),
            Value::Null | Value::Time(_) => None,
        }
    };
    match (tree(haystack)?, tree(needle)?) {
        (Tree::Array(elements), Tree::Array(needles)) => {
            Some(needles.iter().all(|needle| elements.iter().any(|element| trees_equal(element, needle))))
        }
        (Tree::Array(elements), needle) => Some(elements.iter().any(|element| trees_equal(element, &needle))),
        (Tree::Object(members), Tree::Object(needles)) => Some(
            members.values().any(|value| trees_equal(value, &Tree::Object(needles.clone())))
                || needles.iter().all(|(key, needle)| members.get(key).is_some_and(|value| trees_equal(value, needle))),
        ),
        (Tree::Object(members), needle) => Some(members.values().any(|value| trees_equal(value, &needle))),
        _ => Some(false),
    }
}

fn trees_equal(left: &Tree, right: &Tree) -> bool {
    let text = |tree: &Tree| {
        let mut out = Vec::new();
        put_canonical(&mut out, tree);
        out
    };
    left == right || text(left) == text(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Value<'_> {
        Value::read(json.as_bytes())
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
            ("5", "\" 5.5 \"", Some(Less)),
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

    #[test]
    fn what_includes_what() {
        for (haystack, needle, expected) in [
            (r#"["prod","billing"]"#, "\"prod\"", Some(true)),
            (r#"["prod","billing"]"#, r#"["billing","prod"]"#, Some(true)),
            (r#"["prod"]"#, r#"["billing","prod"]"#, Some(false)),
            ("[1,2]", "1.0", Some(true)),
            (r#"{"a":1,"b":{"c":2}}"#, "1", Some(true)),
            (r#"{"a":1,"b":{"c":2}}"#, "\"a\"", Some(false)),
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"a":1}"#, Some(true)),
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"c":2}"#, Some(true)),
            ("\"some text\"", "\"me t\"", Some(true)),
            ("null", "\"a\"", None),
            ("5", "5", Some(false)),
        ] {
            assert_eq!(contains(&read(haystack), &read(needle)), expected, "{haystack} {needle}");
        }
    }
}

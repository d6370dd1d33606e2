//! Containment: IN and INCLUDES (btql.md, section 10).

use crate::value::{Value, equal, same};

/// Membership; of an array on the left any element. Of what is no list nothing is known.
pub fn is_in(left: &Value, list: &Value) -> Option<bool> {
    let Value::Array(list) = list else { return None };
    match left {
        Value::Null => None,
        Value::Array(of) => any(of.iter().map(|element| any(list.iter().map(|one| equal(element, one))))),
        one => any(list.iter().map(|other| equal(one, other))),
    }
}

/// OR in three values (D-48).
pub fn any(of: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut found = Some(false);
    for one in of {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => found = None,
        }
    }
    found
}

/// AND in three values (D-48).
pub fn all(of: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(of.map(|one| one.map(|truth| !truth))).map(|truth| !truth)
}

/// D-60. Of a number or a boolean, which contain nothing, nothing is known.
pub fn includes(haystack: &Value, needle: &Value) -> Option<bool> {
    if needle.is_null() {
        return None;
    }
    let has = |of: &[Value], needle: &Value| of.iter().any(|element| equal(element, needle) == Some(true));
    match (haystack, needle) {
        (Value::Array(of), Value::Array(needles)) => Some(needles.iter().all(|needle| has(of, needle))),
        (Value::Array(of), needle) => Some(has(of, needle)),
        (Value::Object(of), needle) => {
            let is_value = of.iter().any(|(_, member)| equal(member, needle) == Some(true));
            Some(is_value || matches!(needle, Value::Object(needle) if is_part(of, needle)))
        }
        (Value::Text(text), Value::Text(needle)) => Some(text.contains(needle.as_str())),
        (Value::Text(_), _) => Some(false),
        _ => None,
    }
}

/// Returns whether every member of `part` is a member of `of`.
fn is_part(of: &[(String, Value)], part: &[(String, Value)]) -> bool {
    part.iter().all(|(key, member)| of.iter().any(|(other, found)| other == key && same(found, member)))
}

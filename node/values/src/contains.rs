//! IN and INCLUDES (btql.md, section 10), and three-valued logic.

use std::borrow::Cow;

use super::{Value, equal, same};

/// Membership; of an array on the left any element. Of what is no list nothing is known.
pub fn is_in(left: &Value<'_>, list: &Value<'_>) -> Option<bool> {
    let opened = list.opened();
    let Value::List(list) = &*opened else { return None };
    match &*left.opened() {
        Value::Null => None,
        Value::List(of) => any(of.iter().map(|element| any(list.iter().map(|one| equal(element, one))))),
        one => any(list.iter().map(|other| equal(one, other))),
    }
}

/// OR in three values (D-48).
pub fn any(of: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
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
pub fn all(of: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    any(of.into_iter().map(|one| one.map(|truth| !truth))).map(|truth| !truth)
}

/// D-60: whether `needle` is in `haystack`. Of null, and of numbers and the like, which contain nothing, nothing is known.
pub fn contains(haystack: &Value<'_>, needle: &Value<'_>) -> Option<bool> {
    if needle.is_null() {
        return None;
    }
    if let (Value::Text(haystack), needle) = (haystack, needle) {
        return Some(matches!(needle, Value::Text(needle) if haystack.contains(&**needle)));
    }
    let has = |of: &[Value<'_>], needle: &Value<'_>| of.iter().any(|element| equal(element, needle) == Some(true));
    let opened = haystack.opened();
    let needle: Cow<'_, Value<'_>> = needle.opened();
    match (&*opened, &*needle) {
        (Value::List(of), Value::List(needles)) => Some(needles.iter().all(|needle| has(of, needle))),
        (Value::List(of), needle) => Some(has(of, needle)),
        (Value::Members(of), needle) => {
            let is_value = of.iter().any(|(_, member)| equal(member, needle) == Some(true));
            Some(is_value || matches!(needle, Value::Members(part) if is_part(of, part)))
        }
        _ => None,
    }
}

/// Whether every member of the one is a member of the other.
fn is_part(of: &[(String, Value<'_>)], part: &[(String, Value<'_>)]) -> bool {
    part.iter().all(|(key, member)| of.iter().any(|(other, found)| other == key && same(found, member)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_includes_what() {
        for (haystack, needle, expected) in [
            (r#"["prod","billing"]"#, "\"prod\"", Some(true)),
            (r#"["prod","billing"]"#, r#"["billing","prod"]"#, Some(true)),
            (r#"["prod"]"#, r#"["billing","prod"]"#, Some(false)),
            ("[1,2]", "1.0", Some(true)),
            ("[1,2]", "\"2\"", Some(true)),
            (r#"{"a":1,"b":{"c":2}}"#, "1", Some(true)),
            (r#"{"a":1,"b":{"c":2}}"#, "\"a\"", Some(false)),
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"a":1}"#, Some(true)),
            (r#"{"a":1,"b":{"c":2}}"#, r#"{"c":2}"#, Some(true)),
            ("\"some text\"", "\"me t\"", Some(true)),
            ("\"some 5\"", "5", Some(false)),
            ("null", "\"a\"", None),
            ("5", "5", None),
        ] {
            assert_eq!(contains(&Value::read(haystack), &Value::read(needle)), expected, "{haystack} {needle}");
        }
    }

    #[test]
    fn what_is_in_what() {
        for (left, list, expected) in [
            ("1", "[2,1.0]", Some(true)),
            ("1", "[2,\"1\"]", Some(true)),
            ("1", "[2,null]", None),
            ("1", "[]", Some(false)),
            ("null", "[1]", None),
            ("[3,1]", "[1]", Some(true)),
            ("[]", "[1]", Some(false)),
            ("1", "1", None),
        ] {
            assert_eq!(is_in(&Value::read(left), &Value::read(list)), expected, "{left} {list}");
        }
    }
}

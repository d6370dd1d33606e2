//! Expected form of a response. A pattern is JSON: objects match if every member of the pattern matches (more may be
//! there), arrays member by member, everything else by equality, 1 and 1.0 being the same. Texts, and objects of one
//! member, that begin with `$` are operators:
//!
//! | pattern | matches |
//! |---|---|
//! | `"$any"` | what is there, null too |
//! | `"$present"` | what is there and not null |
//! | `"$uuid"` `"$xact"` `"$time"` `"$string"` | texts: a UUID, 19 digits, an ISO 8601 time in UTC, anything not empty |
//! | `"$number"` `"$bool"` `"$array"` `"$object"` | that type |
//! | `"$absent"` `"$none"` | a member that is not there; not there or null |
//! | `"$contains:x"` `"$starts:x"` `"$text:x"` | a text with `x` in it, in front, or `x` itself |
//! | `{"$exact": {..}}` | an object with these members and no other |
//! | `{"$keys": [..]}` | an object with at least these keys, null or not |
//! | `{"$has": [..]}` `{"$lacks": [..]}` | an array where some, no, item matches each of these |
//! | `{"$unordered": [..]}` | an array of these, in any order |
//! | `{"$each": p}` `{"$length": n}` | an array whose items all match, of that length |
//! | `{"$all": [..]}` `{"$not": p}` | all of these; not this, or nothing |
//!
//! `"$uuid:name"` and so on keep what matched as a variable for later steps; `"$as:name"` keeps anything.

use serde_json::{Map, Value};

use crate::template::Variables;

/// Returns the mismatches, one line each; captured values go into `variables`.
pub fn complaints(pattern: &Value, found: Option<&Value>, variables: &mut Variables) -> Vec<String> {
    let mut complaints = Vec::new();
    compare("", pattern, found, variables, &mut complaints);
    complaints
}

fn compare(path: &str, pattern: &Value, found: Option<&Value>, variables: &mut Variables, out: &mut Vec<String>) {
    if let Value::String(text) = pattern
        && let Some(matcher) = text.strip_prefix('$')
    {
        return one_word(path, matcher, found, variables, out);
    }
    if let Some(("not", refused)) = pattern.as_object().and_then(operator) {
        if complaints(refused, found, &mut variables.clone()).is_empty() {
            let found = found.map_or("nothing".to_owned(), brief);
            out.push(format!("{}: {found} is what it must not be", shown(path)));
        }
        return;
    }
    let Some(found) = found else {
        return out.push(format!("{}: is not there; wanted {}", shown(path), brief(pattern)));
    };
    match pattern {
        Value::Object(members) => {
            if let Some((name, argument)) = operator(members) {
                return operate(path, name, argument, found, variables, out);
            }
            let Value::Object(given) = found else {
                return out.push(format!("{}: wanted an object, found {}", shown(path), brief(found)));
            };
            for (name, pattern) in members {
                compare(&format!("{path}.{name}"), pattern, given.get(name), variables, out);
            }
        }
        Value::Array(patterns) => {
            let Value::Array(items) = found else {
                return out.push(format!("{}: wanted an array, found {}", shown(path), brief(found)));
            };
            if items.len() != patterns.len() {
                let lengths = format!("wanted {} items, found {}", patterns.len(), items.len());
                return out.push(format!("{}: {lengths}: {}", shown(path), brief(found)));
            }
            for (at, (pattern, item)) in patterns.iter().zip(items).enumerate() {
                compare(&format!("{path}[{at}]"), pattern, Some(item), variables, out);
            }
        }
        scalar if same(scalar, found) => {}
        scalar => out.push(format!("{}: wanted {}, found {}", shown(path), brief(scalar), brief(found))),
    }
}

fn operator(members: &Map<String, Value>) -> Option<(&str, &Value)> {
    let (name, argument) = members.iter().next().filter(|_| members.len() == 1)?;
    Some((name.strip_prefix('$')?, argument))
}

fn one_word(path: &str, matcher: &str, found: Option<&Value>, variables: &mut Variables, out: &mut Vec<String>) {
    let (name, argument) = matcher.split_once(':').map_or((matcher, None), |(name, rest)| (name, Some(rest)));
    let argument_is_text = matches!(name, "contains" | "starts" | "text");
    let text = found.and_then(Value::as_str);
    let wanted = argument.unwrap_or_default();
    let right = match name {
        "any" | "as" => found.is_some(),
        "present" => found.is_some_and(|value| !value.is_null()),
        "uuid" => text.is_some_and(is_uuid),
        "xact" => text.is_some_and(is_xact),
        "time" => text.is_some_and(is_time),
        "string" => text.is_some_and(|text| !text.is_empty()),
        "number" => found.is_some_and(Value::is_number),
        "bool" => found.is_some_and(Value::is_boolean),
        "array" => found.is_some_and(Value::is_array),
        "object" => found.is_some_and(Value::is_object),
        "absent" => found.is_none(),
        "none" => found.is_none_or(Value::is_null),
        "contains" => text.is_some_and(|text| text.contains(wanted)),
        "starts" => text.is_some_and(|text| text.starts_with(wanted)),
        "text" => text == Some(wanted),
        _ => return out.push(format!("{}: there is no matcher `${name}`", shown(path))),
    };
    if !right {
        let found = found.map_or("nothing".to_owned(), brief);
        return out.push(format!("{}: wanted ${matcher}, found {found}", shown(path)));
    }
    if let (Some(variable), Some(found), false) = (argument, found, argument_is_text) {
        variables.insert(variable.to_owned(), found.clone());
    }
}

fn operate(path: &str, name: &str, argument: &Value, found: &Value, variables: &mut Variables, out: &mut Vec<String>) {
    let patterns = argument.as_array().map(Vec::as_slice).unwrap_or_default();
    let items = found.as_array().map(Vec::as_slice);
    match (name, items) {
        ("exact", _) => {
            compare(path, argument, Some(found), variables, out);
            let known = argument.as_object();
            let strange = found.as_object().into_iter().flatten().map(|(key, _)| key);
            let strange = strange.filter(|key| known.is_some_and(|known| !known.contains_key(*key)));
            out.extend(strange.map(|key| format!("{}: has `{key}`, which is not wanted", shown(path))));
        }
        ("keys", _) => {
            let missing = patterns.iter().filter_map(Value::as_str).filter(|key| found.get(key).is_none());
            out.extend(missing.map(|key| format!("{}: has no `{key}`: {}", shown(path), brief(found))));
        }
        ("all", _) => patterns.iter().for_each(|pattern| compare(path, pattern, Some(found), variables, out)),
        ("length", Some(items)) if argument.as_u64() == Some(items.len() as u64) => {}
        ("length", Some(items)) => out.push(format!("{}: wanted {argument} items, found {}", shown(path), items.len())),
        ("each", Some(items)) => {
            for (at, item) in items.iter().enumerate() {
                compare(&format!("{path}[{at}]"), argument, Some(item), variables, out);
            }
        }
        ("has", Some(items)) => {
            for pattern in patterns {
                if !items.iter().any(|item| matches(pattern, item, variables)) {
                    out.push(format!("{}: no item is {}: {}", shown(path), brief(pattern), brief(found)));
                }
            }
        }
        ("lacks", Some(items)) => {
            for pattern in patterns {
                if let Some(item) = items.iter().find(|item| matches(pattern, item, &mut variables.clone())) {
                    out.push(format!("{}: {} must not be there: {}", shown(path), brief(pattern), brief(item)));
                }
            }
        }
        ("unordered", Some(items)) => unordered(path, patterns, items, variables, out),
        ("length" | "each" | "has" | "lacks" | "unordered", None) => {
            out.push(format!("{}: wanted an array, found {}", shown(path), brief(found)));
        }
        _ => out.push(format!("{}: there is no operator `${name}`", shown(path))),
    }
}

/// Matches each pattern with the first free item; sufficient if patterns identify items.
fn unordered(path: &str, patterns: &[Value], items: &[Value], variables: &mut Variables, out: &mut Vec<String>) {
    let mut left: Vec<&Value> = items.iter().collect();
    for pattern in patterns {
        match left.iter().position(|item| matches(pattern, item, variables)) {
            Some(at) => drop(left.remove(at)),
            None => out.push(format!("{}: no item is {}: {}", shown(path), brief(pattern), brief(&Value::from(items)))),
        }
    }
    out.extend(left.iter().map(|item| format!("{}: has {} too", shown(path), brief(item))));
}

/// Captures only where all of it matches.
fn matches(pattern: &Value, found: &Value, variables: &mut Variables) -> bool {
    let mut tried = variables.clone();
    let right = complaints(pattern, Some(found), &mut tried).is_empty();
    if right {
        *variables = tried;
    }
    right
}

fn same(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => wanted == found,
    }
}

pub(crate) fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_xact(text: &str) -> bool {
    text.len() == 19 && text.starts_with("1000") && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let sign = |at: usize, sign: u8| bytes.get(at) == Some(&sign);
    (0..4).all(digit)
        && sign(4, b'-')
        && sign(7, b'-')
        && sign(10, b'T')
        && sign(13, b':')
        && sign(16, b':')
        && (text.ends_with('Z') || text.ends_with("+00:00"))
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the answer" } else { path.trim_start_matches('.') }
}

/// A value as text, not too long to read.
pub fn brief(value: &Value) -> String {
    shortened(&value.to_string())
}

pub fn shortened(text: &str) -> String {
    const SHOWN_CHARS: usize = 600;
    let mut short: String = text.chars().take(SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn fits(pattern: Value, found: Value) {
        assert_eq!(complaints(&pattern, Some(&found), &mut Variables::new()), Vec::<String>::new());
    }

    #[track_caller]
    fn refuses(pattern: Value, found: Value, words: &str) {
        let complaints = complaints(&pattern, Some(&found), &mut Variables::new());
        assert!(complaints.len() == 1 && complaints[0].contains(words), "{complaints:?}");
    }

    #[test]
    fn an_object_may_have_more_and_an_array_may_not() {
        fits(json!({"a": 1}), json!({"a": 1.0, "b": 2}));
        refuses(json!({"a": {"b": 1}}), json!({"a": {}}), "a.b: is not there; wanted 1");
        refuses(json!([1]), json!([1, 2]), "wanted 1 items, found 2");
        refuses(json!({"a": [null]}), json!({"a": [false]}), "a[0]: wanted null, found false");
        refuses(json!({"$exact": {"a": 1}}), json!({"a": 1, "b": 2}), "has `b`");
        fits(json!({"$keys": ["a"]}), json!({"a": null}));
        refuses(json!({"$keys": ["a", "b"]}), json!({"a": null}), "has no `b`");
    }

    #[test]
    fn words_match_types_and_forms() {
        fits(json!("$uuid"), json!("11111111-2222-4333-8444-555555555555"));
        refuses(json!("$uuid"), json!("11111111-2222-4333-8444"), "wanted $uuid");
        fits(json!("$xact"), json!("1000192656880881099"));
        refuses(json!("$xact"), json!(1000192656880881099_u64), "wanted $xact");
        fits(json!("$time"), json!("2026-11-21T05:44:00.123Z"));
        refuses(json!("$time"), json!("2026-11-21"), "wanted $time");
        fits(json!({"a": "$absent", "b": "$none", "c": "$none"}), json!({"b": null}));
        refuses(json!({"a": "$absent"}), json!({"a": null}), "a: wanted $absent, found null");
        fits(json!("$contains:bad"), json!("too bad:"));
        fits(json!("$text:$x"), json!("$x"));
        refuses(json!("$present"), json!(null), "wanted $present");
        refuses(json!("$whatever"), json!(null), "no matcher");
    }

    #[test]
    fn operators_ask_about_arrays() {
        let found = json!([{"id": 1, "x": 1}, {"id": 2}]);
        fits(json!({"$has": [{"id": 2}]}), found.clone());
        refuses(json!({"$has": [{"id": 3}]}), found.clone(), "no item is");
        fits(json!({"$lacks": [{"id": 3}]}), found.clone());
        refuses(json!({"$lacks": [{"id": 1}]}), found.clone(), "must not be there");
        fits(json!({"$unordered": [{"id": 2}, {"id": 1}]}), found.clone());
        refuses(json!({"$unordered": [{"id": 1}]}), found.clone(), "has {\"id\":2} too");
        fits(json!({"$all": [{"$each": {"id": "$number"}}, {"$length": 2}]}), found.clone());
        refuses(json!({"$each": {"x": 1}}), found.clone(), "[1].x: is not there");
        fits(json!({"$not": {"$length": 3}}), found.clone());
        refuses(json!({"$not": {"$length": 2}}), found, "must not be");
        fits(json!({"a": {"$not": 1}}), json!({}));
        refuses(json!({"$huge": 1}), json!([]), "no operator");
    }

    #[test]
    fn what_matches_is_kept_and_what_was_tried_is_not() {
        let mut variables = Variables::new();
        let pattern = json!({"a": "$as:first", "$b": 1, "c": {"$has": [{"id": "$number:id", "x": 1}]}});
        let found = json!({"a": [1], "$b": 1, "c": [{"id": 5, "x": 2}, {"id": 6, "x": 1}]});
        assert_eq!(complaints(&pattern, Some(&found), &mut variables), Vec::<String>::new());
        assert_eq!(variables, Variables::from([("first".into(), json!([1])), ("id".into(), json!(6))]));
    }
}

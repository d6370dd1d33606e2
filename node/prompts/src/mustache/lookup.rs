//! Lookup of names: the whole path is tried in the innermost context, then in the next outer one, and so on.

use std::borrow::Cow;

use serde_json::Value;

/// Contexts of the sections around a tag, outermost first. What is computed, such as a length, is owned.
pub(super) type Contexts<'v> = Vec<Cow<'v, Value>>;

/// Returns the value of a name, none if no context has it. Bytes of texts that were counted are added to `scanned`.
pub(super) fn lookup<'v>(contexts: &[Cow<'v, Value>], name: &str, scanned: &mut usize) -> Option<Cow<'v, Value>> {
    if name == "." {
        return contexts.last().cloned();
    }
    let is_path = name.find('.').is_some_and(|dot| dot > 0);
    contexts.iter().rev().find_map(|context| match is_path {
        true => name.split('.').try_fold(context.clone(), |value, part| property(&value, part, scanned)),
        // mustache.js asks a text for its length only by a path
        false if context.is_string() => None,
        false => property(context, name, scanned),
    })
}

/// Returns whether the strict check of prompts finds a name in the variables. It tests item 0 for any index, and is
/// content with a path that ends early, at null or at a scalar.
pub(super) fn is_there(variables: &Value, name: &str) -> bool {
    if name == "." {
        return true;
    }
    let mut value = variables;
    for (depth, part) in name.split('.').enumerate() {
        let is_index = depth > 0 && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let part = if is_index { "0" } else { part };
        let next = match value {
            Value::Object(members) => members.get(part),
            Value::Array(items) if part == "0" => items.first(),
            Value::Array(_) if part == "length" => return true,
            Value::Array(_) => None,
            _ => return true,
        };
        let Some(next) = next else { return false };
        value = next;
    }
    true
}

fn property<'v>(value: &Cow<'v, Value>, name: &str, scanned: &mut usize) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => property_of(value, name, scanned),
        Cow::Owned(value) => property_of(value, name, scanned).map(|found| Cow::Owned(found.into_owned())),
    }
}

fn property_of<'v>(value: &'v Value, name: &str, scanned: &mut usize) -> Option<Cow<'v, Value>> {
    match value {
        Value::Object(members) => members.get(name).map(Cow::Borrowed),
        Value::Array(items) if name == "length" => Some(Cow::Owned(items.len().into())),
        Value::Array(items) => items.get(index(name)?).map(Cow::Borrowed),
        Value::String(text) if name == "length" => {
            *scanned += text.len();
            Some(Cow::Owned(text.encode_utf16().count().into()))
        }
        Value::String(text) => {
            let index = index(name).filter(|index| *index < text.len())?;
            *scanned += text.len();
            let unit = text.encode_utf16().nth(index)?;
            Some(Cow::Owned(String::from_utf16_lossy(&[unit]).into()))
        }
        _ => None,
    }
}

/// Returns an index as JavaScript knows it: digits without leading zeros.
fn index(name: &str) -> Option<usize> {
    let is_plain = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
    is_plain.then(|| name.parse().ok()).flatten()
}

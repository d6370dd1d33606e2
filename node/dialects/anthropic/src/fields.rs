//! Fields of JSON objects: known ones are taken out, so that unknown ones are left over.

use serde_json::{Map, Value};

use assay_node_dialects::form::{CacheControl, Extra};
use assay_node_dialects::{Dialect, DialectError};

/// Returns the fields of an object.
pub(super) fn object(value: &Value, path: &str) -> Result<Map<String, Value>, DialectError> {
    value.as_object().cloned().ok_or_else(|| DialectError::malformed(path, "an object"))
}

/// Path of a field. That of the body itself is empty.
pub(super) fn path_of(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns the items of a list that has at most `max`.
pub(super) fn items<'a>(
    value: &'a Value,
    path: &str,
    of: &'static str,
    max: usize,
) -> Result<&'a [Value], DialectError> {
    let items = value.as_array().ok_or_else(|| DialectError::malformed(path, "a list"))?;
    check_count(items.len(), of, max)?;
    Ok(items)
}

pub(super) fn check_count(count: usize, of: &'static str, max: usize) -> Result<(), DialectError> {
    if count > max { Err(DialectError::TooMany { dialect: Dialect::Anthropic, of, max }) } else { Ok(()) }
}

/// Takes a field. Null counts as absent.
pub(super) fn take(fields: &mut Map<String, Value>, name: &str) -> Option<Value> {
    fields.shift_remove(name).filter(|value| !value.is_null())
}

pub(super) fn take_text(
    fields: &mut Map<String, Value>,
    path: &str,
    name: &str,
) -> Result<Option<String>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(DialectError::malformed(path_of(path, name), "a string")),
    }
}

pub(super) fn require_text(fields: &mut Map<String, Value>, path: &str, name: &str) -> Result<String, DialectError> {
    take_text(fields, path, name)?.ok_or_else(|| DialectError::malformed(path_of(path, name), "a string"))
}

pub(super) fn take_bool(fields: &mut Map<String, Value>, path: &str, name: &str) -> Result<Option<bool>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(truth)),
        Some(_) => Err(DialectError::malformed(path_of(path, name), "true or false")),
    }
}

pub(super) fn take_count(fields: &mut Map<String, Value>, path: &str, name: &str) -> Result<Option<u64>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| DialectError::malformed(path_of(path, name), "a whole number from 0")),
    }
}

/// Takes a number in the form in which it came.
pub(super) fn take_number(
    fields: &mut Map<String, Value>,
    path: &str,
    name: &str,
) -> Result<Option<Value>, DialectError> {
    match take(fields, name) {
        Some(value) if !value.is_number() => Err(DialectError::malformed(path_of(path, name), "a number")),
        number => Ok(number),
    }
}

pub(super) fn take_cache(fields: &mut Map<String, Value>) -> Option<CacheControl> {
    take(fields, "cache_control").map(|value| CacheControl { value })
}

/// Fields that a reader did not use.
pub(super) fn extra(fields: Map<String, Value>) -> Extra {
    Extra::of(Dialect::Anthropic, fields)
}

/// Keeps unknown fields of an inner object below its name.
pub(super) fn keep_inner(fields: &mut Map<String, Value>, name: &str, inner: Map<String, Value>) {
    if !inner.is_empty() {
        fields.insert(name.to_owned(), Value::Object(inner));
    }
}

/// Puts unknown fields back. Those of an inner object join the object of that name.
pub(super) fn put_back(into: &mut Map<String, Value>, extra: &Extra) {
    let Some(fields) = extra.for_dialect(Dialect::Anthropic) else { return };
    for (name, value) in fields {
        match (into.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(inner)) => {
                known.extend(inner.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Inserts a field that is there.
pub(super) fn put(into: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        into.insert(name.to_owned(), value.into());
    }
}

pub(super) fn put_cache(into: &mut Map<String, Value>, cache: &Option<CacheControl>) {
    put(into, "cache_control", cache.as_ref().map(|cache| cache.value.clone()));
}

/// Starts an object with its type.
pub(super) fn typed(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(kind))])
}

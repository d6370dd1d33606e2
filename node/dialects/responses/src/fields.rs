//! Typed fields of JSON objects. What is not taken stays, and becomes the extra fields of the object.

use serde_json::{Map, Value};

use assay_node_dialects::form::Extra;
use assay_node_dialects::{Dialect, DialectError};

pub(super) type Fields = Map<String, Value>;

pub(super) fn object(value: Value, path: &str) -> Result<Fields, DialectError> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(DialectError::malformed(path, "an object")),
    }
}

/// Takes a field out. `null` is the same as none.
pub(super) fn take(fields: &mut Fields, name: &str) -> Option<Value> {
    fields.shift_remove(name).filter(|value| !value.is_null())
}

pub(super) fn take_text(fields: &mut Fields, path: &str, name: &str) -> Result<Option<String>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(DialectError::malformed(within(path, name), "a text")),
    }
}

pub(super) fn take_needed_text(fields: &mut Fields, path: &str, name: &str) -> Result<String, DialectError> {
    take_text(fields, path, name)?.ok_or_else(|| DialectError::malformed(within(path, name), "a text"))
}

pub(super) fn take_count(fields: &mut Fields, path: &str, name: &str) -> Result<Option<u64>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) => Ok(Some(count)),
            None => Err(DialectError::malformed(within(path, name), "a whole number from 0")),
        },
    }
}

pub(super) fn take_flag(fields: &mut Fields, path: &str, name: &str) -> Result<Option<bool>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(_) => Err(DialectError::malformed(within(path, name), "true or false")),
    }
}

/// Takes a list of at most `max` elements.
pub(super) fn take_list(
    fields: &mut Fields,
    path: &str,
    name: &'static str,
    max: usize,
) -> Result<Option<Vec<Value>>, DialectError> {
    match take(fields, name) {
        None => Ok(None),
        Some(Value::Array(list)) => within_limit(list, name, max).map(Some),
        Some(_) => Err(DialectError::malformed(within(path, name), "a list")),
    }
}

pub(super) fn within_limit(list: Vec<Value>, of: &'static str, max: usize) -> Result<Vec<Value>, DialectError> {
    match list.len() > max {
        true => Err(DialectError::TooMany { dialect: Dialect::Responses, of, max }),
        false => Ok(list),
    }
}

/// Path of a field; that of the body is empty.
pub(super) fn within(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

pub(super) fn text_of<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

pub(super) fn rest(fields: Fields) -> Extra {
    Extra::of(Dialect::Responses, fields)
}

/// Own field of an extra.
pub(super) fn kept<'a>(extra: &'a Extra, name: &str) -> Option<&'a Value> {
    extra.for_dialect(Dialect::Responses).and_then(|fields| fields.get(name))
}

/// Puts the own fields of an extra beside those that are there.
pub(super) fn put_rest(fields: &mut Fields, extra: &Extra) {
    for (name, value) in extra.for_dialect(Dialect::Responses).into_iter().flatten() {
        put_missing(fields, name, || value.clone());
    }
}

pub(super) fn put_missing(fields: &mut Fields, name: &str, value: impl FnOnce() -> Value) {
    if !fields.contains_key(name) {
        fields.insert(name.to_owned(), value());
    }
}

pub(super) fn put(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    fields.insert(name.to_owned(), value.into());
}

pub(super) fn put_some(fields: &mut Fields, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        put(fields, name, value);
    }
}

/// Begins an object that says its type.
pub(super) fn typed(of_type: &str) -> Fields {
    let mut fields = Fields::new();
    put(&mut fields, "type", of_type);
    fields
}

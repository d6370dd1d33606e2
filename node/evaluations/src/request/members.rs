//! Reader of JSON members, which names the member, its value and the valid values in errors.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use thiserror::Error;
use uuid::Uuid;

/// Upper bound of a name, slug, version or token in a request, in bytes.
pub const EVAL_TEXT_BYTES_MAX: usize = 4_096;
/// Upper bound of the characters of a value that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

const TEXT: &str = "a string of at most 4096 bytes";
const UUID: &str = "a UUID";
const FLAG: &str = "true, false or null";
const OBJECT: &str = "an object or null";

/// Error for a member of a request that is missing or not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{member}` is {found}; it must be {valid}")]
pub struct EvalRequestError {
    /// Path of the member, such as `data.dataset_id`.
    pub member: String,
    pub found: String,
    pub valid: &'static str,
}

/// Members of an object, with its path in the request. Null counts as absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    object: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Members<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>, path: &'a str) -> Members<'a> {
        Members { object, path }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Returns a member, including null.
    pub(crate) fn given(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name)
    }

    /// Returns the error for a member.
    pub(crate) fn invalid(&self, name: &str, valid: &'static str) -> EvalRequestError {
        let found = self.object.get(name).map_or_else(|| "missing".to_owned(), shown);
        EvalRequestError { member: self.path(name), found, valid }
    }

    /// Returns the error for a member whose value must not be shown.
    pub(crate) fn invalid_secret(&self, name: &str, valid: &'static str) -> EvalRequestError {
        let found = self.object.get(name).map_or("missing", kind).to_owned();
        EvalRequestError { member: self.path(name), found, valid }
    }

    /// Returns a string. An empty string counts as absent.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, EvalRequestError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= EVAL_TEXT_BYTES_MAX => {
                Ok(Some(text.clone()).filter(|text| !text.is_empty()))
            }
            Some(_) => Err(self.invalid(name, TEXT)),
        }
    }

    pub(crate) fn uuid(&self, name: &str) -> Result<Option<Uuid>, EvalRequestError> {
        let Some(value) = self.get(name).filter(|value| value.as_str() != Some("")) else { return Ok(None) };
        let id = value.as_str().and_then(|text| Uuid::parse_str(text).ok());
        id.map(Some).ok_or_else(|| self.invalid(name, UUID))
    }

    pub(crate) fn required_uuid(&self, name: &str) -> Result<Uuid, EvalRequestError> {
        self.uuid(name)?.ok_or_else(|| self.invalid(name, UUID))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, EvalRequestError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.invalid(name, FLAG)),
        }
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, EvalRequestError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(self.invalid(name, OBJECT)),
        }
    }

    /// Returns a whole number. Numbers such as `3.0` count as whole.
    pub(crate) fn whole(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
        valid: &'static str,
    ) -> Result<Option<u64>, EvalRequestError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let fraction = || value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number));
        let number = value.as_u64().or_else(|| fraction().map(|number| number as u64));
        number.filter(|number| range.contains(number)).map(Some).ok_or_else(|| self.invalid(name, valid))
    }
}

/// Returns a value as errors show it. Long strings are shortened, and lists and objects are not shown.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().nth(SHOWN_CHARS_MAX).is_some() => {
            format!("`{}...`", text.chars().take(SHOWN_CHARS_MAX).collect::<String>())
        }
        Value::String(text) => format!("`{text}`"),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        other => kind(other).to_owned(),
    }
}

/// Returns the kind of a JSON value, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

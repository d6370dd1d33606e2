//! Checked reading of JSON members, with errors that name the path, the value found and the valid values.

use serde_json::{Map, Value};
use thiserror::Error;

/// Characters of a refused text that an error repeats.
const SHOWN_CHARACTERS_MAX: usize = 60;

/// Value of a rule or request that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{path}` is {found}; it must be {valid}")]
pub struct RuleError {
    pub path: String,
    pub found: String,
    pub valid: String,
}

impl RuleError {
    pub(crate) fn new(path: &str, value: Option<&Value>, valid: impl Into<String>) -> RuleError {
        let path = if path.is_empty() { "body" } else { path };
        RuleError { path: path.to_owned(), found: value.map_or("missing".to_owned(), described), valid: valid.into() }
    }
}

pub(crate) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= SHOWN_CHARACTERS_MAX => format!("{text:?}"),
        Value::String(text) => format!("a text of {} bytes", text.len()),
        Value::Array(list) => format!("an array of {} elements", list.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Object with its path. Null members count as absent.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    path: String,
    members: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(path: &str, value: Option<&'a Value>) -> Result<Fields<'a>, RuleError> {
        match value {
            Some(Value::Object(members)) => Ok(Fields { path: path.to_owned(), members }),
            other => Err(RuleError::new(path, other, "an object")),
        }
    }

    pub(crate) fn of_record(members: &'a Map<String, Value>) -> Fields<'a> {
        Fields { path: String::new(), members }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn error(&self, name: &str, valid: impl Into<String>) -> RuleError {
        RuleError::new(&self.path(name), self.value(name), valid)
    }

    /// Returns the member as `read` understands it, `None` if it is absent, or an error if `read` refuses it.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        valid: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, RuleError> {
        self.value(name).map(|value| read(value).ok_or_else(|| self.error(name, valid))).transpose()
    }

    pub(crate) fn text(&self, name: &str, bytes_max: usize) -> Result<Option<&'a str>, RuleError> {
        let valid = format!("a text of 1 to {bytes_max} bytes");
        self.read(name, &valid, |value| value.as_str().filter(|text| !text.is_empty() && text.len() <= bytes_max))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, RuleError> {
        Ok(self.read(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    pub(crate) fn number(&self, name: &str, min: f64, max: f64) -> Result<Option<f64>, RuleError> {
        let valid = format!("a number from {min} to {max}");
        self.read(name, &valid, |value| value.as_f64().filter(|number| (min..=max).contains(number)))
    }

    pub(crate) fn whole(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, RuleError> {
        let valid = format!("a whole number from {min} to {max}");
        self.read(name, &valid, |value| whole(value).filter(|number| (min..=max).contains(number)))
    }

    pub(crate) fn list(&self, name: &str, items_max: usize) -> Result<Option<&'a [Value]>, RuleError> {
        let valid = format!("an array of at most {items_max} elements");
        self.read(name, &valid, |value| value.as_array().map(Vec::as_slice).filter(|list| list.len() <= items_max))
    }

    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, RuleError> {
        let valid = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        let find = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        self.read(name, &valid, |value| value.as_str().and_then(find))
    }

    pub(crate) fn required<T>(&self, name: &str, value: Option<T>, valid: &str) -> Result<T, RuleError> {
        value.ok_or_else(|| self.error(name, valid))
    }
}

/// Returns a whole number, also from float notation, which some clients use for all numbers.
fn whole(value: &Value) -> Option<u64> {
    /// Bound below which each float is one whole number.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..EXACT_MAX).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|number| number as u64))
}

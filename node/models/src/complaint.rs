//! Tolerant reading of JSON objects: an invalid member counts as absent and causes a complaint.

use std::fmt;

use serde_json::{Map, Value};

/// Upper bound of the complaints about one object. Further complaints are dropped.
const COMPLAINTS_MAX: usize = 64;

/// Complaint about a member without a valid value: its path, and the valid values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataComplaint {
    /// Path of the member, such as `metadata.weight`.
    pub path: String,
    pub problem: String,
}

impl fmt::Display for MetadataComplaint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.problem)
    }
}

/// Reader for the members of an object. A null member counts as absent.
#[derive(Debug)]
pub(crate) struct FieldReader<'a> {
    path: &'a str,
    fields: &'a Map<String, Value>,
    complaints: Vec<MetadataComplaint>,
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(path: &'a str, fields: &'a Map<String, Value>) -> FieldReader<'a> {
        FieldReader { path, fields, complaints: Vec::new() }
    }

    pub(crate) fn into_complaints(self) -> Vec<MetadataComplaint> {
        self.complaints
    }

    pub(crate) fn complain(&mut self, name: &str, problem: impl Into<String>) {
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push(MetadataComplaint { path: format!("{}.{name}", self.path), problem: problem.into() });
        }
    }

    pub(crate) fn add(&mut self, complaints: Vec<MetadataComplaint>) {
        let free = COMPLAINTS_MAX.saturating_sub(self.complaints.len());
        self.complaints.extend(complaints.into_iter().take(free));
    }

    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn read<T>(&mut self, name: &str, expected: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.value(name)?;
        let found = read(value);
        if found.is_none() {
            self.complain(name, format!("{expected} was expected, not {}", kind_of(value)));
        }
        found
    }

    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.read(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// Returns a text that is not empty. An empty text counts as absent.
    pub(crate) fn filled_text(&mut self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        self.read(name, "true or false", Value::as_bool)
    }

    pub(crate) fn number(&mut self, name: &str, min: f64, max: f64) -> Option<f64> {
        let expected = format!("a number from {min} to {max}");
        self.read(name, &expected, |value| value.as_f64().filter(|number| (min..=max).contains(number)))
    }

    pub(crate) fn whole(&mut self, name: &str, max: u64) -> Option<u64> {
        let expected = format!("a whole number from 0 to {max}");
        self.read(name, &expected, |value| whole_of(value).filter(|number| *number <= max))
    }

    pub(crate) fn signed(&mut self, name: &str, bound: i64) -> Option<i64> {
        let expected = format!("a whole number from -{bound} to {bound}");
        self.read(name, &expected, |value| value.as_i64().filter(|number| (-bound..=bound).contains(number)))
    }

    pub(crate) fn object(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        self.read(name, "an object", Value::as_object)
    }

    pub(crate) fn list(&mut self, name: &str) -> Option<&'a Vec<Value>> {
        self.read(name, "a list", Value::as_array)
    }

    /// Returns the strings of a list. Every other element causes a complaint.
    pub(crate) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let list = self.list(name)?;
        let mut texts = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            match value.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    self.complain(&format!("{name}[{index}]"), format!("a string was expected, not {}", kind_of(value)))
                }
            }
        }
        Some(texts)
    }
}

/// Reads a whole number, even in float notation, which some clients use for all numbers.
fn whole_of(value: &Value) -> Option<u64> {
    /// Largest number up to which floats represent whole numbers exactly.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let float = |number: f64| (number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(float))
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "such a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

//! Fields that have no meaning in the internal form, kept with the dialect they came from.

use serde_json::{Map, Value};

use crate::Dialect;

/// Unknown fields of one object of a dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    from: Option<Dialect>,
    fields: Map<String, Value>,
    /// Which of several forms of its dialect the object had.
    spelling: Option<&'static str>,
    /// Spelling of fields that the form has a meaning for, such as one of two names.
    field_spellings: Option<Box<Map<String, Value>>>,
}

impl Extra {
    /// Keeps fields that a reader did not use.
    pub fn of(from: Dialect, fields: Map<String, Value>) -> Extra {
        Extra { from: (!fields.is_empty()).then_some(from), fields, spelling: None, field_spellings: None }
    }

    /// Notes which of several forms of its dialect the object had, so that the writer chooses it again.
    pub fn spelled(mut self, spelling: &'static str) -> Extra {
        self.spelling = Some(spelling);
        self
    }

    /// Returns the form that the object had, where its dialect has several.
    pub fn spelling(&self) -> Option<&'static str> {
        self.spelling
    }

    /// Keeps how the dialect spelled a field that was read into the form. Other dialects lose nothing by it.
    pub fn with_field_spelling(mut self, from: Dialect, name: &str, value: Value) -> Extra {
        self.from = Some(from);
        self.field_spellings.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    /// Returns a kept spelling if it came from this dialect.
    pub fn field_spelling(&self, dialect: Dialect, name: &str) -> Option<&Value> {
        self.field_spellings.as_ref().filter(|_| self.from == Some(dialect))?.get(name)
    }

    /// Keeps fields that a reader did not use, and the dialect even if there are none: a writer of the same dialect then
    /// leaves its defaults alone.
    pub fn marked(from: Dialect, fields: Map<String, Value>) -> Extra {
        Extra { from: Some(from), fields, spelling: None, field_spellings: None }
    }

    /// Returns the dialect of the fields, if it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.from
    }

    /// Returns the fields if they came from this dialect.
    pub fn for_dialect(&self, dialect: Dialect) -> Option<&Map<String, Value>> {
        (self.from == Some(dialect)).then_some(&self.fields)
    }

    /// Names of fields that a writer of this dialect cannot express.
    pub fn dropped_by(&self, dialect: Dialect) -> impl Iterator<Item = &str> {
        let dropped = self.from.is_some_and(|from| from != dialect);
        self.fields.keys().filter(move |_| dropped).map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Adds later fields of the same dialect: lists are appended, and other values replace the earlier ones.
    pub fn append(&mut self, later: &Extra) {
        if self.is_empty() {
            let spelling = later.spelling.or(self.spelling);
            *self = Extra { spelling, ..later.clone() };
        } else if self.from == later.from {
            for (name, value) in &later.fields {
                match (self.fields.get_mut(name), value) {
                    (Some(Value::Array(kept)), Value::Array(added)) => kept.extend(added.iter().cloned()),
                    _ => {
                        self.fields.insert(name.clone(), value.clone());
                    }
                }
            }
        }
    }

    /// Size of the fields as JSON.
    pub fn bytes(&self) -> usize {
        self.fields.iter().map(|(name, value)| name.len() + value.to_string().len()).sum()
    }
}

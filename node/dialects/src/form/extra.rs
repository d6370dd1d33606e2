//! Fields that have no meaning in the internal form, kept with the dialect they came from.

use serde_json::{Map, Value};

use crate::Dialect;

/// Unknown fields of one object of a dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    from: Option<Dialect>,
    fields: Map<String, Value>,
    /// Spelling of fields that the form has a meaning for, such as one of two names.
    spelling: Option<Box<Map<String, Value>>>,
}

impl Extra {
    /// Keeps fields that a reader did not use.
    pub fn of(from: Dialect, fields: Map<String, Value>) -> Extra {
        Extra { from: (!fields.is_empty()).then_some(from), fields, spelling: None }
    }

    /// Keeps how the dialect spelled a field that was read into the form. Other dialects lose nothing by it.
    pub fn with_spelling(mut self, from: Dialect, name: &str, value: Value) -> Extra {
        self.from = Some(from);
        self.spelling.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    /// Returns a kept spelling if it came from this dialect.
    pub fn spelling(&self, dialect: Dialect, name: &str) -> Option<&Value> {
        self.spelling.as_ref().filter(|_| self.from == Some(dialect))?.get(name)
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
}

//! Fields that have no meaning in the internal form, kept with the dialect they came from.

use serde_json::{Map, Value};

use crate::Dialect;

/// Unknown fields of one object of a dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    from: Option<Dialect>,
    fields: Map<String, Value>,
}

impl Extra {
    /// Keeps fields that a reader did not use.
    pub fn of(from: Dialect, fields: Map<String, Value>) -> Extra {
        Extra { from: (!fields.is_empty()).then_some(from), fields }
    }

    /// Keeps fields that a reader did not use, and the dialect even if there are none: a writer of the same dialect then
    /// leaves its defaults alone.
    pub fn marked(from: Dialect, fields: Map<String, Value>) -> Extra {
        Extra { from: Some(from), fields }
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

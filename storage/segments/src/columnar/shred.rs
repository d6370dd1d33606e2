//! Values at paths of documents as arrays, for rows without typed columns.
//!
//! The caller specifies the array for each path beforehand, from the kinds of all rows ([`Kinds`]). Values of several
//! kinds remain JSON texts. A scalar has one canonical spelling, so that rows give the same result from memory,
//! documents and typed columns. An array or an object stays as stored.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, StringArray};
use assay_storage_model::merge::{Picker, Step};

use super::scalar::{Scalar, exact_float};
use super::shape::Kind;
use super::split::TypedBuilder;

/// Requested form of the values of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Typed(Kind),
    /// JSON texts, with null for null.
    Json,
}

/// Set of the kinds of values that some rows have at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    pub const NONE: Kinds = Kinds(0);
    pub const BOOL: Kinds = Kinds(1);
    /// Integers that a float represents exactly.
    pub const INT: Kinds = Kinds(2);
    /// Other integers.
    pub const WIDE: Kinds = Kinds(4);
    pub const FLOAT: Kinds = Kinds(8);
    pub const TEXT: Kinds = Kinds(16);
    /// Arrays, objects and numbers beyond 64 bits.
    pub const OTHER: Kinds = Kinds(32);

    #[must_use]
    pub fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    fn within(self, others: Kinds) -> bool {
        self.0 & !others.0 == 0
    }

    /// Returns the form that holds all kinds, or `None` if there are no values.
    pub fn form(self) -> Option<Form> {
        let forms = [
            (Kinds::BOOL, Kind::Bool),
            (Kinds::INT.and(Kinds::WIDE), Kind::Int),
            (Kinds::INT.and(Kinds::FLOAT), Kind::Float),
            (Kinds::TEXT, Kind::Text),
        ];
        let typed = forms.into_iter().find(|(kinds, _)| self.within(*kinds));
        (self != Kinds::NONE).then(|| typed.map_or(Form::Json, |(_, kind)| Form::Typed(kind)))
    }

    pub(super) fn of(scalar: &Scalar<'_>) -> Kinds {
        match scalar {
            Scalar::Null => Kinds::NONE,
            Scalar::Bool(_) => Kinds::BOOL,
            Scalar::Int(int) if exact_float(*int).is_some() => Kinds::INT,
            Scalar::Int(_) => Kinds::WIDE,
            Scalar::Float(_) => Kinds::FLOAT,
            Scalar::Text(_) => Kinds::TEXT,
            Scalar::Other => Kinds::OTHER,
        }
    }
}

/// Values of one path for consecutive rows.
#[derive(Debug)]
pub struct Values {
    to: Builder,
    kinds: Kinds,
}

#[derive(Debug)]
enum Builder {
    Typed(TypedBuilder),
    Json(StringBuilder),
}

impl Values {
    pub fn new(form: Form) -> Values {
        let to = match form {
            Form::Typed(kind) => Builder::Typed(TypedBuilder::new(kind)),
            Form::Json => Builder::Json(StringBuilder::new()),
        };
        Values { to, kinds: Kinds::NONE }
    }

    /// Adds the value of the next row as a JSON text, if there is one.
    pub fn push(&mut self, text: Option<&[u8]>) {
        let scalar = text.map_or(Scalar::Null, Scalar::of);
        self.kinds = self.kinds.and(Kinds::of(&scalar));
        match &mut self.to {
            // A value of an unexpected kind becomes null.
            Builder::Typed(typed) => drop(typed.append(scalar)),
            Builder::Json(texts) => match (scalar, text) {
                (Scalar::Null, _) | (_, None) => texts.append_null(),
                (Scalar::Other, Some(text)) => texts.append_value(String::from_utf8_lossy(text)),
                (scalar, _) => texts.append_value(spelled(&scalar)),
            },
        }
    }

    /// Returns the values since the last call.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.to {
            Builder::Typed(typed) => typed.finish(),
            Builder::Json(texts) => Arc::new(texts.finish()),
        }
    }
}

/// Returns the canonical spelling of all scalars that equal this one.
pub(super) fn spelled(scalar: &Scalar<'_>) -> String {
    match scalar {
        Scalar::Bool(truth) => truth.to_string(),
        Scalar::Int(int) => int.to_string(),
        Scalar::Float(float) => serde_json::to_string(float).expect("finite numbers encode"),
        Scalar::Text(text) => serde_json::to_string(text).expect("texts encode"),
        Scalar::Null | Scalar::Other => "null".to_owned(),
    }
}

/// Extracts paths from documents, in the requested forms.
#[derive(Debug)]
pub struct Shredder {
    picker: Picker,
    values: Vec<Values>,
}

impl Shredder {
    pub fn new<'p>(paths: impl IntoIterator<Item = (&'p [Step], Form)>) -> Shredder {
        let (paths, forms): (Vec<&[Step]>, Vec<Form>) = paths.into_iter().unzip();
        Shredder { picker: Picker::new(paths), values: forms.into_iter().map(Values::new).collect() }
    }

    /// Adds the document of the next row. An invalid document has no value at any path.
    pub fn push(&mut self, doc: &[u8]) {
        let mut found = vec![None; self.values.len()];
        if self.picker.pick(doc, &mut found).is_err() {
            found.fill(None);
        }
        for (values, text) in self.values.iter_mut().zip(found) {
            values.push(text);
        }
    }

    /// Returns an array and the kinds of its values for each path, from the rows since the last call.
    pub fn finish(&mut self) -> Vec<(ArrayRef, Kinds)> {
        self.values.iter_mut().map(|values| (values.finish(), std::mem::take(&mut values.kinds))).collect()
    }
}

/// Converts typed values to JSON texts.
pub(crate) fn json_of(array: &ArrayRef, kind: Kind) -> ArrayRef {
    let scalar = |row: usize| match kind {
        Kind::Bool => Scalar::Bool(array.as_boolean().value(row)),
        Kind::Int => Scalar::Int(array.as_primitive::<Int64Type>().value(row)),
        Kind::Float => {
            let float = array.as_primitive::<Float64Type>().value(row);
            match float.fract() == 0.0 && float.abs() <= (1_u64 << 53) as f64 {
                true => Scalar::Int(float as i64),
                false => Scalar::Float(float),
            }
        }
        Kind::Text => Scalar::Text(array.as_string::<i32>().value(row).into()),
    };
    let texts = (0..array.len()).map(|row| array.is_valid(row).then(|| spelled(&scalar(row))));
    Arc::new(texts.collect::<StringArray>())
}

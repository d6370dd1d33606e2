//! Builder of columns from single values.

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, StringArray};
use assay_node_btql::values::Value;

use crate::column::Column;
use crate::types::{Type, is_safe};

/// Upper bound of the bytes of all texts in one array, set by its 32-bit offsets.
pub(crate) const TEXT_BYTES_MAX: usize = i32::MAX as usize;

/// Builds a column: an array of the expected type as long as it holds every value.
#[derive(Debug)]
pub(crate) enum Builder {
    Bool(Vec<Option<bool>>),
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Texts),
    Time(Vec<Option<i64>>),
    Stored(Vec<Option<i64>>),
    Values(Vec<Value<'static>>),
}

impl Builder {
    pub fn new(ty: Type, rows: usize) -> Builder {
        match ty {
            Type::Bool => Builder::Bool(Vec::with_capacity(rows)),
            Type::Int | Type::Wide => Builder::Int(Vec::with_capacity(rows)),
            Type::Float => Builder::Float(Vec::with_capacity(rows)),
            Type::Text => Builder::Text(Texts::default()),
            Type::Time => Builder::Time(Vec::with_capacity(rows)),
            Type::Created => Builder::Stored(Vec::with_capacity(rows)),
            Type::Null | Type::Xact | Type::Key | Type::Interval | Type::Json => {
                Builder::Values(Vec::with_capacity(rows))
            }
        }
    }

    pub fn push(&mut self, value: Value<'static>) {
        match (&mut *self, &value) {
            (Builder::Values(to), _) => to.push(value),
            (Builder::Bool(to), Value::Boolean(boolean)) => to.push(Some(*boolean)),
            (Builder::Int(to), Value::Integer(number)) => to.push(Some(*number)),
            (Builder::Float(to), Value::Float(number)) => to.push(Some(*number)),
            (Builder::Float(to), Value::Integer(number)) if is_safe(*number) => to.push(Some(*number as f64)),
            (Builder::Text(to), Value::Text(text)) if to.has_room(text) => to.put(Some(text)),
            (Builder::Time(to), Value::Time(micros)) | (Builder::Stored(to), Value::Stored(micros)) => {
                to.push(Some(*micros));
            }
            (Builder::Bool(to), Value::Null) => to.push(None),
            (Builder::Int(to) | Builder::Time(to) | Builder::Stored(to), Value::Null) => to.push(None),
            (Builder::Float(to), Value::Null) => to.push(None),
            (Builder::Text(to), Value::Null) => to.put(None),
            _ => {
                self.widen();
                self.push(value);
            }
        }
    }

    /// Switches to values of any type.
    fn widen(&mut self) {
        let built = std::mem::replace(self, Builder::Values(Vec::new())).finish();
        let rows = built.array().map_or(0, Array::len);
        *self = Builder::Values((0..rows).map(|row| built.value(row).into_owned()).collect());
    }

    pub fn finish(self) -> Column {
        match self {
            Builder::Bool(of) => Column::Bool(of.into_iter().collect()),
            Builder::Int(of) => Column::Int(of.into_iter().collect()),
            Builder::Float(of) => Column::Float(of.into_iter().collect()),
            Builder::Text(of) => Column::Text(of.finish()),
            Builder::Time(of) => Column::Time(of.into_iter().collect()),
            Builder::Stored(of) => Column::Stored(of.into_iter().collect()),
            Builder::Values(of) => Column::Values(of),
        }
    }
}

/// Concatenated texts, up to the size of one array.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    builder: StringBuilder,
    bytes: usize,
}

impl Texts {
    pub fn with_capacity(rows: usize, bytes: usize) -> Texts {
        Texts { builder: StringBuilder::with_capacity(rows, bytes), bytes: 0 }
    }

    fn has_room(&self, text: &str) -> bool {
        self.bytes + text.len() <= TEXT_BYTES_MAX
    }

    /// Appends a text if there is room.
    fn put(&mut self, text: Option<&str>) {
        self.bytes += text.map_or(0, str::len);
        self.builder.append_option(text);
    }

    /// Appends a text, or returns none and appends nothing if there is no room.
    pub fn push(&mut self, text: Option<&str>) -> Option<()> {
        if !text.is_none_or(|text| self.has_room(text)) {
            return None;
        }
        self.put(text);
        Some(())
    }

    pub fn finish(mut self) -> StringArray {
        self.builder.finish()
    }
}

//! Builder of one column of a Parquet batch: converts values to the column's type, or reports that they do not fit.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, TimeUnit};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema;
use assay_node_btql::values::Value;

use super::FormatError;

/// Upper bound of the texts of a batch, set by their 32-bit offsets.
const TEXT_BYTES_MAX: usize = i32::MAX as usize;
/// Size of a value without a text, for bounds.
const SCALAR_BYTES: usize = 8;
/// Upper bound of the characters of a value in an error.
const QUOTED_CHARS_MAX: usize = 80;
const UTC: &str = "UTC";

#[derive(Debug)]
pub struct ColumnBuilder {
    name: String,
    nullable: bool,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Booleans(BooleanBuilder),
    Integers(Int64Builder),
    Numbers(Float64Builder),
    Times(TimestampMicrosecondBuilder),
    Texts(StringBuilder),
    Lists(ListBuilder<StringBuilder>),
    Json(StringBuilder),
}

impl ColumnBuilder {
    pub fn new(column: &schema::Column) -> ColumnBuilder {
        let cells = match column.kinds {
            Kinds::Boolean => Cells::Booleans(BooleanBuilder::new()),
            Kinds::Integer => Cells::Integers(Int64Builder::new()),
            Kinds::Number => Cells::Numbers(Float64Builder::new()),
            Kinds::Time => Cells::Times(TimestampMicrosecondBuilder::new().with_timezone(UTC)),
            Kinds::Text | Kinds::Interval => Cells::Texts(StringBuilder::new()),
            Kinds::Texts => Cells::Lists(ListBuilder::new(StringBuilder::new())),
            Kinds::Any | Kinds::Null => Cells::Json(StringBuilder::new()),
        };
        ColumnBuilder { name: column.name.clone(), nullable: column.nullable, cells }
    }

    pub fn field(&self) -> Field {
        let of = match self.cells {
            Cells::Booleans(_) => DataType::Boolean,
            Cells::Integers(_) => DataType::Int64,
            Cells::Numbers(_) => DataType::Float64,
            Cells::Times(_) => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Cells::Texts(_) | Cells::Json(_) => DataType::Utf8,
            Cells::Lists(_) => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
        };
        Field::new(&self.name, of, self.nullable)
    }

    /// Appends a value. Returns about how many bytes it takes.
    pub fn put(&mut self, value: &Value<'_>, scratch: &mut String) -> Result<usize, FormatError> {
        if value.is_null() {
            self.put_null()?;
            return Ok(SCALAR_BYTES);
        }
        match &mut self.cells {
            Cells::Booleans(cells) => match value {
                Value::Boolean(boolean) => cells.append_value(*boolean),
                other => return Err(unlike(&self.name, "of booleans", other)),
            },
            Cells::Integers(cells) => match value {
                Value::Integer(number) => cells.append_value(*number),
                Value::Unsigned(found) => {
                    return Err(FormatError::Beyond { column: self.name.clone(), found: *found });
                }
                other => return Err(unlike(&self.name, "of whole numbers", other)),
            },
            Cells::Numbers(cells) => match value.as_f64().filter(|_| value.is_number()) {
                Some(number) => cells.append_value(number),
                None => return Err(unlike(&self.name, "of numbers", value)),
            },
            Cells::Times(cells) => match value.as_time() {
                Some(micros) => cells.append_value(micros),
                None => return Err(unlike(&self.name, "of times", value)),
            },
            Cells::Texts(cells) => return put_text(&self.name, cells, value),
            Cells::Lists(cells) => return put_list(&self.name, cells, value),
            Cells::Json(cells) => return put_json(&self.name, cells, value, scratch),
        }
        Ok(SCALAR_BYTES)
    }

    fn put_null(&mut self) -> Result<(), FormatError> {
        if !self.nullable {
            return Err(FormatError::Null { column: self.name.clone() });
        }
        match &mut self.cells {
            Cells::Booleans(cells) => cells.append_null(),
            Cells::Integers(cells) => cells.append_null(),
            Cells::Numbers(cells) => cells.append_null(),
            Cells::Times(cells) => cells.append_null(),
            Cells::Texts(cells) | Cells::Json(cells) => cells.append_null(),
            Cells::Lists(cells) => cells.append_null(),
        }
        Ok(())
    }

    /// Takes the values as an array, and leaves the builder empty.
    pub fn take(&mut self) -> ArrayRef {
        match &mut self.cells {
            Cells::Booleans(cells) => Arc::new(cells.finish()),
            Cells::Integers(cells) => Arc::new(cells.finish()),
            Cells::Numbers(cells) => Arc::new(cells.finish()),
            Cells::Times(cells) => Arc::new(cells.finish()),
            Cells::Texts(cells) | Cells::Json(cells) => Arc::new(cells.finish()),
            Cells::Lists(cells) => Arc::new(cells.finish()),
        }
    }
}

fn put_text(column: &str, cells: &mut StringBuilder, value: &Value<'_>) -> Result<usize, FormatError> {
    match value.to_text() {
        Some(text) => append(column, cells, &text),
        None => {
            cells.append_null();
            Ok(SCALAR_BYTES)
        }
    }
}

fn put_list(column: &str, cells: &mut ListBuilder<StringBuilder>, value: &Value<'_>) -> Result<usize, FormatError> {
    let opened = value.opened();
    let Value::List(elements) = &*opened else {
        return Err(unlike(column, "of arrays of texts", value));
    };
    let mut bytes = SCALAR_BYTES;
    for element in elements {
        bytes += put_text(column, cells.values(), element)?;
    }
    cells.append(true);
    Ok(bytes)
}

fn put_json(
    column: &str,
    cells: &mut StringBuilder,
    value: &Value<'_>,
    scratch: &mut String,
) -> Result<usize, FormatError> {
    if let Value::Array(json) | Value::Object(json) = value {
        return append(column, cells, json);
    }
    scratch.clear();
    value.put_json(scratch);
    append(column, cells, scratch)
}

fn append(column: &str, cells: &mut StringBuilder, text: &str) -> Result<usize, FormatError> {
    if text.len() > TEXT_BYTES_MAX - cells.values_slice().len() {
        return Err(FormatError::TooLong { column: column.to_owned(), bytes: text.len() });
    }
    cells.append_value(text);
    Ok(SCALAR_BYTES + text.len())
}

fn unlike(column: &str, promised: &'static str, value: &Value<'_>) -> FormatError {
    let found = value.to_json();
    let short: String = found.chars().take(QUOTED_CHARS_MAX).collect();
    let found = if short.len() < found.len() { format!("{short}...") } else { found };
    FormatError::Unlike { column: column.to_owned(), promised, found }
}

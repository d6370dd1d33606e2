//! Conversion of result columns to arrays of the planned types. An error names the value that does not fit.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Float64Array, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, TimeUnit};
use assay_node_btql::bound::Kinds;
use assay_node_btql::schema;
use assay_node_btql::values::Value;
use assay_node_engine::{Cells, ResultColumn};

use super::FormatError;
use super::json::json_value;

/// Upper bound of the bytes of texts in an array, set by its 32-bit offsets.
const TEXT_BYTES_MAX: usize = i32::MAX as usize;
/// Upper bound of the characters of a value in an error.
const QUOTED_CHARS_MAX: usize = 80;
const UTC: &str = "UTC";

/// Returns the field of a column. A column of any kind has JSON texts.
pub fn field(column: &schema::Column) -> Field {
    let of = match column.kinds {
        Kinds::Boolean => DataType::Boolean,
        Kinds::Integer => DataType::Int64,
        Kinds::Number => DataType::Float64,
        Kinds::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        Kinds::Text | Kinds::Interval | Kinds::Any | Kinds::Null => DataType::Utf8,
        Kinds::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
    };
    Field::new(&column.name, of, column.nullable)
}

/// Converts cells to an array of the column's type.
pub fn typed_array(column: &schema::Column, cells: &ResultColumn) -> Result<ArrayRef, FormatError> {
    let array = match unchanged(column.kinds, cells) {
        Some(array) => array,
        None => by_value(column, cells)?,
    };
    if !column.nullable && array.null_count() > 0 {
        return Err(FormatError::Null { column: column.name.clone() });
    }
    Ok(array)
}

/// Returns an array without a conversion of single values, if possible.
fn unchanged(kinds: Kinds, cells: &ResultColumn) -> Option<ArrayRef> {
    let array = cells.array();
    Some(match (kinds, cells.cells()) {
        (Kinds::Boolean, Cells::Booleans(_))
        | (Kinds::Integer, Cells::Integers(_))
        | (Kinds::Text, Cells::Texts(_)) => Arc::clone(array),
        (Kinds::Number, Cells::Integers(integers)) => {
            Arc::new(integers.unary::<_, Float64Type>(|number| number as f64))
        }
        (Kinds::Number, _) => Arc::new(finite(array.as_primitive_opt::<Float64Type>()?)),
        (Kinds::Time, _) => {
            let times: &TimestampMicrosecondArray = array.as_primitive_opt::<TimestampMicrosecondType>()?;
            Arc::new(times.clone().with_timezone(UTC))
        }
        (Kinds::Any, Cells::Json(texts)) if has_containers_only(texts) => Arc::clone(array),
        _ => return None,
    })
}

/// Replaces infinite numbers by null, and negative zero by zero.
fn finite(numbers: &Float64Array) -> Float64Array {
    numbers.unary_opt(|number| number.is_finite().then_some(number + 0.0))
}

/// Returns whether each text is an object or an array. Their stored texts need no conversion.
fn has_containers_only(texts: &StringArray) -> bool {
    let mut values = texts.iter().flatten();
    values.all(|text| matches!(text.as_bytes().first(), Some(b'{' | b'[')))
}

fn by_value(column: &schema::Column, cells: &ResultColumn) -> Result<ArrayRef, FormatError> {
    let rows = cells.array().len();
    let values = (0..rows).map(|row| cells.value(row));
    let name = column.name.as_str();
    Ok(match column.kinds {
        Kinds::Boolean => {
            let mut array = BooleanBuilder::with_capacity(rows);
            for value in values {
                match value {
                    Value::Null => array.append_null(),
                    Value::Boolean(boolean) => array.append_value(boolean),
                    other => return Err(unlike(name, "of booleans", &other)),
                }
            }
            Arc::new(array.finish())
        }
        Kinds::Integer => {
            let mut array = Int64Builder::with_capacity(rows);
            for value in values {
                match value {
                    Value::Null => array.append_null(),
                    Value::Integer(number) => array.append_value(number),
                    Value::Unsigned(found) => return Err(FormatError::Beyond { column: name.to_owned(), found }),
                    other => return Err(unlike(name, "of whole numbers", &other)),
                }
            }
            Arc::new(array.finish())
        }
        Kinds::Number => {
            let mut array = Float64Builder::with_capacity(rows);
            for value in values {
                match value.as_f64().filter(|_| value.is_number()) {
                    _ if value.is_null() => array.append_null(),
                    Some(number) => array.append_value(number),
                    None => return Err(unlike(name, "of numbers", &value)),
                }
            }
            Arc::new(array.finish())
        }
        Kinds::Time => {
            let mut array = TimestampMicrosecondBuilder::with_capacity(rows).with_timezone(UTC);
            for value in values {
                match value.as_time() {
                    _ if value.is_null() => array.append_null(),
                    Some(micros) => array.append_value(micros),
                    None => return Err(unlike(name, "of times", &value)),
                }
            }
            Arc::new(array.finish())
        }
        Kinds::Text | Kinds::Interval => {
            let mut array = StringBuilder::new();
            values.into_iter().try_for_each(|value| put_text(name, &mut array, &value))?;
            Arc::new(array.finish())
        }
        Kinds::Texts => {
            let mut array = ListBuilder::new(StringBuilder::new());
            values.into_iter().try_for_each(|value| put_list(name, &mut array, &value))?;
            Arc::new(array.finish())
        }
        Kinds::Any | Kinds::Null => Arc::new(json_texts(name, cells)?),
    })
}

/// Returns the canonical JSON text of each cell. A null cell stays null.
fn json_texts(name: &str, cells: &ResultColumn) -> Result<StringArray, FormatError> {
    let rows = cells.array().len();
    let (mut array, mut scratch) = (StringBuilder::new(), String::new());
    for row in 0..rows {
        let value = match cells.cells() {
            Cells::Json(texts) => json_value(texts, row),
            _ => cells.value(row),
        };
        match &value {
            Value::Null => array.append_null(),
            Value::Array(json) | Value::Object(json) => append(name, &mut array, json)?,
            other => {
                scratch.clear();
                other.put_json(&mut scratch);
                append(name, &mut array, &scratch)?;
            }
        }
    }
    Ok(array.finish())
}

fn put_text(column: &str, array: &mut StringBuilder, value: &Value<'_>) -> Result<(), FormatError> {
    match value.to_text() {
        Some(text) => append(column, array, &text),
        None => {
            array.append_null();
            Ok(())
        }
    }
}

fn put_list(column: &str, array: &mut ListBuilder<StringBuilder>, value: &Value<'_>) -> Result<(), FormatError> {
    if value.is_null() {
        array.append_null();
        return Ok(());
    }
    let opened = value.opened();
    let Value::List(elements) = &*opened else {
        return Err(unlike(column, "of arrays of texts", value));
    };
    for element in elements {
        put_text(column, array.values(), element)?;
    }
    array.append(true);
    Ok(())
}

fn append(column: &str, array: &mut StringBuilder, text: &str) -> Result<(), FormatError> {
    if text.len() > TEXT_BYTES_MAX - array.values_slice().len() {
        return Err(FormatError::TooLong { column: column.to_owned(), bytes: text.len() });
    }
    array.append_value(text);
    Ok(())
}

fn unlike(column: &str, promised: &'static str, value: &Value<'_>) -> FormatError {
    let found = value.to_json();
    let short: String = found.chars().take(QUOTED_CHARS_MAX).collect();
    let found = if short.len() < found.len() { format!("{short}...") } else { found };
    FormatError::Unlike { column: column.to_owned(), promised, found }
}

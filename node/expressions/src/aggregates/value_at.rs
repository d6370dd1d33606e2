//! Access to a row's value in a typed column.

use std::borrow::Cow;

use crate::Type;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow_array::{Array, ArrayRef};
use assay_node_btql::calendar;
use assay_node_btql::values::Value;

/// Digits of a pagination key behind its `p`.
const KEY_DIGITS: usize = 20;

/// The value of a row in an array that is of the type.
pub fn value_at(array: &ArrayRef, ty: Type, row: usize) -> Value<'_> {
    if ty == Type::Null || array.is_null(row) {
        return Value::Null;
    }
    match ty {
        Type::Null => Value::Null,
        Type::Bool => Value::Boolean(array.as_boolean().value(row)),
        Type::Int => Value::Integer(array.as_primitive::<Int64Type>().value(row)),
        Type::Float => Value::float(array.as_primitive::<Float64Type>().value(row)),
        Type::Wide => Value::whole(array.as_primitive::<Decimal128Type>().value(row)),
        Type::Text => Value::Text(Cow::Borrowed(text_at(array, row))),
        Type::Time => Value::Time(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        Type::Created => Value::Stored(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        Type::Xact => Value::Xact(array.as_primitive::<UInt64Type>().value(row)),
        Type::Key => Value::Text(Cow::Owned(key_text(array.as_primitive::<UInt64Type>().value(row)))),
        Type::Interval => calendar::interval(array.as_string::<i32>().value(row)).map_or(Value::Null, Value::Interval),
        Type::Json => Value::read(array.as_string::<i32>().value(row)),
    }
}

/// Returns a text of a column of texts, or of a dictionary of texts.
pub fn text_at(array: &ArrayRef, row: usize) -> &str {
    match array.as_dictionary_opt::<Int32Type>() {
        Some(dictionary) => {
            let place = usize::try_from(dictionary.keys().value(row)).unwrap_or_default();
            dictionary.values().as_string::<i32>().value(place)
        }
        None => array.as_string::<i32>().value(row),
    }
}

pub(super) fn key_text(key: u64) -> String {
    format!("p{key:0KEY_DIGITS$}")
}

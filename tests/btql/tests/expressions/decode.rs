//! Conversion of JSON values to columns, and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, NullArray, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use assay_node_expressions::Type;
use assay_storage_model::event::{format_micros, parse_created};
use serde_json::{Value as Json, json};

const SAFE: u64 = 1 << 53;

/// The type that holds all values, as storage would choose it.
pub fn fitting(values: &[Json]) -> Type {
    let all = |is: fn(&Json) -> bool| values.iter().all(|value| value.is_null() || is(value));
    let is_safe = |value: &Json| value.as_i64().is_none_or(|whole| whole.unsigned_abs() <= SAFE);
    if all(Json::is_null) {
        Type::Json
    } else if all(Json::is_boolean) {
        Type::Bool
    } else if all(Json::is_string) {
        Type::Text
    } else if all(Json::is_i64) {
        Type::Int
    } else if all(Json::is_number) && values.iter().all(is_safe) && all(|value| !value.is_u64() || value.is_i64()) {
        Type::Float
    } else {
        Type::Json
    }
}

pub fn column(values: &[Json], ty: Type) -> ArrayRef {
    let texts = || values.iter().map(Json::as_str);
    let times = || texts().map(|text| parse_created(text?));
    match ty {
        Type::Null => Arc::new(NullArray::new(values.len())),
        Type::Bool => Arc::new(values.iter().map(Json::as_bool).collect::<BooleanArray>()),
        Type::Int => Arc::new(values.iter().map(Json::as_i64).collect::<Int64Array>()),
        Type::Float => Arc::new(values.iter().map(Json::as_f64).collect::<Float64Array>()),
        Type::Wide => {
            let whole = |value: &Json| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
            Arc::new(values.iter().map(whole).collect::<Decimal128Array>().with_data_type(ty.data_type()))
        }
        Type::Text | Type::Interval => Arc::new(texts().collect::<StringArray>()),
        Type::Time | Type::Created => Arc::new(times().collect::<TimestampMicrosecondArray>()),
        Type::Xact => Arc::new(texts().map(|text| text?.parse().ok()).collect::<UInt64Array>()),
        Type::Key => Arc::new(texts().map(|text| text?.strip_prefix('p')?.parse().ok()).collect::<UInt64Array>()),
        Type::Json => {
            let text = |value: &Json| (!value.is_null()).then(|| value.to_string());
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
    }
}

/// Formats a time to the second, with fractions only if needed.
fn shown(micros: i64) -> String {
    format_micros(micros).replace(".000Z", "Z")
}

pub fn decoded(array: &ArrayRef, ty: Type) -> Vec<Json> {
    assert_eq!(*array.data_type(), ty.data_type());
    let value = |row: usize| match ty {
        _ if array.is_null(row) => Json::Null,
        Type::Null => Json::Null,
        Type::Bool => json!(array.as_boolean().value(row)),
        Type::Int => json!(array.as_primitive::<Int64Type>().value(row)),
        Type::Float => json!(array.as_primitive::<Float64Type>().value(row)),
        Type::Wide => {
            let wide = array.as_primitive::<Decimal128Type>().value(row);
            let whole = i64::try_from(wide).map(Json::from).or_else(|_| u64::try_from(wide).map(Json::from));
            whole.unwrap_or_else(|_| json!(wide as f64))
        }
        Type::Text | Type::Interval => json!(array.as_string::<i32>().value(row)),
        Type::Time => json!(shown(array.as_primitive::<TimestampMicrosecondType>().value(row))),
        Type::Created => json!(format_micros(array.as_primitive::<TimestampMicrosecondType>().value(row))),
        Type::Xact => json!(array.as_primitive::<UInt64Type>().value(row).to_string()),
        Type::Key => json!(format!("p{:020}", array.as_primitive::<UInt64Type>().value(row))),
        Type::Json => serde_json::from_str(array.as_string::<i32>().value(row)).expect("a JSON text"),
    };
    (0..array.len()).map(value).collect()
}

/// Numbers within a billionth; times of both sorts, where they share a column, by the instants that they are.
pub fn alike(found: &Json, expected: &Json, ty: Type) -> bool {
    match (found, expected) {
        (Json::Number(found), Json::Number(expected)) => {
            let (found, expected) = (found.as_f64().expect("a number"), expected.as_f64().expect("a number"));
            (found - expected).abs() <= 1e-9 * found.abs().max(expected.abs())
        }
        (Json::String(found), Json::String(expected)) if ty == Type::Time => {
            parse_created(found) == parse_created(expected)
        }
        (Json::Array(found), Json::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(found, other)| alike(found, other, ty))
        }
        (Json::Object(found), Json::Object(expected)) => {
            let same = |(key, found)| expected.get(key).is_some_and(|expected| alike(found, expected, ty));
            found.len() == expected.len() && found.iter().all(same)
        }
        _ => found == expected,
    }
}

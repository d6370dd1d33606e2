//! A column while it is computed: an array of one type where that holds all, otherwise values of any kind.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, NullArray, StringArray,
    StringBuilder, TimestampMicrosecondArray, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use assay_node_btql::calendar;
use assay_node_btql::values::Value;

use crate::Error;
use crate::types::{Type, is_safe};

/// Bytes that the texts of one array may have together: its offsets count no further.
pub(crate) const TEXT_BYTES_MAX: usize = i32::MAX as usize;
/// Digits of a pagination key behind its `p`.
const KEY_DIGITS: usize = 20;
const WIDE_BELOW: f64 = 1e38;

#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// The same for every row.
    Const(Value<'static>),
    Bool(BooleanArray),
    Int(Int64Array),
    /// Of finite numbers, and no negative zero.
    Float(Float64Array),
    Text(StringArray),
    Time(TimestampMicrosecondArray),
    Stored(TimestampMicrosecondArray),
    Xact(UInt64Array),
    Key(UInt64Array),
    Json(StringArray),
    Values(Vec<Value<'static>>),
}

impl Column {
    /// Of an array that is said to be of a type.
    pub fn load(array: &ArrayRef, ty: Type) -> Result<Column, Error> {
        if *array.data_type() != ty.data_type() {
            return Err(Error::OtherType { wanted: ty, found: array.data_type().to_string() });
        }
        Ok(match ty {
            Type::Null => Column::Const(Value::Null),
            Type::Bool => Column::Bool(array.as_boolean().clone()),
            Type::Int => Column::Int(array.as_primitive::<Int64Type>().clone()),
            Type::Float => Column::Float(clean(array.as_primitive::<Float64Type>())),
            Type::Wide => {
                let wide = array.as_primitive::<Decimal128Type>();
                wholes(wide.iter().map(|number| number.map_or(Value::Null, Value::whole)), array.len())
            }
            Type::Text => Column::Text(array.as_string::<i32>().clone()),
            Type::Time => Column::Time(array.as_primitive::<TimestampMicrosecondType>().clone()),
            Type::Created => Column::Stored(array.as_primitive::<TimestampMicrosecondType>().clone()),
            Type::Xact => Column::Xact(array.as_primitive::<UInt64Type>().clone()),
            Type::Key => Column::Key(array.as_primitive::<UInt64Type>().clone()),
            Type::Interval => {
                let interval = |text: &str| calendar::interval(text).map_or(Value::Null, Value::Interval);
                Column::Values(array.as_string::<i32>().iter().map(|text| text.map_or(Value::Null, interval)).collect())
            }
            Type::Json => Column::Json(array.as_string::<i32>().clone()),
        })
    }

    pub fn value(&self, row: usize) -> Value<'_> {
        match self {
            Column::Const(value) => value.view(),
            Column::Values(values) => values.get(row).map_or(Value::Null, Value::view),
            _ if !self.is_valid(row) => Value::Null,
            Column::Bool(array) => Value::Boolean(array.value(row)),
            Column::Int(array) => Value::Integer(array.value(row)),
            Column::Float(array) => Value::float(array.value(row)),
            Column::Text(array) => Value::Text(Cow::Borrowed(array.value(row))),
            Column::Time(array) => Value::Time(array.value(row)),
            Column::Stored(array) => Value::Stored(array.value(row)),
            Column::Xact(array) => Value::Xact(array.value(row)),
            Column::Key(array) => Value::Text(Cow::Owned(key_text(array.value(row)))),
            Column::Json(array) => Value::read(array.value(row)),
        }
    }

    pub fn is_valid(&self, row: usize) -> bool {
        match self {
            Column::Const(value) => !value.is_null(),
            Column::Values(values) => values.get(row).is_some_and(|value| !value.is_null()),
            _ => self.array().is_none_or(|array| array.is_valid(row)),
        }
    }

    /// Where it is null; None where it nowhere is.
    pub fn nulls(&self, rows: usize) -> Option<NullBuffer> {
        match self {
            Column::Const(value) => value.is_null().then(|| NullBuffer::new_null(rows)),
            Column::Values(values) => Some(values.iter().map(|value| !value.is_null()).collect()),
            _ => self.array().and_then(|array| array.nulls().cloned()),
        }
    }

    pub fn array(&self) -> Option<&dyn Array> {
        Some(match self {
            Column::Const(_) | Column::Values(_) => return None,
            Column::Bool(array) => array,
            Column::Int(array) => array,
            Column::Float(array) => array,
            Column::Text(array) | Column::Json(array) => array,
            Column::Time(array) | Column::Stored(array) => array,
            Column::Xact(array) | Column::Key(array) => array,
        })
    }

    /// The type of its array, if it is one.
    pub fn ty(&self) -> Option<Type> {
        Some(match self {
            Column::Const(_) | Column::Values(_) => return None,
            Column::Bool(_) => Type::Bool,
            Column::Int(_) => Type::Int,
            Column::Float(_) => Type::Float,
            Column::Text(_) => Type::Text,
            Column::Time(_) => Type::Time,
            Column::Stored(_) => Type::Created,
            Column::Xact(_) => Type::Xact,
            Column::Key(_) => Type::Key,
            Column::Json(_) => Type::Json,
        })
    }

    /// As the array that is promised. What a type does not hold cannot be there, and would be null.
    pub fn finish(self, ty: Type, rows: usize) -> Result<ArrayRef, Error> {
        if let (Some(found), Some(array)) = (self.ty(), self.array())
            && (found == ty || found.is_time() && ty.is_time())
        {
            return Ok(array.slice(0, array.len()));
        }
        let values = (0..rows).map(|row| self.value(row));
        Ok(match ty {
            Type::Null => Arc::new(NullArray::new(rows)),
            Type::Bool => Arc::new(values.map(boolean).collect::<BooleanArray>()),
            Type::Int => Arc::new(values.map(|value| int(&value)).collect::<Int64Array>()),
            Type::Float => {
                let float = |value: Value<'_>| value.as_f64().filter(|_| value.is_number());
                Arc::new(values.map(float).collect::<Float64Array>())
            }
            Type::Wide => {
                let wide = values.map(wide).collect::<Decimal128Array>();
                Arc::new(wide.with_data_type(Type::Wide.data_type()))
            }
            Type::Time | Type::Created => {
                let time = |value: Value<'_>| value.as_time().filter(|_| !matches!(value, Value::Text(_)));
                Arc::new(values.map(time).collect::<TimestampMicrosecondArray>())
            }
            Type::Xact => Arc::new(values.map(xact).collect::<UInt64Array>()),
            Type::Key => Arc::new(values.map(|value| key_of(&value)).collect::<UInt64Array>()),
            Type::Text | Type::Interval => Arc::new(texts(values.map(|value| {
                let is_text = !matches!(value, Value::Text(_)) == (ty == Type::Interval);
                value.to_text().filter(|_| is_text).map(Cow::into_owned)
            }))?),
            Type::Json => Arc::new(texts(values.map(|value| (!value.is_null()).then(|| value.to_json())))?),
        })
    }
}

/// No infinity, nothing that is no number, no negative zero.
fn clean(floats: &Float64Array) -> Float64Array {
    let is_odd = |float: &f64| !float.is_finite() || *float == 0.0 && float.is_sign_negative();
    if !floats.values().iter().any(is_odd) {
        return floats.clone();
    }
    floats.iter().map(|float| float.filter(|float| float.is_finite()).map(|float| float + 0.0)).collect()
}

pub(crate) fn key_text(key: u64) -> String {
    format!("p{key:0KEY_DIGITS$}")
}

/// Of a text that is one.
pub(crate) fn key_of(value: &Value<'_>) -> Option<u64> {
    let Value::Text(text) = value else { return None };
    let digits = text.strip_prefix('p')?;
    let is_key = digits.len() == KEY_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_key)
}

fn boolean(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Boolean(boolean) => Some(boolean),
        _ => None,
    }
}

fn int(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    }
}

fn xact(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Xact(xact) => Some(xact),
        _ => None,
    }
}

fn wide(value: Value<'_>) -> Option<i128> {
    match value {
        Value::Float(float) => Some(float as i128).filter(|_| float.abs() < WIDE_BELOW),
        Value::Boolean(_) => None,
        other => other.as_whole(),
    }
}

fn texts(of: impl Iterator<Item = Option<String>>) -> Result<StringArray, Error> {
    let mut texts = StringBuilder::new();
    let mut bytes = 0;
    for text in of {
        bytes += text.as_ref().map_or(0, String::len);
        if bytes > TEXT_BYTES_MAX {
            return Err(Error::TooLong);
        }
        texts.append_option(text);
    }
    Ok(texts.finish())
}

/// Numbers as an array where they are all of 64 bits with a sign.
pub(crate) fn wholes(values: impl Iterator<Item = Value<'static>>, rows: usize) -> Column {
    let mut builder = Builder::new(Type::Int, rows);
    values.for_each(|value| builder.push(value));
    builder.finish()
}

/// Makes a column of values as they come: an array of the type that is expected, as long as it holds them.
#[derive(Debug)]
pub(crate) enum Builder {
    Bool(Vec<Option<bool>>),
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(StringBuilder, usize),
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
            Type::Text => Builder::Text(StringBuilder::new(), 0),
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
            (Builder::Text(to, bytes), Value::Text(text)) if *bytes + text.len() <= TEXT_BYTES_MAX => {
                *bytes += text.len();
                to.append_value(text);
            }
            (Builder::Time(to), Value::Time(micros)) | (Builder::Stored(to), Value::Stored(micros)) => {
                to.push(Some(*micros));
            }
            (Builder::Bool(to), Value::Null) => to.push(None),
            (Builder::Int(to) | Builder::Time(to) | Builder::Stored(to), Value::Null) => to.push(None),
            (Builder::Float(to), Value::Null) => to.push(None),
            (Builder::Text(to, _), Value::Null) => to.append_null(),
            _ => {
                self.widen();
                self.push(value);
            }
        }
    }

    /// From here on for values of any kind.
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
            Builder::Text(mut of, _) => Column::Text(of.finish()),
            Builder::Time(of) => Column::Time(of.into_iter().collect()),
            Builder::Stored(of) => Column::Stored(of.into_iter().collect()),
            Builder::Values(of) => Column::Values(of),
        }
    }
}

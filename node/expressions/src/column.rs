//! Intermediate columns: an array of one type where it holds all values exactly, otherwise values of any type.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, NullArray,
    StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use arrow_select::take::take;
use assay_node_btql::calendar;
use assay_node_btql::values::Value;

use crate::Error;
use crate::builder::{Builder, Texts};
use crate::types::Type;

/// Digits of a pagination key behind its `p`.
const KEY_DIGITS: usize = 20;
const WIDE_BELOW: f64 = 1e38;

#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// The same for every row.
    Const(Value<'static>),
    Bool(BooleanArray),
    Int(Int64Array),
    /// Finite numbers without negative zero.
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
    /// Reads an array as a column of type `ty`.
    pub fn load(array: &ArrayRef, ty: Type) -> Result<Column, Error> {
        if let Some(words) = dictionary(array, ty) {
            let texts = take(words.values(), words.keys(), None).map_err(|_| Error::TooLong)?;
            return Ok(Column::Text(texts.as_string::<i32>().clone()));
        }
        if *array.data_type() != ty.data_type() {
            return Err(Error::OtherType { wanted: ty, found: array.data_type().to_string() });
        }
        Ok(match ty {
            Type::Null => Column::Const(Value::Null),
            Type::Bool => Column::Bool(array.as_boolean().clone()),
            Type::Int => Column::Int(array.as_primitive::<Int64Type>().clone()),
            Type::Float => Column::Float(clean(array.as_primitive::<Float64Type>())),
            Type::Wide => {
                let mut numbers = Builder::new(Type::Wide, array.len());
                let wide = array.as_primitive::<Decimal128Type>();
                wide.iter().for_each(|number| numbers.push(number.map_or(Value::Null, Value::whole)));
                numbers.finish()
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

    /// Returns the null mask; none if no row is null.
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

    /// Type of the array, if the column is one.
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

    /// Takes the values at the given positions.
    pub fn taken(&self, places: &Int32Array) -> Option<Column> {
        if let Column::Bool(bits) = self {
            return Some(Column::Bool(taken_bits(bits, places)));
        }
        let taken = take(self.array()?, places, None).ok()?;
        Column::load(&taken, self.ty()?).ok()
    }

    /// Converts the column to an array of the promised type. A value that the type cannot hold would become null.
    pub fn finish(self, ty: Type, rows: usize) -> Result<ArrayRef, Error> {
        if let (Some(found), Some(array)) = (self.ty(), self.array())
            && (found == ty || found.is_time() && ty.is_time())
        {
            return Ok(array.slice(0, array.len()));
        }
        if let Column::Const(value) = &self
            && rows > 1
            && ty != Type::Null
        {
            let one = Column::Const(value.clone()).finish(ty, 1)?;
            return take(&one, &Int32Array::from_value(0, rows), None).map_err(|_| Error::TooLong);
        }
        let values = (0..rows).map(|row| self.value(row));
        Ok(match (ty, &self) {
            (Type::Wide, Column::Int(ints)) => {
                let wide: Decimal128Array = ints.unary(i128::from);
                Arc::new(wide.with_data_type(ty.data_type()))
            }
            // Only such as a float has room for are promised as floats.
            (Type::Float, Column::Int(ints)) => Arc::new(ints.unary::<_, Float64Type>(|number| number as f64)),
            (Type::Null, _) => Arc::new(NullArray::new(rows)),
            (Type::Bool, _) => Arc::new(values.map(boolean).collect::<BooleanArray>()),
            (Type::Int, _) => Arc::new(values.map(int).collect::<Int64Array>()),
            (Type::Float, _) => {
                let float = |value: Value<'_>| value.as_f64().filter(|_| value.is_number());
                Arc::new(values.map(float).collect::<Float64Array>())
            }
            (Type::Wide, _) => Arc::new(values.map(wide).collect::<Decimal128Array>().with_data_type(ty.data_type())),
            (Type::Time | Type::Created, _) => {
                let time = |value: Value<'_>| value.as_time().filter(|_| !matches!(value, Value::Text(_)));
                Arc::new(values.map(time).collect::<TimestampMicrosecondArray>())
            }
            (Type::Xact, _) => Arc::new(values.map(xact).collect::<UInt64Array>()),
            (Type::Key, _) => Arc::new(values.map(|value| key_of(&value)).collect::<UInt64Array>()),
            (Type::Text | Type::Interval | Type::Json, _) => Arc::new(texts(values, ty).ok_or(Error::TooLong)?),
        })
    }
}

/// Dictionary of a text column: each text once, and for each row its index.
pub(crate) fn dictionary(array: &ArrayRef, ty: Type) -> Option<&DictionaryArray<Int32Type>> {
    let words = array.as_dictionary_opt::<Int32Type>()?;
    (ty == Type::Text && *words.values().data_type() == DataType::Utf8).then_some(words)
}

/// Takes bits at places, null where the place is null. Conditions on dictionaries take millions of them, so each is one
/// look into a table.
fn taken_bits(bits: &BooleanArray, places: &Int32Array) -> BooleanArray {
    let look = |table: &[bool], row: usize| table.get(places.values()[row] as usize).copied().unwrap_or_default();
    let values: Vec<bool> = (0..bits.len()).map(|place| bits.value(place)).collect();
    let taken = BooleanBuffer::collect_bool(places.len(), |row| look(&values, row));
    let present = bits.nulls().map(|nulls| {
        let present: Vec<bool> = nulls.iter().collect();
        NullBuffer::new(BooleanBuffer::collect_bool(places.len(), |row| look(&present, row)))
    });
    BooleanArray::new(taken, NullBuffer::union(present.as_ref(), places.nulls()))
}

/// Whether all numbers are finite and none is negative zero.
fn clean(floats: &Float64Array) -> Float64Array {
    let is_odd = |float: &f64| !float.is_finite() || *float == 0.0 && float.is_sign_negative();
    if !floats.values().iter().fold(false, |any, float| any | is_odd(float)) {
        return floats.clone();
    }
    floats.iter().map(|float| float.filter(|float| float.is_finite()).map(|float| float + 0.0)).collect()
}

fn key_text(key: u64) -> String {
    format!("p{key:0KEY_DIGITS$}")
}

/// Parses a pagination key.
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

fn int(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(number),
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

/// Formats the values of a type as texts; none if they exceed the size of an array.
fn texts<'v>(values: impl Iterator<Item = Value<'v>>, ty: Type) -> Option<StringArray> {
    let mut texts = Texts::default();
    let mut json = String::new();
    for value in values {
        match (ty, &value) {
            (_, Value::Null) => texts.push(None)?,
            (Type::Json, _) => {
                json.clear();
                value.put_json(&mut json);
                texts.push(Some(&json))?;
            }
            (Type::Text, Value::Text(text)) => texts.push(Some(text))?,
            (Type::Interval, Value::Interval(_)) => texts.push(value.to_text().as_deref())?,
            _ => texts.push(None)?,
        }
    }
    Some(texts.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_taken_as_the_library_takes_them() {
        let places = Int32Array::from(vec![Some(2), None, Some(0), Some(1), Some(2)]);
        for bits in [vec![Some(true), Some(false), Some(true)], vec![Some(true), None, Some(false)]] {
            let bits = BooleanArray::from(bits);
            let expected = take(&bits, &places, None).expect("the places are in it");
            assert_eq!(&taken_bits(&bits, &places), expected.as_boolean());
        }
    }
}

//! Column of result rows: an Arrow array with the type of its cells in the language.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, NullArray, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use assay_node_btql::values::{SAFE, Value};
use assay_node_expressions::Type;
use assay_node_expressions::aggregates::value_at;
use assay_node_expressions::codec::{Reader, put_value};

use crate::EngineError;

/// Type of the cells of a result column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    Typed(Type),
    /// Binary of encoded values, for columns that mix times, transactions or intervals with other values. JSON would
    /// turn these into texts.
    Mixed,
}

/// Column of result rows.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    array: ArrayRef,
    ty: CellType,
}

/// Array of a column by its type, for readers that visit each cell.
#[derive(Debug)]
pub enum Cells<'c> {
    Null,
    Booleans(&'c BooleanArray),
    Integers(&'c Int64Array),
    Texts(&'c StringArray),
    /// JSON texts.
    Json(&'c StringArray),
    /// Cells of another type, read as values.
    Other(&'c ResultColumn),
}

impl CellType {
    pub fn data_type(self) -> DataType {
        match self {
            CellType::Typed(ty) => ty.data_type(),
            CellType::Mixed => DataType::Binary,
        }
    }

    fn of_value(value: &Value<'_>) -> CellType {
        CellType::Typed(match value {
            Value::Null => Type::Null,
            Value::Boolean(_) => Type::Bool,
            Value::Integer(_) => Type::Int,
            Value::Unsigned(_) => Type::Wide,
            Value::Float(_) => Type::Float,
            Value::Text(_) => Type::Text,
            Value::Time(_) => Type::Time,
            Value::Stored(_) => Type::Created,
            Value::Xact(_) => Type::Xact,
            Value::Interval(_) => Type::Interval,
            Value::Array(_) | Value::Object(_) | Value::List(_) | Value::Members(_) => Type::Json,
        })
    }

    /// Returns the type that holds the values of both types exactly. `are_safe` tells whether floats represent all
    /// whole numbers of both.
    fn or(self, other: CellType, are_safe: bool) -> CellType {
        let (CellType::Typed(one), CellType::Typed(two)) = (self, other) else { return CellType::Mixed };
        CellType::Typed(match (one, two) {
            (one, two) if one == two => one,
            (Type::Null, ty) | (ty, Type::Null) => ty,
            (Type::Int, Type::Wide) | (Type::Wide, Type::Int) => Type::Wide,
            (Type::Int, Type::Float) | (Type::Float, Type::Int) if are_safe => Type::Float,
            (Type::Text, Type::Key) | (Type::Key, Type::Text) => Type::Text,
            (one, two) if is_json(one) && is_json(two) => Type::Json,
            _ => return CellType::Mixed,
        })
    }
}

/// Returns whether the JSON text of a value reads as the same value.
fn is_json(ty: Type) -> bool {
    !matches!(ty, Type::Time | Type::Created | Type::Xact | Type::Interval)
}

fn is_safe(number: i64) -> bool {
    number.unsigned_abs() <= SAFE
}

impl ResultColumn {
    /// Creates a column from an array of type `ty`, which may be a dictionary of texts.
    pub(crate) fn new(array: &ArrayRef, ty: Type) -> Result<ResultColumn, EngineError> {
        let array = match array.as_dictionary_opt::<Int32Type>() {
            Some(dictionary) => {
                take(dictionary.values(), dictionary.keys(), None).map_err(|_| EngineError::LongColumn)?
            }
            None => Arc::clone(array),
        };
        ResultColumn::checked(array, CellType::Typed(ty))
    }

    /// Creates a column from an array that another node sent.
    pub(crate) fn checked(array: ArrayRef, ty: CellType) -> Result<ResultColumn, EngineError> {
        if *array.data_type() == ty.data_type() { Ok(ResultColumn { array, ty }) } else { Err(EngineError::Damaged) }
    }

    /// Creates a column from single values.
    pub fn from_values(values: &[Value<'_>]) -> Result<ResultColumn, EngineError> {
        let are_safe = values.iter().all(|value| !matches!(value, Value::Integer(number) if !is_safe(*number)));
        let types = values.iter().map(CellType::of_value);
        let ty = types.reduce(|one, two| one.or(two, are_safe)).unwrap_or(CellType::Typed(Type::Null));
        built(values.iter().map(Value::view), values.len(), ty)
    }

    pub fn ty(&self) -> CellType {
        self.ty
    }

    pub fn array(&self) -> &ArrayRef {
        &self.array
    }

    pub fn value(&self, row: usize) -> Value<'_> {
        match self.ty {
            CellType::Typed(ty) => value_at(&self.array, ty, row),
            CellType::Mixed if self.array.is_null(row) => Value::Null,
            CellType::Mixed => Reader::new(self.array.as_binary::<i32>().value(row)).value().unwrap_or(Value::Null),
        }
    }

    pub fn cells(&self) -> Cells<'_> {
        match self.ty {
            CellType::Typed(Type::Null) => Cells::Null,
            CellType::Typed(Type::Bool) => Cells::Booleans(self.array.as_boolean()),
            CellType::Typed(Type::Int) => Cells::Integers(self.array.as_primitive::<Int64Type>()),
            CellType::Typed(Type::Text) => Cells::Texts(self.array.as_string::<i32>()),
            CellType::Typed(Type::Json) => Cells::Json(self.array.as_string::<i32>()),
            CellType::Typed(_) | CellType::Mixed => Cells::Other(self),
        }
    }

    /// Returns the approximate size of a cell as a value in memory.
    pub fn cell_bytes(&self, row: usize) -> usize {
        let text = match self.ty {
            CellType::Typed(Type::Text | Type::Json) => self.array.as_string::<i32>().value_length(row) as usize,
            CellType::Mixed => self.array.as_binary::<i32>().value_length(row) as usize,
            CellType::Typed(_) => 0,
        };
        size_of::<Value<'_>>() + text
    }

    /// Returns the bytes of the texts of all cells.
    pub fn text_bytes(&self) -> usize {
        let ends = |offsets: &[i32]| match (offsets.first(), offsets.last()) {
            (Some(first), Some(last)) => (last - first) as usize,
            _ => 0,
        };
        match self.ty {
            CellType::Typed(Type::Text | Type::Json) => ends(self.array.as_string::<i32>().value_offsets()),
            CellType::Mixed => ends(self.array.as_binary::<i32>().value_offsets()),
            CellType::Typed(_) => 0,
        }
    }

    pub fn slice(&self, from: usize, rows: usize) -> ResultColumn {
        ResultColumn { array: self.array.slice(from, rows), ty: self.ty }
    }

    /// Returns whether floats represent all whole numbers of the column.
    fn is_safe(&self) -> bool {
        match self.ty {
            CellType::Typed(Type::Int) => self.array.as_primitive::<Int64Type>().iter().flatten().all(is_safe),
            _ => true,
        }
    }

    fn cast(&self, ty: CellType) -> Result<ResultColumn, EngineError> {
        if self.ty == ty {
            return Ok(self.clone());
        }
        let array: ArrayRef = match (self.ty, ty) {
            (CellType::Typed(Type::Int), CellType::Typed(Type::Float)) => {
                let ints = self.array.as_primitive::<Int64Type>();
                Arc::new(ints.unary::<_, Float64Type>(|number| number as f64))
            }
            _ => {
                let values = (0..self.array.len()).map(|row| self.value(row));
                return built(values, self.array.len(), ty);
            }
        };
        Ok(ResultColumn { array, ty })
    }
}

/// Returns the cells of several columns in the order of `places`, which are pairs of a column and its row.
pub(crate) fn interleaved(columns: &[&ResultColumn], places: &[(usize, usize)]) -> Result<ResultColumn, EngineError> {
    let are_safe = columns.iter().all(|column| column.is_safe());
    let types = columns.iter().map(|column| column.ty);
    let Some(ty) = types.reduce(|one, two| one.or(two, are_safe)) else { return ResultColumn::from_values(&[]) };
    let cast = columns.iter().map(|column| column.cast(ty)).collect::<Result<Vec<_>, _>>()?;
    // A column of nulls has no cells to copy.
    if ty == CellType::Typed(Type::Null) {
        return Ok(ResultColumn { array: Arc::new(NullArray::new(places.len())), ty });
    }
    if let ([only], true) = (cast.as_slice(), is_in_order(places)) {
        return Ok(only.slice(places.first().map_or(0, |(_, row)| *row), places.len()));
    }
    let arrays: Vec<&dyn Array> = cast.iter().map(|column| column.array.as_ref()).collect();
    let text_bytes: usize = cast.iter().map(ResultColumn::text_bytes).sum();
    // Offsets of texts have 32 bits.
    if text_bytes > i32::MAX as usize {
        return Err(EngineError::LongColumn);
    }
    let array = interleave(&arrays, places).map_err(|_| EngineError::LongColumn)?;
    Ok(ResultColumn { array, ty })
}

/// Returns whether the places are consecutive rows of one column.
fn is_in_order(places: &[(usize, usize)]) -> bool {
    places.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].1 + 1 == pair[1].1)
}

/// Builds a column of values that the type can hold.
fn built<'v>(values: impl Iterator<Item = Value<'v>>, rows: usize, ty: CellType) -> Result<ResultColumn, EngineError> {
    let CellType::Typed(of) = ty else {
        return Ok(ResultColumn { array: Arc::new(encoded(values)?), ty });
    };
    let array: ArrayRef = match of {
        Type::Null => Arc::new(NullArray::new(rows)),
        Type::Bool => Arc::new(values.map(|value| value.truth()).collect::<BooleanArray>()),
        Type::Int => Arc::new(values.map(integer).collect::<Int64Array>()),
        Type::Float => Arc::new(values.map(|value| value.as_f64()).collect::<Float64Array>()),
        Type::Wide => {
            let wide: Decimal128Array = values.map(|value| value.as_whole()).collect();
            Arc::new(wide.with_data_type(of.data_type()))
        }
        Type::Time | Type::Created => Arc::new(values.map(time).collect::<TimestampMicrosecondArray>()),
        Type::Xact | Type::Key => Arc::new(values.map(transaction).collect::<UInt64Array>()),
        Type::Text | Type::Interval | Type::Json => Arc::new(texts(values, of)?),
    };
    Ok(ResultColumn { array, ty })
}

fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(number),
        _ => None,
    }
}

fn time(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Time(micros) | Value::Stored(micros) => Some(micros),
        _ => None,
    }
}

fn transaction(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Xact(xact) => Some(xact),
        _ => None,
    }
}

fn texts<'v>(values: impl Iterator<Item = Value<'v>>, ty: Type) -> Result<StringArray, EngineError> {
    let (mut builder, mut json, mut bytes) = (arrow_array::builder::StringBuilder::new(), String::new(), 0);
    for value in values {
        if value.is_null() {
            builder.append_null();
            continue;
        }
        json.clear();
        let text = match (&value, ty) {
            (Value::Text(text), Type::Text) => text.as_ref(),
            (Value::Array(text) | Value::Object(text), _) => text.as_ref(),
            (Value::Interval(_), _) => {
                json.push_str(&value.to_text().unwrap_or_default());
                json.as_str()
            }
            _ => {
                value.put_json(&mut json);
                json.as_str()
            }
        };
        bytes += text.len();
        if bytes > i32::MAX as usize {
            return Err(EngineError::LongColumn);
        }
        builder.append_value(text);
    }
    Ok(builder.finish())
}

fn encoded<'v>(values: impl Iterator<Item = Value<'v>>) -> Result<BinaryArray, EngineError> {
    let (mut builder, mut cell, mut bytes) = (arrow_array::builder::BinaryBuilder::new(), Vec::new(), 0);
    for value in values {
        if value.is_null() {
            builder.append_null();
            continue;
        }
        cell.clear();
        put_value(&mut cell, &value);
        bytes += cell.len();
        if bytes > i32::MAX as usize {
            return Err(EngineError::LongColumn);
        }
        builder.append_value(&cell);
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use assay_node_btql::ast::{Interval, Unit};

    use super::*;

    fn values(column: &ResultColumn) -> Vec<Value<'_>> {
        (0..column.array.len()).map(|row| column.value(row)).collect()
    }

    /// Returns values of each kind, and pairs that no narrower type holds.
    fn samples() -> Vec<Vec<Value<'static>>> {
        let kinds = vec![
            Value::Boolean(true),
            Value::Integer(7),
            Value::Integer(i64::MIN),
            Value::Unsigned(u64::MAX),
            Value::Float(0.5),
            Value::Text("p00000000000000000001 \"é\"".into()),
            Value::Time(1),
            Value::Stored(1),
            Value::Xact(9),
            Value::Interval(Interval { value: -7, unit: Unit::Month }),
            Value::Array("[1,null]".into()),
            Value::Object("{\"a\":1}".into()),
        ];
        let pairs = kinds.iter().flat_map(|one| kinds.iter().map(|two| vec![one.clone(), Value::Null, two.clone()]));
        pairs.chain([Vec::new(), vec![Value::Null]]).collect()
    }

    #[test]
    fn columns_hold_all_values_exactly() {
        for sample in samples() {
            let column = ResultColumn::from_values(&sample).expect("a column");
            assert_eq!(values(&column), sample, "{:?}", column.ty);
        }
    }

    #[test]
    fn columns_of_several_types_are_interleaved_exactly() {
        for sample in samples().into_iter().filter(|sample| sample.len() == 3) {
            let parts: Vec<ResultColumn> =
                sample.chunks(1).map(|value| ResultColumn::from_values(value).expect("a column")).collect();
            let parts: Vec<&ResultColumn> = parts.iter().collect();
            let column = interleaved(&parts, &[(2, 0), (0, 0), (1, 0), (2, 0)]).expect("a column");
            let expected = [&sample[2], &sample[0], &sample[1], &sample[2]].map(Clone::clone);
            assert_eq!(values(&column), expected, "{:?}", column.ty);
        }
    }

    #[test]
    fn only_times_beside_other_values_are_encoded() {
        let ty = |values: &[Value<'_>]| ResultColumn::from_values(values).expect("a column").ty;
        assert_eq!(ty(&[Value::Time(1), Value::Null]), CellType::Typed(Type::Time));
        assert_eq!(ty(&[Value::Time(1), Value::Stored(1)]), CellType::Mixed);
        assert_eq!(ty(&[Value::Text("a".into()), Value::Integer(1)]), CellType::Typed(Type::Json));
        assert_eq!(ty(&[Value::Float(0.5), Value::Integer(1)]), CellType::Typed(Type::Float));
        assert_eq!(ty(&[Value::Float(0.5), Value::Integer(1 << 60)]), CellType::Typed(Type::Json));
    }
}

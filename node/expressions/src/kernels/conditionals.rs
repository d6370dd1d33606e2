//! Conditional kernels: CASE, COALESCE, and casts that change nothing.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Datum, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow_select::zip::zip;
use assay_node_btql::ast;
use assay_node_btql::values::Value;

use super::logic;
use crate::builder::TEXT_BYTES_MAX;
use crate::column::Column;
use crate::types::{Type, is_safe};

/// Arrays of one common type, or single elements of it.
struct Piece {
    array: ArrayRef,
    is_one: bool,
}

impl Datum for Piece {
    fn get(&self) -> (&dyn Array, bool) {
        (&self.array, self.is_one)
    }
}

/// CASE: selects, for each row, the value of the first condition that holds; the last value has no condition.
pub(crate) fn choose(conditions: &[BooleanArray], values: &[Column], ty: Type, rows: usize) -> Option<Column> {
    // As long as 64 bits are enough.
    let ty = if ty == Type::Wide { Type::Int } else { ty };
    let pieces = values.iter().map(|value| piece(value, ty)).collect::<Option<Vec<_>>>()?;
    let bytes = |piece: &Piece| piece.array.get_array_memory_size().saturating_mul(if piece.is_one { rows } else { 1 });
    if pieces.iter().map(bytes).fold(0, usize::saturating_add) > TEXT_BYTES_MAX {
        return None;
    }
    let mut chosen = Chosen::Value(pieces.len().checked_sub(1)?);
    for (number, condition) in conditions.iter().enumerate().rev() {
        let count = condition.true_count();
        let is_null = |of: &Column| matches!(of, Column::Const(Value::Null));
        let stays = match &chosen {
            Chosen::Value(last) => !pieces[*last].is_one || is_null(&values[*last]),
            Chosen::Mixed(_) => true,
        };
        if count == 0 && stays {
            continue;
        }
        chosen = match &chosen {
            _ if count == rows && !pieces[number].is_one => Chosen::Value(number),
            Chosen::Value(last) => mixed(condition, &pieces[number], &pieces[*last])?,
            Chosen::Mixed(others) => mixed(condition, &pieces[number], others)?,
        };
    }
    match chosen {
        Chosen::Value(number) if !pieces[number].is_one || !conditions.is_empty() => Some(values[number].clone()),
        Chosen::Value(_) => None,
        Chosen::Mixed(piece) => Column::load(&piece.array, ty).ok(),
    }
}

/// Result of CASE so far.
enum Chosen {
    /// The value with this number for all rows. It is not copied.
    Value(usize),
    Mixed(Piece),
}

fn mixed(condition: &BooleanArray, then: &Piece, otherwise: &Piece) -> Option<Chosen> {
    Some(Chosen::Mixed(Piece { array: zip(condition, then, otherwise).ok()?, is_one: false }))
}

/// COALESCE: the first value that is not null.
pub(crate) fn coalesce(args: &[Column], ty: Type, rows: usize) -> Option<Column> {
    let (_, before) = args.split_last()?;
    let conditions: Vec<BooleanArray> = before.iter().map(|arg| logic::is_not_null(arg, rows)).collect();
    choose(&conditions, args, ty, rows)
}

fn piece(of: &Column, ty: Type) -> Option<Piece> {
    let one: ArrayRef = match (of, ty) {
        (Column::Const(value), _) => match (value, ty) {
            (Value::Null, Type::Xact | Type::Key | Type::Interval | Type::Wide | Type::Null) => return None,
            (Value::Null, _) => new_null_array(&ty.data_type(), 1),
            (Value::Boolean(boolean), Type::Bool) => Arc::new(BooleanArray::from(vec![*boolean])),
            (Value::Integer(number), Type::Int) => Arc::new(Int64Array::from(vec![*number])),
            (Value::Integer(number), Type::Float) if is_safe(*number) => {
                Arc::new(Float64Array::from(vec![*number as f64]))
            }
            (Value::Float(number), Type::Float) => Arc::new(Float64Array::from(vec![*number])),
            (Value::Text(text), Type::Text) => Arc::new(StringArray::from(vec![&**text])),
            (Value::Time(micros), Type::Time) => Arc::new(TimestampMicrosecondArray::from(vec![*micros])),
            // What a JSON text says is read again as what it was.
            (Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_), Type::Json)
            | (Value::Array(_) | Value::Object(_), Type::Json) => Arc::new(StringArray::from(vec![value.to_json()])),
            _ => return None,
        },
        _ if of.ty() == Some(ty) => {
            let array = of.array()?;
            return Some(Piece { array: array.slice(0, array.len()), is_one: false });
        }
        _ => return None,
    };
    Some(Piece { array: one, is_one: true })
}

/// Cast to the type that the column already has.
pub(super) fn cast(of: &Column, to: ast::Type) -> Option<Column> {
    let is_same = match (of, to) {
        (Column::Int(_), to) => matches!(to, ast::Type::Integer | ast::Type::Number | ast::Type::Json),
        (Column::Float(_), to) => matches!(to, ast::Type::Number | ast::Type::Json),
        (Column::Bool(_), to) => matches!(to, ast::Type::Boolean | ast::Type::Json),
        (Column::Text(_), to) => to == ast::Type::Text,
        (Column::Time(_) | Column::Stored(_), to) => matches!(to, ast::Type::Timestamp | ast::Type::Json),
        _ => false,
    };
    is_same.then(|| of.clone())
}

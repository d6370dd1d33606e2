//! Comparison kernels (D-47).

use std::cmp::Ordering;

use arrow_array::{
    Array, ArrowNativeTypeOp, ArrowPrimitiveType, BooleanArray, Float64Array, Int64Array, PrimitiveArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use assay_node_btql::bound::Function;
use assay_node_btql::values::{self, Value, equal, fraction_and_whole, number};

use super::logic;
use crate::column::{Column, key_of};
use crate::types::is_safe;

/// Rows whose truth is one word of a bitmap.
const WORD: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Op {
    pub fn of(function: &Function) -> Option<Op> {
        Some(match function {
            Function::Eq => Op::Eq,
            Function::Ne => Op::Ne,
            Function::Lt => Op::Lt,
            Function::Le => Op::Le,
            Function::Gt => Op::Gt,
            Function::Ge => Op::Ge,
            _ => return None,
        })
    }

    /// Comparison with its sides exchanged.
    fn turned(self) -> Op {
        match self {
            Op::Lt => Op::Gt,
            Op::Le => Op::Ge,
            Op::Gt => Op::Lt,
            Op::Ge => Op::Le,
            same => same,
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Op::Eq => order.is_eq(),
            Op::Ne => order.is_ne(),
            Op::Lt => order.is_lt(),
            Op::Le => order.is_le(),
            Op::Gt => order.is_gt(),
            Op::Ge => order.is_ge(),
        }
    }

    /// Compares each value of a column with a constant.
    fn with_number<T: ArrowPrimitiveType>(self, array: &PrimitiveArray<T>, constant: T::Native) -> BooleanArray {
        let values = array.values();
        let bits = match self {
            Op::Eq => packed(values, |value| value.is_eq(constant)),
            Op::Ne => packed(values, |value| value.is_ne(constant)),
            Op::Lt => packed(values, |value| value.is_lt(constant)),
            Op::Le => packed(values, |value| value.is_le(constant)),
            Op::Gt => packed(values, |value| value.is_gt(constant)),
            Op::Ge => packed(values, |value| value.is_ge(constant)),
        };
        BooleanArray::new(bits, array.nulls().cloned())
    }

    /// Compares two columns row by row.
    fn of_numbers<T: ArrowPrimitiveType>(self, left: &PrimitiveArray<T>, right: &PrimitiveArray<T>) -> BooleanArray {
        let (lefts, rights) = (left.values(), right.values());
        let bits = match self {
            Op::Eq => packed_pairs(lefts, rights, |left, right| left.is_eq(right)),
            Op::Ne => packed_pairs(lefts, rights, |left, right| left.is_ne(right)),
            Op::Lt => packed_pairs(lefts, rights, |left, right| left.is_lt(right)),
            Op::Le => packed_pairs(lefts, rights, |left, right| left.is_le(right)),
            Op::Gt => packed_pairs(lefts, rights, |left, right| left.is_gt(right)),
            Op::Ge => packed_pairs(lefts, rights, |left, right| left.is_ge(right)),
        };
        BooleanArray::new(bits, NullBuffer::union(left.nulls(), right.nulls()))
    }

    fn with_text(self, array: &StringArray, constant: &str) -> BooleanArray {
        match self {
            Op::Eq => each(array.len(), array.nulls(), |row| array.value(row) == constant),
            Op::Ne => each(array.len(), array.nulls(), |row| array.value(row) != constant),
            _ => each(array.len(), array.nulls(), |row| self.holds(array.value(row).cmp(constant))),
        }
    }

    fn of_texts(self, left: &StringArray, right: &StringArray) -> BooleanArray {
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        match self {
            Op::Eq => each(left.len(), nulls.as_ref(), |row| left.value(row) == right.value(row)),
            Op::Ne => each(left.len(), nulls.as_ref(), |row| left.value(row) != right.value(row)),
            _ => each(left.len(), nulls.as_ref(), |row| self.holds(left.value(row).cmp(right.value(row)))),
        }
    }

    /// Compares truth values; false is less than true.
    fn of_booleans(self, left: &BooleanArray, right: &BooleanArray) -> BooleanArray {
        let (lefts, rights) = (left.values(), right.values());
        let bits = match self {
            Op::Eq => !&(lefts ^ rights),
            Op::Ne => lefts ^ rights,
            Op::Lt => &!lefts & rights,
            Op::Le => &!lefts | rights,
            Op::Gt => lefts & &!rights,
            Op::Ge => lefts | &!rights,
        };
        BooleanArray::new(bits, NullBuffer::union(left.nulls(), right.nulls()))
    }

    /// Compares values of any type.
    fn of_values(self, left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
        match self {
            Op::Eq => equal(left, right),
            Op::Ne => equal(left, right).map(|equal| !equal),
            _ => values::compare(left, right).map(|order| self.holds(order)),
        }
    }
}

pub(super) fn compare(op: Op, left: &Column, right: &Column, rows: usize) -> BooleanArray {
    let found = match (left, right) {
        (Column::Const(Value::Null), _) | (_, Column::Const(Value::Null)) => Some(logic::every(None, rows)),
        (Column::Const(constant), of) => with_constant(op.turned(), of, constant),
        (of, Column::Const(constant)) => with_constant(op, of, constant),
        _ => of_arrays(op, left, right),
    };
    found.unwrap_or_else(|| (0..rows).map(|row| op.of_values(&left.value(row), &right.value(row))).collect())
}

/// `<=>`: null equals null and nothing else.
pub(super) fn same(left: &Column, right: &Column, wanted: bool, rows: usize) -> BooleanArray {
    let equal = compare(Op::Eq, left, right, rows);
    let equal = match equal.nulls() {
        Some(nulls) => equal.values() & nulls.inner(),
        None => equal.values().clone(),
    };
    let both_null = match (left.nulls(rows), right.nulls(rows)) {
        (Some(left), Some(right)) => &!left.inner() & &!right.inner(),
        _ => BooleanBuffer::new_unset(rows),
    };
    let same = &equal | &both_null;
    BooleanArray::new(if wanted { same } else { !&same }, None)
}

fn with_constant(op: Op, of: &Column, constant: &Value<'_>) -> Option<BooleanArray> {
    match (of, constant) {
        (Column::Int(array), Value::Integer(number)) => Some(op.with_number(array, *number)),
        (Column::Int(array), Value::Float(number)) => {
            let holds = |whole: i64| op.holds(fraction_and_whole(*number, whole.into()).reverse());
            Some(each(array.len(), array.nulls(), |row| holds(array.values()[row])))
        }
        (Column::Float(array), Value::Float(number)) => Some(op.with_number(array, *number)),
        (Column::Float(array), Value::Integer(number)) if is_safe(*number) => {
            Some(op.with_number(array, *number as f64))
        }
        (Column::Int(_) | Column::Float(_), Value::Text(text)) => match number(text) {
            Value::Null => None,
            number => with_constant(op, of, &number),
        },
        (Column::Text(array), Value::Text(text)) => Some(op.with_text(array, text)),
        (Column::Bool(array), Value::Boolean(boolean)) => {
            Some(op.of_booleans(array, &logic::every(Some(*boolean), array.len())))
        }
        (Column::Time(array) | Column::Stored(array), Value::Time(_) | Value::Stored(_) | Value::Text(_)) => {
            Some(op.with_number(array, constant.as_time()?))
        }
        (Column::Xact(array), _) => Some(op.with_number(array, xact_of(constant)?)),
        (Column::Key(array), _) => Some(op.with_number(array, key_of(constant)?)),
        (Column::Json(texts), _) => {
            Some(texts.iter().map(|text| op.of_values(&Value::read(text?), constant)).collect())
        }
        _ => None,
    }
}

/// Transaction that a constant equals.
fn xact_of(constant: &Value<'_>) -> Option<u64> {
    let found = match constant {
        Value::Xact(xact) => return Some(*xact),
        Value::Text(text) => number(text),
        Value::Integer(number) => Value::Integer(*number),
        Value::Unsigned(number) => Value::Unsigned(*number),
        _ => return None,
    };
    u64::try_from(found.as_whole()?).ok()
}

fn of_arrays(op: Op, left: &Column, right: &Column) -> Option<BooleanArray> {
    match (left, right) {
        (Column::Int(left), Column::Int(right)) => Some(op.of_numbers(left, right)),
        (Column::Float(left), Column::Float(right)) => Some(op.of_numbers(left, right)),
        (Column::Int(wholes), Column::Float(floats)) => Some(mixed(op, wholes, floats)),
        (Column::Float(floats), Column::Int(wholes)) => Some(mixed(op.turned(), wholes, floats)),
        (Column::Text(left), Column::Text(right)) => Some(op.of_texts(left, right)),
        (Column::Bool(left), Column::Bool(right)) => Some(op.of_booleans(left, right)),
        (Column::Time(left) | Column::Stored(left), Column::Time(right) | Column::Stored(right)) => {
            Some(op.of_numbers(left, right))
        }
        (Column::Xact(left), Column::Xact(right)) | (Column::Key(left), Column::Key(right)) => {
            Some(op.of_numbers(left, right))
        }
        _ => None,
    }
}

/// Compares a whole number with a float exactly, even if no float equals the whole number.
fn mixed(op: Op, wholes: &Int64Array, floats: &Float64Array) -> BooleanArray {
    let nulls = NullBuffer::union(wholes.nulls(), floats.nulls());
    each(wholes.len(), nulls.as_ref(), |row| {
        op.holds(fraction_and_whole(floats.values()[row], wholes.values()[row].into()).reverse())
    })
}

/// Truth of a condition for each value, sixty-four of them at a time, which the compiler vectorizes.
fn packed<T: Copy>(values: &[T], holds: impl Fn(T) -> bool) -> BooleanBuffer {
    let words = values.chunks(WORD).map(|chunk| word(chunk.iter().map(|value| holds(*value))));
    BooleanBuffer::new(words.collect(), 0, values.len())
}

/// Truth of a condition for each pair of values.
fn packed_pairs<T: Copy>(left: &[T], right: &[T], holds: impl Fn(T, T) -> bool) -> BooleanBuffer {
    assert_eq!(left.len(), right.len(), "columns of one batch");
    let chunks = left.chunks(WORD).zip(right.chunks(WORD));
    let words = chunks.map(|(left, right)| word(left.iter().zip(right).map(|(left, right)| holds(*left, *right))));
    BooleanBuffer::new(words.collect(), 0, left.len())
}

fn word(truths: impl Iterator<Item = bool>) -> u64 {
    truths.enumerate().fold(0, |word, (bit, truth)| word | u64::from(truth) << bit)
}

fn each(rows: usize, nulls: Option<&NullBuffer>, holds: impl Fn(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(rows, holds), nulls.cloned())
}

#[cfg(test)]
mod tests;

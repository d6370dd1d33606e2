//! Comparison kernels (D-47).

use std::cmp::Ordering;

use arrow::array::{
    Array, BooleanArray, Datum, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use assay_node_btql::bound::Function;
use assay_node_btql::values::{self, Value, equal, fraction_and_whole, number};

use super::logic;
use crate::column::{Column, key_of};
use crate::types::is_safe;

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

    fn kernel(self, left: &dyn Datum, right: &dyn Datum) -> Option<BooleanArray> {
        let kernel = match self {
            Op::Eq => cmp::eq,
            Op::Ne => cmp::neq,
            Op::Lt => cmp::lt,
            Op::Le => cmp::lt_eq,
            Op::Gt => cmp::gt,
            Op::Ge => cmp::gt_eq,
        };
        kernel(left, right).ok()
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
        (Column::Int(array), Value::Integer(number)) => op.kernel(array, &Int64Array::new_scalar(*number)),
        (Column::Int(array), Value::Float(number)) => {
            let holds = |whole: i64| op.holds(fraction_and_whole(*number, whole.into()).reverse());
            Some(each(array.len(), array.nulls(), |row| holds(array.values()[row])))
        }
        (Column::Float(array), Value::Float(number)) => op.kernel(array, &Float64Array::new_scalar(*number)),
        (Column::Float(array), Value::Integer(number)) if is_safe(*number) => {
            op.kernel(array, &Float64Array::new_scalar(*number as f64))
        }
        (Column::Int(_) | Column::Float(_), Value::Text(text)) => match number(text) {
            Value::Null => None,
            number => with_constant(op, of, &number),
        },
        (Column::Text(array), Value::Text(text)) => op.kernel(array, &StringArray::new_scalar(&**text)),
        (Column::Bool(array), Value::Boolean(boolean)) => op.kernel(array, &BooleanArray::new_scalar(*boolean)),
        (Column::Time(array) | Column::Stored(array), Value::Time(_) | Value::Stored(_) | Value::Text(_)) => {
            op.kernel(array, &TimestampMicrosecondArray::new_scalar(constant.as_time()?))
        }
        (Column::Xact(array), _) => op.kernel(array, &UInt64Array::new_scalar(xact_of(constant)?)),
        (Column::Key(array), _) => op.kernel(array, &UInt64Array::new_scalar(key_of(constant)?)),
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
        (Column::Int(left), Column::Int(right)) => op.kernel(left, right),
        (Column::Float(left), Column::Float(right)) => op.kernel(left, right),
        (Column::Int(wholes), Column::Float(floats)) => Some(mixed(op, wholes, floats)),
        (Column::Float(floats), Column::Int(wholes)) => Some(mixed(op.turned(), wholes, floats)),
        (Column::Text(left), Column::Text(right)) => op.kernel(left, right),
        (Column::Bool(left), Column::Bool(right)) => op.kernel(left, right),
        (Column::Time(left) | Column::Stored(left), Column::Time(right) | Column::Stored(right)) => {
            op.kernel(left, right)
        }
        (Column::Xact(left), Column::Xact(right)) | (Column::Key(left), Column::Key(right)) => op.kernel(left, right),
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

fn each(rows: usize, nulls: Option<&NullBuffer>, holds: impl Fn(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(rows, holds), nulls.cloned())
}

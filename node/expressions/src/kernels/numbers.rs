//! Arithmetic kernels. If a result does not fit exactly into its array, all rows are left to the scalar path.

use std::borrow::Cow;

use arrow_array::{Array, Float64Array, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use assay_node_btql::bound::Function;
use assay_node_btql::values::{SAFE, Value};

use crate::column::Column;
use crate::types::is_safe;

const SAFE_FLOAT: f64 = SAFE as f64;

/// Operand.
enum Side<'c, T: Copy> {
    One(T),
    Each(Cow<'c, [T]>, Option<&'c NullBuffer>),
}

impl<T: Copy> Side<'_, T> {
    fn at(&self, row: usize) -> T {
        match self {
            Side::One(value) => *value,
            Side::Each(values, _) => values[row],
        }
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Side::One(_) => None,
            Side::Each(_, nulls) => *nulls,
        }
    }
}

pub(super) fn arithmetic(function: &Function, left: &Column, right: &Column, rows: usize) -> Option<Column> {
    if let (Some(left), Some(right)) = (ints(left), ints(right)) {
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        return match function {
            Function::Add => of_ints(nulls, rows, |row| left.at(row).checked_add(right.at(row))),
            Function::Sub => of_ints(nulls, rows, |row| left.at(row).checked_sub(right.at(row))),
            Function::Mul => of_ints(nulls, rows, |row| left.at(row).checked_mul(right.at(row))),
            Function::Mod => {
                let nulls = null_by_zero(nulls, rows, |row| right.at(row) == 0);
                // Of the least number by -1 it is 0, which 64 bits hold although the quotient is not in them.
                of_ints(nulls, rows, |row| left.at(row).checked_rem(right.at(row)).or(Some(0)))
            }
            _ => {
                let nulls = null_by_zero(nulls, rows, |row| right.at(row) == 0);
                of_floats(nulls, rows, |row| left.at(row) as f64 / right.at(row) as f64)
            }
        };
    }
    let (left, right) = (floats(left)?, floats(right)?);
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    match function {
        Function::Add => of_floats(nulls, rows, |row| left.at(row) + right.at(row)),
        Function::Sub => of_floats(nulls, rows, |row| left.at(row) - right.at(row)),
        Function::Mul => of_floats(nulls, rows, |row| left.at(row) * right.at(row)),
        _ => {
            let nulls = null_by_zero(nulls, rows, |row| right.at(row) == 0.0);
            match function {
                Function::Div => of_floats(nulls, rows, |row| left.at(row) / right.at(row)),
                _ => of_floats(nulls, rows, |row| left.at(row) % right.at(row)),
            }
        }
    }
}

fn ints(of: &Column) -> Option<Side<'_, i64>> {
    match of {
        Column::Int(array) => Some(Side::Each(Cow::Borrowed(array.values()), array.nulls())),
        Column::Const(Value::Integer(number)) => Some(Side::One(*number)),
        _ => None,
    }
}

/// Reads a column as floats, if that loses nothing.
fn floats(of: &Column) -> Option<Side<'_, f64>> {
    match of {
        Column::Float(array) => Some(Side::Each(Cow::Borrowed(array.values()), array.nulls())),
        Column::Const(Value::Float(number)) => Some(Side::One(*number)),
        Column::Int(array) if array.values().iter().all(|number| is_safe(*number)) => {
            let floats = array.values().iter().map(|number| *number as f64);
            Some(Side::Each(floats.collect(), array.nulls()))
        }
        Column::Const(Value::Integer(number)) if is_safe(*number) => Some(Side::One(*number as f64)),
        _ => None,
    }
}

fn is_null(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_some_and(|nulls| nulls.is_null(row))
}

/// Divides; division by zero is null (D-62).
fn null_by_zero(nulls: Option<NullBuffer>, rows: usize, is_zero: impl Fn(usize) -> bool) -> Option<NullBuffer> {
    let divisible = NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| !is_zero(row)));
    NullBuffer::union(nulls.as_ref(), Some(&divisible).filter(|divisible| divisible.null_count() > 0))
}

fn of_ints(nulls: Option<NullBuffer>, rows: usize, of: impl Fn(usize) -> Option<i64>) -> Option<Column> {
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        match of(row) {
            Some(value) => values.push(value),
            // What is behind a null may be any number.
            None if is_null(nulls.as_ref(), row) => values.push(0),
            None => return None,
        }
    }
    Some(Column::Int(Int64Array::new(ScalarBuffer::from(values), nulls)))
}

fn of_floats(nulls: Option<NullBuffer>, rows: usize, of: impl Fn(usize) -> f64) -> Option<Column> {
    // No negative zero.
    let values: Vec<f64> = (0..rows).map(|row| of(row) + 0.0).collect();
    // Up to here a float is exact where both sides are whole; beyond, whole numbers are counted with. What is no number is
    // not within.
    let is_exact = |(row, value): (usize, &f64)| value.abs() <= SAFE_FLOAT || is_null(nulls.as_ref(), row);
    let are_exact = values.iter().enumerate().all(is_exact);
    are_exact.then(|| Column::Float(Float64Array::new(ScalarBuffer::from(values), nulls)))
}

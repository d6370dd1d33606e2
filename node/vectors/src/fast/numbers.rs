//! `+ - * / %` of numbers. Where a result leaves what an array of its type holds exactly, all rows are left to those who
//! compute them one by one.

use arrow::array::{Array, Float64Array, Int64Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use assay_node_btql::bound::Function;
use assay_node_btql::values::{SAFE, Value};

use crate::column::Column;
use crate::types::is_safe;

const SAFE_FLOAT: f64 = SAFE as f64;

/// One side.
enum Side<'c, T: Copy> {
    One(T),
    Each(&'c [T], Option<&'c NullBuffer>),
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
        return match function {
            Function::Add => of_ints(&left, &right, rows, i64::checked_add),
            Function::Sub => of_ints(&left, &right, rows, i64::checked_sub),
            Function::Mul => of_ints(&left, &right, rows, i64::checked_mul),
            Function::Mod => remainder(&left, &right, rows),
            _ => quotient(&left, &right, rows),
        };
    }
    of_floats(function, &floats(left)?, &floats(right)?, rows)
}

fn ints(of: &Column) -> Option<Side<'_, i64>> {
    match of {
        Column::Int(array) => Some(Side::Each(array.values(), array.nulls())),
        Column::Const(Value::Integer(number)) => Some(Side::One(*number)),
        _ => None,
    }
}

/// Numbers that are floats, or may as well be.
fn floats(of: &Column) -> Option<Side2<'_>> {
    match of {
        Column::Float(array) => Some(Side2::Float(Side::Each(array.values(), array.nulls()))),
        Column::Const(Value::Float(number)) => Some(Side2::Float(Side::One(*number))),
        Column::Int(array) if array.iter().flatten().all(is_safe) => {
            Some(Side2::Int(Side::Each(array.values(), array.nulls())))
        }
        Column::Const(Value::Integer(number)) if is_safe(*number) => Some(Side2::Int(Side::One(*number))),
        _ => None,
    }
}

enum Side2<'c> {
    Float(Side<'c, f64>),
    Int(Side<'c, i64>),
}

impl Side2<'_> {
    fn at(&self, row: usize) -> f64 {
        match self {
            Side2::Float(side) => side.at(row),
            Side2::Int(side) => side.at(row) as f64,
        }
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Side2::Float(side) => side.nulls(),
            Side2::Int(side) => side.nulls(),
        }
    }
}

fn is_valid(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

fn of_ints(
    left: &Side<'_, i64>,
    right: &Side<'_, i64>,
    rows: usize,
    of: fn(i64, i64) -> Option<i64>,
) -> Option<Column> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        match of(left.at(row), right.at(row)) {
            Some(value) => values.push(value),
            // What is behind a null may be any number.
            None if !is_valid(nulls.as_ref(), row) => values.push(0),
            None => return None,
        }
    }
    Some(Column::Int(Int64Array::new(ScalarBuffer::from(values), nulls)))
}

fn remainder(left: &Side<'_, i64>, right: &Side<'_, i64>, rows: usize) -> Option<Column> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let value = |row: usize| {
        let right = right.at(row);
        (right != 0 && is_valid(nulls.as_ref(), row)).then(|| left.at(row).wrapping_rem(right))
    };
    Some(Column::Int((0..rows).map(value).collect()))
}

/// D-62: real, and null by zero.
fn quotient(left: &Side<'_, i64>, right: &Side<'_, i64>, rows: usize) -> Option<Column> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let value = |row: usize| {
        let right = right.at(row);
        (right != 0 && is_valid(nulls.as_ref(), row)).then(|| left.at(row) as f64 / right as f64 + 0.0)
    };
    Some(Column::Float((0..rows).map(value).collect()))
}

fn of_floats(function: &Function, left: &Side2<'_>, right: &Side2<'_>, rows: usize) -> Option<Column> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let by_zero = matches!(function, Function::Div | Function::Mod);
    let of = match function {
        Function::Add => |left: f64, right: f64| left + right,
        Function::Sub => |left: f64, right: f64| left - right,
        Function::Mul => |left: f64, right: f64| left * right,
        Function::Div => |left: f64, right: f64| left / right,
        _ => |left: f64, right: f64| left % right,
    };
    let mut values = Vec::with_capacity(rows);
    let mut valid = Vec::with_capacity(rows);
    for row in 0..rows {
        let (left, right) = (left.at(row), right.at(row));
        let is_there = is_valid(nulls.as_ref(), row) && !(by_zero && right == 0.0);
        // No negative zero.
        let value = of(left, right) + 0.0;
        // Up to here a float is exact where both sides are whole; beyond, whole numbers are counted with.
        if is_there && !(value.abs() <= SAFE_FLOAT) {
            return None;
        }
        valid.push(is_there);
        values.push(if is_there { value } else { 0.0 });
    }
    let nulls = NullBuffer::from(valid);
    Some(Column::Float(Float64Array::new(ScalarBuffer::from(values), (nulls.null_count() > 0).then_some(nulls))))
}

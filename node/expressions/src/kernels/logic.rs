//! Three-valued logic kernels: AND, OR, NOT and null tests (D-48).

use arrow::array::{Array, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{and_kleene, or_kleene};

use crate::Error;
use crate::column::Column;

/// Truth of each row of a column (D-50).
pub(crate) fn truth(of: &Column, rows: usize) -> BooleanArray {
    match of {
        Column::Bool(array) => array.clone(),
        Column::Const(value) => every(value.truth(), rows),
        Column::Int(array) => {
            let is = BooleanBuffer::collect_bool(array.len(), |row| array.values()[row] != 0);
            BooleanArray::new(is, array.nulls().cloned())
        }
        Column::Float(array) => {
            let is = BooleanBuffer::collect_bool(array.len(), |row| array.values()[row] != 0.0);
            BooleanArray::new(is, array.nulls().cloned())
        }
        Column::Json(_) | Column::Values(_) => (0..rows).map(|row| of.value(row).truth()).collect(),
        _ => every(None, rows),
    }
}

/// Array with the same truth for every row.
pub(crate) fn every(truth: Option<bool>, rows: usize) -> BooleanArray {
    let nulls = truth.is_none().then(|| NullBuffer::new_null(rows));
    BooleanArray::new(if truth == Some(true) { BooleanBuffer::new_set(rows) } else { unset(rows) }, nulls)
}

fn unset(rows: usize) -> BooleanBuffer {
    BooleanBuffer::new_unset(rows)
}

/// Whether a condition holds: null is not enough.
pub(crate) fn is_true(of: &Column, rows: usize) -> BooleanArray {
    let truth = truth(of, rows);
    match truth.nulls() {
        Some(nulls) => BooleanArray::new(truth.values() & nulls.inner(), None),
        None => truth,
    }
}

/// Combines two conditions by AND or by OR.
pub(crate) fn both(all: bool, left: &BooleanArray, right: &BooleanArray) -> Result<BooleanArray, Error> {
    let together = if all { and_kleene } else { or_kleene };
    together(left, right).map_err(|_| Error::OtherLength { wanted: left.len(), found: right.len() })
}

/// Whether every row has the given truth.
pub(crate) fn is_every(of: &BooleanArray, truth: bool) -> bool {
    of.null_count() == 0 && of.true_count() == if truth { of.len() } else { 0 }
}

pub(super) fn not(of: &Column, rows: usize) -> BooleanArray {
    let truth = truth(of, rows);
    BooleanArray::new(!truth.values(), truth.nulls().cloned())
}

pub(super) fn is_null(of: &Column, rows: usize) -> BooleanArray {
    BooleanArray::new(of.nulls(rows).map_or_else(|| unset(rows), |nulls| !nulls.inner()), None)
}

pub(super) fn is_not_null(of: &Column, rows: usize) -> BooleanArray {
    BooleanArray::new(of.nulls(rows).map_or_else(|| BooleanBuffer::new_set(rows), |nulls| nulls.inner().clone()), None)
}

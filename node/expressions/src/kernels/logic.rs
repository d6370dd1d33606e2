//! Three-valued logic kernels: AND, OR, NOT and null tests (D-48).

use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

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

/// Combines two conditions by AND or by OR, in three-valued logic.
pub(crate) fn both(all: bool, left: &BooleanArray, right: &BooleanArray) -> Result<BooleanArray, Error> {
    if left.len() != right.len() {
        return Err(Error::OtherLength { wanted: left.len(), found: right.len() });
    }
    let values = if all { left.values() & right.values() } else { left.values() | right.values() };
    let nulls = NullBuffer::union(left.nulls(), right.nulls()).map(|either| {
        // A side that is false decides an AND alone, one that is true an OR.
        let decided = &deciding(all, left) | &deciding(all, right);
        NullBuffer::new(either.inner() | &decided)
    });
    Ok(BooleanArray::new(values, nulls))
}

/// Rows where one side of an AND or an OR decides the result, whatever the other side is.
fn deciding(all: bool, side: &BooleanArray) -> BooleanBuffer {
    let values = if all { !side.values() } else { side.values().clone() };
    match side.nulls() {
        Some(nulls) => &values & nulls.inner(),
        None => values,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_decides_outweighs_null() {
        let truths = [Some(true), Some(false), None];
        let pairs: Vec<_> = truths.iter().flat_map(|left| truths.iter().map(|right| (*left, *right))).collect();
        let left: BooleanArray = pairs.iter().map(|(left, _)| *left).collect();
        let right: BooleanArray = pairs.iter().map(|(_, right)| *right).collect();
        for all in [true, false] {
            let together = both(all, &left, &right).expect("conditions of one length");
            for (row, (left, right)) in pairs.iter().enumerate() {
                let decides = Some(!all);
                let wanted = match (*left, *right) {
                    (left, right) if left == decides || right == decides => decides,
                    (None, _) | (_, None) => None,
                    _ => Some(all),
                };
                let found = together.is_valid(row).then(|| together.value(row));
                assert_eq!(found, wanted, "{left:?} {} {right:?}", if all { "AND" } else { "OR" });
            }
        }
        assert!(both(true, &left, &every(None, 2)).is_err());
    }
}

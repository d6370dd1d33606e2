//! Batch of rows with their groups, and loops over its rows with values.

use std::borrow::Cow;

use crate::Type;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::NullBuffer;
use assay_node_btql::values::Value;

use super::{RowPosition, RowPositions, value_at};

/// Rows whose validity stands in one word.
pub(super) const BLOCK: usize = u64::BITS as usize;

/// Digits that are a number in any case.
const DIGITS_MAX: usize = 300;

#[derive(Debug)]
pub(super) struct GroupedBatch<'b> {
    pub groups: &'b [u32],
    /// Group of all rows, if they are of one group.
    pub only: Option<u32>,
    pub array: &'b ArrayRef,
    /// Not the one of nothing but nulls.
    pub ty: Type,
    pub places: RowPositions<'b>,
}

/// The group that all rows are of. Where rows come in the order of time, groups by the day mostly come so.
pub(super) fn only_group(count: usize, groups: &[u32]) -> Option<u32> {
    let first = *groups.first()?;
    (count == 1 || groups.iter().all(|group| *group == first)).then_some(first)
}

impl<'b> GroupedBatch<'b> {
    pub fn rows(&self) -> usize {
        self.groups.len()
    }

    /// None where there are none.
    pub fn nulls(&self) -> Option<&'b NullBuffer> {
        self.array.nulls().filter(|nulls| nulls.null_count() > 0)
    }

    pub fn floats(&self) -> &'b [f64] {
        self.array.as_primitive::<Float64Type>().values()
    }

    pub fn place(&self, row: usize) -> RowPosition {
        RowPosition { key: self.places.keys[row], object: self.places.object }
    }

    /// Each row whose value is not null.
    #[inline(always)]
    pub fn each_present(&self, mut of: impl FnMut(usize)) {
        let (rows, nulls) = (self.rows(), self.nulls());
        match self.ty {
            Type::Json => {
                let texts = self.array.as_string::<i32>();
                each_valid(nulls, rows, |row| {
                    if is_present(texts.value(row)) {
                        of(row);
                    }
                });
            }
            Type::Float if !self.floats().iter().fold(true, |finite, float| finite & float.is_finite()) => {
                let floats = self.floats();
                each_valid(nulls, rows, |row| {
                    if floats[row].is_finite() {
                        of(row);
                    }
                });
            }
            Type::Interval => self.each_value(|row, _| of(row)),
            _ => each_valid(nulls, rows, of),
        }
    }

    /// Each value that is not null, with its row.
    pub fn each_value(&self, mut of: impl FnMut(usize, Value<'_>)) {
        let (rows, nulls) = (self.rows(), self.nulls());
        match self.ty {
            Type::Json => {
                let texts = self.array.as_string::<i32>();
                each_valid(nulls, rows, |row| match Value::read(texts.value(row)) {
                    Value::Null => {}
                    value => of(row, value),
                });
            }
            Type::Text => {
                let texts = self.array.as_string::<i32>();
                each_valid(nulls, rows, |row| of(row, Value::Text(Cow::Borrowed(texts.value(row)))));
            }
            _ => each_valid(nulls, rows, |row| match value_at(self.array, self.ty, row) {
                Value::Null => {}
                value => of(row, value),
            }),
        }
    }

    /// Each number, also of booleans (D-51). What is no number is left out (D-75).
    #[inline(always)]
    pub fn each_number(&self, mut of: impl FnMut(usize, f64)) {
        let (rows, nulls) = (self.rows(), self.nulls());
        match self.ty {
            Type::Bool => {
                let bools = self.array.as_boolean();
                each_valid(nulls, rows, |row| of(row, f64::from(u8::from(bools.value(row)))));
            }
            Type::Int => {
                let ints = self.array.as_primitive::<Int64Type>().values();
                each_valid(nulls, rows, |row| of(row, ints[row] as f64));
            }
            Type::Float => {
                let floats = self.floats();
                each_valid(nulls, rows, |row| {
                    if floats[row].is_finite() {
                        of(row, floats[row]);
                    }
                });
            }
            Type::Wide => {
                let wides = self.array.as_primitive::<Decimal128Type>().values();
                each_valid(nulls, rows, |row| of(row, wides[row] as f64));
            }
            Type::Json => {
                let texts: &StringArray = self.array.as_string::<i32>();
                each_valid(nulls, rows, |row| {
                    if let Some(number) = Value::read(texts.value(row)).as_f64() {
                        of(row, number);
                    }
                });
            }
            Type::Null | Type::Text | Type::Time | Type::Created | Type::Xact | Type::Key | Type::Interval => {}
        }
    }
}

/// Whether a JSON text is that of anything but null.
fn is_present(json: &str) -> bool {
    let is_short = || json.len() <= DIGITS_MAX && !json.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    match json.as_bytes().first() {
        Some(b'"' | b'{' | b'[' | b't' | b'f') => true,
        // It may be too large to be a number.
        Some(b'-' | b'0'..=b'9') => is_short() || !Value::read(json).is_null(),
        _ => false,
    }
}

/// Each row that is not null.
#[inline(always)]
pub(super) fn each_valid(nulls: Option<&NullBuffer>, rows: usize, mut of: impl FnMut(usize)) {
    let Some(nulls) = nulls else {
        (0..rows).for_each(of);
        return;
    };
    for (block, mut valid) in nulls.inner().bit_chunks().iter_padded().enumerate() {
        let from = block * BLOCK;
        if valid == u64::MAX {
            (from..from + BLOCK).for_each(&mut of);
            continue;
        }
        while valid != 0 {
            of(from + valid.trailing_zeros() as usize);
            valid &= valid - 1;
        }
    }
}

/// All values in pieces, with another one in the place of those that are null: a loop over them needs no condition.
#[inline(always)]
pub(super) fn each_block<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, instead: T, mut of: impl FnMut(&[T])) {
    let Some(nulls) = nulls else {
        of(values);
        return;
    };
    let mut filled = [instead; BLOCK];
    for (valid, values) in nulls.inner().bit_chunks().iter_padded().zip(values.chunks(BLOCK)) {
        if valid == u64::MAX {
            of(values);
        } else if valid != 0 {
            let filled = &mut filled[..values.len()];
            for (bit, (to, value)) in filled.iter_mut().zip(values).enumerate() {
                *to = if valid >> bit & 1 == 1 { *value } else { instead };
            }
            of(filled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_all_that_is_valid() {
        for rows in [0, 1, 63, 64, 65, 128, 200] {
            let values: Vec<i64> = (1..=rows).collect();
            for step in [1, 2, 3, 70] {
                let valid: Vec<bool> = (0..rows).map(|row| row % step == 0 || row > 130).collect();
                let expected: Vec<i64> = values.iter().zip(&valid).map(|(v, is)| if *is { *v } else { 0 }).collect();
                let nulls = NullBuffer::from([vec![false; 5], valid.clone()].concat()).slice(5, valid.len());
                let mut found = Vec::new();
                each_block(&values, Some(&nulls), 0, |block| found.extend_from_slice(block));
                // A block of nothing but nulls is left out.
                found.retain(|value| *value != 0);
                let expected: Vec<i64> = expected.into_iter().filter(|value| *value != 0).collect();
                assert_eq!(found, expected, "{rows} rows, one of {step}");
                let mut one_by_one = Vec::new();
                each_valid(Some(&nulls), values.len(), |row| one_by_one.push(values[row]));
                assert_eq!(one_by_one, expected);
            }
        }
    }
}

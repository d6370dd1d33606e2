//! Codes for the values of a batch: rows with identical spellings have the same code.
//!
//! A batch has few distinct values, so the costly comparison of values is done once per code.

use std::hash::Hash;

use ahash::AHashMap;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray};
use assay_node_expressions::Type;

/// Upper bound of the pairs of codes for which a table is used.
const TABLE_MAX: usize = 1 << 16;
const NONE: u32 = u32::MAX;

/// Code of each row, and the first row of each code.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    pub of_rows: Vec<u32>,
    pub first: Vec<u32>,
}

impl Codes {
    pub fn of(array: &ArrayRef, ty: Type) -> Codes {
        match ty {
            Type::Null => Codes::same(array.len()),
            Type::Bool => {
                let bools = array.as_boolean();
                numbered(array, (0..array.len()).map(|row| bools.value(row)))
            }
            Type::Int => primitive::<Int64Type, _>(array.as_primitive(), |value| value),
            Type::Float => primitive::<Float64Type, _>(array.as_primitive(), f64::to_bits),
            Type::Wide => primitive::<Decimal128Type, _>(array.as_primitive(), |value| value),
            Type::Time | Type::Created => primitive::<TimestampMicrosecondType, _>(array.as_primitive(), |value| value),
            Type::Xact | Type::Key => primitive::<UInt64Type, _>(array.as_primitive(), |value| value),
            Type::Text if let Some(dictionary) = array.as_dictionary_opt::<Int32Type>() => of_dictionary(dictionary),
            Type::Text | Type::Interval | Type::Json => {
                let texts = array.as_string::<i32>();
                numbered(array, (0..array.len()).map(|row| texts.value(row)))
            }
        }
    }

    /// Returns codes of rows with equal values.
    pub fn same(rows: usize) -> Codes {
        Codes { of_rows: vec![0; rows], first: if rows == 0 { Vec::new() } else { vec![0] } }
    }

    /// Combines the codes of several columns into one code for each row.
    pub fn together(columns: Vec<Codes>, rows: usize) -> Codes {
        columns.into_iter().reduce(pairs).unwrap_or_else(|| Codes::same(rows))
    }
}

fn primitive<T: ArrowPrimitiveType, K: Hash + Eq + Copy>(
    array: &PrimitiveArray<T>,
    key: impl Fn(T::Native) -> K,
) -> Codes {
    numbered(array, array.values().iter().map(|value| key(*value)))
}

/// Uses the indexes of a dictionary as codes, without unused entries.
fn of_dictionary(dictionary: &DictionaryArray<Int32Type>) -> Codes {
    let mut codes = Codes { of_rows: Vec::with_capacity(dictionary.len()), first: Vec::new() };
    // The last entry is for null.
    let mut known = vec![NONE; dictionary.values().len() + 1];
    let null = dictionary.values().len();
    let nulls = dictionary.keys().nulls().filter(|nulls| nulls.null_count() > 0);
    for (row, place) in dictionary.keys().values().iter().enumerate() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        let place = if is_null { null } else { *place as usize };
        if known[place] == NONE {
            known[place] = codes.first.len() as u32;
            codes.first.push(row as u32);
        }
        codes.of_rows.push(known[place]);
    }
    codes
}

/// Assigns codes to values. `values` has a value for each row, which is arbitrary for null rows.
fn numbered<K: Hash + Eq + Copy>(array: &dyn Array, values: impl Iterator<Item = K>) -> Codes {
    let mut codes = Codes { of_rows: Vec::with_capacity(array.len()), first: Vec::new() };
    let mut known: AHashMap<K, u32> = AHashMap::new();
    let mut null = NONE;
    // Adjacent rows often have equal values.
    let mut last: Option<(K, u32)> = None;
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    for (row, value) in values.enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            if null == NONE {
                null = codes.first.len() as u32;
                codes.first.push(row as u32);
            }
            codes.of_rows.push(null);
            continue;
        }
        let code = match last {
            Some((before, code)) if before == value => code,
            _ => *known.entry(value).or_insert_with(|| {
                codes.first.push(row as u32);
                codes.first.len() as u32 - 1
            }),
        };
        last = Some((value, code));
        codes.of_rows.push(code);
    }
    codes
}

fn pairs(left: Codes, right: Codes) -> Codes {
    if left.first.len() <= 1 {
        return right;
    }
    if right.first.len() <= 1 {
        return left;
    }
    let width = right.first.len();
    let mut codes = Codes { of_rows: left.of_rows, first: Vec::new() };
    let next = |first: &mut Vec<u32>, row: usize| {
        first.push(row as u32);
        first.len() as u32 - 1
    };
    let each = codes.of_rows.iter_mut().zip(&right.of_rows).enumerate();
    if left.first.len() * width <= TABLE_MAX {
        let mut known = vec![NONE; left.first.len() * width];
        for (row, (code, other)) in each {
            let place = &mut known[*code as usize * width + *other as usize];
            if *place == NONE {
                *place = next(&mut codes.first, row);
            }
            *code = *place;
        }
    } else {
        let mut known: AHashMap<u64, u32> = AHashMap::new();
        for (row, (code, other)) in each {
            let pair = u64::from(*code) << 32 | u64::from(*other);
            *code = *known.entry(pair).or_insert_with(|| next(&mut codes.first, row));
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};

    use super::*;

    fn ints(of: Vec<Option<i64>>) -> Codes {
        Codes::of(&(Arc::new(Int64Array::from(of)) as ArrayRef), Type::Int)
    }

    #[test]
    fn rows_that_are_alike_have_one_code() {
        let codes = ints(vec![Some(7), None, Some(7), Some(0), None, Some(0)]);
        assert_eq!((codes.of_rows, codes.first), (vec![0, 1, 0, 2, 1, 2], vec![0, 1, 3]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some(""), None, Some("a")]));
        assert_eq!(Codes::of(&texts, Type::Text).of_rows, [0, 1, 2, 0]);
    }

    #[test]
    fn several_columns_have_one_code_for_what_is_alike_in_all() {
        let few = Codes::together(
            vec![ints(vec![Some(1), Some(1), Some(2), Some(1)]), ints(vec![Some(5), None, None, Some(5)])],
            4,
        );
        assert_eq!((few.of_rows, few.first), (vec![0, 1, 2, 0], vec![0, 1, 2]));
        // This has more pairs than a table has room for.
        let many = |step: i64| ints((0..3000).map(|row| Some(row / step)).collect());
        let codes = Codes::together(vec![many(3), many(2)], 3000);
        let mut expected = std::collections::BTreeMap::new();
        for row in 0..3000_i64 {
            let next = expected.len() as u32;
            let code = *expected.entry((row / 3, row / 2)).or_insert(next);
            assert_eq!(codes.of_rows[row as usize], code, "row {row}");
        }
        assert_eq!(codes.first.len(), expected.len());
        assert_eq!(Codes::together(Vec::new(), 3).of_rows, [0, 0, 0]);
    }
}

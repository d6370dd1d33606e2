//! Compact form of cached columns, which saves memory at low cost.
//!
//! - Texts with few distinct values become a dictionary: each text once, and a position for each row. Queries group and
//!   filter mostly by such columns, and spans of a trace are adjacent.
//! - Small integers, including positions in dictionaries, take only as many bytes as the largest of them needs.
//!
//! Readers get 64-bit integers and 32-bit positions of the wanted rows.

use std::sync::Arc;

use ahash::AHashMap;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray};
use assay_storage_segments::{Form, Kind, Want};

/// Lower bound of the rows per distinct text for a dictionary.
const ROWS_PER_TEXT_MIN: usize = 8;

/// Returns the compact form of a column.
pub(super) fn compact(want: &Want, column: ArrayRef) -> ArrayRef {
    let smaller = match want {
        Want::Path(_, Form::Typed(Kind::Text)) | Want::RootSpanId => dictionary(column.as_string()),
        Want::Path(_, Form::Typed(Kind::Int)) => narrow(&column),
        _ => None,
    };
    smaller.unwrap_or(column)
}

/// Returns a column in the form that readers expect.
pub(super) fn widened(column: ArrayRef) -> ArrayRef {
    if let Some(short) = column.as_primitive_opt::<Int16Type>() {
        return Arc::new(short.unary::<_, Int64Type>(i64::from));
    }
    if let Some(short) = column.as_primitive_opt::<Int32Type>() {
        return Arc::new(short.unary::<_, Int64Type>(i64::from));
    }
    if let Some(short) = column.as_dictionary_opt::<Int16Type>() {
        let places = short.keys().unary::<_, Int32Type>(i32::from);
        let wide = DictionaryArray::try_new(places, Arc::clone(short.values()));
        return Arc::new(wide.expect("the same places in the same texts"));
    }
    column
}

/// Converts integers to the smallest type that holds all of them.
fn narrow(column: &ArrayRef) -> Option<ArrayRef> {
    let numbers = column.as_primitive_opt::<Int64Type>()?;
    if let Ok(short) = numbers.try_unary::<_, Int16Type, _>(i16::try_from) {
        return Some(Arc::new(short));
    }
    let short = numbers.try_unary::<_, Int32Type, _>(i32::try_from).ok()?;
    Some(Arc::new(short))
}

fn dictionary(texts: &StringArray) -> Option<ArrayRef> {
    let texts_max = texts.len() / ROWS_PER_TEXT_MIN;
    let mut known: AHashMap<&str, i32> = AHashMap::new();
    let mut different: Vec<&str> = Vec::new();
    let mut places: Vec<Option<i32>> = Vec::with_capacity(texts.len());
    for text in texts {
        let Some(text) = text else {
            places.push(None);
            continue;
        };
        let next = different.len() as i32;
        let place = *known.entry(text).or_insert_with(|| {
            different.push(text);
            next
        });
        if different.len() > texts_max {
            return None;
        }
        places.push(Some(place));
    }
    let values = Arc::new(StringArray::from_iter_values(different));
    let places = Int32Array::from(places);
    match places.try_unary::<_, Int16Type, _>(i16::try_from) {
        Ok(short) => Some(Arc::new(DictionaryArray::try_new(short, values).ok()?)),
        Err(_) => Some(Arc::new(DictionaryArray::try_new(places, values).ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    /// Texts of a dictionary, one for each row.
    fn texts_of(column: &ArrayRef) -> StringArray {
        let texts = column.as_dictionary::<Int32Type>().downcast_dict::<StringArray>().expect("a dictionary of texts");
        texts.into_iter().collect()
    }

    fn want(kind: Kind) -> Want {
        Want::Path(Vec::new(), Form::Typed(kind))
    }

    #[test]
    fn integers_take_what_the_largest_of_them_needs() {
        let bytes = |numbers: Vec<Option<i64>>| {
            let column: ArrayRef = Arc::new(Int64Array::from(numbers));
            let kept = compact(&want(Kind::Int), Arc::clone(&column));
            assert_eq!(&widened(Arc::clone(&kept)), &column);
            kept.data_type().primitive_width().expect("numbers")
        };
        assert_eq!(bytes(vec![Some(-32768), None, Some(32767)]), 2);
        assert_eq!(bytes(vec![None, None]), 2);
        assert_eq!(bytes(vec![Some(32768), None]), 4);
        assert_eq!(bytes(vec![Some(i64::from(i32::MIN)), Some(0)]), 4);
        assert_eq!(bytes(vec![Some(i64::from(i32::MIN) - 1), Some(0)]), 8);
        assert_eq!(bytes(vec![Some(i64::MAX), Some(i64::MIN)]), 8);
    }

    #[test]
    fn texts_that_come_again_are_places() {
        let texts: Vec<Option<String>> = (0..800).map(|n| (n % 7 > 0).then(|| format!("text {}", n % 3))).collect();
        let column: ArrayRef = Arc::new(StringArray::from(texts));
        let kept = compact(&want(Kind::Text), Arc::clone(&column));
        assert_eq!(kept.as_dictionary::<Int16Type>().values().len(), 3);
        assert!(kept.get_array_memory_size() < 3000);
        assert_eq!(&texts_of(&widened(kept)), column.as_string::<i32>());
        let kept = compact(&Want::RootSpanId, Arc::clone(&column));
        assert_eq!(&texts_of(&widened(kept.slice(100, 300))), column.slice(100, 300).as_string::<i32>());
        let different: ArrayRef = Arc::new(StringArray::from_iter_values((0..800).map(|n| n.to_string())));
        assert_eq!(&compact(&want(Kind::Text), Arc::clone(&different)), &different);
    }
}

//! Columns of texts of which few are different, as dictionaries: each text once, and a place for each row. Most of what
//! queries group and filter by is such a column.

use std::sync::Arc;

use ahash::AHashMap;
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray};
use arrow::datatypes::Int32Type;
use assay_storage_segments::{Form, Kind, Want};

/// One text for so many rows or more is worth it.
const ROWS_PER_TEXT_MIN: usize = 8;

/// The column as it is kept.
pub(super) fn compact(want: &Want, column: ArrayRef) -> ArrayRef {
    if !matches!(want, Want::Path(_, Form::Typed(Kind::Text))) {
        return column;
    }
    dictionary(column.as_string()).map_or(column, |dictionary| Arc::new(dictionary) as ArrayRef)
}

fn dictionary(texts: &StringArray) -> Option<DictionaryArray<Int32Type>> {
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
    DictionaryArray::try_new(Int32Array::from(places), values).ok()
}

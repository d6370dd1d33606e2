//! IN with a list that is the same for every row.

use arrow::array::{Array, BooleanArray};

use crate::column::Column;
use crate::prepared::{Call, List, Prepared};

pub(super) fn is_in(call: &Call, left: &Column) -> Option<Column> {
    let Prepared::List(list) = &call.prepared else { return None };
    let found: BooleanArray = match left {
        Column::Text(texts) if list.decides_texts => {
            texts.iter().map(|text| found(list, list.texts.contains(text?))).collect()
        }
        Column::Int(ints) if list.decides_ints => {
            ints.iter().map(|int| found(list, list.ints.contains(&int?))).collect()
        }
        _ => return None,
    };
    debug_assert_eq!(Some(found.len()), left.array().map(Array::len));
    Some(Column::Bool(found))
}

/// What is not in a list with a null in it may be that null (D-48).
fn found(list: &List, is_in: bool) -> Option<bool> {
    if is_in || !list.has_null { Some(is_in) } else { None }
}

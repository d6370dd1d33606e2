//! Membership kernels: IN with a constant list, and INCLUDES with a constant text.

use arrow_array::BooleanArray;
use assay_node_btql::bound::Function;
use assay_node_btql::values::{Value, contains, is_in as is_value_in};

use crate::column::Column;
use crate::prepared::{Call, List, Needle, Prepared};

pub(super) fn is_in(call: &Call, left: &Column) -> Option<Column> {
    let Prepared::List(list) = &call.prepared else { return None };
    let found: BooleanArray = match left {
        Column::Text(texts) if list.decides_texts => {
            texts.iter().map(|text| found(list, list.texts.contains(text?))).collect()
        }
        Column::Int(ints) if list.decides_ints => {
            ints.iter().map(|int| found(list, list.ints.contains(&int?))).collect()
        }
        Column::Json(texts) => texts.iter().map(|text| is_one_in(&Value::read(text?), list)).collect(),
        _ => return None,
    };
    Some(Column::Bool(found))
}

fn is_one_in(value: &Value<'_>, list: &List) -> Option<bool> {
    match value {
        Value::Text(text) if list.decides_texts => found(list, list.texts.contains(&**text)),
        Value::Integer(number) if list.decides_ints => found(list, list.ints.contains(number)),
        _ => is_value_in(value, &list.values),
    }
}

/// Result for a value that is not in the list: null if the list has a null (D-48).
fn found(list: &List, is_in: bool) -> Option<bool> {
    if is_in || !list.has_null { Some(is_in) } else { None }
}

/// INCLUDES on JSON (D-60): a text without the needle is not parsed.
pub(super) fn includes(call: &Call, of: &Column, needle: &Column) -> Option<Column> {
    let (Prepared::Needle(finder), Column::Json(texts), Column::Const(needle)) = (&call.prepared, of, needle) else {
        return None;
    };
    let of_null = (call.function == Function::TagsInclude).then_some(false);
    let found = |text: Option<&str>| match text {
        None => of_null,
        Some(text) if is_without(text, finder) => Some(false),
        Some(text) => contains(&Value::read(text), needle),
    };
    Some(Column::Bool(texts.iter().map(found).collect()))
}

/// Whether the JSON certainly has no text with the needle; escaped texts do not tell.
fn is_without(json: &str, needle: &Needle) -> bool {
    json.starts_with(['[', '{', '"']) && needle.find(json.as_bytes()).is_none() && !json.contains('\\')
}

//! Resolution of `_parent_id`, the deprecated way for a row to name its parent. Pure.
//!
//! The field contains the id of the parent's row. Before a row is prepared, it is replaced by the parent's span id in
//! `span_parents`. If the client sent no `root_span_id`, it becomes that of the parent. An id without a row counts as a
//! span id, since clients of that time sent span ids too.

use std::collections::{HashMap, HashSet};

use assay_storage_model::event::{SentItem, SentRow};
use bytes::Bytes;
use serde_json::Value;

const PARENT: &str = "_parent_id";

/// Span and trace of a parent row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SpanPosition {
    span_id: String,
    root_span_id: String,
}

/// Returns the ids of the rows to read before [`adopt`]: parents that are not in the request itself.
pub fn unknown_parents(rows: &[SentItem]) -> Vec<String> {
    if !names_parents(rows) {
        return Vec::new();
    }
    let told: HashSet<&str> = rows.iter().filter_map(as_row).filter(|row| !merges(row)).filter_map(id_of).collect();
    let mut seen = HashSet::new();
    let parents = rows.iter().filter_map(as_row).filter_map(parent_of);
    parents.filter(|id| !told.contains(id) && seen.insert(*id)).map(str::to_owned).collect()
}

/// Replaces `_parent_id` in every row by the position of the parent. `stored` has the rows of [`unknown_parents`].
pub fn adopt(rows: &mut [SentItem], stored: &[Bytes]) {
    if !names_parents(rows) {
        return;
    }
    let mut places: HashMap<String, SpanPosition> = stored.iter().filter_map(stored_place).collect();
    // A row in the request replaces the stored one, but a merge keeps the stored position.
    let mut by_id: HashMap<String, usize> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let SentItem::Row(row) = row
            && let Some(id) = id_of(row)
            && (!merges(row) || !places.contains_key(id))
        {
            by_id.insert(id.to_owned(), at);
        }
    }
    for at in 0..rows.len() {
        settle(rows, at, &by_id, &mut places);
    }
}

/// Returns whether any row has the field. Most requests have none and need no further work.
fn names_parents(rows: &[SentItem]) -> bool {
    rows.iter().filter_map(as_row).any(|row| row.get(PARENT).is_some())
}

/// Resolves the ancestors of a row within the request, and then the row itself.
fn settle(
    rows: &mut [SentItem],
    at: usize,
    by_id: &HashMap<String, usize>,
    places: &mut HashMap<String, SpanPosition>,
) {
    // The chain ends at the first ancestor outside of the request, or where a cycle closes.
    let (mut line, mut on_line, mut next) = (Vec::new(), HashSet::new(), Some(at));
    while let Some(here) = next.filter(|here| on_line.insert(*here)) {
        let SentItem::Row(row) = &rows[here] else { break };
        line.push(here);
        next = parent_of(row).and_then(|parent| by_id.get(parent)).copied();
    }
    for here in line.into_iter().rev() {
        let SentItem::Row(row) = &mut rows[here] else { continue };
        if let Some(place) = parent_of(row).and_then(|parent| places.get(parent)).cloned() {
            row.set("span_parents", Value::from(vec![place.span_id]));
            if text(row, "root_span_id").is_none() {
                row.set("root_span_id", Value::from(place.root_span_id));
            }
            row.set(PARENT, Value::Null);
        }
        let Some(id) = id_of(row).map(str::to_owned) else { continue };
        if by_id.get(&id) == Some(&here) {
            let own = |name| text(row, name).unwrap_or(&id).to_owned();
            places.insert(id.clone(), SpanPosition { span_id: own("span_id"), root_span_id: own("root_span_id") });
        }
    }
}

fn as_row(sent: &SentItem) -> Option<&SentRow> {
    match sent {
        SentItem::Row(row) => Some(row),
        SentItem::Other(_) => None,
    }
}

fn text<'a>(row: &'a SentRow, name: &str) -> Option<&'a str> {
    row.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn id_of(row: &SentRow) -> Option<&str> {
    text(row, "id")
}

/// Returns the parent named by `_parent_id`, unless the row has `span_parents` as well.
fn parent_of(row: &SentRow) -> Option<&str> {
    let parents = row.get("span_parents").and_then(Value::as_array);
    let named = parents.is_some_and(|parents| !parents.is_empty());
    text(row, PARENT).filter(|parent| !named && Some(*parent) != id_of(row))
}

fn merges(row: &SentRow) -> bool {
    row.get("_is_merge").and_then(Value::as_bool).unwrap_or(false)
}

fn stored_place(row: &Bytes) -> Option<(String, SpanPosition)> {
    #[derive(serde::Deserialize)]
    struct Ids {
        id: String,
        span_id: String,
        root_span_id: String,
    }
    let Ids { id, span_id, root_span_id } = serde_json::from_slice(row).ok()?;
    Some((id, SpanPosition { span_id, root_span_id }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn adopted(rows: Vec<Value>, stored: &[Value]) -> Vec<Value> {
        let mut rows: Vec<SentItem> = rows.into_iter().map(SentItem::from).collect();
        let stored: Vec<Bytes> = stored.iter().map(|row| row.to_string().into()).collect();
        adopt(&mut rows, &stored);
        let places = rows.iter().filter_map(as_row).map(|row| {
            let field = |name| row.get(name).cloned().unwrap_or(Value::Null);
            json!([field("span_parents"), field("root_span_id"), field(PARENT)])
        });
        places.collect()
    }

    #[test]
    fn a_child_joins_the_trace_of_a_stored_parent() {
        let rows = vec![json!({"id": "kid", "_parent_id": "abc"})];
        let sent: Vec<SentItem> = rows.iter().cloned().map(SentItem::from).collect();
        assert_eq!(unknown_parents(&sent), ["abc"]);
        let stored = [json!({"id": "abc", "span_id": "s1", "root_span_id": "t1", "input": "x"})];
        assert_eq!(adopted(rows, &stored), [json!([["s1"], "t1", null])]);
    }

    #[test]
    fn parents_in_the_request_count_in_any_order_and_through_generations() {
        let rows = vec![
            json!({"id": "c", "_parent_id": "b"}),
            json!({"id": "b", "_parent_id": "a", "span_id": "sb"}),
            json!({"id": "a", "span_id": "sa", "root_span_id": "t"}),
        ];
        let sent: Vec<SentItem> = rows.iter().cloned().map(SentItem::from).collect();
        assert_eq!(unknown_parents(&sent), Vec::<String>::new());
        assert_eq!(
            adopted(rows, &[]),
            [json!([["sb"], "t", null]), json!([["sa"], "t", null]), json!([null, "t", null])]
        );
    }

    #[test]
    fn a_merge_keeps_the_place_of_the_stored_row() {
        let rows = vec![json!({"id": "a", "_is_merge": true, "output": 1}), json!({"id": "kid", "_parent_id": "a"})];
        let sent: Vec<SentItem> = rows.iter().cloned().map(SentItem::from).collect();
        assert_eq!(unknown_parents(&sent), ["a"]);
        let stored = [json!({"id": "a", "span_id": "s", "root_span_id": "t"})];
        assert_eq!(adopted(rows.clone(), &stored)[1], json!([["s"], "t", null]));
        assert_eq!(adopted(rows, &[])[1], json!([["a"], "a", null]), "without a stored row the merge makes one");
    }

    #[test]
    fn what_names_no_row_a_circle_or_present_parents_stays_as_it_was_sent() {
        let circle = vec![json!({"id": "a", "_parent_id": "b"}), json!({"id": "b", "_parent_id": "a"})];
        assert_eq!(
            adopted(circle, &[]),
            [json!([["b"], "b", null]), json!([["a"], "b", null])],
            "one trace, as it was sent"
        );
        let rows = vec![
            json!({"id": "x", "_parent_id": "nobody"}),
            json!({"id": "y", "_parent_id": "x", "span_parents": ["p"], "root_span_id": "r"}),
            json!({"id": "z", "_parent_id": "z"}),
            json!([1]),
        ];
        let places = adopted(rows, &[]);
        assert_eq!(places, [json!([null, null, "nobody"]), json!([["p"], "r", "x"]), json!([null, null, "z"])]);
    }
}

//! Writes that restore the rows of an object to an earlier version. Pure.
//!
//! Rows that were changed or deleted since are written completely, and rows that were added since are deleted. The
//! history is not changed.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// System fields of a row, which are not part of its document.
const NOT_WRITTEN: [&str; 9] = [
    "_xact_id",
    "_pagination_key",
    "org_id",
    "project_id",
    "dataset_id",
    "experiment_id",
    "log_id",
    "comments",
    "audit_data",
];

/// Rows to write, with the numbers of restored and of deleted rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restoring {
    pub rows: Vec<Value>,
    pub restored: usize,
    pub deleted: usize,
}

/// Returns the writes for the rows at the version and the current rows, which may be in any order.
pub fn restoring(then: Vec<Value>, now: Vec<Value>) -> Restoring {
    let mut now: HashMap<String, Map<String, Value>> = now.into_iter().filter_map(written).collect();
    let mut restoring = Restoring::default();
    for (id, row) in then.into_iter().filter_map(written) {
        if now.remove(&id).as_ref() != Some(&row) {
            restoring.rows.push(Value::Object(row));
            restoring.restored += 1;
        }
    }
    let mut since: Vec<String> = now.into_keys().collect();
    since.sort();
    restoring.deleted = since.len();
    let delete =
        |id: String| Map::from_iter([("id".to_owned(), id.into()), ("_object_delete".to_owned(), true.into())]);
    restoring.rows.extend(since.into_iter().map(|id| Value::Object(delete(id))));
    restoring
}

/// Returns the id and the document of a row.
fn written(row: Value) -> Option<(String, Map<String, Value>)> {
    let Value::Object(mut row) = row else { return None };
    for field in NOT_WRITTEN {
        row.remove(field);
    }
    Some((row.get("id")?.as_str()?.to_owned(), row))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn row(id: &str, input: u8, xact: &str) -> Value {
        json!({"id": id, "_xact_id": xact, "dataset_id": "d", "created": "c", "input": input, "comments": null})
    }

    #[test]
    fn what_differs_comes_back_and_what_came_since_goes() {
        let then = vec![row("same", 1, "1"), row("changed", 1, "1"), row("gone", 1, "1")];
        let now = vec![row("same", 1, "2"), row("changed", 2, "2"), row("new", 1, "2")];
        let found = restoring(then, now);
        assert_eq!((found.restored, found.deleted), (2, 1));
        let kept = |id: &str| json!({"id": id, "created": "c", "input": 1});
        assert_eq!(found.rows, [kept("changed"), kept("gone"), json!({"id": "new", "_object_delete": true})]);
        assert_eq!(restoring(vec![row("a", 1, "1")], vec![row("a", 1, "9")]), Restoring::default());
    }

    proptest! {
        #[test]
        fn what_is_written_makes_now_as_it_was_then(
            then in proptest::collection::btree_map("[a-e]", 0_u8..3, 0..5),
            now in proptest::collection::btree_map("[a-e]", 0_u8..3, 0..5),
        ) {
            let rows = |of: &BTreeMap<String, u8>| of.iter().map(|(id, input)| row(id, *input, "1")).collect();
            let mut after = now.clone();
            let found = restoring(rows(&then), rows(&now));
            for row in found.rows {
                let id = row["id"].as_str().expect("an id").to_owned();
                match row.get("_object_delete") {
                    Some(_) => drop(after.remove(&id)),
                    None => drop(after.insert(id, row["input"].as_u64().expect("a number") as u8)),
                }
            }
            prop_assert_eq!(after, then);
        }
    }
}

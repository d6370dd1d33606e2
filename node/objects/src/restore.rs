//! Writes that restore the rows of an object to an earlier version. Pure.
//!
//! Rows that were changed or deleted since are written completely, and rows that were added since are deleted. The
//! history is not changed. Rows stay texts, which take a fraction of the memory of parsed values and compare exactly.

use std::collections::HashMap;

use assay_storage_model::event::SentItem;
use assay_storage_model::merge::{DocField, doc_fields};
use serde_json::json;

use crate::ReadError;

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

/// Comparison of the earlier rows of an object with its current ones. All earlier rows are added first.
#[derive(Debug, Default)]
pub struct RestoreComparison {
    /// Place and document of every earlier row that no equal current row was found for.
    earlier: HashMap<String, (usize, Vec<u8>)>,
    /// Ids of the current rows that did not exist then.
    added: Vec<String>,
    bytes: usize,
}

/// Rows to write, with the numbers of restored and of deleted rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restoring {
    /// JSON texts of the rows.
    pub rows: Vec<Vec<u8>>,
    pub restored: usize,
    pub deleted: usize,
}

impl RestoreComparison {
    /// Adds a row of the earlier version.
    pub fn add_earlier(&mut self, event: &[u8]) -> Result<(), ReadError> {
        let (id, row) = written(event)?;
        self.bytes += id.len() + row.len();
        self.earlier.insert(id, (self.earlier.len(), row));
        Ok(())
    }

    /// Adds a row of the current version.
    pub fn add_current(&mut self, event: &[u8]) -> Result<(), ReadError> {
        let (id, row) = written(event)?;
        match self.earlier.get(&id) {
            Some((_, earlier)) if is_same(earlier, &row)? => {
                self.bytes -= id.len() + row.len();
                self.earlier.remove(&id);
            }
            Some(_) => {}
            None => {
                self.bytes += id.len();
                self.added.push(id);
            }
        }
        Ok(())
    }

    /// Returns the number of bytes of all rows and ids that the comparison holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the writes, with the restored rows in their earlier order.
    pub fn finish(self) -> Restoring {
        let RestoreComparison { earlier, mut added, .. } = self;
        let (restored, deleted) = (earlier.len(), added.len());
        let mut earlier: Vec<_> = earlier.into_values().collect();
        earlier.sort_unstable_by_key(|(place, _)| *place);
        added.sort_unstable();
        let delete = |id: String| json!({"id": id, "_object_delete": true}).to_string().into_bytes();
        let rows = earlier.into_iter().map(|(_, row)| row).chain(added.into_iter().map(delete)).collect();
        Restoring { rows, restored, deleted }
    }
}

impl Restoring {
    /// Returns the number of bytes of the rows to write.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Returns the rows as items of a write.
    pub fn items(self) -> Result<Vec<SentItem>, ReadError> {
        self.rows.iter().map(|row| serde_json::from_slice(row).map_err(unreadable)).collect()
    }
}

/// Returns the id and the document of a row.
fn written(event: &[u8]) -> Result<(String, Vec<u8>), ReadError> {
    let (mut id, mut row) = (None, Vec::with_capacity(event.len()));
    for (name, value) in fields(event)? {
        if NOT_WRITTEN.contains(&name.as_ref()) {
            continue;
        }
        if name == "id" {
            id = serde_json::from_slice(value).map_err(unreadable)?;
        }
        row.push(if row.is_empty() { b'{' } else { b',' });
        serde_json::to_writer(&mut row, &name).map_err(unreadable)?;
        row.push(b':');
        row.extend_from_slice(value);
    }
    row.push(b'}');
    Ok((id.ok_or_else(|| unreadable("it has no id"))?, row))
}

/// Returns whether two documents have the same fields, in any order.
fn is_same(one: &[u8], other: &[u8]) -> Result<bool, ReadError> {
    if one == other {
        return Ok(true);
    }
    let (mut one, mut other) = (fields(one)?, fields(other)?);
    one.sort_unstable();
    other.sort_unstable();
    Ok(one == other)
}

fn fields(row: &[u8]) -> Result<Vec<DocField<'_>>, ReadError> {
    doc_fields(row).map_err(unreadable)
}

fn unreadable(why: impl ToString) -> ReadError {
    ReadError::Internal(format!("a row of a restore cannot be read: {}", why.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_storage_model::ObjectKind;
    use assay_storage_model::event::{PrepareContext, prepare};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn row(id: &str, input: &str, xact: &str) -> String {
        format!(r#"{{"id":"{id}","_xact_id":"{xact}","dataset_id":"d","created":"c","input":{input},"comments":null}}"#)
    }

    fn restoring(then: &[String], now: &[String]) -> Restoring {
        let mut comparison = RestoreComparison::default();
        then.iter().try_for_each(|row| comparison.add_earlier(row.as_bytes())).expect("rows");
        now.iter().try_for_each(|row| comparison.add_current(row.as_bytes())).expect("rows");
        let bytes = comparison.bytes();
        let found = comparison.finish();
        assert!(bytes >= found.rows.iter().take(found.restored).map(Vec::len).sum());
        found
    }

    fn values(found: &Restoring) -> Vec<Value> {
        found.rows.iter().map(|row| serde_json::from_slice(row).expect("JSON")).collect()
    }

    #[test]
    fn what_differs_comes_back_and_what_came_since_goes() {
        let then = [row("same", "1", "1"), row("changed", "1", "1"), row("gone", "1", "1")];
        let now = [row("same", "1", "2"), row("changed", "2", "2"), row("new", "1", "2")];
        let found = restoring(&then, &now);
        assert_eq!((found.restored, found.deleted), (2, 1));
        let kept = |id: &str| json!({"id": id, "created": "c", "input": 1});
        assert_eq!(values(&found), [kept("changed"), kept("gone"), json!({"id": "new", "_object_delete": true})]);
        assert_eq!(restoring(&[row("a", "1", "1")], &[row("a", "1", "9")]), Restoring::default());
        let turned = [r#"{"input":1,"created":"c","id":"a"}"#.to_owned()];
        assert_eq!(restoring(&[row("a", "1", "1")], &turned), Restoring::default(), "fields have no order");
        assert!(RestoreComparison::default().add_current(br#"{"input":1}"#).is_err());
    }

    /// A row that is written again has the text of the row that was stored, numbers of all sizes included.
    #[test]
    fn numbers_are_compared_and_come_back_exactly() {
        let numbers = "[9007199254740993,18446744073709551615,-9223372036854775808,1e+300,1.2345678901234568e+29,-0.0]";
        let other = numbers.replace("0993", "0992");
        let then = row("a", numbers, "1").replace("\"c\"", "\"2026-01-01T00:00:00.000Z\"");
        let now = then.replace(numbers, &other);
        let found = restoring(&[then], &[now]);
        assert_eq!((found.restored, found.deleted), (1, 0));
        let item = found.items().expect("items").pop().expect("a row");
        let mut context = PrepareContext { now_micros: 0, new_id: &mut || unreachable!("it has an id") };
        let doc = prepare(ObjectKind::Dataset, 0, item, &mut context).expect("a row").doc;
        let doc = String::from_utf8(doc).expect("text");
        assert!(doc.contains(&format!("\"input\":{numbers}")), "{doc}");
    }

    proptest! {
        #[test]
        fn what_is_written_makes_now_as_it_was_then(
            then in proptest::collection::btree_map("[a-e]", 0_u8..3, 0..5),
            now in proptest::collection::btree_map("[a-e]", 0_u8..3, 0..5),
        ) {
            let rows = |of: &BTreeMap<String, u8>| -> Vec<String> {
                of.iter().map(|(id, input)| row(id, &input.to_string(), "1")).collect()
            };
            let mut after = now.clone();
            let found = restoring(&rows(&then), &rows(&now));
            for row in values(&found) {
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

//! Rows as sent and read: the JSON to send, the result of reads, and their digests.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::cluster::recording::events::{Act, Row};

/// Prefix of the fields that transfers change; their values add up to zero.
pub const MOVED: &str = "d";
/// An `input` that is not what any client sends.
const ODD_PAD: u32 = u32::MAX;

/// Content of a row, as read or from the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowState {
    pub xact: u64,
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    #[serde(default)]
    pub pad: u32,
}

pub type Rows = BTreeMap<String, RowState>;

/// Returns the id of the row at `place` among those that only this write touches: they show when it was applied, and
/// that it was applied whole.
pub fn own_id(write: u64, place: usize) -> String {
    format!("w{write}-{place}")
}

/// The write that an own row belongs to.
pub fn write_of(id: &str) -> Option<u64> {
    id.strip_prefix('w')?.split_once('-')?.0.parse().ok()
}

/// Returns an own row without further content.
pub fn own(write: u64, place: usize) -> Row {
    Row { id: own_id(write, place), act: Act::Put, set: BTreeMap::new(), pad: 0 }
}

/// One field of a shared row.
pub fn merge(id: &str, field: &str, value: i64) -> Row {
    Row { id: id.to_owned(), act: Act::Merge, set: BTreeMap::from([(field.to_owned(), value)]), pad: 0 }
}

pub fn body_of(rows: &[Row]) -> Value {
    json!({ "events": rows.iter().map(sent).collect::<Vec<Value>>() })
}

fn sent(row: &Row) -> Value {
    match row.act {
        Act::Delete => json!({ "id": row.id, "_object_delete": true }),
        Act::Merge => json!({ "id": row.id, "_is_merge": true, "metadata": row.set }),
        Act::Put => json!({ "id": row.id, "input": "x".repeat(row.pad as usize), "metadata": row.set }),
    }
}

/// One event of a page. Nothing where it has no id or no transaction id.
pub fn found(event: &Value) -> Option<(String, RowState)> {
    let id = event["id"].as_str()?.to_owned();
    let xact = event["_xact_id"].as_str()?.parse().ok()?;
    let pad = match &event["input"] {
        Value::Null => 0,
        Value::String(text) if text.bytes().all(|byte| byte == b'x') => u32::try_from(text.len()).unwrap_or(ODD_PAD),
        _ => ODD_PAD,
    };
    let set = match &event["metadata"] {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        Value::Null => BTreeMap::new(),
        other => BTreeMap::from([("metadata is".to_owned(), other.clone())]),
    };
    Some((id, RowState { xact, set, pad }))
}

/// A sum over rows, so that it follows from row to row what each write changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold(u64);

impl Fold {
    pub fn of(rows: &Rows) -> Fold {
        let mut fold = Fold::default();
        rows.iter().for_each(|(id, row)| fold.add(id, row));
        fold
    }

    pub fn add(&mut self, id: &str, row: &RowState) {
        self.0 = self.0.wrapping_add(digest_of(id, row));
    }

    pub fn take(&mut self, id: &str, row: &RowState) {
        self.0 = self.0.wrapping_sub(digest_of(id, row));
    }

    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

fn digest_of(id: &str, row: &RowState) -> u64 {
    let set: Map<String, Value> = row.set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut hasher = DefaultHasher::new();
    (id, row.xact, Value::Object(set).to_string(), row.pad).hash(&mut hasher);
    hasher.finish()
}

/// Returns the total of all transfers: zero, at every version.
pub fn total(rows: &Rows) -> i64 {
    let moved = rows.values().flat_map(|row| &row.set).filter(|(name, _)| name.starts_with(MOVED));
    moved.filter_map(|(_, value)| value.as_i64()).fold(0, i64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(xact: u64, field: &str, value: i64) -> RowState {
        RowState { xact, set: BTreeMap::from([(field.to_owned(), json!(value))]), pad: 0 }
    }

    #[test]
    fn a_row_reads_back_as_it_was_sent() {
        let row = Row { pad: 3, set: BTreeMap::from([("v".into(), 7)]), ..own(5, 1) };
        let mut event = sent(&row);
        event["_xact_id"] = json!("1000192656880881099");
        let (id, found) = found(&event).expect("a row");
        assert_eq!((id.as_str(), write_of(&id)), ("w5-1", Some(5)));
        assert_eq!(found, RowState { pad: 3, ..state(1_000_192_656_880_881_099, "v", 7) });
        event["input"] = json!("xxy");
        assert_eq!(super::found(&event).expect("a row").1.pad, ODD_PAD);
        assert_eq!(super::found(&json!({ "id": "w5-1" })), None);
    }

    #[test]
    fn shared_rows_belong_to_no_write() {
        for id in ["set-1", "v12", "w", "w-1", "wx-1"] {
            assert_eq!(write_of(id), None, "{id}");
        }
    }

    #[test]
    fn a_fold_follows_its_rows_and_tells_any_two_apart() {
        let rows = Rows::from([("a".into(), state(1, "v", 1)), ("b".into(), state(2, "v", 2))]);
        let mut fold = Fold::of(&rows);
        fold.take("a", &rows["a"]);
        assert_eq!(fold, Fold::of(&Rows::from([("b".into(), state(2, "v", 2))])));
        for other in [state(2, "v", 1), state(1, "w", 1), state(1, "v", 2)] {
            fold = Fold::of(&Rows::from([("b".into(), state(2, "v", 2))]));
            fold.add("a", &other);
            assert_ne!(fold, Fold::of(&rows));
        }
    }

    #[test]
    fn a_total_counts_what_was_moved_and_nothing_else() {
        let rows = Rows::from([
            ("a".into(), state(1, "d5", -3)),
            ("b".into(), state(1, "d5", 4)),
            ("c".into(), state(1, "x", 100)),
        ]);
        assert_eq!(total(&rows), 1);
    }
}

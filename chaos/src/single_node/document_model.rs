//! Model of an object's documents: whole documents in a map, folded one write after the other. It shares no code with
//! the shard; the merge rules are implemented again in a simple way.

use std::collections::BTreeMap;

use assay_storage_model::command::Action;
use serde_json::{Map, Value, json};

use crate::single_node::documents::{RULE_ARRAY_DELETE, RULE_PATHS, RowSpec, condensed};
use crate::single_node::dump::{DumpRow, DumpedTrace};

/// Creation time of a row made by a merge: the workload sends none, so it is the epoch.
const EPOCH: &str = "1970-01-01T00:00:00.000Z";
const KEY_LOW_BITS: u64 = (1 << 48) - 1;
const KEY_ROW_BITS: u32 = 16;

/// One object, write by write.
#[derive(Clone, Debug, Default)]
pub struct ModelObject {
    pub rows: BTreeMap<String, DumpRow>,
    /// Expected versions of each id. A comment that was written again is found once.
    pub traces: Vec<DumpedTrace>,
}

impl ModelObject {
    /// Folds one write; writes come in order of their ids.
    pub fn write(&mut self, write: &str, xact: u64, rows: &[RowSpec]) {
        for (place, row) in (0_u64..).zip(rows) {
            let key = (xact & KEY_LOW_BITS) << KEY_ROW_BITS | place;
            if self.fold(row, key, xact) {
                let own = row.own.clone();
                let action = row.action as u8;
                self.traces.push(DumpedTrace { id: row.id.clone(), xact, action, own, write: write.to_owned() });
            }
        }
    }

    /// Folds a row; returns whether the operation leaves a trace.
    fn fold(&mut self, row: &RowSpec, key: u64, xact: u64) -> bool {
        match row.action {
            Action::Comment => {
                let comment = Action::Comment as u8;
                self.traces.retain(|trace| !(trace.action == comment && trace.id == row.id && trace.own == row.own));
                true
            }
            Action::Delete => self.rows.remove(&row.id).is_some(),
            Action::Upsert => {
                let key = self.rows.get(&row.id).map_or(key, |before| before.key);
                let after = DumpRow { key, xact, root: row.root.clone(), doc: condensed(row.document()) };
                self.rows.insert(row.id.clone(), after);
                true
            }
            Action::Merge => {
                let patch = condensed(row.document());
                match self.rows.get_mut(&row.id) {
                    Some(before) => {
                        merge_top(&mut before.doc, patch, row);
                        before.xact = xact;
                    }
                    None => {
                        let mut doc = first_merge(row, patch);
                        take_tag_away(&mut doc, row);
                        let after = DumpRow { key, xact, root: row.root.clone(), doc };
                        self.rows.insert(row.id.clone(), after);
                    }
                }
                true
            }
        }
    }
}

/// A merge that finds no row is the row, with what places it.
fn first_merge(row: &RowSpec, patch: Value) -> Value {
    let mut doc = Map::new();
    doc.insert("id".into(), json!(row.id));
    doc.insert("created".into(), json!(EPOCH));
    doc.insert("span_id".into(), json!(row.own));
    doc.insert("root_span_id".into(), json!(row.root));
    doc.insert("span_parents".into(), Value::Null);
    doc.insert("is_root".into(), json!(true));
    if let Value::Object(fields) = patch {
        doc.extend(fields);
    }
    Value::Object(doc)
}

fn merge_top(doc: &mut Value, patch: Value, row: &RowSpec) {
    let (Value::Object(doc_fields), Value::Object(fields)) = (&mut *doc, patch) else { return };
    for (name, value) in fields {
        match (name.as_str(), doc_fields.get_mut(&name)) {
            ("metadata", Some(_)) if row.rule == RULE_PATHS => {
                doc_fields.insert(name, value);
            }
            ("tags", Some(Value::Array(tags))) => {
                let added = value.as_array().cloned().unwrap_or_default();
                tags.extend(added);
                let mut seen = Vec::new();
                tags.retain(|tag| {
                    !seen.contains(tag) && {
                        seen.push(tag.clone());
                        true
                    }
                });
            }
            (_, Some(before)) => merge_deep(before, value),
            (_, None) => {
                doc_fields.insert(name, value);
            }
        }
    }
    take_tag_away(doc, row);
}

fn merge_deep(before: &mut Value, patch: Value) {
    match (before, patch) {
        (Value::Object(before), Value::Object(patch)) => {
            for (name, value) in patch {
                match before.get_mut(&name) {
                    Some(inner) => merge_deep(inner, value),
                    None => {
                        before.insert(name, value);
                    }
                }
            }
        }
        (before, patch) => *before = patch,
    }
}

fn take_tag_away(doc: &mut Value, row: &RowSpec) {
    if row.rule == RULE_ARRAY_DELETE
        && let Some(Value::Array(tags)) = doc.get_mut("tags")
    {
        let gone = json!(row.deleted_tag());
        tags.retain(|tag| *tag != gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, action: Action, value: u32) -> RowSpec {
        RowSpec { id: id.into(), action, own: "s".into(), root: "r".into(), field: 1, value, pad: 0, rule: 0 }
    }

    #[test]
    fn a_merge_keeps_the_key_and_a_row_after_a_delete_gets_a_new_one() {
        let mut object = ModelObject::default();
        object.write("a", 5, &[row("x", Action::Upsert, 1)]);
        object.write("b", 6, &[row("x", Action::Merge, 2)]);
        assert_eq!((object.rows["x"].key >> 16, object.rows["x"].xact), (5, 6));
        assert_eq!(object.rows["x"].doc["tags"], json!(["t1", "t2"]));
        object.write("c", 7, &[row("x", Action::Delete, 3)]);
        object.write("d", 8, &[row("x", Action::Delete, 3)]);
        assert!(object.rows.is_empty());
        assert_eq!(object.traces.len(), 3, "a delete of nothing leaves no trace");
        object.write("e", 9, &[row("x", Action::Merge, 4)]);
        assert_eq!(object.rows["x"].key >> 16, 9);
        assert_eq!(object.rows["x"].doc["output"], Value::Null);
    }
}

//! Expected rows of an object, computed a second time by a simple algorithm. It supports only the writes of these
//! clients.

use serde_json::Value;

use crate::cluster::recording::events::{Act, Row};
use crate::cluster::workload::rows::{Fold, RowState, Rows};

/// One object, write by write in the order of their ids.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub rows: Rows,
    fold: Fold,
}

impl Model {
    pub fn write(&mut self, xact: u64, rows: &[Row]) {
        for row in rows {
            let before = self.rows.remove(&row.id);
            if let Some(before) = &before {
                self.fold.take(&row.id, before);
            }
            if let Some(after) = after(before, xact, row) {
                self.fold.add(&row.id, &after);
                self.rows.insert(row.id.clone(), after);
            }
        }
    }

    pub fn fold(&self) -> String {
        self.fold.text()
    }
}

fn after(before: Option<RowState>, xact: u64, row: &Row) -> Option<RowState> {
    let sent = row.set.iter().map(|(name, value)| (name.clone(), Value::from(*value)));
    match row.act {
        Act::Delete => None,
        Act::Put => Some(RowState { xact, set: sent.collect(), pad: row.pad }),
        Act::Merge => {
            let mut after = before.unwrap_or(RowState { xact, set: Default::default(), pad: 0 });
            after.set.extend(sent);
            after.xact = xact;
            Some(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::workload::rows::{merge, own};

    fn act(id: &str, act: Act) -> Row {
        Row { act, ..merge(id, "x", 9) }
    }

    #[test]
    fn puts_replace_merges_add_and_deletes_leave_nothing() {
        let mut model = Model::default();
        model.write(5, &[merge("r", "a", 1), own(1, 0)]);
        model.write(6, &[merge("r", "b", 2)]);
        let row = &model.rows["r"];
        assert_eq!((row.xact, &row.set["a"], &row.set["b"]), (6, &Value::from(1), &Value::from(2)));
        model.write(7, &[act("r", Act::Put)]);
        assert_eq!(model.rows["r"].set.len(), 1);
        model.write(8, &[act("r", Act::Delete)]);
        assert!(!model.rows.contains_key("r"));
        model.write(9, &[merge("r", "c", 3)]);
        assert_eq!((model.rows["r"].xact, model.rows["r"].set.len()), (9, 1));
        assert_eq!(model.fold(), Fold::of(&model.rows).text(), "kept along the way");
    }
}

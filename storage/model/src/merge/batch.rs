//! Folding of rows of one request that have the same id.

use std::collections::HashMap;

use super::{Effort, fold_within};
use crate::command::Action;
use crate::event::{PreparedRow, ROW_BYTES_MAX, RowError};

/// Folds operations before the stored row is known. Merges are folded into the preceding replacing write, which stays
/// one, and operations undone by a later replace or delete of the same request are dropped. The rest keeps its order
/// and meaning: several merges of one id stay several (their result depends on the stored row), and a delete stays in
/// front of the write that makes the row anew. Comments stay in place.
///
/// A folded row keeps the audit of the last merge that has one, else its own; what is dropped takes its audit
/// along. All rows are of one object.
pub fn fold_batch(rows: Vec<PreparedRow>) -> Result<Vec<PreparedRow>, RowError> {
    let mut kept: Vec<Option<PreparedRow>> = Vec::with_capacity(rows.len());
    let mut last: HashMap<String, usize> = HashMap::with_capacity(rows.len());
    let mut effort = Effort::default();
    for row in rows {
        if row.action == Action::Comment {
            kept.push(Some(row));
            continue;
        }
        let before = last.get(&row.id).and_then(|at| kept[*at].as_mut());
        match (before.as_ref().map(|before| before.action), row.action) {
            (Some(Action::Upsert), Action::Merge) => {
                merge_into(before.expect("an upsert stands before"), row, &mut effort)?;
                continue;
            }
            (Some(Action::Upsert | Action::Merge), Action::Upsert | Action::Delete)
            | (Some(Action::Delete), Action::Delete) => {
                kept[last[&row.id]] = None;
            }
            _ => {}
        }
        last.insert(row.id.clone(), kept.len());
        kept.push(Some(row));
    }
    Ok(kept.into_iter().flatten().collect())
}

fn merge_into(upsert: &mut PreparedRow, merge: PreparedRow, effort: &mut Effort) -> Result<(), RowError> {
    let refuse = |problem| RowError { row: merge.index, path: String::new(), problem };
    let doc = fold_within(Some(&upsert.doc), &merge.as_op(), effort);
    let doc = doc.map_err(|e| refuse(format!("does not merge: {e}")))?;
    if doc.len() > ROW_BYTES_MAX {
        let (bytes, first) = (doc.len(), upsert.index);
        return Err(refuse(format!(
            "makes {bytes} bytes together with row {first}; a row has at most {ROW_BYTES_MAX}"
        )));
    }
    upsert.doc = doc;
    if !merge.audit.is_empty() {
        upsert.audit = merge.audit;
    }
    Ok(())
}

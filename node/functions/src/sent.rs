//! Rows of prompts and functions that clients write as plain rows. Each slug is reserved before the write and released
//! on deletion.

use std::collections::HashSet;

use assay_node_auth::Principal;
use assay_node_objects::ingest::Group;
use assay_node_records::{ObjectHome, RecordsError};
use assay_storage_model::event::{SentItem, SentRow};
use serde_json::Value;
use uuid::Uuid;

use crate::{Functions, FunctionsError};

/// Steps after the rows are written.
#[derive(Debug, Default)]
pub struct Admitted {
    leaves: Vec<Uuid>,
}

impl Functions {
    /// Reserves the slugs of the rows of one project. The caller may write all of its prompts.
    pub async fn admit(&self, home: &ObjectHome, group: &mut Group) -> Result<Admitted, FunctionsError> {
        let mut admitted = Admitted::default();
        let mut seen = HashSet::new();
        for (place, row) in group.rows.iter_mut().enumerate() {
            let SentItem::Row(row) = row else { continue };
            let index = group.indexes.get(place).copied().unwrap_or(place);
            let told = |why| match why {
                RecordsError::BadRequest(_) => FunctionsError::Row { row: index, why },
                other => FunctionsError::Records(other),
            };
            if row.get("comment").is_some_and(|comment| !comment.is_null()) {
                continue;
            }
            let id = id_of(row).map_err(told)?;
            if is_set(row, "_object_delete") {
                admitted.leaves.push(id);
                continue;
            }
            let slug = text(row, "slug").map_err(told)?;
            match slug {
                Some(slug) => drop(self.records.take_slug_as(home, id, slug).await.map_err(told)?),
                // A row that was sent before it in this request may have it.
                None if is_set(row, "_is_merge")
                    && (seen.contains(&id) || self.records.place_in(home, id).is_some()) => {}
                None => {
                    let said = "`slug` is missing: a new prompt or function needs one";
                    return Err(told(RecordsError::BadRequest(said.into())));
                }
            }
            if !is_set(row, "_is_merge") && text(row, "name").map_err(told)?.is_none() {
                return Err(told(RecordsError::BadRequest("`name` is missing: a prompt or function needs one".into())));
            }
            seen.insert(id);
            admitted.leaves.retain(|gone| *gone != id);
        }
        Ok(admitted)
    }

    /// Releases the slugs of deleted rows after the write.
    pub async fn settle(&self, who: &Principal, admitted: Admitted) -> Result<(), FunctionsError> {
        for id in admitted.leaves {
            self.records.leave_slug(who, id).await?;
        }
        Ok(())
    }
}

/// Returns the id of a row, which must be a UUID. A row without one gets one.
fn id_of(row: &mut SentRow) -> Result<Uuid, RecordsError> {
    let wrong = || RecordsError::BadRequest("`id` has to be a UUID".into());
    if let Some(id) = row.get("id").filter(|id| !id.is_null()) {
        let id = id.as_str().and_then(|id| Uuid::parse_str(id).ok()).ok_or_else(wrong)?;
        row.set("id", id.to_string().into());
        return Ok(id);
    }
    let id = Uuid::new_v4();
    row.set("id", id.to_string().into());
    Ok(id)
}

fn is_set(row: &SentRow, name: &str) -> bool {
    row.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn text<'r>(row: &'r SentRow, name: &str) -> Result<Option<&'r str>, RecordsError> {
    match row.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(RecordsError::BadRequest(format!("`{name}` has to be a non-empty string"))),
    }
}

//! Objects by their names: lookup for readers (D-33 of btql.md), and deletion.

use assay_node_auth::Principal;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::RecordsError;
use crate::kind::{Filter, Kind};
use crate::list::ListRequest;
use crate::{Records, draft};

/// More of one name are not told apart for anybody.
const NAMED_ALIKE_MAX: u64 = 10;

impl Records {
    /// Deletes the one that the body names, in the organization that it names; the record as it was.
    pub async fn delete_named(
        &self,
        who: &Principal,
        kind: &'static Kind,
        body: &Map<String, Value>,
    ) -> Result<Value, RecordsError> {
        let name = draft::text_of(body, "name")?;
        let name = name.ok_or_else(|| RecordsError::BadRequest("`name` is missing".into()))?;
        self.catalog.fresh().await?;
        let who = self.lister(who, draft::text_of(body, "org_name")?).await?;
        let missing = || RecordsError::NotFound(format!("no {} `{name}` is visible to this credential", kind.name));
        let key = kind.name_key(who.org.0, name);
        let id = self.catalog.look(|view| view.find(&key).map(|record| record.id).ok_or_else(missing)).await?;
        // One that may not be seen is not told by its id either.
        self.delete(&who, kind, id).await.map_err(|why| match why {
            RecordsError::NotFound(_) => missing(),
            other => other,
        })
    }

    /// The records of that name, those of one project if it is said, at most so many as a person would look through.
    pub async fn named(
        &self,
        who: &Principal,
        kind: &'static Kind,
        name: &str,
        project: Option<Uuid>,
    ) -> Result<Vec<Uuid>, RecordsError> {
        let by = |wanted: fn(&Filter) -> bool| kind.filters.iter().find(|(_, filter)| wanted(filter));
        let Some((by_name, _)) = by(|filter| matches!(filter, Filter::Name)) else {
            return Err(RecordsError::Internal(format!("records of the kind {} have no names", kind.name)));
        };
        let mut filters = vec![((*by_name).to_owned(), name.to_owned())];
        if let (Some(project), Some((by_project, _))) = (project, by(|filter| matches!(filter, Filter::ProjectId))) {
            filters.push(((*by_project).to_owned(), project.to_string()));
        }
        let request = ListRequest { limit: Some(NAMED_ALIKE_MAX), filters, ..ListRequest::default() };
        let found = self.list(who, kind, &request).await?;
        let id = |record: &serde_json::Value| draft::id_in(record.as_object()?, "id");
        Ok(found.iter().filter_map(id).collect())
    }
}

//! Lookup and deletion of objects by name (D-33 of btql.md).

use assay_node_auth::Principal;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::RecordsError;
use crate::kind::{Filter, Kind};
use crate::list::ListRequest;
use crate::{Records, draft};

/// Upper bound of the results for one name, which a person can still distinguish.
const NAMED_ALIKE_MAX: u64 = 10;

impl Records {
    /// Deletes the record of the requested name and organization, and returns its last state.
    pub async fn delete_named(
        &self,
        who: &Principal,
        kind: &'static Kind,
        body: &Map<String, Value>,
    ) -> Result<Value, RecordsError> {
        let name = draft::text_of(body, "name")?.ok_or_else(|| RecordsError::BadRequest("`name` is missing".into()))?;
        self.catalog.fresh().await?;
        let who = self.lister(who, draft::text_of(body, "org_name")?).await?;
        let missing = || RecordsError::NotFound(format!("no {} `{name}` is visible to this credential", kind.name));
        let key = kind.name_key(who.org.0, name);
        let id = self.catalog.look(|view| view.find(&key).map(|record| record.id).ok_or_else(missing)).await?;
        // The error must not reveal the id of an invisible record.
        self.delete(&who, kind, id).await.map_err(|why| match why {
            RecordsError::NotFound(_) => missing(),
            other => other,
        })
    }

    /// Returns a limited number of visible records of this name, optionally in one project.
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

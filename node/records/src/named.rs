//! Objects by their names, for who may read them (D-33 of btql.md).

use assay_node_auth::Principal;
use uuid::Uuid;

use crate::error::RecordsError;
use crate::kind::{Filter, Kind};
use crate::list::ListRequest;
use crate::{Records, draft};

/// More of one name are not told apart for anybody.
const NAMED_ALIKE_MAX: u64 = 10;

impl Records {
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
            return Err(RecordsError::Internal(format!("{} has no names to be found by", kind.name)));
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

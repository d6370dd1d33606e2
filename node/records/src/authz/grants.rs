//! Requests for grants: lists of one object or an organization, deletion by content, and batches.

use assay_node_auth::{Decision, ObjectType, Permission, Principal};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::authz::guard::{self, decide_of_acls};
use crate::authz::within;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kinds::{ACL, acl};
use crate::list::ListRequest;
use crate::{Created, Records};

/// Upper bound of the grants that one request can create and delete.
pub const ACLS_AT_ONCE_MAX: usize = 1000;

impl Records {
    /// Returns the grants on one object, if the principal may read them.
    pub async fn acls(&self, who: &Principal, request: &ListRequest) -> Result<Vec<Value>, RecordsError> {
        for name in ["object_type", "object_id"] {
            if !request.filters.iter().any(|(filter, value)| filter == name && !value.is_empty()) {
                return Err(RecordsError::BadRequest(format!(
                    "`{name}` is missing: the list of grants needs one object"
                )));
            }
        }
        self.list(who, &ACL, request).await
    }

    /// Returns all grants of an organization, if the principal may read the grants on it.
    pub async fn acls_of_organization(
        &self,
        who: &Principal,
        request: &ListRequest,
    ) -> Result<Vec<Value>, RecordsError> {
        self.catalog.fresh().await?;
        let lister = self.lister(who, request.organization()).await?;
        let org = assay_node_auth::Target::of_organization(ObjectType::Organization, lister.org);
        if decide_of_acls(&lister, Permission::Read, &org) != Decision::Allowed {
            let said = "this credential is not granted `read_acls` on the organization";
            return Err(RecordsError::Forbidden(said.into()));
        }
        self.list(who, &ACL, request).await
    }

    /// Deletes the grant with exactly these fields and returns it.
    pub async fn delete_acl(&self, who: &Principal, body: Map<String, Value>) -> Result<Value, RecordsError> {
        let fields = draft::created(&ACL, body)?;
        let missing = || RecordsError::NotFound("no such grant is visible to this credential".into());
        self.catalog.fresh().await?;
        let id = self.acl_of(who, &fields).await?.ok_or_else(missing)?;
        // The error must not reveal the id of an invisible grant.
        self.delete(who, &ACL, id).await.map_err(|why| match why {
            RecordsError::NotFound(_) => missing(),
            other => other,
        })
    }

    /// Creates grants and then deletes others. Existing and missing ones are no errors. After a refusal the earlier
    /// changes remain, and a retry continues.
    pub async fn update_acls(&self, who: &Principal, mut body: Map<String, Value>) -> Result<Value, RecordsError> {
        let (add, remove) = (acls_in(&mut body, "add_acls")?, acls_in(&mut body, "remove_acls")?);
        if add.len() + remove.len() > ACLS_AT_ONCE_MAX {
            let said = format!("a request can add and remove at most {ACLS_AT_ONCE_MAX} grants");
            return Err(RecordsError::BadRequest(said));
        }
        for sent in add.iter().chain(&remove) {
            draft::created(&ACL, sent.clone())?;
        }
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for sent in add {
            let Created { object, .. } = self.create(who, &ACL, sent).await?;
            added.push(object);
        }
        for sent in remove {
            let fields = draft::created(&ACL, sent)?;
            if let Some(id) = self.acl_of(who, &fields).await? {
                match self.delete(who, &ACL, id).await {
                    Err(RecordsError::NotFound(_)) => {}
                    gone => removed.push(gone?),
                }
            }
        }
        Ok(json!({ "added_acls": added, "removed_acls": removed }))
    }

    async fn acl_of(&self, who: &Principal, fields: &Body) -> Result<Option<Uuid>, RecordsError> {
        let on = acl::object(fields);
        self.catalog
            .look(|view| {
                let org = on.and_then(|(object, id)| guard::org_of(view, object, id));
                let Some(there) = org.map(|org| within(view, who, org)).transpose()?.flatten() else { return Ok(None) };
                let key = ACL.key_of(there.org.0, fields);
                Ok(key.and_then(|key| view.find(&key).map(|record| record.id)))
            })
            .await
    }
}

fn acls_in(body: &mut Map<String, Value>, name: &str) -> Result<Vec<Body>, RecordsError> {
    let wrong = || RecordsError::BadRequest(format!("`{name}` has to be a list of ACLs"));
    match body.remove(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            let objects =
                items.into_iter().map(|item| if let Value::Object(fields) = item { Some(fields) } else { None });
            objects.collect::<Option<Vec<_>>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

//! Second check of rights at the node with the rows, against its own copy of the catalog.
//!
//! A refusal that may result from an old copy is checked again behind a fence.

use assay_cluster::{Guard, ObjectAccess};
use assay_node_auth::{Asker, Decision, ObjectType, Permission, Principal, Target, decide};
use assay_storage_model::{ObjectKey, ObjectKind};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Records;
use crate::authz::CatalogView;
use crate::authz::{still_known, within};
use crate::error::RecordsError;
use crate::kinds;
use crate::read::rows_of;

impl Guard for Records {
    fn check(
        &self,
        principal: Bytes,
        deed: ObjectAccess,
        objects: Vec<ObjectKey>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let records = self.clone();
        async move {
            let asker = Asker::from_bytes(&principal).ok_or("the principal of the request cannot be decoded")?;
            records.recheck(&asker, deed, &objects).await.map_err(|why| why.to_string())
        }
        .boxed()
    }
}

impl Records {
    /// Refuses unless the requester may access all of the objects.
    pub async fn recheck(&self, asker: &Asker, deed: ObjectAccess, objects: &[ObjectKey]) -> Result<(), RecordsError> {
        if let Asker::Job(job) = asker {
            let refused = objects.iter().find(|object| !job.may(deed == ObjectAccess::Write, object.kind));
            return match refused {
                None => Ok(()),
                Some(object) => Err(RecordsError::Forbidden(format!("{job:?} is not allowed to access {object}"))),
            };
        }
        let missing = || RecordsError::Internal("the principal is neither a user nor a job".into());
        let who = asker.principal().ok_or_else(missing)?;
        self.catalog.look(|view| objects.iter().try_for_each(|object| may(view, &who, deed, object))).await
    }
}

fn may(view: &CatalogView<'_>, who: &Principal, deed: ObjectAccess, object: &ObjectKey) -> Result<(), RecordsError> {
    let missing = || RecordsError::NotFound(format!("{object} is not visible to this credential"));
    // The first node has checked the exact permission. This check accepts any permission that writes rows.
    let writes = [Permission::Create, Permission::Update, Permission::Delete];
    let of_rows = |permission| {
        let kind = kinds::of_object(object.kind).ok_or_else(missing)?;
        let seen = rows_of(view, who, kind, object.kind, object.id, permission)?;
        if seen.who.org == object.org { Ok(()) } else { Err(missing()) }
    };
    match object.kind {
        ObjectKind::ProjectLogs | ObjectKind::Experiment | ObjectKind::Dataset | ObjectKind::PlaygroundLogs => {
            match deed {
                ObjectAccess::Read => of_rows(Permission::Read),
                ObjectAccess::Write => {
                    let [create, update, delete] = writes;
                    of_rows(create).or_else(|_| of_rows(update)).or_else(|_| of_rows(delete))
                }
            }
        }
        // Prompts have individual grants, and only the rows tell which prompts are affected.
        ObjectKind::ProjectPrompts | ObjectKind::Files => {
            still_known(view, who)?;
            within(view, who, object.org)?.map(drop).ok_or_else(missing)
        }
        ObjectKind::AuditLog if deed == ObjectAccess::Read => {
            still_known(view, who)?;
            let there = within(view, who, object.org)?.ok_or_else(missing)?;
            let target = Target::of_organization(ObjectType::OrgAuditLogs, object.org);
            match decide(&there, Permission::Read, &target) {
                Decision::Allowed => Ok(()),
                Decision::Forbidden | Decision::NotVisible => Err(missing()),
            }
        }
        ObjectKind::AuditLog => {
            Err(RecordsError::Forbidden("clients cannot write to the audit log of an organization".into()))
        }
    }
}

//! Service accounts with rights on one project alone, for clients of other products.

use assay_node_records::RecordsError;
use assay_node_records::kinds::{ACL, PROJECT, role};
use assay_node_records::mechanism::{self, Body, By, NewToken, check_name, unexpected};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord};
use assay_storage_model::{OrgId, catalog::RecordKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Identity;

/// Service account of one project, with its first token.
#[derive(Clone, Debug)]
pub struct ProjectAccount {
    pub project: Uuid,
    /// Description for the administrator, with the token in `service_token`.
    pub described: Value,
}

impl Identity {
    /// Creates a service account that changes one project and what is in it, with its first token.
    ///
    /// `project` is a name or an id.
    pub async fn admin_create_project_account(
        &self,
        organization: &str,
        project: &str,
        name: &str,
    ) -> Result<ProjectAccount, RecordsError> {
        check_name("name", name)?;
        let org = self.records.organization_named(organization).await?;
        let missing =
            || RecordsError::NotFound(format!("no project `{project}` is in the organization `{organization}`"));
        let id = self.catalog.peek(|view| {
            let named = view.find(&PROJECT.name_key(org.0, project)).map(|record| record.id);
            let by_id = || Uuid::parse_str(project).ok();
            let id = named.or_else(by_id).ok_or_else(missing)?;
            let record = view.get(RecordKind::PROJECT, id).filter(|record| record.org == Some(org));
            record.map(|record| record.id).ok_or_else(missing)
        })?;
        let account = self.add_account(By::Operator, org, name).await?;
        let grant = grant_of(org, id, account.id);
        match self.catalog.propose_one(By::Operator, CatalogCommand::Put(grant)).await? {
            CatalogOutcome::Put { made: true, .. } => {}
            other => return Err(unexpected(&other)),
        }
        let made = self.records.put_tokens(By::Operator, &[NewToken { org, account: account.id, name }]).await?;
        let token = made.first().map(|(_, secret)| secret.expose());
        let described = json!({
            "id": account.id.to_string(), "name": name, "email": account.email, "organization": organization,
            "project_id": id.to_string(), "service_token": token,
        });
        Ok(ProjectAccount { project: id, described })
    }
}

/// Returns the grant of the role Engineer on a project.
fn grant_of(org: OrgId, project: Uuid, account: Uuid) -> PutRecord {
    let body = Body::from_iter([
        ("object_type".to_owned(), Value::from("project")),
        ("object_id".to_owned(), project.to_string().into()),
        ("user_id".to_owned(), account.to_string().into()),
        ("role_id".to_owned(), role::ENGINEER.to_string().into()),
    ]);
    PutRecord {
        kind: ACL.record,
        id: mechanism::new_id(),
        org: Some(org),
        expect: Expect::Absent,
        keys: ACL.key_of(org.0, &body).into_iter().collect(),
        body: Value::Object(body).to_string().into_bytes(),
        at: mechanism::now_micros(),
    }
}

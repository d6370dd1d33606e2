//! Service accounts: users that are programs, each in one organization, and their tokens.
//!
//! A token is made by who shows a token of an owner; the very first one of an organization is made by an administrator.

use assay_node_records::RecordsError;
use assay_node_records::kinds::service_token::{ACCOUNT, check_account};
use assay_node_records::kinds::{SERVICE_TOKEN, organization, user};
use assay_node_records::mechanism::{self, By, NewToken, Walk, check_name, unexpected};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, RecordKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Identity;

/// Upper bound of attempts. Each loses only to another account that got the same address by chance.
const ATTEMPTS_MAX: usize = 8;

/// A service account that was made.
#[derive(Clone, Debug)]
pub(crate) struct ServiceAccount {
    pub id: Uuid,
    pub email: String,
}

impl Identity {
    /// Makes a service account, with nothing granted to it.
    pub(crate) async fn add_account(&self, by: By<'_>, org: OrgId, name: &str) -> Result<ServiceAccount, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            self.records.check_record_count(RecordKind::ORG_MEMBER, org)?;
            let (id, now) = (mechanism::new_id(), mechanism::now_micros());
            let email = user::account_email(name, org, mechanism::random::<4>()?);
            let puts = [
                user::put_account(id, org, name, &email, now),
                organization::put_member(mechanism::new_id(), org, id, now),
            ];
            let outcomes = self.catalog.propose(by, puts.into_iter().map(CatalogCommand::Put).collect()).await?;
            match outcomes.into_iter().find(|outcome| !matches!(outcome, CatalogOutcome::Put { made: true, .. })) {
                None => return Ok(ServiceAccount { id, email }),
                // The membership is of an id that nobody has.
                Some(CatalogOutcome::Taken { .. }) => {}
                Some(other) => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy("others keep taking the address of a service account: try again".into()))
    }

    /// Refuses to take a service account into an organization that is not its own.
    pub(crate) fn check_may_join(&self, org: OrgId, user: Uuid) -> Result<(), RecordsError> {
        let home = self.catalog.peek(|view| view.get(RecordKind::USER, user).and_then(|user| user.org));
        match home.filter(|home| *home != org) {
            Some(_) => Err(RecordsError::BadRequest(format!(
                "user {user} is a service account of another organization: make one here with `service_accounts`"
            ))),
            None => Ok(()),
        }
    }

    /// Makes a service account with its first token. It owns the organization, as users do that an administrator makes.
    pub async fn admin_create_service_account(&self, organization: &str, name: &str) -> Result<Value, RecordsError> {
        check_name("name", name)?;
        let org = self.records.organization_named(organization).await?;
        let account = self.add_account(By::Operator, org, name).await?;
        self.add_owner(org, account.id).await?;
        let made = self.records.put_tokens(By::Operator, &[NewToken { org, account: account.id, name }]).await?;
        let token = made.first().map(|(_, secret)| secret.expose());
        Ok(json!({
            "id": account.id.to_string(), "name": name, "email": account.email, "organization": organization,
            "service_token": token,
        }))
    }

    /// Makes a token for a service account. The answer holds the token itself, which nobody can read again.
    pub async fn admin_create_service_token(
        &self,
        organization: &str,
        account: &str,
        name: &str,
    ) -> Result<Value, RecordsError> {
        check_name("name", name)?;
        let org = self.records.organization_named(organization).await?;
        let missing = || {
            let said = format!("no service account `{account}` is in the organization `{organization}`");
            RecordsError::NotFound(said)
        };
        let account = self.catalog.peek(|view| {
            let found = match Uuid::parse_str(account) {
                Ok(id) => id,
                Err(_) => view.find(&user::email_key(account)).ok_or_else(missing)?.id,
            };
            check_account(view, org, found).map(|()| found).map_err(|_| missing())
        })?;
        let mut made = self.records.put_tokens(By::Operator, &[NewToken { org, account, name }]).await?;
        let (mut object, secret) = made.pop().ok_or_else(|| RecordsError::Internal("a token was not made".into()))?;
        object["service_token"] = secret.expose().into();
        Ok(object)
    }

    pub async fn admin_service_tokens(&self, organization: &str) -> Result<Value, RecordsError> {
        let org = self.records.organization_named(organization).await?;
        self.admin_listed(&SERVICE_TOKEN, org)
    }

    pub async fn admin_delete_service_token(&self, id: Uuid) -> Result<Value, RecordsError> {
        self.admin_delete(&SERVICE_TOKEN, "service token", id).await
    }

    /// Deletes the tokens of an account that leaves.
    pub(crate) async fn take_tokens(&self, by: By<'_>, org: OrgId, account: Uuid) -> Result<(), RecordsError> {
        let (mut walk, mut theirs) = (Walk::from_newest(&SERVICE_TOKEN, org), Vec::new());
        while !walk.is_over() {
            for token in self.catalog.peek(|view| walk.step(view, |_| true))? {
                if mechanism::id_in(&mechanism::read_body(&token)?, ACCOUNT) == Some(account) {
                    theirs.push(token.id);
                }
            }
        }
        for id in theirs {
            self.catalog.delete_record(by, RecordKind::SERVICE_TOKEN, id).await?;
        }
        Ok(())
    }
}

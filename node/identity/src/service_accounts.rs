//! Service accounts: programs as users of one organization, and their tokens.
//!
//! The service token of an owner can create tokens. An administrator creates the first one of an organization.

use assay_node_records::RecordsError;
use assay_node_records::kinds::service_token::{ACCOUNT, check_account};
use assay_node_records::kinds::{SERVICE_TOKEN, organization, user};
use assay_node_records::mechanism::{self, By, NewToken, Walk, check_name, unexpected};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, RecordKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Identity;

/// Upper bound of attempts. An attempt fails only if another account got the same random address.
const ATTEMPTS_MAX: usize = 8;
/// Upper bound of the characters of an account name in its address.
const SLUG_LETTERS_MAX: usize = 40;

/// New service account.
#[derive(Clone, Debug)]
pub(crate) struct ServiceAccount {
    pub id: Uuid,
    pub email: String,
}

impl Identity {
    /// Creates a service account without grants.
    pub(crate) async fn add_account(&self, by: By<'_>, org: OrgId, name: &str) -> Result<ServiceAccount, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            self.records.check_record_count(RecordKind::ORG_MEMBER, org)?;
            let (id, now) = (mechanism::new_id(), mechanism::now_micros());
            let email = account_email(name, org, mechanism::random::<4>()?);
            let puts = [
                user::put_account(id, org, name, &email, now),
                organization::put_member(mechanism::new_id(), org, id, now),
            ];
            let outcomes = self.catalog.propose(by, puts.into_iter().map(CatalogCommand::Put).collect()).await?;
            match outcomes.into_iter().find(|outcome| !matches!(outcome, CatalogOutcome::Put { made: true, .. })) {
                None => return Ok(ServiceAccount { id, email }),
                // The id of the user is new, so only the address can be taken.
                Some(CatalogOutcome::Taken { .. }) => {}
                Some(other) => return Err(unexpected(&other)),
            }
        }
        Err(RecordsError::Busy(
            "concurrent changes to the address of a service account prevented the request: try again".into(),
        ))
    }

    /// Refuses to add a service account to an organization other than its own.
    pub(crate) fn check_may_join(&self, org: OrgId, user: Uuid) -> Result<(), RecordsError> {
        let home = self.catalog.peek(|view| view.get(RecordKind::USER, user).and_then(|user| user.org));
        match home.filter(|home| *home != org) {
            Some(_) => Err(RecordsError::BadRequest(format!(
                "user {user} is a service account of another organization: create one here with `service_accounts`"
            ))),
            None => Ok(()),
        }
    }

    /// Creates a service account with its first token. Like users that an administrator creates, it owns the
    /// organization.
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

    /// Creates a token for a service account. Only this response contains the token itself.
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
        let (mut object, secret) =
            made.pop().ok_or_else(|| RecordsError::Internal("the token was not created".into()))?;
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

    /// Deletes the tokens of a leaving account.
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

/// Returns an address that cannot receive mail, because nobody can own the domain `.invalid`.
fn account_email(name: &str, org: OrgId, random: [u8; 4]) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(SLUG_LETTERS_MAX) {
        match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => slug.push(letter),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = Some(slug.trim_end_matches('-')).filter(|slug| !slug.is_empty()).unwrap_or("account");
    format!("{slug}-{:08x}@service.{org}.invalid", u32::from_be_bytes(random))
}

#[cfg(test)]
mod tests {
    use assay_node_records::kinds::user::check_email;

    use super::*;

    #[test]
    fn the_address_of_an_account_says_its_name_and_is_one() {
        let org = OrgId(Uuid::from_u128(7));
        for (name, slug) in [
            ("Nightly CI (eu)", "nightly-ci-eu"),
            ("評価", "account"),
            ("", "account"),
            (&"x".repeat(500), &"x".repeat(40)),
        ] {
            let email = account_email(name, org, [0, 1, 2, 255]);
            assert_eq!(email, format!("{slug}-000102ff@service.{org}.invalid"));
            assert_eq!(check_email(&email), Ok(()));
        }
    }
}

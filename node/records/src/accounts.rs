//! Service accounts and their tokens: users that are programs, each in one organization, and what they show.
//!
//! A token is made by who shows a token of an owner; the very first one of an organization is made by an administrator.

use assay_node_auth::{API_KEY_BYTES, Credential, ObjectType, Pepper, Principal, Secret, new_service_token, preview};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::audit::By;
use crate::authz::CatalogView;
use crate::commit::unexpected;
use crate::create::in_organization;
use crate::draft::{self, Body, Frame};
use crate::error::RecordsError;
use crate::kinds::service_token::{self, ACCOUNT, check_account, token_key};
use crate::kinds::{SERVICE_TOKEN, organization, role, user};
use crate::list::Walk;
use crate::{Created, Records, edge};

/// Each loses only to another account that got the same address by chance.
const ATTEMPTS_MAX: usize = 8;

/// Tokens that go into one log entry.
const TOKENS_AT_ONCE_MAX: usize = 100;

/// One that was made.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub id: Uuid,
    pub email: String,
}

/// A token that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewToken<'a> {
    pub org: OrgId,
    pub account: Uuid,
    pub name: &'a str,
}

impl Records {
    /// Another one each time: names are not unique.
    pub(crate) async fn create_token(
        &self,
        who: &Principal,
        body: Map<String, Value>,
    ) -> Result<Created, RecordsError> {
        let fields = draft::created(&SERVICE_TOKEN, body.clone())?;
        let missing = || RecordsError::BadRequest(format!("`{ACCOUNT}` is missing"));
        let account = draft::id_in(&fields, ACCOUNT).ok_or_else(missing)?;
        let (org_name, org_id) = (draft::text_of(&body, "org_name")?, draft::uuid_of(&body, "org_id")?);
        let org = self
            .catalog
            .look(|view| {
                let there = in_organization(view, who, org_id.map(OrgId), org_name)?;
                check_maker(&there)?;
                check_account(view, there.org, account)?;
                Ok(there.org)
            })
            .await?;
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut made = self.put_tokens(By::Caller(who), &[NewToken { org, account, name }]).await?;
        let (object, secret) = made.pop().ok_or_else(|| RecordsError::Internal("a token was not made".into()))?;
        Ok(Created { object, found_existing: false, secret: Some(secret) })
    }

    /// Each with its secret, which nobody can read again.
    pub(crate) async fn put_tokens(
        &self,
        by: By<'_>,
        tokens: &[NewToken<'_>],
    ) -> Result<Vec<(Value, Secret)>, RecordsError> {
        let (mut puts, mut made, at) = (Vec::new(), Vec::new(), edge::now_micros());
        for token in tokens {
            self.check_key_count(token.org, token.account, 1)?;
            self.check_record_count(RecordKind::SERVICE_TOKEN, token.org)?;
            let secret = new_service_token(&edge::random::<API_KEY_BYTES>()?);
            let body = body_of(token, &secret);
            let put = self
                .catalog
                .peek(|view| Ok::<_, RecordsError>(put_token(token, self.catalog.pepper(view)?, &secret, &body, at)))?;
            let frame = Frame { id: put.id, org: put.org, created: at, deleted: None };
            made.push((self.joined(&SERVICE_TOKEN, draft::shown(&SERVICE_TOKEN, &frame, body)), secret));
            puts.push(CatalogCommand::Put(put));
        }
        for part in puts.chunks(TOKENS_AT_ONCE_MAX) {
            let outcomes = self.catalog.propose(by, part.to_vec()).await?;
            if let Some(other) =
                outcomes.iter().find(|outcome| !matches!(outcome, CatalogOutcome::Put { made: true, .. }))
            {
                return Err(unexpected(other));
            }
        }
        Ok(made)
    }

    /// A new one, with nothing granted to it.
    pub(crate) async fn add_account(&self, by: By<'_>, org: OrgId, name: &str) -> Result<Account, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            self.check_record_count(RecordKind::ORG_MEMBER, org)?;
            let (id, now) = (edge::new_id(), edge::now_micros());
            let email = user::account_email(name, org, edge::random::<4>()?);
            let puts =
                [user::put_account(id, org, name, &email, now), organization::put_member(edge::new_id(), org, id, now)];
            let outcomes = self.catalog.propose(by, puts.into_iter().map(CatalogCommand::Put).collect()).await?;
            match outcomes.into_iter().find(|outcome| !matches!(outcome, CatalogOutcome::Put { made: true, .. })) {
                None => return Ok(Account { id, email }),
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

    /// API keys are people's.
    pub(crate) fn check_may_have_keys(&self, user: Uuid) -> Result<(), RecordsError> {
        let is_account = |view: &CatalogView<'_>| {
            view.get(RecordKind::USER, user).is_some_and(|user| user::is_service_account(user))
        };
        if self.catalog.peek(is_account) {
            let said = "a service account has no API keys: make it a service token, with POST /v1/service_token";
            return Err(RecordsError::Forbidden(said.into()));
        }
        Ok(())
    }

    /// With its first token. It owns the organization, as users do that an administrator makes.
    pub async fn admin_create_service_account(&self, organization: &str, name: &str) -> Result<Value, RecordsError> {
        check_name("name", name)?;
        let org = self.organization_named(organization).await?;
        let account = self.add_account(By::Operator, org, name).await?;
        self.add_owner(org, account.id).await?;
        let made = self.put_tokens(By::Operator, &[NewToken { org, account: account.id, name }]).await?;
        let token = made.first().map(|(_, secret)| secret.expose());
        Ok(json!({
            "id": account.id.to_string(), "name": name, "email": account.email, "organization": organization,
            "service_token": token,
        }))
    }

    /// The answer holds the token itself, which nobody can read again.
    pub async fn admin_create_service_token(
        &self,
        organization: &str,
        account: &str,
        name: &str,
    ) -> Result<Value, RecordsError> {
        check_name("name", name)?;
        let org = self.organization_named(organization).await?;
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
        let mut made = self.put_tokens(By::Operator, &[NewToken { org, account, name }]).await?;
        let (mut object, secret) = made.pop().ok_or_else(|| RecordsError::Internal("a token was not made".into()))?;
        object["service_token"] = secret.expose().into();
        Ok(object)
    }

    pub async fn admin_service_tokens(&self, organization: &str) -> Result<Value, RecordsError> {
        let org = self.organization_named(organization).await?;
        self.admin_listed(&SERVICE_TOKEN, org)
    }

    pub async fn admin_delete_service_token(&self, id: Uuid) -> Result<Value, RecordsError> {
        self.admin_delete(&SERVICE_TOKEN, "service token", id).await
    }

    /// What an account that leaves could come in with.
    pub(crate) async fn take_tokens(&self, by: By<'_>, org: OrgId, account: Uuid) -> Result<(), RecordsError> {
        let (mut walk, mut theirs) = (Walk::from_newest(&SERVICE_TOKEN, org), Vec::new());
        while !walk.is_over() {
            for token in self.catalog.peek(|view| walk.step(view, |_| true))? {
                if draft::id_in(&draft::read(&token)?, ACCOUNT) == Some(account) {
                    theirs.push(token.id);
                }
            }
        }
        for id in theirs {
            self.gone(by, RecordKind::SERVICE_TOKEN, id).await?;
        }
        Ok(())
    }
}

/// Refuses to make a credential while somebody acts as somebody else: it would stay with them when that right is gone.
pub(crate) fn check_is_self(who: &Principal) -> Result<(), RecordsError> {
    match who.impersonator {
        None => Ok(()),
        Some(_) => Err(RecordsError::Forbidden(
            "no keys and tokens are made while acting as another user: make it as yourself, have the user make it, or ask the \
             operator (`assay admin create-key`)"
                .into(),
        )),
    }
}

/// Who may make tokens, as they stand in the organization: not users, so that whoever gets hold of a person's key does not
/// make themselves a way in that stays when the person is gone.
pub(crate) fn check_maker(who: &Principal) -> Result<(), RecordsError> {
    if !matches!(who.credential, Credential::ServiceToken(_)) {
        let said = "service tokens are made with the service token of an owner, not with the credential of a user; the first \
                    one of an organization is made by an administrator: `assay admin create-service-account`";
        return Err(RecordsError::Forbidden(said.into()));
    }
    if !who.rights.has_role((ObjectType::Organization, who.org.0), role::OWNER) {
        let said =
            "service tokens are made by who has the role Owner in the organization, which this credential has not";
        return Err(RecordsError::Forbidden(said.into()));
    }
    check_is_self(who)
}

/// The name of an account or a token, by what the client calls it.
pub(crate) fn check_name(path: &str, name: &str) -> Result<(), RecordsError> {
    crate::shape::take(&crate::kinds::NAME, path, name.into()).map(drop)
}

fn body_of(token: &NewToken<'_>, secret: &Secret) -> Body {
    Body::from_iter([
        ("name".to_owned(), token.name.into()),
        ("preview_name".to_owned(), preview(secret.expose()).into()),
        (service_token::ACCOUNT.to_owned(), token.account.to_string().into()),
    ])
}

fn put_token(token: &NewToken<'_>, pepper: &Pepper, secret: &Secret, body: &Body, at: i64) -> PutRecord {
    PutRecord {
        kind: RecordKind::SERVICE_TOKEN,
        id: edge::new_id(),
        org: Some(token.org),
        expect: Expect::Absent,
        keys: vec![token_key(&pepper.fingerprint_of_token(secret.expose()))],
        body: Value::Object(body.clone()).to_string().into_bytes(),
        at,
    }
}

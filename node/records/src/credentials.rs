//! API keys and service tokens: records whose secret is returned once, on creation.

use assay_node_auth::{API_KEY_BYTES, Credential, ObjectType, Pepper, Principal, Secret, new_service_token, preview};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::audit::By;
use crate::authz::CatalogView;
use crate::commit::unexpected;
use crate::create::in_organization;
use crate::draft::{self, Body, EVERY_ORG, Frame};
use crate::error::RecordsError;
use crate::kinds::api_key::fingerprint_key;
use crate::kinds::service_token::{self, ACCOUNT, check_account, token_key};
use crate::kinds::{SERVICE_TOKEN, role, user};
use crate::{Created, Records, edge};

/// Upper bound of the tokens in one log entry.
const TOKENS_AT_ONCE_MAX: usize = 100;

/// Parameters of a new service token.
#[derive(Clone, Copy, Debug)]
pub struct NewToken<'a> {
    pub org: OrgId,
    pub account: Uuid,
    pub name: &'a str,
}

/// Parameters of an API key that is created without a principal.
#[derive(Clone, Copy, Debug)]
pub struct NewKey<'a> {
    /// Organization that lists the key. The key opens only this one unless `every_org` is set.
    pub org: OrgId,
    pub user: Uuid,
    pub name: &'a str,
    pub every_org: bool,
}

impl Records {
    /// Creates a token for the caller. Names are not unique, so every call creates a new one.
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
        let (object, secret) = made.pop().ok_or_else(|| RecordsError::Internal("the token was not created".into()))?;
        Ok(Created { object, found_existing: false, secret: Some(secret) })
    }

    /// Creates tokens and returns them with their secrets, which cannot be read later.
    pub async fn put_tokens(&self, by: By<'_>, tokens: &[NewToken<'_>]) -> Result<Vec<(Value, Secret)>, RecordsError> {
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

    /// Refuses API keys for service accounts, because API keys are for people.
    pub fn check_may_have_keys(&self, user: Uuid) -> Result<(), RecordsError> {
        let is_account = |view: &CatalogView<'_>| {
            view.get(RecordKind::USER, user).is_some_and(|user| user::is_service_account(user))
        };
        if self.catalog.peek(is_account) {
            let said = "a service account cannot have API keys: create a service token for it with POST \
                        /v1/service_token";
            return Err(RecordsError::Forbidden(said.into()));
        }
        Ok(())
    }

    /// Returns the write that creates a key.
    pub fn key_of(&self, key: &NewKey<'_>, secret: &Secret, now: i64) -> Result<PutRecord, RecordsError> {
        self.catalog.peek(|state| Ok(put_key(key, self.catalog.pepper(state)?, secret, now)))
    }
}

pub(crate) fn put_key(key: &NewKey<'_>, pepper: &Pepper, secret: &Secret, at: i64) -> PutRecord {
    let mut body = json!({
        "name": key.name,
        "preview_name": preview(secret.expose()),
        "user_id": key.user.to_string(),
    });
    if key.every_org {
        body[EVERY_ORG] = true.into();
    }
    PutRecord {
        kind: RecordKind::API_KEY,
        id: edge::new_id(),
        org: Some(key.org),
        expect: Expect::Absent,
        keys: vec![fingerprint_key(&pepper.fingerprint(secret.expose()))],
        body: body.to_string().into_bytes(),
        at,
    }
}

/// Refuses to create a credential during an impersonation, because it would outlast the right to impersonate.
pub fn check_is_self(who: &Principal) -> Result<(), RecordsError> {
    match who.impersonator {
        None => Ok(()),
        Some(_) => Err(RecordsError::Forbidden(
            "keys and tokens cannot be created while acting as another user: create it as yourself, or ask the user \
             or the operator (`assay admin create-key`)"
                .into(),
        )),
    }
}

/// Returns whether the caller has the role Owner in its organization.
pub fn is_owner(who: &Principal) -> bool {
    who.rights.has_role((ObjectType::Organization, who.org.0), role::OWNER)
}

/// Refuses to create tokens unless the caller is an owner with a service token. A stolen key of a person must not
/// create credentials that outlast the membership.
pub fn check_maker(who: &Principal) -> Result<(), RecordsError> {
    if !matches!(who.credential, Credential::ServiceToken(_)) {
        let why = "only the service token of an owner can create service tokens, not a user's credential. An \
                   administrator creates the first one of an organization with `assay admin create-service-account`";
        return Err(RecordsError::Forbidden(why.into()));
    }
    if !is_owner(who) {
        let why =
            "this credential cannot create service tokens, because it does not have the role Owner in the organization";
        return Err(RecordsError::Forbidden(why.into()));
    }
    check_is_self(who)
}

/// Checks the name of an account or a token. `path` is its field in the request.
pub fn check_name(path: &str, name: &str) -> Result<(), RecordsError> {
    assay_node_shapes::take(&crate::kinds::NAME, path, name.into())?;
    Ok(())
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

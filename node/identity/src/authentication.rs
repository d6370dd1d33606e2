//! Authentication: resolves a credential to a principal and its organizations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_auth::{Credential, ObjectType, Principal};
use assay_node_records::RecordsError;
use assay_node_records::kinds::api_key::fingerprint_key;
use assay_node_records::kinds::organization::{self, joined, member_key};
use assay_node_records::kinds::service_token::token_key;
use assay_node_records::kinds::{role, user};
use assay_node_records::mechanism::{
    self, CatalogView, CredentialScope, entry_of, no_impersonation, no_organization, unknown_credential,
};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::temporary_credentials::models_only;
use crate::{Identity, OrganizationRef};

/// Tolerated difference between the clocks of two nodes.
const CLOCKS_APART_SECONDS: i64 = 10;
/// Minimum time between two audit entries about the same impersonation.
const IMPERSONATION_KEPT_EVERY: Duration = Duration::from_secs(600);
/// Upper bound of remembered impersonations, above which all are forgotten.
const IMPERSONATIONS_MAX: usize = 10_000;

impl Identity {
    /// Returns the principal of a credential: an API key, a service token, an access token, or a JWT of a trusted
    /// issuer.
    ///
    /// `org_name` selects one organization of the user; the default is the one that the user joined first. Temporary
    /// credentials are refused: see [`Identity::authenticate_model_caller`].
    pub async fn authenticate(&self, secret: &str, org_name: Option<&str>) -> Result<Principal, RecordsError> {
        self.authenticate_as(secret, org_name, None).await
    }

    /// Authenticates a caller who impersonates another user, given by id or address. The caller must own every
    /// organization of that user, and gets the rights of that user.
    pub async fn authenticate_as(
        &self,
        secret: &str,
        org_name: Option<&str>,
        other: Option<&str>,
    ) -> Result<Principal, RecordsError> {
        let known = self.known(secret, org_name, other).await?;
        match known.credential {
            Credential::Temporary { .. } => Err(models_only()),
            _ => Ok(known),
        }
    }

    /// Returns the principal of any credential, including temporary ones, which are for model calls only.
    pub(crate) async fn known(
        &self,
        secret: &str,
        org_name: Option<&str>,
        other: Option<&str>,
    ) -> Result<Principal, RecordsError> {
        let org_name = org_name.filter(|name| !name.is_empty());
        self.catalog.check_heard().await?;
        if let Some(look) = self.invocation_principal(secret, org_name) {
            return match other {
                Some(_) => Err(no_impersonation()),
                None => self.known_by(look).await,
            };
        }
        let (login, temporary) = (self.login_of(secret)?, self.temporary_of(secret)?);
        let jwts = self.jwts.as_ref().filter(|_| login.is_none() && temporary.is_none());
        let email = jwts.map(|jwts| jwts.email_of(secret)).transpose()?.flatten();
        let look = |state: &CatalogView<'_>| {
            let pepper = self.catalog.pepper(state)?;
            let key = fingerprint_key(&pepper.fingerprint(secret));
            let token = token_key(&pepper.fingerprint_of_token(secret));
            let shown = PresentedCredential { key, token, login, temporary, email: email.as_deref() };
            identify(state, &shown, org_name, other)
        };
        self.known_by(look).await
    }

    /// Returns the principal that `look` finds in the catalog, and logs an impersonation.
    pub(crate) async fn known_by(
        &self,
        look: impl Fn(&CatalogView<'_>) -> Result<Principal, RecordsError>,
    ) -> Result<Principal, RecordsError> {
        let known = match self.catalog.peek(&look) {
            Err(refusal) if refusal.may_be_stale() => {
                // Rate-limited, because anyone can cause this fence.
                self.catalog.paced_fence().await?;
                self.catalog.peek(&look)
            }
            answer => answer,
        }?;
        self.keep_impersonation(&known).await?;
        Ok(known)
    }

    /// Writes an audit entry about an impersonation, at intervals. Changes during it are logged with both users.
    async fn keep_impersonation(&self, who: &Principal) -> Result<(), RecordsError> {
        if who.impersonator.is_none() || self.impersonations.is_kept(who) {
            return Ok(());
        }
        let entry = entry_of(who, "impersonate", ("user", who.user), serde_json::Value::Null);
        self.catalog.keep_entry(who.org, entry).await?;
        self.impersonations.keep(who);
        Ok(())
    }

    /// Refuses a file URL if its user has left the organization since, even after a return. It also refuses an
    /// impersonator who lost the right. `given` is the time of creation in seconds since the epoch.
    pub async fn check_ticket(
        &self,
        org: OrgId,
        user: Uuid,
        impersonator: Option<Uuid>,
        given: u64,
    ) -> Result<(), RecordsError> {
        self.catalog.check_heard().await?;
        self.catalog
            .look(|state| {
                let is_there = state.find(&member_key(org, user)).is_some();
                let since = joined(state, org, user).unwrap_or_default() / 1_000_000;
                let is_of_now =
                    i64::try_from(given).is_ok_and(|given| since <= given.saturating_add(CLOCKS_APART_SECONDS));
                let may_act = match impersonator {
                    None => true,
                    Some(other) => {
                        let owns = (ObjectType::Organization, org.0);
                        state.find(&member_key(org, other)).is_some()
                            && state.rights(org, other)?.has_role(owns, role::OWNER)
                    }
                };
                match is_there && is_of_now && may_act {
                    true => Ok(()),
                    false => Err(RecordsError::Unauthenticated(
                        "this URL was issued to a user who has left the organization: request a new one".into(),
                    )),
                }
            })
            .await
    }

    /// Returns the organizations of the credential, starting with the one that its user joined first.
    pub async fn organizations(&self, who: &Principal) -> Result<Vec<OrganizationRef>, RecordsError> {
        self.catalog.fresh().await?;
        self.catalog
            .look(|state| {
                let found = CredentialScope::of_principal(state, who)?.organizations(state);
                found
                    .into_iter()
                    .map(|org| Ok(OrganizationRef { id: OrgId(org.id), name: organization::name_of(&org)? }))
                    .collect()
            })
            .await
    }
}

/// Fingerprints and claims of a presented credential.
#[derive(Clone, Debug)]
struct PresentedCredential<'a> {
    key: UniqueKey,
    token: UniqueKey,
    /// Login that an access token of this cluster names.
    login: Option<Uuid>,
    /// Record that a temporary credential of this cluster names.
    temporary: Option<Uuid>,
    /// E-mail address that a JWT of another issuer proves.
    email: Option<&'a str>,
}

fn identify(
    state: &CatalogView<'_>,
    shown: &PresentedCredential<'_>,
    org_name: Option<&str>,
    other: Option<&str>,
) -> Result<Principal, RecordsError> {
    within_scope(state, scope_of(state, shown)?, org_name, other)
}

/// Returns the principal in one organization of a scope, for its user or for an impersonated user.
pub(crate) fn within_scope(
    state: &CatalogView<'_>,
    own: CredentialScope,
    org_name: Option<&str>,
    other: Option<&str>,
) -> Result<Principal, RecordsError> {
    let scope = match other.map(|named| user_named(state, named)) {
        // Impersonation of oneself has no effect.
        Some(Some(user)) if user != own.user => own.acting_as(state, user)?,
        Some(None) => return Err(no_impersonation()),
        _ => own,
    };
    let orgs = scope.organizations(state);
    let Some(wanted) = org_name else {
        let first = orgs.first().ok_or_else(unknown_credential)?;
        return scope.principal(state, first);
    };
    for org in &orgs {
        if organization::name_of(org)? == wanted {
            return scope.principal(state, org);
        }
    }
    Err(no_organization(wanted))
}

/// Returns the user of an address that an issuer asserts.
///
/// Issuers authenticate people only; service accounts have tokens. Only ASCII letters are compared without case,
/// because other letters can coincide in lower case although the mailboxes differ.
pub(crate) fn person<'s>(state: &'s CatalogView<'_>, email: &str) -> Option<&'s Arc<Record>> {
    let is_theirs = |user: &&Arc<Record>| {
        let same = |body: mechanism::Body| mechanism::text_in(&body, "email").eq_ignore_ascii_case(email);
        !user::is_service_account(user) && mechanism::read_body(user).is_ok_and(same)
    };
    state.find(&user::email_key(email)).filter(is_theirs)
}

fn user_named(state: &CatalogView<'_>, named: &str) -> Option<Uuid> {
    match Uuid::parse_str(named) {
        Ok(id) => state.get(RecordKind::USER, id).map(|user| user.id),
        Err(_) => state.find(&user::email_key(named)).map(|user| user.id),
    }
}

/// Returns the scope of a presented credential.
fn scope_of(state: &CatalogView<'_>, shown: &PresentedCredential<'_>) -> Result<CredentialScope, RecordsError> {
    if let Some(key) = state.find(&shown.key) {
        return CredentialScope::of_key(key);
    }
    if let Some(token) = state.find(&shown.token) {
        return CredentialScope::of_token(token);
    }
    if let Some(login) = shown.login {
        return CredentialScope::of(state, Credential::Login(login));
    }
    if let Some(temporary) = shown.temporary {
        return CredentialScope::of_temporary(state, state.get(RecordKind::TEMPORARY_CREDENTIAL, temporary));
    }
    let Some(email) = shown.email else { return Err(unknown_credential()) };
    let user = person(state, email);
    if user.is_none() {
        tracing::info!(email, "the subject of a JWT is not a user");
    }
    user.map(|user| CredentialScope::of_user(user.id)).ok_or_else(unknown_credential)
}

/// Impersonations that this node has recently logged.
#[derive(Debug, Default)]
pub(crate) struct Impersonations(Mutex<HashMap<(Uuid, Uuid, OrgId), Instant>>);

impl Impersonations {
    fn is_kept(&self, who: &Principal) -> bool {
        self.0
            .lock()
            .get(&(who.credential.record(), who.user, who.org))
            .is_some_and(|kept| kept.elapsed() < IMPERSONATION_KEPT_EVERY)
    }

    fn keep(&self, who: &Principal) {
        let mut kept = self.0.lock();
        if kept.len() >= IMPERSONATIONS_MAX {
            kept.clear();
        }
        kept.insert((who.credential.record(), who.user, who.org), Instant::now());
    }
}

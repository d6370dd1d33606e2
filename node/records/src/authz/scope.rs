//! Scope of a credential: its user, its organizations, and the principal in each of them.

use std::sync::Arc;

use assay_node_auth::{Credential, ObjectType, Principal};
use assay_storage_catalog::State;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use serde_json::Value;
use uuid::Uuid;

use crate::authz::CatalogView;
use crate::draft::{self, CLOSED_ORGS, EVERY_ORG};
use crate::error::RecordsError;
use crate::kinds::group::ids;
use crate::kinds::login::Login;
use crate::kinds::organization::{self, joined, member_key};
use crate::kinds::temporary_credential::TemporaryCredential;
use crate::kinds::{role, service_token};

/// User of a credential, and the organizations that the credential opens.
#[derive(Clone, Debug)]
pub struct CredentialScope {
    pub credential: Credential,
    pub user: Uuid,
    /// Owner of the credential during an impersonation.
    impersonator: Option<Uuid>,
    /// Only organization of the credential; `None` for all organizations of the user.
    org: Option<OrgId>,
    /// Organizations that the user left since the credential was created. They stay closed if the user returns.
    closed: Vec<Uuid>,
}

impl CredentialScope {
    /// Returns the current scope of a credential. It is an error if the state no longer has the credential.
    pub fn of(state: &State, credential: Credential) -> Result<CredentialScope, RecordsError> {
        match credential {
            Credential::ApiKey(id) => {
                CredentialScope::of_key(state.get(RecordKind::API_KEY, id).ok_or_else(unknown_credential)?)
            }
            Credential::ServiceToken(id) => {
                CredentialScope::of_token(state.get(RecordKind::SERVICE_TOKEN, id).ok_or_else(unknown_credential)?)
            }
            Credential::Jwt(user) => state
                .get(RecordKind::USER, user)
                .map(|user| CredentialScope::of_user(user.id))
                .ok_or_else(unknown_credential),
            Credential::Login(id) => {
                let login = Login::read(state.get(RecordKind::LOGIN, id).ok_or_else(unknown_credential)?)?;
                Ok(CredentialScope::of_login(id, login.user_id, login.closed))
            }
            Credential::Temporary { id, .. } => {
                CredentialScope::of_temporary(state, state.get(RecordKind::TEMPORARY_CREDENTIAL, id))
            }
        }
    }

    pub fn of_key(key: &Record) -> Result<CredentialScope, RecordsError> {
        let body = draft::read(key)?;
        let user = draft::id_in(&body, "user_id");
        let user = user.ok_or_else(|| RecordsError::Internal(format!("API key {} has no user", key.id)))?;
        let every = body.get(EVERY_ORG).and_then(Value::as_bool).unwrap_or(false);
        let org = key.org.filter(|_| !every);
        let closed = ids(&body, CLOSED_ORGS).collect();
        Ok(CredentialScope { credential: Credential::ApiKey(key.id), user, impersonator: None, org, closed })
    }

    pub fn of_token(token: &Record) -> Result<CredentialScope, RecordsError> {
        let wrong = || RecordsError::Internal(format!("service token {} has no account", token.id));
        let user = draft::id_in(&draft::read(token)?, service_token::ACCOUNT).ok_or_else(wrong)?;
        let org = Some(token.org.ok_or_else(wrong)?);
        let credential = Credential::ServiceToken(token.id);
        Ok(CredentialScope { credential, user, impersonator: None, org, closed: Vec::new() })
    }

    pub fn of_user(user: Uuid) -> CredentialScope {
        CredentialScope { credential: Credential::Jwt(user), user, impersonator: None, org: None, closed: Vec::new() }
    }

    pub fn of_login(id: Uuid, user: Uuid, closed: Vec<Uuid>) -> CredentialScope {
        CredentialScope { credential: Credential::Login(id), user, impersonator: None, org: None, closed }
    }

    /// Returns the scope of a temporary credential: its one organization, as long as its issuer opens that
    /// organization.
    pub fn of_temporary(state: &State, record: Option<&Arc<Record>>) -> Result<CredentialScope, RecordsError> {
        let record = record.ok_or_else(unknown_credential)?;
        let temporary = TemporaryCredential::read(record)?;
        let org = record.org.ok_or_else(|| {
            RecordsError::Internal(format!("the temporary credential {} has no organization", record.id))
        })?;
        // A chain of temporary credentials could be extended without end.
        let issuer = match temporary.parent {
            Credential::Temporary { .. } => return Err(unknown_credential()),
            parent => CredentialScope::of(state, parent)?,
        };
        if issuer.user != temporary.user_id || issuer.org.is_some_and(|only| only != org) {
            return Err(unknown_credential());
        }
        Ok(CredentialScope { credential: temporary.credential(record.id), org: Some(org), ..issuer })
    }

    pub fn acting_as(self, state: &CatalogView<'_>, user: Uuid) -> Result<CredentialScope, RecordsError> {
        if matches!(self.credential, Credential::Temporary { .. }) {
            return Err(no_impersonation());
        }
        let everywhere = CredentialScope { user, impersonator: Some(self.user), ..self.clone() };
        let mut is_member = false;
        for org in state.all(RecordKind::ORGANIZATION).map(|org| OrgId(org.id)) {
            if state.find(&member_key(org, user)).is_none() {
                continue;
            }
            is_member = true;
            let owns = state.rights(org, self.user)?.has_role((ObjectType::Organization, org.0), role::OWNER);
            if !owns || !self.speaks_for(state, org) {
                return Err(no_impersonation());
            }
        }
        is_member.then_some(everywhere).ok_or_else(no_impersonation)
    }

    /// Returns the current scope of the credential of a principal, including an impersonation.
    pub fn of_principal(state: &State, who: &Principal) -> Result<CredentialScope, RecordsError> {
        Ok(CredentialScope {
            user: who.user,
            impersonator: who.impersonator,
            ..CredentialScope::of(state, who.credential)?
        })
    }

    pub fn speaks_for(&self, state: &State, org: OrgId) -> bool {
        let is_open = self.org.is_none_or(|only| only == org) && !self.closed.contains(&org.0);
        // Memberships of a deleted organization are the last of its records to go.
        let lives = || state.get(RecordKind::ORGANIZATION, org.0).is_some();
        is_open && lives() && state.find(&member_key(org, self.user)).is_some()
    }

    /// Returns the organizations of the scope, starting with the one that the user joined first, which is the default.
    ///
    /// Memberships from versions before 0.5 have no time. They precede the others, in the order in which the
    /// organizations were created.
    pub fn organizations(&self, state: &State) -> Vec<Arc<Record>> {
        let mut orgs: Vec<_> = match self.org {
            Some(org) => state.get(RecordKind::ORGANIZATION, org.0).into_iter().cloned().collect(),
            None => state.all(RecordKind::ORGANIZATION).cloned().collect(),
        };
        orgs.retain(|org| self.speaks_for(state, OrgId(org.id)));
        orgs.sort_by_cached_key(|org| (joined(state, OrgId(org.id), self.user), org.created, org.id));
        orgs
    }

    pub fn principal(&self, state: &CatalogView<'_>, org: &Record) -> Result<Principal, RecordsError> {
        let user = state.get(RecordKind::USER, self.user).ok_or_else(unknown_credential)?;
        Ok(Principal {
            org: OrgId(org.id),
            org_name: organization::name_of(org)?,
            user: self.user,
            user_email: draft::text_in(&draft::read(user)?, "email"),
            impersonator: self.impersonator,
            credential: self.credential,
            rights: state.rights(OrgId(org.id), self.user)?,
        })
    }
}

/// Returns a person as a principal of a login in each of its organizations, starting with the first joined. The login
/// may not exist yet.
pub fn by_login(state: &CatalogView<'_>, login: Uuid, user: Uuid) -> Result<Vec<Principal>, RecordsError> {
    let record = state.get(RecordKind::LOGIN, login).map(|record| Login::read(record)).transpose()?;
    let scope = CredentialScope::of_login(login, user, record.map(|login| login.closed).unwrap_or_default());
    scope.organizations(state).iter().map(|org| scope.principal(state, org)).collect()
}

/// Returns the organizations of the credential of the caller.
pub fn own_organizations(state: &State, who: &Principal) -> Result<Vec<Arc<Record>>, RecordsError> {
    Ok(CredentialScope::of_principal(state, who)?.organizations(state))
}

/// Refuses if the credential of the principal no longer exists, so that its holder learns nothing.
pub fn still_known(state: &State, who: &Principal) -> Result<(), RecordsError> {
    CredentialScope::of(state, who.credential).map(drop)
}

/// Returns the principal in an organization; `None` if the credential does not open it.
///
/// Ids are valid across organizations, so access depends on the organization of the object.
pub fn within(state: &CatalogView<'_>, who: &Principal, org: OrgId) -> Result<Option<Principal>, RecordsError> {
    let scope = CredentialScope::of_principal(state, who)?;
    if org == who.org {
        if !scope.speaks_for(state, org) {
            return Ok(None);
        }
        // The rights may have changed since the authentication.
        return Ok(Some(Principal { rights: state.rights(org, who.user)?, ..who.clone() }));
    }
    match state.get(RecordKind::ORGANIZATION, org.0) {
        Some(record) if scope.speaks_for(state, org) => scope.principal(state, record).map(Some),
        _ => Ok(None),
    }
}

/// Returns the principal in the organization of this name.
pub fn within_named(state: &CatalogView<'_>, who: &Principal, name: &str) -> Result<Principal, RecordsError> {
    still_known(state, who)?;
    let org = state.find(&organization::name_key(name));
    let found = org.map(|org| within(state, who, OrgId(org.id))).transpose()?.flatten();
    found.ok_or_else(|| no_organization(name))
}

/// Returns the error for an invalid credential. The text is always the same, so that it reveals nothing.
pub fn unknown_credential() -> RecordsError {
    RecordsError::Unauthenticated("the API key or token is unknown, was deleted or has expired".into())
}

/// Returns the error for an organization that is not visible.
pub fn no_organization(name: &str) -> RecordsError {
    let name: String = name.chars().take(200).collect();
    RecordsError::NotFound(format!("no organization `{name}` is visible to this credential"))
}

/// Returns the error for an impersonation, the same for missing users, so that it does not reveal who exists.
pub fn no_impersonation() -> RecordsError {
    let said =
        "this credential is not allowed to act as that user: it needs the role Owner in every organization of the user";
    RecordsError::Forbidden(said.into())
}

//! Who is calling: from a secret to a principal, and the organizations a principal may act in.

use std::sync::Arc;

use assay_node_auth::{OrgRole, Pepper, Principal};
use assay_storage_catalog::State;
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, OrgId};
use serde_json::Value;
use uuid::Uuid;

use crate::draft::{self, Body, EVERY_ORG};
use crate::error::RecordsError;
use crate::kinds::api_key::fingerprint_key;
use crate::kinds::organization::member_key;
use crate::{OrgInfo, Records};

impl Records {
    /// Who has this credential. `org_name` picks where the user of a key is in several organizations; none or an
    /// empty one picks the oldest.
    pub async fn authenticate(&self, secret: &str, org_name: Option<&str>) -> Result<Principal, RecordsError> {
        let org_name = org_name.filter(|name| !name.is_empty());
        if !self.cluster.hears_catalog_soon().await {
            let why = "this node does not hear from the majority of the cluster, and cannot say who may do what";
            return Err(RecordsError::Unavailable(why.into()));
        }
        let look = |state: &State| {
            let fingerprint = self.pepper(state)?.fingerprint(secret);
            identify(state, &fingerprint, org_name)
        };
        match self.peek(look) {
            Err(refusal) if refusal.may_be_stale() => {
                // Paced, since anyone may knock.
                self.fences.pass().await?;
                self.peek(look)
            }
            answer => answer,
        }
    }

    /// The organizations this principal's key speaks for, oldest first.
    pub async fn organizations(&self, who: &Principal) -> Result<Vec<OrgInfo>, RecordsError> {
        self.fresh().await?;
        self.look(|state| {
            let found = Standing::of(key_of(state, who)?)?.organizations(state);
            found.into_iter().map(|org| Ok(OrgInfo { id: OrgId(org.id), name: name_of(&org)? })).collect()
        })
        .await
    }

    /// Looks at the local catalog; before a refusal that fresher state could turn, once more behind a fence.
    pub(crate) async fn look<T>(&self, look: impl Fn(&State) -> Result<T, RecordsError>) -> Result<T, RecordsError> {
        match self.peek(&look) {
            Err(refusal) if refusal.may_be_stale() => {
                self.cluster.fence(GroupId::CATALOG).await?;
                self.peek(&look)
            }
            answer => answer,
        }
    }

    /// Returns when what others acknowledged before the call can be seen here. Alone there are no others.
    pub(crate) async fn fresh(&self) -> Result<(), RecordsError> {
        if !self.cluster.is_alone() {
            self.cluster.fence(GroupId::CATALOG).await?;
        }
        Ok(())
    }

    /// One consistent view; a function, so that no lock lives across an await.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.cluster.catalog().read())
    }

    /// A key for one purpose, the same on every node and after every restart.
    pub fn derived_secret(&self, context: &str) -> Result<[u8; 32], RecordsError> {
        self.peek(|state| self.pepper(state).map(|pepper| pepper.derive(context)))
    }

    pub(crate) fn pepper(&self, state: &State) -> Result<&Pepper, RecordsError> {
        if let Some(pepper) = self.pepper.get() {
            return Ok(pepper);
        }
        let record = state.find(&pepper_key()).ok_or_else(not_founded)?;
        let body = draft::read(record)?;
        let pepper = body.get("value").and_then(Value::as_str).and_then(Pepper::from_hex);
        let pepper = pepper.ok_or_else(|| RecordsError::Internal("the pepper of API keys does not read".into()))?;
        Ok(self.pepper.get_or_init(|| pepper))
    }
}

/// Where the pepper is kept: made at the founding, never changed.
pub(crate) fn pepper_key() -> UniqueKey {
    UniqueKey::new("cluster_setting", "api_key_pepper")
}

pub(crate) fn not_founded() -> RecordsError {
    RecordsError::Unavailable("this cluster has no organization yet: its first start has not ended".into())
}

fn unknown_key() -> RecordsError {
    RecordsError::Unauthenticated("the API key is not known here, or was deleted".into())
}

fn identify(state: &State, fingerprint: &str, org_name: Option<&str>) -> Result<Principal, RecordsError> {
    let key = state.find(&fingerprint_key(fingerprint)).ok_or_else(unknown_key)?;
    let standing = Standing::of(key)?;
    let orgs = standing.organizations(state);
    let Some(wanted) = org_name else {
        let first = orgs.first().ok_or_else(unknown_key)?;
        return standing.principal(state, first);
    };
    for org in &orgs {
        if name_of(org)? == wanted {
            return standing.principal(state, org);
        }
    }
    Err(no_organization(wanted))
}

pub(crate) fn no_organization(name: &str) -> RecordsError {
    let name: String = name.chars().take(200).collect();
    RecordsError::NotFound(format!("no organization `{name}` is visible to this credential"))
}

/// What a key says of whom it speaks for.
#[derive(Clone, Copy, Debug)]
struct Standing {
    key: Uuid,
    user: Uuid,
    /// None speaks for every organization of the user.
    org: Option<OrgId>,
}

impl Standing {
    fn of(key: &Record) -> Result<Standing, RecordsError> {
        let body = draft::read(key)?;
        let user = draft::id_in(&body, "user_id");
        let user = user.ok_or_else(|| RecordsError::Internal(format!("API key {} names no user", key.id)))?;
        let every = body.get(EVERY_ORG).and_then(Value::as_bool).unwrap_or(false);
        Ok(Standing { key: key.id, user, org: key.org.filter(|_| !every) })
    }

    fn speaks_for(&self, state: &State, org: OrgId) -> bool {
        self.org.is_none_or(|only| only == org) && state.find(&member_key(org, self.user)).is_some()
    }

    /// Oldest first. Organizations are few, made by an administrator.
    fn organizations(&self, state: &State) -> Vec<Arc<Record>> {
        let mut orgs: Vec<_> = match self.org {
            Some(org) => state.get(RecordKind::ORGANIZATION, org.0).into_iter().cloned().collect(),
            None => state.all(RecordKind::ORGANIZATION).cloned().collect(),
        };
        orgs.retain(|org| self.speaks_for(state, OrgId(org.id)));
        orgs.sort_by_key(|org| (org.created, org.id));
        orgs
    }

    fn principal(&self, state: &State, org: &Record) -> Result<Principal, RecordsError> {
        let user = state.get(RecordKind::USER, self.user).ok_or_else(unknown_key)?;
        Ok(Principal {
            org: OrgId(org.id),
            org_name: name_of(org)?,
            user: self.user,
            user_email: text_in(&draft::read(user)?, "email"),
            key: self.key,
            role: OrgRole::Owner,
        })
    }
}

fn name_of(org: &Record) -> Result<String, RecordsError> {
    Ok(text_in(&draft::read(org)?, "name"))
}

pub(crate) fn text_in(body: &Body, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The principal's key. It may be gone by now: what is looked at may be newer than the state that knew the key, and says
/// nothing to it any more.
pub(crate) fn key_of<'s>(state: &'s State, who: &Principal) -> Result<&'s Record, RecordsError> {
    state.get(RecordKind::API_KEY, who.key).map(Arc::as_ref).ok_or_else(unknown_key)
}

/// The principal as they stand in an organization; none where their key does not speak for it. Ids name things of any
/// organization, so what decides is the organization of the thing.
pub(crate) fn within(state: &State, who: &Principal, org: OrgId) -> Result<Option<Principal>, RecordsError> {
    let key = key_of(state, who)?;
    if org == who.org {
        let is_member = state.find(&member_key(org, who.user)).is_some();
        return Ok(is_member.then(|| who.clone()));
    }
    let standing = Standing::of(key)?;
    match state.get(RecordKind::ORGANIZATION, org.0) {
        Some(record) if standing.speaks_for(state, org) => standing.principal(state, record).map(Some),
        _ => Ok(None),
    }
}

/// The same for an organization that was named.
pub(crate) fn within_named(state: &State, who: &Principal, name: &str) -> Result<Principal, RecordsError> {
    key_of(state, who)?;
    if name == who.org_name {
        return Ok(who.clone());
    }
    let org = state.find(&crate::kinds::organization::name_key(name));
    let found = org.map(|org| within(state, who, OrgId(org.id))).transpose()?.flatten();
    found.ok_or_else(|| no_organization(name))
}

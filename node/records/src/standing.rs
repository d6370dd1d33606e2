//! Who is calling: from a secret to a principal, and the organizations a principal may act in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_auth::{Credential, ObjectType, Pepper, Principal};
use assay_storage_catalog::State;
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, OrgId};
use parking_lot::Mutex;
use serde_json::Value;
use uuid::Uuid;

use crate::access::Sight;
use crate::audit::entry_of;
use crate::draft::{self, Body, CLOSED_ORGS, EVERY_ORG};
use crate::error::RecordsError;
use crate::kinds::api_key::fingerprint_key;
use crate::kinds::group::ids;
use crate::kinds::login::Login;
use crate::kinds::organization::{joined, member_key};
use crate::kinds::service_token::token_key;
use crate::kinds::{role, service_token, user};
use crate::{OrgInfo, Records};

/// Upper bound of what the clocks of two nodes may differ by, where what happened on one is compared with the other.
const CLOCKS_APART_SECONDS: i64 = 10;
/// How often it is kept that somebody goes on acting as somebody else.
const IMPERSONATION_KEPT_EVERY: Duration = Duration::from_secs(600);
/// Pairs that are remembered; above it all are kept again.
const IMPERSONATIONS_MAX: usize = 10_000;

impl Records {
    /// Who has this credential: an API key, a service token, the access token of a login, or a JWT where an issuer of them is
    /// trusted. `org_name` picks
    /// where the user is in several organizations; none or an empty one picks the one that they joined first.
    pub async fn authenticate(&self, secret: &str, org_name: Option<&str>) -> Result<Principal, RecordsError> {
        self.authenticate_as(secret, org_name, None).await
    }

    /// The same, acting as another user who is named by id or address. Only who owns every organization that the other is in
    /// may do that, and then does what the other may do.
    pub async fn authenticate_as(
        &self,
        secret: &str,
        org_name: Option<&str>,
        other: Option<&str>,
    ) -> Result<Principal, RecordsError> {
        let org_name = org_name.filter(|name| !name.is_empty());
        self.check_hears().await?;
        let login = self.login_of(secret)?;
        let jwts = self.jwts.as_ref().filter(|_| login.is_none());
        let email = jwts.map(|jwts| jwts.email_of(secret)).transpose()?.flatten();
        let look = |state: &Sight<'_>| {
            let pepper = self.pepper(state)?;
            let key = fingerprint_key(&pepper.fingerprint(secret));
            let token = token_key(&pepper.fingerprint_of_token(secret));
            identify(state, &Shown { key, token, login, email: email.as_deref() }, org_name, other)
        };
        let known = match self.peek(look) {
            Err(refusal) if refusal.may_be_stale() => {
                // Paced, since anyone may knock.
                self.fences.pass().await?;
                self.peek(look)
            }
            answer => answer,
        }?;
        self.keep_impersonation(&known).await?;
        Ok(known)
    }

    async fn check_hears(&self) -> Result<(), RecordsError> {
        if self.cluster.hears_catalog_soon().await {
            return Ok(());
        }
        let why = self.cluster.catalog_silence();
        Err(RecordsError::Unavailable(format!("{why}, so this node cannot say who may do what; try again")))
    }

    /// That somebody acts as somebody else, once in a while. What they change meanwhile says so itself.
    async fn keep_impersonation(&self, who: &Principal) -> Result<(), RecordsError> {
        if who.impersonator.is_none() || self.impersonations.is_kept(who) {
            return Ok(());
        }
        let entry = entry_of(who, "impersonate", ("user", who.user), serde_json::Value::Null);
        self.keep_entry(who.org, entry).await?;
        self.impersonations.keep(who);
        Ok(())
    }

    /// Refuses an address of a file that was given to somebody who is not in the organization any more, also when they are back,
    /// or to somebody who acted as them and no longer may. `given` is when it was, in seconds since the epoch.
    pub async fn check_ticket(
        &self,
        org: OrgId,
        user: Uuid,
        impersonator: Option<Uuid>,
        given: u64,
    ) -> Result<(), RecordsError> {
        self.check_hears().await?;
        self.look(|state| {
            let is_there = state.find(&member_key(org, user)).is_some();
            let since = joined(state, org, user).unwrap_or_default() / 1_000_000;
            let is_of_now = i64::try_from(given).is_ok_and(|given| since <= given.saturating_add(CLOCKS_APART_SECONDS));
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
                    "this address was given to a user who is not in the organization any more: ask for another one"
                        .into(),
                )),
            }
        })
        .await
    }

    /// The organizations this principal's credential speaks for, the one that its user joined first at the front.
    pub async fn organizations(&self, who: &Principal) -> Result<Vec<OrgInfo>, RecordsError> {
        self.fresh().await?;
        self.look(|state| {
            let found = Standing::of_principal(state, who)?.organizations(state);
            found.into_iter().map(|org| Ok(OrgInfo { id: OrgId(org.id), name: name_of(&org)? })).collect()
        })
        .await
    }

    /// Looks at the local catalog; before a refusal that fresher state could turn, once more behind a fence.
    pub(crate) async fn look<T>(
        &self,
        look: impl Fn(&Sight<'_>) -> Result<T, RecordsError>,
    ) -> Result<T, RecordsError> {
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
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Sight<'_>) -> T) -> T {
        look(&Sight::new(&self.cluster.catalog().read(), &self.known))
    }

    /// A key for one purpose as up to 0.4.0: every copy of the catalog can make it.
    pub(crate) fn derived_secret(&self, context: &str) -> Result<[u8; 32], RecordsError> {
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

/// One sentence for every credential: whoever shows one that opens nothing learns nothing about it.
fn unknown() -> RecordsError {
    RecordsError::Unauthenticated("the API key or token is not known here, was deleted or has expired".into())
}

/// A credential as it is looked up.
#[derive(Clone, Debug)]
struct Shown<'a> {
    key: UniqueKey,
    token: UniqueKey,
    /// What it names where it is an access token of ours.
    login: Option<Uuid>,
    /// What it proves where it is a JWT of somebody else's.
    email: Option<&'a str>,
}

fn identify(
    state: &Sight<'_>,
    shown: &Shown<'_>,
    org_name: Option<&str>,
    other: Option<&str>,
) -> Result<Principal, RecordsError> {
    let own = Standing::shown(state, shown)?;
    let standing = match other.map(|named| user_named(state, named)) {
        // Whoever names themselves acts as themselves.
        Some(Some(user)) if user != own.user => own.acting_as(state, user)?,
        Some(None) => return Err(no_impersonation()),
        _ => own,
    };
    let orgs = standing.organizations(state);
    let Some(wanted) = org_name else {
        let first = orgs.first().ok_or_else(unknown)?;
        return standing.principal(state, first);
    };
    for org in &orgs {
        if name_of(org)? == wanted {
            return standing.principal(state, org);
        }
    }
    Err(no_organization(wanted))
}

/// The user whom somebody else's word on an address is about. An issuer knows people; accounts of programs have tokens of
/// ours. Letters of other scripts may fall together in lower case, and stand for other mailboxes.
pub(crate) fn person<'s>(state: &'s State, email: &str) -> Option<&'s Arc<Record>> {
    let is_theirs = |user: &&Arc<Record>| {
        let same = |body: Body| text_in(&body, "email").eq_ignore_ascii_case(email);
        !user::is_service_account(user) && draft::read(user).is_ok_and(same)
    };
    state.find(&user::email_key(email)).filter(is_theirs)
}

fn user_named(state: &State, named: &str) -> Option<Uuid> {
    match Uuid::parse_str(named) {
        Ok(id) => state.get(RecordKind::USER, id).map(|user| user.id),
        Err(_) => state.find(&user::email_key(named)).map(|user| user.id),
    }
}

/// The same for whoever is not there, so that nobody learns who is.
fn no_impersonation() -> RecordsError {
    let said =
        "this credential may not act as that user: only who has the role Owner in every organization of a user may";
    RecordsError::Forbidden(said.into())
}

pub(crate) fn no_organization(name: &str) -> RecordsError {
    let name: String = name.chars().take(200).collect();
    RecordsError::NotFound(format!("no organization `{name}` is visible to this credential"))
}

/// Who acted as whom lately, as this node has kept it.
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

/// What a credential says of whom it speaks for.
#[derive(Clone, Debug)]
struct Standing {
    credential: Credential,
    user: Uuid,
    /// Whose credential it is, where they act as the user.
    impersonator: Option<Uuid>,
    /// None speaks for every organization of the user.
    org: Option<OrgId>,
    /// Organizations that the user left since the credential was made. It does not speak for them, also when the user is back.
    closed: Vec<Uuid>,
}

impl Standing {
    fn shown(state: &State, shown: &Shown<'_>) -> Result<Standing, RecordsError> {
        if let Some(key) = state.find(&shown.key) {
            return Standing::of_key(key);
        }
        if let Some(token) = state.find(&shown.token) {
            return Standing::of_token(token);
        }
        if let Some(login) = shown.login {
            return Standing::of(state, Credential::Login(login));
        }
        let Some(email) = shown.email else { return Err(unknown()) };
        let user = person(state, email);
        if user.is_none() {
            tracing::info!(email, "a JWT is about somebody who is no user here");
        }
        user.map(|user| Standing::of_user(user.id)).ok_or_else(unknown)
    }

    /// The credential of a principal as it is now. It may be gone: what is looked at may be newer than the state that knew
    /// it, and says nothing to it any more.
    fn of(state: &State, credential: Credential) -> Result<Standing, RecordsError> {
        match credential {
            Credential::ApiKey(id) => Standing::of_key(state.get(RecordKind::API_KEY, id).ok_or_else(unknown)?),
            Credential::ServiceToken(id) => {
                Standing::of_token(state.get(RecordKind::SERVICE_TOKEN, id).ok_or_else(unknown)?)
            }
            Credential::Jwt(user) => {
                state.get(RecordKind::USER, user).map(|user| Standing::of_user(user.id)).ok_or_else(unknown)
            }
            Credential::Login(id) => {
                let login = Login::read(state.get(RecordKind::LOGIN, id).ok_or_else(unknown)?)?;
                Ok(Standing::of_login(id, login.user_id, login.closed))
            }
        }
    }

    fn of_key(key: &Record) -> Result<Standing, RecordsError> {
        let body = draft::read(key)?;
        let user = draft::id_in(&body, "user_id");
        let user = user.ok_or_else(|| RecordsError::Internal(format!("API key {} names no user", key.id)))?;
        let every = body.get(EVERY_ORG).and_then(Value::as_bool).unwrap_or(false);
        let org = key.org.filter(|_| !every);
        let closed = ids(&body, CLOSED_ORGS).collect();
        Ok(Standing { credential: Credential::ApiKey(key.id), user, impersonator: None, org, closed })
    }

    fn of_token(token: &Record) -> Result<Standing, RecordsError> {
        let wrong = || RecordsError::Internal(format!("service token {} names no account", token.id));
        let user = draft::id_in(&draft::read(token)?, service_token::ACCOUNT).ok_or_else(wrong)?;
        let org = Some(token.org.ok_or_else(wrong)?);
        let credential = Credential::ServiceToken(token.id);
        Ok(Standing { credential, user, impersonator: None, org, closed: Vec::new() })
    }

    fn of_user(user: Uuid) -> Standing {
        Standing { credential: Credential::Jwt(user), user, impersonator: None, org: None, closed: Vec::new() }
    }

    fn of_login(id: Uuid, user: Uuid, closed: Vec<Uuid>) -> Standing {
        Standing { credential: Credential::Login(id), user, impersonator: None, org: None, closed }
    }

    fn acting_as(self, state: &Sight<'_>, user: Uuid) -> Result<Standing, RecordsError> {
        let everywhere = Standing { user, impersonator: Some(self.user), ..self.clone() };
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

    /// What the principal's credential says, of whom they act as.
    fn of_principal(state: &State, who: &Principal) -> Result<Standing, RecordsError> {
        Ok(Standing { user: who.user, impersonator: who.impersonator, ..Standing::of(state, who.credential)? })
    }

    fn speaks_for(&self, state: &State, org: OrgId) -> bool {
        let is_open = self.org.is_none_or(|only| only == org) && !self.closed.contains(&org.0);
        is_open && state.find(&member_key(org, self.user)).is_some()
    }

    /// The one that the user joined first at the front, whatever others do: it is the default. Memberships of versions before 0.5
    /// do not say when they began; they stand before the others, the oldest organization first, as they did then.
    /// Organizations are few, made by an administrator.
    fn organizations(&self, state: &State) -> Vec<Arc<Record>> {
        let mut orgs: Vec<_> = match self.org {
            Some(org) => state.get(RecordKind::ORGANIZATION, org.0).into_iter().cloned().collect(),
            None => state.all(RecordKind::ORGANIZATION).cloned().collect(),
        };
        orgs.retain(|org| self.speaks_for(state, OrgId(org.id)));
        orgs.sort_by_cached_key(|org| (joined(state, OrgId(org.id), self.user), org.created, org.id));
        orgs
    }

    fn principal(&self, state: &Sight<'_>, org: &Record) -> Result<Principal, RecordsError> {
        let user = state.get(RecordKind::USER, self.user).ok_or_else(unknown)?;
        Ok(Principal {
            org: OrgId(org.id),
            org_name: name_of(org)?,
            user: self.user,
            user_email: text_in(&draft::read(user)?, "email"),
            impersonator: self.impersonator,
            credential: self.credential,
            rights: state.rights(OrgId(org.id), self.user)?,
        })
    }
}

/// A person as they stand by a login, which may be about to be made, in each organization that it opens. The one that they
/// joined first is at the front.
pub(crate) fn by_login(state: &Sight<'_>, login: Uuid, user: Uuid) -> Result<Vec<Principal>, RecordsError> {
    let record = state.get(RecordKind::LOGIN, login).map(|record| Login::read(record)).transpose()?;
    let standing = Standing::of_login(login, user, record.map(|login| login.closed).unwrap_or_default());
    standing.organizations(state).iter().map(|org| standing.principal(state, org)).collect()
}

/// The organizations that the caller's credential speaks for.
pub(crate) fn own_organizations(state: &State, who: &Principal) -> Result<Vec<Arc<Record>>, RecordsError> {
    Ok(Standing::of_principal(state, who)?.organizations(state))
}

pub(crate) fn name_of(org: &Record) -> Result<String, RecordsError> {
    Ok(text_in(&draft::read(org)?, "name"))
}

pub(crate) fn text_in(body: &Body, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether the principal's credential is there still: one that is gone learns of nothing.
pub(crate) fn still_known(state: &State, who: &Principal) -> Result<(), RecordsError> {
    Standing::of(state, who.credential).map(drop)
}

/// The principal as they stand in an organization; none where their credential does not speak for it. Ids name things of any
/// organization, so what decides is the organization of the thing.
pub(crate) fn within(state: &Sight<'_>, who: &Principal, org: OrgId) -> Result<Option<Principal>, RecordsError> {
    let standing = Standing::of_principal(state, who)?;
    if org == who.org {
        if !standing.speaks_for(state, org) {
            return Ok(None);
        }
        // What they may do may have changed since they were asked who they are.
        return Ok(Some(Principal { rights: state.rights(org, who.user)?, ..who.clone() }));
    }
    match state.get(RecordKind::ORGANIZATION, org.0) {
        Some(record) if standing.speaks_for(state, org) => standing.principal(state, record).map(Some),
        _ => Ok(None),
    }
}

/// The same for an organization that was named.
pub(crate) fn within_named(state: &Sight<'_>, who: &Principal, name: &str) -> Result<Principal, RecordsError> {
    still_known(state, who)?;
    let org = state.find(&crate::kinds::organization::name_key(name));
    let found = org.map(|org| within(state, who, OrgId(org.id))).transpose()?.flatten();
    found.ok_or_else(|| no_organization(name))
}

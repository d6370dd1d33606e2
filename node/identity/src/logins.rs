//! Logins of people with their provider, from the request of a client to the end of the login.
//!
//! ```text
//! begin    nothing is stored: the state is a sealed ticket                              any node
//! finish   a login of the user with the address is created, the client gets its code    audited first
//! redeem   code + verifier -> tokens, once                                              a repetition ends the login
//! refresh  refresh token -> tokens, and the next refresh token                         an earlier token ends the login
//! end      revoked, or the user leaves the last organization that it opens
//! ```
//! Each step reads behind a fence and writes at the revision that it read. Of two concurrent requests on two nodes,
//! only one succeeds. A token is useless without the record.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_auth::{
    AccessClaims, CodeTicket, IdTokenClaims, LoginAsked, LoginKey, LoginRules, PendingLogin, RefreshTicket, Secret,
    Ticket, challenge_of, new_login_secret, proves,
};
use assay_node_records::RecordsError;
use assay_node_records::kinds::login::{Code, LOGINS_PER_USER_MAX, Login, place_key};
use assay_node_records::mechanism::{self, By, CatalogView, by_login, entry_of, text_in, unexpected};
use assay_node_secrets::{KeyId, VaultKey, without_key};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, DeleteRecord, Expect, PutRecord, Record, RecordKind,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Identity;
use crate::authentication::person;

/// Lifetime of a started login, which covers the visit of a person to the provider.
pub(crate) const PENDING_SECONDS: i64 = 600;
/// Lifetime of a code, which covers its way from the browser to the client and back.
const CODE_SECONDS: i64 = 60;
/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;
/// Minimum time between two audit entries about refusals of the same user.
const REFUSAL_KEPT_EVERY: Duration = Duration::from_secs(60);
/// Upper bound of remembered users, above which all are forgotten.
const REFUSALS_MAX: usize = 10_000;
/// Upper bound of the characters of an address in messages to a person.
const EMAIL_LETTERS_TOLD: usize = 200;

/// Parameters of a started login for the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedLogin {
    pub state: String,
    pub nonce: String,
    pub challenge: String,
}

/// Tokens that a client gets for a code or a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginTokens {
    pub access: Secret,
    pub refresh: Secret,
    /// Lifetime of the access token in seconds.
    pub expires_in: i64,
    pub scope: String,
}

/// Refusal of tokens with a message for the client, or a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantRefusal {
    Invalid(&'static str),
    Failed(RecordsError),
}

impl<E: Into<RecordsError>> From<E> for GrantRefusal {
    fn from(error: E) -> GrantRefusal {
        GrantRefusal::Failed(error.into())
    }
}

/// Refusals that this node has recently logged.
#[derive(Debug, Default)]
pub(crate) struct RecentRefusals(Mutex<HashMap<Uuid, Instant>>);

impl RecentRefusals {
    fn is_due(&self, user: Uuid) -> bool {
        self.0.lock().get(&user).is_none_or(|kept| kept.elapsed() >= REFUSAL_KEPT_EVERY)
    }

    fn keep(&self, user: Uuid) {
        let mut kept = self.0.lock();
        if kept.len() >= REFUSALS_MAX {
            kept.clear();
        }
        kept.insert(user, Instant::now());
    }
}

impl Identity {
    /// Returns the settings of logins; `None` if logins are disabled.
    pub fn login_rules(&self) -> Option<&LoginRules> {
        self.logins.as_deref()
    }

    pub fn begin_login(&self, asked: LoginAsked) -> Result<StartedLogin, RecordsError> {
        let (nonce, verifier) = (new_login_secret(&mechanism::random()?), new_login_secret(&mechanism::random()?));
        let (challenge, until) = (challenge_of(&verifier), now() + PENDING_SECONDS);
        let pending = PendingLogin { asked, nonce: nonce.clone(), verifier, until };
        Ok(StartedLogin { state: sealed(&self.login_key()?, &pending)?, nonce, challenge })
    }

    /// Returns the login of a state; `None` if the state is foreign or expired.
    pub fn pending_login(&self, state: &str) -> Result<Option<PendingLogin>, RecordsError> {
        self.ticket_in(state)
    }

    /// Returns the code for the client if the address belongs to a user. The text of `Forbidden` is for the person.
    pub async fn finish_login(&self, asked: &LoginAsked, who: &IdTokenClaims) -> Result<String, RecordsError> {
        self.finish_login_as(asked, who, asked.session.unwrap_or_else(mechanism::new_id)).await
    }

    /// Refuses a repeated confirmation, whose login or mark of a finished setup exists.
    pub async fn check_unanswered(&self, login: Uuid) -> Result<(), RecordsError> {
        self.catalog.fresh().await?;
        match self.login(login)? {
            None => Ok(()),
            Some(_) => Err(answered()),
        }
    }

    /// Finishes a login with a given id, so that repeated confirmations create only one login.
    pub async fn finish_login_as(
        &self,
        asked: &LoginAsked,
        who: &IdTokenClaims,
        id: Uuid,
    ) -> Result<String, RecordsError> {
        let key = self.login_key()?;
        self.check_unanswered(id).await?;
        let user = self.look_for(asked, who, id).await?;
        for _ in 0..ATTEMPTS_MAX {
            let (now, at) = (now(), mechanism::now_micros());
            let (place, last) = self.catalog.peek(|view| free_place(view, user, now))?;
            let code = Code {
                redirect_uri: asked.redirect_uri.clone(),
                challenge: asked.challenge.clone(),
                until: now + CODE_SECONDS,
            };
            let ticket = sealed(&key, &CodeTicket { login: id, until: code.until })?;
            let login = Login {
                user_id: user,
                client_id: asked.client_id.clone(),
                scope: asked.scope.clone(),
                place,
                until: now + self.login_settings()?.login_seconds,
                generation: 0,
                closed: Vec::new(),
                code: Some(code),
            };
            let gone = last.map(|last| CatalogCommand::Delete(deleted(&last)));
            let put = CatalogCommand::Put(put(id, Expect::Absent, &login, at)?);
            let outcomes = self.catalog.propose(By::System, gone.into_iter().chain([put]).collect()).await?;
            match outcomes.last() {
                Some(CatalogOutcome::Put { made: true, .. }) => return Ok(ticket),
                Some(CatalogOutcome::Taken { .. }) => self.catalog.fence().await?,
                Some(CatalogOutcome::Stale { .. }) => return Err(answered()),
                other => return Err(RecordsError::Internal(format!("unexpected outcome of a login: {other:?}"))),
            }
        }
        Err(busy())
    }

    /// Returns the user who logs in, after an audit entry.
    async fn look_for(&self, asked: &LoginAsked, who: &IdTokenClaims, login: Uuid) -> Result<Uuid, RecordsError> {
        let told: String = who.email.chars().take(EMAIL_LETTERS_TOLD).collect();
        let user = self.catalog.peek(|view| person(view, &who.email).map(|user| user.id));
        let standing = user.map(|user| self.catalog.peek(|view| by_login(view, login, user))).transpose()?;
        let mut details = json!({"client_id": asked.client_id, "scope": asked.scope});
        if let Some(name) = &asked.registered {
            details["client_name"] = name.as_str().into();
        }
        match (user, standing.filter(|orgs| !orgs.is_empty())) {
            (Some(user), Some(orgs)) if who.is_verified => {
                for there in orgs {
                    self.catalog
                        .keep_entry(there.org, entry_of(&there, "login", ("user", user), details.clone()))
                        .await?;
                }
                Ok(user)
            }
            (Some(user), Some(orgs)) => {
                if self.refused_logins.is_due(user) {
                    let details = json!({"client_id": asked.client_id, "why": "the address is not verified"});
                    for there in orgs {
                        let entry = unverified_entry("login_refused", user, &there.user_email, details.clone());
                        self.catalog.keep_entry(there.org, entry).await?;
                    }
                    self.refused_logins.keep(user);
                }
                Err(RecordsError::Forbidden(format!(
                    "The provider did not confirm that the address {told} is verified. Verify it there, and log in \
                     again."
                )))
            }
            _ => {
                tracing::info!(email = told, "a login at the provider succeeded, but its address is not a user here");
                Err(RecordsError::Forbidden(format!(
                    "No member of an organization here has the address {told}. Ask an administrator of the \
                     organization to invite that address, and log in again."
                )))
            }
        }
    }

    /// Redeems a code for tokens, once. A mismatch invalidates the code, because a third party has seen it.
    pub async fn redeem_code(
        &self,
        code: &str,
        client: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<LoginTokens, GrantRefusal> {
        const UNKNOWN: GrantRefusal =
            GrantRefusal::Invalid("the code is unknown, was used, or is older than a minute: log in again");
        let Some(ticket): Option<CodeTicket> = self.ticket_in(code)? else { return Err(UNKNOWN) };
        self.catalog.fresh().await?;
        for _ in 0..ATTEMPTS_MAX {
            let (record, login) = self.login(ticket.login)?.ok_or(UNKNOWN)?;
            let Some(code) = &login.code else {
                self.end(&record, &login, "login_code_reused").await?;
                return Err(GrantRefusal::Invalid("the code was already used, so its login has ended: log in again"));
            };
            if code.until <= now() {
                return Err(UNKNOWN);
            }
            let wrong = match code {
                _ if login.client_id != client => Some("the code belongs to another client; log in again"),
                code if code.redirect_uri != redirect_uri => {
                    Some("`redirect_uri` differs from the URI to which the code was sent; log in again")
                }
                code if !proves(verifier, &code.challenge) => {
                    Some("`code_verifier` does not match the challenge of the code; log in again")
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                self.end(&record, &login, "login_code_refused").await?;
                return Err(GrantRefusal::Invalid(wrong));
            }
            if let Some(tokens) = self.go_on(&record, login).await? {
                return Ok(tokens);
            }
        }
        Err(busy().into())
    }

    /// Returns the next tokens. Only the last refresh token is valid. Use of an earlier one ends the login, because one
    /// of the two parties must be a thief.
    pub async fn refresh_login(&self, token: &str, client: &str) -> Result<LoginTokens, GrantRefusal> {
        const UNKNOWN: GrantRefusal =
            GrantRefusal::Invalid("the refresh token is unknown, or its login has ended: log in again");
        let Some(ticket): Option<RefreshTicket> = self.ticket_in(token)? else { return Err(UNKNOWN) };
        self.catalog.fresh().await?;
        for _ in 0..ATTEMPTS_MAX {
            let (record, login) = self.login(ticket.login)?.ok_or(UNKNOWN)?;
            if login.client_id != client {
                return Err(GrantRefusal::Invalid("the refresh token belongs to another client"));
            }
            if login.is_over(now()) {
                return Err(UNKNOWN);
            }
            if login.generation != ticket.generation {
                self.end(&record, &login, "login_refresh_reused").await?;
                return Err(GrantRefusal::Invalid(
                    "the refresh token was already used, so its login has ended: log in again",
                ));
            }
            if let Some(tokens) = self.go_on(&record, login).await? {
                return Ok(tokens);
            }
        }
        Err(busy().into())
    }

    /// Ends the login of a refresh token or an access token. An unknown token is no error, because its login has ended
    /// already.
    pub async fn end_login(&self, token: &str, client: Option<&str>) -> Result<(), GrantRefusal> {
        let refresh: Option<RefreshTicket> = self.ticket_in(token)?;
        let id = match refresh {
            Some(ticket) => Some(ticket.login),
            None => self.login_of(token)?,
        };
        let Some(id) = id else { return Ok(()) };
        self.catalog.fresh().await?;
        let Some((record, login)) = self.login(id)? else { return Ok(()) };
        if client.is_some_and(|client| client != login.client_id) {
            return Err(GrantRefusal::Invalid("the token belongs to another client"));
        }
        Ok(self.end(&record, &login, "logout").await?)
    }

    /// Returns the next tokens of a login; `None` if it changed concurrently. The tokens are created before the record
    /// is written, so that a failure cannot lose them.
    async fn go_on(&self, record: &Record, login: Login) -> Result<Option<LoginTokens>, GrantRefusal> {
        let Some(there) = self.catalog.peek(|view| by_login(view, record.id, login.user_id))?.into_iter().next() else {
            self.end(record, &login, "logout").await?;
            return Err(GrantRefusal::Invalid("the user is no longer in any organization"));
        };
        let (key, now) = (self.login_key()?, now());
        let next = Login { generation: login.generation + 1, code: None, ..login };
        let origin = &self.login_settings()?.origin;
        let claims = AccessClaims {
            iss: origin.clone(),
            aud: origin.clone(),
            sub: there.user,
            name: self.catalog.peek(|view| name_of(view, there.user, &there.user_email))?,
            email: there.user_email,
            iat: now,
            exp: next.until.min(now + self.login_settings()?.access_seconds),
            jti: mechanism::new_id(),
            sid: record.id,
            client_id: next.client_id.clone(),
            scope: next.scope.clone(),
        };
        let too_long = || RecordsError::Internal("an access token is too long".into());
        let tokens = LoginTokens {
            access: Secret::new(key.sign(&claims).ok_or_else(too_long)?),
            refresh: Secret::new(sealed(&key, &RefreshTicket { login: record.id, generation: next.generation })?),
            expires_in: claims.exp - now,
            scope: next.scope.clone(),
        };
        let put = put(record.id, Expect::Revision(record.revision), &next, mechanism::now_micros())?;
        match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => Ok(Some(tokens)),
            CatalogOutcome::Stale { .. } => {
                self.catalog.fence().await?;
                Ok(None)
            }
            other => Err(unexpected(&other).into()),
        }
    }

    /// Writes an audit entry and deletes a login at any revision.
    pub(crate) async fn end(&self, record: &Record, login: &Login, action: &str) -> Result<(), RecordsError> {
        self.keep_end(record, login, action).await?;
        self.catalog.delete_record(By::System, RecordKind::LOGIN, record.id).await
    }

    pub(crate) async fn keep_end(&self, record: &Record, login: &Login, action: &str) -> Result<(), RecordsError> {
        for there in self.catalog.peek(|view| by_login(view, record.id, login.user_id))? {
            let details = json!({"client_id": login.client_id});
            self.catalog.keep_entry(there.org, entry_of(&there, action, ("user", login.user_id), details)).await?;
        }
        Ok(())
    }

    /// Closes an organization to the logins of a user who has left it, even after a return.
    ///
    /// A login stays valid for its other organizations, and ends without any.
    pub(crate) async fn close_logins(&self, by: By<'_>, org: OrgId, user: Uuid) -> Result<(), RecordsError> {
        let theirs: Vec<Uuid> = self.catalog.peek(|view| {
            let places = (0..LOGINS_PER_USER_MAX).filter_map(|place| view.find(&place_key(user, place)));
            places.map(|login| login.id).collect()
        });
        for login in theirs {
            self.close_login(by, org, login).await?;
        }
        Ok(())
    }

    async fn close_login(&self, by: By<'_>, org: OrgId, id: Uuid) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some((record, mut login)) = self.login(id)? else { return Ok(()) };
            let open = self.catalog.peek(|view| by_login(view, id, login.user_id))?;
            if open.iter().all(|there| there.org == org) {
                return self.catalog.delete_record(by, RecordKind::LOGIN, id).await;
            }
            if login.closed.contains(&org.0) {
                return Ok(());
            }
            login.closed.push(org.0);
            let put = put(id, Expect::Revision(record.revision), &login, mechanism::now_micros())?;
            match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => return Ok(()),
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(busy())
    }

    /// Deletes expired logins and unredeemed codes. Returns their number.
    pub async fn sweep(&self) -> Result<u64, RecordsError> {
        let now = now();
        let is_over = |record: &&Arc<Record>| Login::read(record).is_ok_and(|login| login.is_over(now));
        let over: Vec<DeleteRecord> = self
            .catalog
            .peek(|view| view.all(RecordKind::LOGIN).filter(is_over).map(|record| deleted(record)).collect());
        let mut swept = 0;
        for delete in over {
            match self.catalog.propose_one(By::System, CatalogCommand::Delete(delete)).await? {
                CatalogOutcome::Deleted { .. } => swept += 1,
                CatalogOutcome::Stale { .. } => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(swept)
    }

    /// Sweeps logins, console sessions and temporary credentials, and logs the result. Errors are only logged.
    pub async fn sweep_and_say(&self) {
        match self.sweep().await {
            Ok(0) => {}
            Ok(logins) => tracing::info!(logins, "deleted expired logins"),
            Err(error) => tracing::warn!(%error, "could not delete expired logins"),
        }
        match self.sweep_console_sessions().await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "deleted expired sessions of the console"),
            Err(error) => tracing::warn!(%error, "could not delete expired sessions of the console"),
        }
        match self.sweep_temporary().await {
            Ok(0) => {}
            Ok(credentials) => tracing::info!(credentials, "deleted expired temporary credentials"),
            Err(error) => tracing::warn!(%error, "could not delete expired temporary credentials"),
        }
    }

    /// Returns the login that an access token of this cluster names; `None` for other tokens.
    pub(crate) fn login_of(&self, shown: &str) -> Result<Option<Uuid>, RecordsError> {
        let Some(rules) = &self.logins else { return Ok(None) };
        let master = LoginKey::of_token(shown).and_then(|id| KeyId::parse(&id));
        let key = master.map(|id| self.login_key_of(id)).transpose()?.flatten();
        Ok(key.and_then(|key| key.verified(shown, &rules.origin, now())).map(|claims| claims.sid))
    }

    pub(crate) fn login(&self, id: Uuid) -> Result<Option<(Arc<Record>, Login)>, RecordsError> {
        let Some(record) = self.catalog.peek(|view| view.get(RecordKind::LOGIN, id).cloned()) else { return Ok(None) };
        let login = Login::read(&record)?;
        Ok(Some((record, login)))
    }

    pub(crate) fn login_settings(&self) -> Result<&LoginRules, RecordsError> {
        self.login_rules().ok_or_else(|| RecordsError::NotFound("login is disabled on this server".into()))
    }

    /// Returns the login key of the master key of the cluster, which every node has.
    pub(crate) fn login_key(&self) -> Result<LoginKey, RecordsError> {
        self.current_master_key().map(LoginKey::of)
    }

    /// Returns the master key of the cluster, which every node has.
    pub(crate) fn current_master_key(&self) -> Result<&VaultKey, RecordsError> {
        let recorded = self.records.secrets().recorded_master()?;
        let key = recorded.map(|id| self.master_key(id)).transpose()?.flatten();
        key.ok_or_else(|| without_key(recorded).into())
    }

    /// Returns the master key with this id; `None` if this node lacks it but has the current one.
    pub(crate) fn master_key(&self, id: KeyId) -> Result<Option<&VaultKey>, RecordsError> {
        match self.records.secrets().ring().and_then(|ring| ring.find(id)) {
            Some(key) => Ok(Some(key)),
            None if self.records.secrets().recorded_master()? == Some(id) => Err(without_key(Some(id)).into()),
            None => Ok(None),
        }
    }

    /// Returns the login key of a master key; `None` if this node lacks that master key but has the current one.
    fn login_key_of(&self, master: KeyId) -> Result<Option<LoginKey>, RecordsError> {
        Ok(self.master_key(master)?.map(LoginKey::of))
    }

    pub(crate) fn ticket_in<T: Ticket>(&self, text: &str) -> Result<Option<T>, RecordsError> {
        let master = LoginKey::of_ticket(text).and_then(KeyId::parse);
        let key = master.map(|id| self.login_key_of(id)).transpose()?.flatten();
        Ok(key.and_then(|key| key.open(text, now())))
    }
}

pub(crate) fn sealed<T: Ticket>(key: &LoginKey, ticket: &T) -> Result<String, RecordsError> {
    let too_long =
        || RecordsError::TooLarge("the parameters of the request are too long for a ticket: shorten them".into());
    key.seal(ticket, mechanism::random()?).ok_or_else(too_long)
}

/// Returns a free index for a login, or the index of the login to replace.
fn free_place(view: &CatalogView<'_>, user: Uuid, now: i64) -> Result<(u32, Option<Arc<Record>>), RecordsError> {
    let mut oldest: Option<(u32, &Arc<Record>)> = None;
    for place in 0..LOGINS_PER_USER_MAX {
        let Some(record) = view.find(&place_key(user, place)) else { return Ok((place, None)) };
        if Login::read(record)?.is_over(now) {
            return Ok((place, Some(Arc::clone(record))));
        }
        if oldest.is_none_or(|(_, oldest)| record.changed < oldest.changed) {
            oldest = Some((place, record));
        }
    }
    oldest.map(|(place, record)| (place, Some(Arc::clone(record)))).ok_or_else(busy)
}

/// Returns the given name and the family name of a user, each empty if there is none.
pub(crate) fn names_in(view: &CatalogView<'_>, user: Uuid) -> Result<[String; 2], RecordsError> {
    let body = view.get(RecordKind::USER, user).map(|user| mechanism::read_body(user)).transpose()?.unwrap_or_default();
    Ok(["given_name", "family_name"].map(|part| text_in(&body, part)))
}

fn name_of(view: &CatalogView<'_>, user: Uuid, email: &str) -> Result<String, RecordsError> {
    let name = names_in(view, user)?.join(" ").trim().to_owned();
    Ok(if name.is_empty() { email.to_owned() } else { name })
}

pub(crate) fn put(id: Uuid, expect: Expect, login: &Login, at: i64) -> Result<PutRecord, RecordsError> {
    let body = serde_json::to_vec(login).map_err(|error| RecordsError::Internal(format!("a login: {error}")))?;
    Ok(PutRecord { kind: RecordKind::LOGIN, id, org: None, expect, keys: vec![login.key()], body, at })
}

pub(crate) fn deleted(record: &Record) -> DeleteRecord {
    DeleteRecord { kind: record.kind, id: record.id, expect: Expect::Revision(record.revision) }
}

/// Returns the time in seconds since the epoch.
pub(crate) fn now() -> i64 {
    mechanism::now_micros() / 1_000_000
}

fn answered() -> RecordsError {
    RecordsError::Forbidden("The program already has access.".into())
}

fn busy() -> RecordsError {
    RecordsError::Busy("concurrent changes to the logins of this user prevented the request: try again".into())
}

/// Returns the audit entry of a refused action by an unverified person, with the claimed identity.
fn unverified_entry(action: &str, user: Uuid, email: &str, details: Value) -> Map<String, Value> {
    let entry = json!({
        "action": action,
        "object_type": "user",
        "object_id": user.to_string(),
        "object_name": email,
        "actor": {"type": "unauthenticated"},
        "details": details,
    });
    if let Value::Object(entry) = entry { entry } else { Map::new() }
}

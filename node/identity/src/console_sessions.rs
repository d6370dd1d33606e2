//! Console sessions: how they are opened, used, renewed and ended.
//!
//! ```text
//! open    an API key, a service token or a login -> an audit entry, a record, and a cookie value
//! use     value -> record -> the credential that signed in, with its access
//! renew   the page requests its session: the time of use is stored, and an old value is replaced
//! end     on sign-out, after twelve hours without use, at the expiry, or with the credential
//! ```
//! The value is not a credential of the API: [`Identity::authenticate`] does not accept it. The HTTP crate accepts it
//! only from pages of this server.

use std::sync::Arc;

use assay_node_auth::{API_KEY_BYTES, Credential, Principal, Secret, new_console_session};
use assay_node_records::RecordsError;
use assay_node_records::kinds::console_session::{
    CONSOLE_SESSIONS_PER_USER_MAX, ConsoleSession, PreviousValue, index_key, value_key,
};
use assay_node_records::kinds::login::Login;
use assay_node_records::mechanism::{
    self, By, CatalogView, CredentialScope, check_is_self, entry_of, unexpected, unknown_credential, within,
};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind};
use serde_json::json;
use uuid::Uuid;

use crate::Identity;
use crate::authentication::within_scope;
use crate::console_login::CONSOLE_CLIENT;
use crate::logins::{deleted, names_in, now};

/// Maximum lifetime of a session if logins are disabled.
const SESSION_SECONDS_MAX: i64 = 30 * 86_400;
/// Age at which a value is replaced.
const ROTATE_AFTER_SECONDS: i64 = 86_400;
/// Time for which the previous value remains valid.
const PREVIOUS_SECONDS: i64 = 60;
/// Minimum time between two writes of the time of use.
const USE_KEPT_EVERY_SECONDS: i64 = 600;
/// Upper bound of attempts. An attempt fails only if another writer succeeded.
const ATTEMPTS_MAX: usize = 8;
/// Upper bound of the records that one sweep deletes.
const SWEPT_MAX: usize = 10_000;

/// Times of a session, in seconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleSessionTimes {
    pub until: i64,
    /// End of the session if it is not used again.
    pub idle_until: i64,
}

impl ConsoleSessionTimes {
    fn of(session: &ConsoleSession) -> ConsoleSessionTimes {
        ConsoleSessionTimes { until: session.until, idle_until: session.idle_until() }
    }

    pub fn seconds_left(&self) -> i64 {
        self.until - now()
    }
}

/// Opened session, with the value of its cookie.
#[derive(Clone, Debug)]
pub struct OpenedConsoleSession {
    pub value: Secret,
    pub times: ConsoleSessionTimes,
}

/// Result of a renewal.
#[derive(Clone, Debug)]
pub struct RenewedConsoleSession {
    pub times: ConsoleSessionTimes,
    /// New value of the cookie, if it was replaced.
    pub value: Option<Secret>,
}

impl Identity {
    /// Opens a session for the browser of the caller. It ends with the credential of the caller.
    pub async fn open_console_session(&self, who: &Principal) -> Result<OpenedConsoleSession, RecordsError> {
        check_may_sign_in(who)?;
        let begin = now();
        let longest = self.login_rules().map_or(SESSION_SECONDS_MAX, |rules| rules.login_seconds);
        let until = self.catalog.look(|view| end_of(view, who, begin + longest)).await?;
        self.log_session(who, "console_sign_in").await?;
        for _ in 0..ATTEMPTS_MAX {
            let (index, replaced) = self.catalog.peek(|view| free_index(view, who.user, begin))?;
            let (value, fingerprint) = self.new_value()?;
            let session = ConsoleSession {
                user_id: who.user,
                parent: who.credential,
                index,
                fingerprint,
                rotated: begin,
                previous: None,
                used: begin,
                until,
            };
            let gone = replaced.map(|record| CatalogCommand::Delete(deleted(&record)));
            let put = CatalogCommand::Put(put(mechanism::new_id(), Expect::Absent, &session)?);
            let outcomes = self.catalog.propose(By::System, gone.into_iter().chain([put]).collect()).await?;
            match outcomes.last() {
                Some(CatalogOutcome::Put { made: true, .. }) => {
                    return Ok(OpenedConsoleSession { value, times: ConsoleSessionTimes::of(&session) });
                }
                Some(CatalogOutcome::Taken { .. }) => self.catalog.fence().await?,
                other => return Err(RecordsError::Internal(format!("unexpected outcome of a session: {other:?}"))),
            }
        }
        Err(busy())
    }

    /// Returns the principal of a session, like [`Identity::authenticate_as`] for other credentials.
    pub async fn authenticate_console_session(
        &self,
        value: &str,
        org_name: Option<&str>,
        other: Option<&str>,
    ) -> Result<Principal, RecordsError> {
        let org_name = org_name.filter(|name| !name.is_empty());
        self.catalog.check_heard().await?;
        let look = |view: &CatalogView<'_>| {
            let (_, session) = self.session_in(view, value)?.ok_or_else(unknown_session)?;
            within_scope(view, scope_of(view, &session)?, org_name, other)
        };
        self.known_by(look).await
    }

    /// Renews an authenticated session: stores the time of use, and replaces a value that is older than a day.
    pub async fn renew_console_session(&self, value: &str) -> Result<RenewedConsoleSession, RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let found = self.catalog.peek(|view| self.session_in(view, value))?;
            let (record, mut session) = found.ok_or_else(unknown_session)?;
            let now = now();
            let next = match now - session.rotated >= ROTATE_AFTER_SECONDS {
                true => Some(self.new_value()?),
                false => None,
            };
            if next.is_none() && now - session.used < USE_KEPT_EVERY_SECONDS {
                return Ok(RenewedConsoleSession { times: ConsoleSessionTimes::of(&session), value: None });
            }
            session.used = now;
            session.previous = session.previous.filter(|value| now < value.until);
            let value = next.map(|(value, fingerprint)| {
                let replaced = std::mem::replace(&mut session.fingerprint, fingerprint);
                session.previous = Some(PreviousValue { fingerprint: replaced, until: now + PREVIOUS_SECONDS });
                session.rotated = now;
                value
            });
            let put = put(record.id, Expect::Revision(record.revision), &session)?;
            match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
                CatalogOutcome::Put { .. } => {
                    return Ok(RenewedConsoleSession { times: ConsoleSessionTimes::of(&session), value });
                }
                CatalogOutcome::Stale { .. } => self.catalog.fence().await?,
                other => return Err(unexpected(&other)),
            }
        }
        Err(busy())
    }

    /// Ends a session, or all sessions of its user. An invalid value is no error, because its session has ended
    /// already.
    pub async fn end_console_session(&self, value: &str, everywhere: bool) -> Result<(), RecordsError> {
        let who = match self.authenticate_console_session(value, None, None).await {
            Ok(who) => who,
            Err(RecordsError::Unauthenticated(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.log_session(&who, "console_sign_out").await?;
        self.catalog.fresh().await?;
        let ended: Vec<Arc<Record>> = self.catalog.peek(|view| {
            let of_user = (0..CONSOLE_SESSIONS_PER_USER_MAX)
                .filter(|_| everywhere)
                .filter_map(|index| view.find(&index_key(who.user, index)).cloned());
            let own = self.session_in(view, value)?.map(|(record, _)| record);
            Ok::<_, RecordsError>(of_user.chain(own.filter(|_| !everywhere)).collect())
        })?;
        for record in ended {
            let session = ConsoleSession::read(&record)?;
            self.catalog.delete_record(By::System, RecordKind::CONSOLE_SESSION, record.id).await?;
            self.end_login_of(&session).await?;
        }
        Ok(())
    }

    /// Ends the login of a session that was opened with the provider, because nothing else uses it.
    async fn end_login_of(&self, session: &ConsoleSession) -> Result<(), RecordsError> {
        let Credential::Login(id) = session.parent else { return Ok(()) };
        match self.login(id)? {
            Some((record, login)) if login.client_id == CONSOLE_CLIENT => self.end(&record, &login, "logout").await,
            _ => Ok(()),
        }
    }

    /// Returns the given name and the family name of a user, each `None` if missing.
    pub fn names_of(&self, user: Uuid) -> Result<[Option<String>; 2], RecordsError> {
        let names = self.catalog.peek(|view| names_in(view, user))?;
        Ok(names.map(|name| Some(name).filter(|name| !name.is_empty())))
    }

    /// Returns the id of the session with this value.
    pub(crate) fn console_session_id(&self, value: &str) -> Result<Option<Uuid>, RecordsError> {
        let found = self.catalog.peek(|view| self.session_in(view, value))?;
        Ok(found.map(|(record, _)| record.id))
    }

    /// Returns whether any console session or login exists.
    pub fn has_sessions(&self) -> bool {
        let kinds = [RecordKind::CONSOLE_SESSION, RecordKind::LOGIN];
        self.catalog.peek(|view| kinds.into_iter().any(|kind| view.all(kind).next().is_some()))
    }

    /// Deletes expired sessions and those whose credential no longer exists. Returns their number.
    pub(crate) async fn sweep_console_sessions(&self) -> Result<u64, RecordsError> {
        let now = now();
        let over: Vec<Arc<Record>> = self.catalog.peek(|view| {
            let is_over = |record: &&Arc<Record>| {
                ConsoleSession::read(record)
                    .is_ok_and(|session| session.is_over(now) || scope_of(view, &session).is_err())
            };
            view.all(RecordKind::CONSOLE_SESSION).filter(is_over).take(SWEPT_MAX).cloned().collect()
        });
        self.delete_swept(&over).await
    }

    /// Writes an audit entry into every organization of the credential.
    async fn log_session(&self, who: &Principal, action: &str) -> Result<(), RecordsError> {
        let principals = self.catalog.peek(|view| {
            let scope = CredentialScope::of(view, who.credential)?;
            let orgs = scope.organizations(view);
            orgs.iter().map(|org| scope.clone().principal(view, org)).collect::<Result<Vec<_>, RecordsError>>()
        })?;
        for there in principals {
            let entry = entry_of(&there, action, ("user", there.user), json!(null));
            self.catalog.keep_entry(there.org, entry).await?;
        }
        Ok(())
    }

    fn new_value(&self) -> Result<(Secret, String), RecordsError> {
        let value = new_console_session(&mechanism::random::<API_KEY_BYTES>()?);
        let pepper = self.catalog.peek(|view| self.catalog.pepper(view))?;
        let fingerprint = pepper.fingerprint_of_console_session(value.expose());
        Ok((value, fingerprint))
    }

    /// Returns the session with this value, and its record.
    fn session_in(
        &self,
        view: &CatalogView<'_>,
        value: &str,
    ) -> Result<Option<(Arc<Record>, ConsoleSession)>, RecordsError> {
        let fingerprint = self.catalog.pepper(view)?.fingerprint_of_console_session(value);
        let Some(record) = view.find(&value_key(&fingerprint)) else { return Ok(None) };
        let session = ConsoleSession::read(record)?;
        Ok(session.is_opened_by(&fingerprint, now()).then(|| (Arc::clone(record), session)))
    }
}

/// Returns whether a caller authenticated by a login with the provider.
pub fn is_login(who: &Principal) -> bool {
    matches!(who.credential, Credential::Login(_))
}

/// Returns the current scope of a session, which is that of its credential.
fn scope_of(view: &CatalogView<'_>, session: &ConsoleSession) -> Result<CredentialScope, RecordsError> {
    let scope = CredentialScope::of(view, session.parent)?;
    match scope.user == session.user_id {
        true => Ok(scope),
        false => Err(unknown_session()),
    }
}

/// Refuses credentials that cannot sign in. Only credentials with a record can be checked at every use.
fn check_may_sign_in(who: &Principal) -> Result<(), RecordsError> {
    let refuse = |why: &str| Err(RecordsError::Forbidden(why.into()));
    match who.credential {
        Credential::ApiKey(_) | Credential::ServiceToken(_) | Credential::Login(_) => check_is_self(who),
        Credential::Temporary { .. } => {
            refuse("a temporary credential cannot sign in to the console: use an API key or a service token")
        }
        Credential::Jwt(_) => {
            refuse("a JWT of another issuer cannot sign in to the console: use an API key or a service token")
        }
    }
}

/// Returns the expiry of a session that the caller opens, at most that of the login of the caller.
fn end_of(view: &CatalogView<'_>, who: &Principal, latest: i64) -> Result<i64, RecordsError> {
    within(view, who, who.org)?.ok_or_else(unknown_credential)?;
    match who.credential {
        Credential::Login(id) => {
            let login = Login::read(view.get(RecordKind::LOGIN, id).ok_or_else(unknown_credential)?)?;
            Ok(latest.min(login.until))
        }
        _ => Ok(latest),
    }
}

/// Returns a free index for a session, or the index of the session to replace.
fn free_index(view: &CatalogView<'_>, user: Uuid, now: i64) -> Result<(u32, Option<Arc<Record>>), RecordsError> {
    let mut idlest: Option<(i64, u32, &Arc<Record>)> = None;
    for index in 0..CONSOLE_SESSIONS_PER_USER_MAX {
        let Some(record) = view.find(&index_key(user, index)) else { return Ok((index, None)) };
        let session = ConsoleSession::read(record)?;
        if session.is_over(now) {
            return Ok((index, Some(Arc::clone(record))));
        }
        if idlest.is_none_or(|(used, ..)| session.used < used) {
            idlest = Some((session.used, index, record));
        }
    }
    idlest.map(|(_, index, record)| (index, Some(Arc::clone(record)))).ok_or_else(busy)
}

fn put(id: Uuid, expect: Expect, session: &ConsoleSession) -> Result<PutRecord, RecordsError> {
    let body = serde_json::to_vec(session)
        .map_err(|error| RecordsError::Internal(format!("a session of the console: {error}")))?;
    let (kind, at) = (RecordKind::CONSOLE_SESSION, mechanism::now_micros());
    Ok(PutRecord { kind, id, org: None, expect, keys: session.keys(), body, at })
}

fn unknown_session() -> RecordsError {
    RecordsError::Unauthenticated("the session has ended: sign in again".into())
}

fn busy() -> RecordsError {
    RecordsError::Busy("concurrent changes to the sessions of this user prevented the request: try again".into())
}

#[cfg(test)]
mod tests {
    use assay_node_records::kinds::console_session::CONSOLE_IDLE_SECONDS;

    use super::*;

    fn session() -> ConsoleSession {
        ConsoleSession {
            user_id: Uuid::from_u128(1),
            parent: Credential::ApiKey(Uuid::from_u128(2)),
            index: 0,
            fingerprint: "new".into(),
            rotated: 1000,
            previous: Some(PreviousValue { fingerprint: "old".into(), until: 1000 + PREVIOUS_SECONDS }),
            used: 1000,
            until: 1000 + 3 * CONSOLE_IDLE_SECONDS,
        }
    }

    #[test]
    fn a_replaced_value_opens_a_session_for_a_minute_more() {
        let session = session();
        assert!(session.is_opened_by("new", 1000) && session.is_opened_by("old", 1000));
        assert!(session.is_opened_by("old", 999 + PREVIOUS_SECONDS));
        assert!(!session.is_opened_by("old", 1000 + PREVIOUS_SECONDS) && !session.is_opened_by("other", 1000));
        assert!(session.is_opened_by("new", 1000 + PREVIOUS_SECONDS));
        assert_eq!(session.keys().len(), 3, "both values are found");
    }

    #[test]
    fn a_session_ends_if_it_is_not_used_and_at_its_end() {
        let idle = session();
        assert!(!idle.is_over(999 + CONSOLE_IDLE_SECONDS) && idle.is_over(1000 + CONSOLE_IDLE_SECONDS));
        assert!(!idle.is_opened_by("new", 1000 + CONSOLE_IDLE_SECONDS));
        let used = ConsoleSession { used: idle.until - 1, ..idle };
        assert!(!used.is_over(used.until - 1) && used.is_over(used.until));
    }
}

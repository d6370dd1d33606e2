//! Authorization of programs without a browser: the session of the program, the confirmation by a person, and the API
//! key at the end.
//!
//! ```text
//! begin    nothing is kept: the session is a sealed ticket, and holds what the program shows when it asks
//! login    as everybody's, at the provider; behind it the person is asked, by the code that the program shows them
//! allow    a login is made, whose id is the session's                                      put on record first
//! ask      the login is spent, an API key is made, a mark stays for a while                once
//! ```
//! A key is made when the program asks, so that no secret is kept for it. One that is lost on its way is not given again: the
//! program begins another session, and the key is in the list of its user's.

use assay_node_auth::{
    AskedTicket, IdTokenClaims, LoginAsked, Principal, Secret, SetupTicket, challenge_of, new_login_secret, proves,
};
use assay_node_records::kinds::login::{Login, spent_key};
use assay_node_records::mechanism::{self, By, by_login, unexpected};
use assay_node_records::{ProjectRef, RecordsError, kinds};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Identity;
use crate::logins::{PENDING_SECONDS, now, put, sealed};

/// Lifetime of a session: to the browser, to the provider and back.
const SESSION_SECONDS: i64 = 600;
/// Lifetime of the question on a page, which a person reads and compares.
const ASKED_SECONDS: i64 = 300;
/// The longest time between a session and the last answer to it: to begin the login, to come back from it, to answer.
const MARK_SECONDS: i64 = SESSION_SECONDS + PENDING_SECONDS + ASKED_SECONDS;
const KEY_NAME: &str = "setup of a program";

/// Session of a program that waits for authorization.
#[derive(Debug)]
pub struct Setup {
    pub session: String,
    /// Shown when it asks.
    pub token: Secret,
    pub code: String,
    /// Seconds since the epoch.
    pub until: i64,
}

/// State of a setup.
#[derive(Debug)]
pub enum SetupState {
    /// No person has confirmed it yet.
    Pending,
    /// The key was returned before.
    Claimed,
    /// The session expired without a confirmation.
    Expired,
    Complete {
        key: Secret,
        who: Box<Principal>,
        project: ProjectRef,
    },
}

impl Identity {
    /// Begins a setup.
    pub fn begin_setup(&self) -> Result<Setup, RecordsError> {
        let token = new_login_secret(&mechanism::random()?);
        let ticket = SetupTicket {
            session: mechanism::new_id(),
            challenge: challenge_of(&token),
            until: now() + SESSION_SECONDS,
        };
        let session = sealed(&self.login_key()?, &ticket)?;
        Ok(Setup { session, token: Secret::new(token), code: code_of(ticket.session), until: ticket.until })
    }

    /// Returns the ticket of a session; none where it is none of ours, or too old.
    pub fn setup(&self, session: &str) -> Result<Option<SetupTicket>, RecordsError> {
        self.ticket_in(session)
    }

    /// Returns the confirmation ticket for the person, and the code by which the person recognizes the program.
    pub fn ask_person(&self, asked: &LoginAsked, who: &IdTokenClaims) -> Result<(String, String), RecordsError> {
        let code = code_of(asked.session.unwrap_or_default());
        let (email, is_verified) = (who.email.clone(), who.is_verified);
        let until = now() + ASKED_SECONDS;
        let ticket = AskedTicket { asked: asked.clone(), email, is_verified, login: Some(mechanism::new_id()), until };
        Ok((sealed(&self.login_key()?, &ticket)?, code))
    }

    /// Returns the ticket of a confirmation; `None` if it is foreign or too old.
    pub fn allowed(&self, answer: &str) -> Result<Option<AskedTicket>, RecordsError> {
        self.ticket_in(answer)
    }

    /// Returns the state of a session to its program. The key is created in the first organization of the confirming
    /// person, together with the project of this name if it is missing.
    pub async fn poll_setup(
        &self,
        ticket: &SetupTicket,
        shown: &str,
        project: &str,
    ) -> Result<SetupState, RecordsError> {
        if !proves(shown, &ticket.challenge) {
            return Err(RecordsError::Forbidden("the credential does not belong to this session".into()));
        }
        self.catalog.fresh().await?;
        let Some((record, login)) = self.login(ticket.session)? else { return Ok(SetupState::Pending) };
        match &login.code {
            None => return Ok(SetupState::Claimed),
            Some(code) if code.until <= now() => return Ok(SetupState::Expired),
            Some(_) => {}
        }
        let Some((spent, login)) = self.spend(&record, login).await? else { return Ok(SetupState::Claimed) };
        let made = self.key_for(&spent, &login, project).await;
        self.keep_end(&spent, &login, "logout").await?;
        self.mark_spent(&spent, login).await?;
        made
    }

    /// Replaces the login by a mark until confirmations of the session expire, so that a repeated confirmation creates
    /// no second login or key. The mark has no tokens.
    async fn mark_spent(&self, record: &Record, login: Login) -> Result<(), RecordsError> {
        let mark = Login { until: now() + MARK_SECONDS, code: None, ..login };
        let expect = Expect::Revision(record.revision);
        let put =
            PutRecord { keys: vec![spent_key(record.id)], ..put(record.id, expect, &mark, mechanism::now_micros())? };
        match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
            // It may be gone where its user left.
            CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Claims the record of a login; `None` if another request was faster.
    async fn spend(&self, record: &Record, login: Login) -> Result<Option<(Record, Login)>, RecordsError> {
        let next = Login { code: None, ..login };
        let put = put(record.id, Expect::Revision(record.revision), &next, mechanism::now_micros())?;
        match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => {
                self.catalog.fence().await?;
                Ok(self.login(record.id)?.map(|(record, login)| (Record::clone(&record), login)))
            }
            CatalogOutcome::Stale { .. } => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    async fn key_for(&self, record: &Record, login: &Login, project: &str) -> Result<SetupState, RecordsError> {
        let who = self.catalog.peek(|view| by_login(view, record.id, login.user_id))?.into_iter().next();
        let Some(who) = who else { return Ok(SetupState::Expired) };
        let project = self.records.project_by_name(&who, project, true).await?;
        let body: Map<String, Value> = Map::from_iter([("name".to_owned(), json!(KEY_NAME))]);
        let made = self.records.create(&who, &kinds::API_KEY, body).await?;
        let key = made.secret.ok_or_else(|| RecordsError::Internal("a new key has no secret".into()))?;
        Ok(SetupState::Complete { key, who: Box::new(who), project })
    }
}

/// Returns the code of a session, of letters and digits that are not taken for one another.
fn code_of(session: Uuid) -> String {
    const SIGNS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let bytes = session.as_bytes();
    // Not those that say which form of UUID it is.
    let sign = |place: usize| char::from(SIGNS[usize::from(bytes[place] % 32)]);
    let (first, second): (String, String) = ((0..4).map(sign).collect(), (10..14).map(sign).collect());
    format!("{first}-{second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_aloud_and_is_of_its_session() {
        let code = code_of(Uuid::from_u128(0x0102_0304_0000_4000_8000_1f20_3fff_0000));
        assert_eq!(code, "BCDE-9A99");
        assert_ne!(code_of(Uuid::from_u128(1 << 120)), code_of(Uuid::from_u128(2 << 120)));
    }
}

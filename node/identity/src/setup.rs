//! Authorization of programs without a browser: their sessions, the confirmation by a person, and the resulting API
//! key.
//!
//! ```text
//! begin    nothing is stored: the session is a sealed ticket with the challenge of the program
//! login    at the provider; then the person confirms the code that the program displays
//! allow    a login with the id of the session is created                                   audited first
//! poll     the login is spent, an API key is created, a mark remains for a while           once
//! ```
//! The key is created when the program polls, so that no secret is stored for it. A lost response cannot be repeated.
//! The program then starts another session, and the lost key remains in the list of its user.

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

/// Lifetime of a session, which covers the way to the browser, to the provider and back.
const SESSION_SECONDS: i64 = 600;
/// Lifetime of the confirmation page.
const ASKED_SECONDS: i64 = 300;
/// Maximum time between a session and its last possible confirmation: start of the login, its return, confirmation.
const MARK_SECONDS: i64 = SESSION_SECONDS + PENDING_SECONDS + ASKED_SECONDS;
const KEY_NAME: &str = "setup of a program";

/// Session of a program that waits for authorization.
#[derive(Debug)]
pub struct Setup {
    pub session: String,
    /// Code verifier that the program presents when it polls.
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
    /// Starts a setup.
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

    /// Returns the ticket of a session; `None` if it is foreign or expired.
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

    /// Returns the ticket of a confirmation; `None` if it is foreign or expired.
    pub fn allowed(&self, answer: &str) -> Result<Option<AskedTicket>, RecordsError> {
        self.ticket_in(answer)
    }

    /// Returns the state of a session to its program.
    ///
    /// The key is created in the first organization of the confirming person. A missing project of this name is created
    /// as well.
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

    /// Replaces the login by a mark until confirmations of the session expire.
    ///
    /// The mark prevents a second login or key after a repeated confirmation. It has no tokens.
    async fn mark_spent(&self, record: &Record, login: Login) -> Result<(), RecordsError> {
        let mark = Login { until: now() + MARK_SECONDS, code: None, ..login };
        let expect = Expect::Revision(record.revision);
        let put =
            PutRecord { keys: vec![spent_key(record.id)], ..put(record.id, expect, &mark, mechanism::now_micros())? };
        match self.catalog.propose_one(By::System, CatalogCommand::Put(put)).await? {
            // The record is gone if its user left.
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

/// Returns the code of a session, with letters and digits that are hard to confuse.
fn code_of(session: Uuid) -> String {
    const SIGNS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let bytes = session.as_bytes();
    // These bytes exclude the version and the variant of the UUID.
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

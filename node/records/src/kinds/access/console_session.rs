//! Console session: a browser that signed in with a credential.
//!
//! It has the access of that credential and ends with it. The record has no secret, only the fingerprint of the cookie.

use assay_node_auth::Credential;
use assay_storage_model::catalog::{Record, UniqueKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::RecordsError;

/// Upper bound of the sessions of one user. Another session replaces the least recently used one.
pub const CONSOLE_SESSIONS_PER_USER_MAX: u32 = 50;
/// Time without use after which a session ends.
pub const CONSOLE_IDLE_SECONDS: i64 = 12 * 60 * 60;

/// Body of the record. Times are seconds since the epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsoleSession {
    pub user_id: Uuid,
    /// Credential that signed in, without which the session is invalid.
    pub parent: Credential,
    /// Index among the sessions of the user.
    pub index: u32,
    pub fingerprint: String,
    /// Time of the last rotation of the cookie value.
    pub rotated: i64,
    /// Value before the last rotation, which requests in flight still have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousValue>,
    /// Time of the last use, to within some minutes.
    pub used: i64,
    pub until: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviousValue {
    pub fingerprint: String,
    pub until: i64,
}

impl ConsoleSession {
    pub fn read(record: &Record) -> Result<ConsoleSession, RecordsError> {
        super::decoded(record)
    }

    /// Returns the end of the session without further use.
    pub fn idle_until(&self) -> i64 {
        self.until.min(self.used + CONSOLE_IDLE_SECONDS)
    }

    pub fn is_over(&self, now: i64) -> bool {
        now >= self.idle_until()
    }

    /// Returns whether a value with this fingerprint opens the session.
    pub fn is_opened_by(&self, fingerprint: &str, now: i64) -> bool {
        let is_previous =
            self.previous.as_ref().is_some_and(|value| value.fingerprint == fingerprint && now < value.until);
        !self.is_over(now) && (self.fingerprint == fingerprint || is_previous)
    }

    pub fn keys(&self) -> Vec<UniqueKey> {
        let values = [Some(&self.fingerprint), self.previous.as_ref().map(|value| &value.fingerprint)];
        let values = values.into_iter().flatten().map(|fingerprint| value_key(fingerprint));
        values.chain([index_key(self.user_id, self.index)]).collect()
    }
}

pub fn value_key(fingerprint: &str) -> UniqueKey {
    UniqueKey::new("console_session.value", fingerprint)
}

pub fn index_key(user: Uuid, index: u32) -> UniqueKey {
    UniqueKey::new(format!("console_session/{user}"), index.to_string())
}

//! Login of a person through one client and the OpenID provider.
//!
//! It is created when the person returns from the provider, with a code that the client redeems once. Refresh tokens
//! continue it, and it is deleted at its end. The record has no secrets: sealed tokens name it and must match its
//! state.

use assay_storage_model::catalog::{Record, UniqueKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::RecordsError;

/// Upper bound of the logins of one user. Another login replaces the least recently used one.
pub const LOGINS_PER_USER_MAX: u32 = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub user_id: Uuid,
    pub client_id: String,
    pub scope: String,
    /// Index among the logins of the user.
    pub place: u32,
    /// Seconds since the epoch.
    pub until: i64,
    /// Generation of the valid refresh token; zero before the first.
    pub generation: u64,
    /// Organizations that the user left. They stay closed even after a return of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Uuid>,
    /// Authorization code, until it is redeemed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

/// Values that the redemption of a code must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    pub redirect_uri: String,
    pub challenge: String,
    /// Seconds since the epoch.
    pub until: i64,
}

impl Login {
    pub fn read(record: &Record) -> Result<Login, RecordsError> {
        super::decoded(record)
    }

    /// Returns whether the login or its unredeemed code has expired.
    pub fn is_over(&self, now: i64) -> bool {
        now >= self.code.as_ref().map_or(self.until, |code| code.until)
    }

    pub fn key(&self) -> UniqueKey {
        place_key(self.user_id, self.place)
    }
}

/// Returns the key of the mark of a finished setup. It is outside of the indexes, so that no login replaces it.
pub fn spent_key(session: Uuid) -> UniqueKey {
    UniqueKey::new("login.spent", session.to_string())
}

/// Returns the key of a login. Indexes make the logins of a user easy to find and limit their number.
pub fn place_key(user: Uuid, place: u32) -> UniqueKey {
    UniqueKey::new(format!("login/{user}"), place.to_string())
}

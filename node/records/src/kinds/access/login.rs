//! Login of a person through one client and the OpenID provider. It is created when the person returns from the
//! provider, with a code that the client redeems once. Refresh tokens continue it, and it is deleted at its end. The
//! record has no secrets: sealed tokens name it, and have to match the next expected token.

use assay_storage_model::catalog::{Record, UniqueKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::RecordsError;

/// Logins that one user has at once; one more takes the place of the one that was used least lately.
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
    /// Organizations that the user left since. The login does not open them, also when the user is back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Uuid>,
    /// The code, until it is redeemed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

/// Facts that have to be shown with a code.
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

    /// Returns whether nothing can be done with it any more.
    pub fn is_over(&self, now: i64) -> bool {
        now >= self.code.as_ref().map_or(self.until, |code| code.until)
    }

    pub fn key(&self) -> UniqueKey {
        place_key(self.user_id, self.place)
    }
}

/// The mark of a setup that is done. It has no place among the user's logins, so that no login takes its place.
pub fn spent_key(session: Uuid) -> UniqueKey {
    UniqueKey::new("login.spent", session.to_string())
}

/// A user's logins have numbered places, so that they are found, and are not more than there may be.
pub fn place_key(user: Uuid, place: u32) -> UniqueKey {
    UniqueKey::new(format!("login/{user}"), place.to_string())
}

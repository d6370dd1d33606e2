//! Holders of parts of a budget.

use uuid::Uuid;

/// A credential within an organization. Shares are counted for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub organization: Uuid,
    pub credential: Uuid,
}

impl Holder {
    /// Requests without a credential. They share one organization.
    pub const ANONYMOUS: Holder = Holder { organization: Uuid::nil(), credential: Uuid::nil() };

    pub fn new(organization: Uuid, credential: Uuid) -> Holder {
        Holder { organization, credential }
    }
}

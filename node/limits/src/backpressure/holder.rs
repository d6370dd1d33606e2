//! Holder of a part of a budget.

use uuid::Uuid;

/// Credential within an organization. Shares are counted for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub organization: Uuid,
    pub credential: Uuid,
}

impl Holder {
    /// Holder for requests without a credential. They share one organization.
    pub const ANONYMOUS: Holder = Holder { organization: Uuid::nil(), credential: Uuid::nil() };

    pub fn new(organization: Uuid, credential: Uuid) -> Holder {
        Holder { organization, credential }
    }
}

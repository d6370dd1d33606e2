//! The one place that says yes.

use assay_storage_model::OrgId;
use uuid::Uuid;

/// Who calls: a user, through one of their keys, within one organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub org: OrgId,
    pub org_name: String,
    pub user: Uuid,
    pub user_email: String,
    /// The record of the key that was shown, never the key itself.
    pub key: Uuid,
    pub role: OrgRole,
}

/// What a user is in an organization. Whoever is in it owns it until access control knows more roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrgRole {
    Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Create,
    Read,
    Update,
    Delete,
}

/// What is acted on, as far as it decides: today the organization it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub org: OrgId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    Allowed,
    /// Answered as if there were no such thing.
    NotVisible,
}

/// An owner does everything in their organization and nothing outside it.
pub fn decide(principal: &Principal, action: Action, target: &Target) -> Decision {
    let within = principal.org == target.org;
    match (principal.role, action) {
        (OrgRole::Owner, Action::Create | Action::Read | Action::Update | Action::Delete) if within => {
            Decision::Allowed
        }
        _ => Decision::NotVisible,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACTIONS: [Action; 4] = [Action::Create, Action::Read, Action::Update, Action::Delete];

    fn principal(org: u128) -> Principal {
        Principal {
            org: OrgId(Uuid::from_u128(org)),
            org_name: "acme".into(),
            user: Uuid::from_u128(1),
            user_email: "a@example.com".into(),
            key: Uuid::from_u128(2),
            role: OrgRole::Owner,
        }
    }

    proptest! {
        #[test]
        fn nothing_outside_the_own_organization_is_visible(own: u128, other: u128, action in 0_usize..4) {
            let target = Target { org: OrgId(Uuid::from_u128(other)) };
            let expected = if own == other { Decision::Allowed } else { Decision::NotVisible };
            prop_assert_eq!(decide(&principal(own), ACTIONS[action], &target), expected);
        }

        #[test]
        fn an_owner_may_do_everything_within(own: u128, action in 0_usize..4) {
            let target = Target { org: OrgId(Uuid::from_u128(own)) };
            prop_assert_eq!(decide(&principal(own), ACTIONS[action], &target), Decision::Allowed);
        }
    }
}

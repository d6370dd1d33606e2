//! Decision on every access, as a pure function of facts that the caller provides.

use std::sync::Arc;

use assay_storage_model::OrgId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::objects::{Permission, Target};
use crate::rights::Rights;

/// Caller: a user with a credential and its rights in one organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub org: OrgId,
    pub org_name: String,
    pub user: Uuid,
    pub user_email: String,
    /// Owner of the credential during an impersonation.
    pub impersonator: Option<Uuid>,
    pub credential: Credential,
    pub rights: Arc<Rights>,
}

/// Presented credential, identified by its record and never by the secret itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    ApiKey(Uuid),
    ServiceToken(Uuid),
    /// JWT of a trusted issuer. It is not stored, so this is the id of its user.
    Jwt(Uuid),
    /// Access token of a login.
    Login(Uuid),
    /// Temporary credential of the gateway, which only the authentication of model calls accepts.
    Temporary {
        id: Uuid,
        /// Record of the credential that issued it.
        parent: Uuid,
    },
}

impl Credential {
    /// Returns the id of the record that makes the credential valid.
    pub fn record(self) -> Uuid {
        match self {
            Credential::ApiKey(id) | Credential::ServiceToken(id) | Credential::Jwt(id) | Credential::Login(id) => id,
            Credential::Temporary { id, .. } => id,
        }
    }

    /// Returns the id to which limits and resource shares apply.
    ///
    /// A temporary credential counts for its issuer, so that issuing many of them gains nothing.
    pub fn counted_as(self) -> Uuid {
        match self {
            Credential::Temporary { parent, .. } => parent,
            other => other.record(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    Allowed,
    /// The object is visible, but the action is not allowed.
    Forbidden,
    /// The response must not reveal that the object exists.
    NotVisible,
}

/// Decides on an action by the grants of the principal. Objects of other organizations are not visible.
pub fn decide(principal: &Principal, permission: Permission, target: &Target) -> Decision {
    if principal.org != target.org {
        return Decision::NotVisible;
    }
    let may = |permission| principal.rights.allow(permission, target);
    if may(permission) {
        Decision::Allowed
    } else if may(Permission::Read) {
        Decision::Forbidden
    } else {
        Decision::NotVisible
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::objects::ObjectType;
    use crate::rights::{Access, Acl, Gift, Granted, Group, Role, Subject};
    use crate::samples::{HOLDERS, ORG, USERS, access, id, permission, target};

    fn principal(org: u128, user: u128, access: &Access) -> Principal {
        Principal {
            org: OrgId(id(org)),
            org_name: "acme".into(),
            user: id(user),
            user_email: "a@example.com".into(),
            impersonator: None,
            credential: Credential::ApiKey(id(2)),
            rights: Arc::new(access.rights_of(id(user))),
        }
    }

    /// Independent implementation of the decision, which searches for a path from the user to the permission.
    fn expected(access: &Access, user: Uuid, permission: Permission, target: &Target) -> bool {
        fn is_in(groups: &HashMap<Uuid, Group>, group: Uuid, user: Uuid, steps: u128) -> bool {
            let Some(Group { users, groups: members }) = groups.get(&group) else { return false };
            users.contains(&user) || steps > 0 && members.iter().any(|member| is_in(groups, *member, user, steps - 1))
        }
        fn gives(roles: &HashMap<Uuid, Role>, role: Uuid, fits: &dyn Fn(&Granted) -> bool, steps: u128) -> bool {
            let Some(Role { permissions, roles: members }) = roles.get(&role) else { return false };
            permissions.iter().any(fits)
                || steps > 0 && members.iter().any(|member| gives(roles, *member, fits, steps - 1))
        }
        let fits = |(given, restrict): &Granted| {
            *given == permission
                && restrict.is_none_or(|only| {
                    only == target.object
                        || only == ObjectType::OrgProject && target.object == ObjectType::Project
                        || only == ObjectType::OrgAiSecret && target.object == ObjectType::AiSecret
                })
        };
        let by_its_group = |(object, group): (ObjectType, Uuid)| {
            let members = access.project_groups.get(&group).filter(|_| object == ObjectType::ProjectGroup);
            members.into_iter().flatten().any(|member| target.reached_by().contains(&(ObjectType::Project, *member)))
        };
        access.acls.iter().any(|acl| {
            (target.reached_by().contains(&acl.object) || by_its_group(acl.object))
                && match acl.subject {
                    Subject::User(of) => of == user,
                    Subject::Group(group) => is_in(&access.groups, group, user, HOLDERS),
                }
                && match acl.gift {
                    Gift::Permission(given, restrict) => fits(&(given, restrict)),
                    Gift::Role(role) => gives(&access.roles, role, &fits, HOLDERS),
                }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn what_is_allowed_is_what_was_granted(
            access in access(), user in 0..USERS, permission in permission(), target in target(),
        ) {
            let granted = |permission| expected(&access, id(user), permission, &target);
            let decided = decide(&principal(ORG, user, &access), permission, &target);
            let wanted = match (granted(permission), granted(Permission::Read)) {
                (true, _) => Decision::Allowed,
                (false, true) => Decision::Forbidden,
                (false, false) => Decision::NotVisible,
            };
            prop_assert_eq!(decided, wanted);
        }

        #[test]
        fn nothing_outside_the_own_organization_is_visible(
            access in access(), user in 0..USERS, permission in permission(), target in target(), own in 2_u128..9,
        ) {
            prop_assert_eq!(decide(&principal(own, user, &access), permission, &target), Decision::NotVisible);
        }

        #[test]
        fn taking_a_grant_away_allows_nothing_new(
            access in access(), user in 0..USERS, permission in permission(), target in target(), which in any::<prop::sample::Index>(),
        ) {
            let mut less = access.clone();
            if !less.acls.is_empty() {
                let at = which.index(less.acls.len());
                less.acls.remove(at);
            }
            let may = |access: &Access| decide(&principal(ORG, user, access), permission, &target) == Decision::Allowed;
            prop_assert!(may(&access) || !may(&less));
        }
    }

    #[test]
    fn a_role_that_is_gone_takes_nothing_from_those_beside_it() {
        let (outer, inner, gone) = (id(3), id(0), id(1));
        let role = |permissions, roles| Role { permissions, roles };
        let roles = [(inner, role(vec![(Permission::Read, None)], vec![])), (outer, role(vec![], vec![inner, gone]))];
        let object = (ObjectType::Organization, id(ORG));
        let acls = vec![Acl { object, subject: Subject::User(id(0)), gift: Gift::Role(outer) }];
        let access = Access { roles: HashMap::from(roles), acls, ..Access::default() };
        let target = Target::of_organization(ObjectType::Organization, OrgId(id(ORG)));
        assert_eq!(decide(&principal(ORG, 0, &access), Permission::Read, &target), Decision::Allowed);
    }

    #[test]
    fn nobody_may_do_anything_before_it_is_granted() {
        let target = Target::of_organization(ObjectType::Organization, OrgId(id(ORG)));
        for permission in Permission::ALL {
            assert_eq!(decide(&principal(ORG, 1, &Access::default()), *permission, &target), Decision::NotVisible);
        }
    }
}

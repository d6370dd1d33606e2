//! Explanation of rights: the ways in which a user has each permission on an object.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

use crate::objects::{ObjectType, Permission, Target};
use crate::rights::{Access, Acl, Gift, Granted, Role, Subject, reaches_type};

/// One way in which a user has a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantPath {
    pub permission: Permission,
    /// Type of things that the permission is restricted to.
    pub restrict: Option<ObjectType>,
    /// Grant that gives it.
    pub acl: Acl,
    /// Object that the grant reaches: its own, or a project of its group of projects.
    pub reached: (ObjectType, Uuid),
    /// Groups from the one that the user is in to the one that has the grant. Empty for a grant to the user.
    pub groups: Vec<Uuid>,
    /// Roles from the granted one to the one that has the permission. Empty for a grant of the permission itself.
    pub roles: Vec<Uuid>,
}

impl Access {
    /// Returns the ways in which a user has permissions on a target, one for each grant and permission, in the order of the
    /// permissions.
    pub fn explain(&self, user: Uuid, target: &Target) -> Vec<GrantPath> {
        let groups = self.group_paths(user);
        let mut paths = Vec::new();
        for acl in &self.acls {
            let groups = match acl.subject {
                Subject::User(of) if of == user => Vec::new(),
                Subject::User(_) => continue,
                Subject::Group(of) => match groups.get(&of) {
                    Some(path) => path.clone(),
                    None => continue,
                },
            };
            let Some(reached) = self.reached_from(acl.object).find(|on| target.reached_by().contains(on)) else {
                continue;
            };
            for ((permission, restrict), roles) in self.given_by(acl.gift) {
                if reaches_type(restrict, target.object) {
                    let groups = groups.clone();
                    paths.push(GrantPath { permission, restrict, acl: *acl, reached, groups, roles });
                }
            }
        }
        paths.sort_by_key(|path| path.permission);
        paths
    }

    /// Returns the groups that a user is in, each with the shortest way to it.
    fn group_paths(&self, user: Uuid) -> HashMap<Uuid, Vec<Uuid>> {
        let mut holders: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        let mut paths: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        let mut open = VecDeque::new();
        for (id, group) in &self.groups {
            group.groups.iter().for_each(|member| holders.entry(*member).or_default().push(*id));
            if group.users.contains(&user) {
                paths.insert(*id, vec![*id]);
                open.push_back(*id);
            }
        }
        while let Some(member) = open.pop_front() {
            for holder in holders.get(&member).into_iter().flatten() {
                if !paths.contains_key(holder) {
                    let path = paths[&member].iter().copied().chain([*holder]).collect();
                    paths.insert(*holder, path);
                    open.push_back(*holder);
                }
            }
        }
        paths
    }

    /// Returns what a grant gives, each with the roles that lead to it.
    fn given_by(&self, gift: Gift) -> Vec<(Granted, Vec<Uuid>)> {
        let first = match gift {
            Gift::Permission(permission, restrict) => return vec![((permission, restrict), Vec::new())],
            Gift::Role(role) => role,
        };
        let (mut given, mut had) = (Vec::new(), HashSet::new());
        let (mut seen, mut open) = (HashSet::from([first]), VecDeque::from([vec![first]]));
        while let Some(path) = open.pop_front() {
            let Some(Role { permissions, roles }) = path.last().and_then(|role| self.roles.get(role)) else { continue };
            let new = permissions.iter().filter(|granted| had.insert(**granted));
            given.extend(new.map(|granted| (*granted, path.clone())));
            let inner = roles.iter().filter(|role| seen.insert(**role));
            open.extend(inner.map(|role| path.iter().copied().chain([*role]).collect::<Vec<_>>()));
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::{USERS, access, id, target};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn a_permission_has_an_explanation_if_and_only_if_it_is_allowed(
            access in access(), user in 0..USERS, target in target(),
        ) {
            let rights = access.rights_of(id(user));
            let explained: HashSet<Permission> =
                access.explain(id(user), &target).iter().map(|path| path.permission).collect();
            for permission in Permission::ALL {
                prop_assert_eq!(rights.allow(*permission, &target), explained.contains(permission), "{:?}", permission);
            }
        }

        #[test]
        fn every_step_of_an_explanation_is_there(access in access(), user in 0..USERS, target in target()) {
            for path in access.explain(id(user), &target) {
                prop_assert!(access.acls.contains(&path.acl));
                prop_assert!(target.reached_by().contains(&path.reached));
                if let Some(first) = path.groups.first() {
                    prop_assert!(access.groups[first].users.contains(&id(user)));
                    prop_assert_eq!(path.acl.subject, Subject::Group(*path.groups.last().expect("a group")));
                }
                for pair in path.groups.windows(2) {
                    prop_assert!(access.groups[&pair[1]].groups.contains(&pair[0]));
                }
                for pair in path.roles.windows(2) {
                    prop_assert!(access.roles[&pair[0]].roles.contains(&pair[1]));
                }
                if let Some(last) = path.roles.last() {
                    prop_assert!(access.roles[last].permissions.contains(&(path.permission, path.restrict)));
                }
            }
        }
    }
}

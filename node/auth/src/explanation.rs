//! Explanation of rights: the paths through which a user has each permission on an object.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

use crate::objects::{ObjectType, Permission, Target};
use crate::rights::{Access, Acl, Gift, Granted, Role, Subject, reaches_type};

/// Path through which a user has a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantPath {
    pub permission: Permission,
    /// Object type to which the permission is restricted.
    pub restrict: Option<ObjectType>,
    /// Grant that confers the permission.
    pub acl: Acl,
    /// Object that the grant reaches: its own object, or a project of its project group.
    pub reached: (ObjectType, Uuid),
    /// Groups from that of the user to that of the grant. Empty for a grant to the user.
    pub groups: Vec<Uuid>,
    /// Roles from that of the grant to that of the permission. Empty for a grant of the permission itself.
    pub roles: Vec<Uuid>,
}

/// Explainer of the rights of many users on one target, which computes shared data only once.
#[derive(Debug)]
pub struct Explainer<'a> {
    /// Grants that reach the target, each with the object through which it does and its permissions.
    grants: Vec<(&'a Acl, (ObjectType, Uuid), Vec<GivenPath>)>,
    /// Groups by their direct users.
    direct: HashMap<Uuid, Vec<Uuid>>,
    /// Groups by their direct member groups.
    holders: HashMap<Uuid, Vec<Uuid>>,
}

/// Permission of a grant, and the roles that lead to it.
type GivenPath = (Granted, Vec<Uuid>);

impl<'a> Explainer<'a> {
    pub fn new(access: &'a Access, target: &Target) -> Explainer<'a> {
        let (mut direct, mut holders): (HashMap<Uuid, Vec<Uuid>>, HashMap<Uuid, Vec<Uuid>>) = Default::default();
        for (id, group) in &access.groups {
            group.users.iter().for_each(|user| direct.entry(*user).or_default().push(*id));
            group.groups.iter().for_each(|member| holders.entry(*member).or_default().push(*id));
        }
        let grants = access.acls.iter().filter_map(|acl| {
            let reached = access.reached_from(acl.object).find(|on| target.reached_by().contains(on))?;
            let mut given = given_by(access, acl.gift);
            given.retain(|((_, restrict), _)| reaches_type(*restrict, target.object));
            Some((acl, reached, given))
        });
        Explainer { grants: grants.collect(), direct, holders }
    }

    /// Returns the paths of a user to permissions on the target, in the order of the permissions. There is one for each
    /// grant and permission.
    pub fn paths_of(&self, user: Uuid) -> Vec<GrantPath> {
        let groups = self.group_paths(user);
        let mut paths = Vec::new();
        for (acl, reached, given) in &self.grants {
            let groups = match acl.subject {
                Subject::User(of) if of == user => Vec::new(),
                Subject::User(_) => continue,
                Subject::Group(of) => match groups.get(&of) {
                    Some(path) => path.clone(),
                    None => continue,
                },
            };
            paths.extend(given.iter().map(|((permission, restrict), roles)| GrantPath {
                permission: *permission,
                restrict: *restrict,
                acl: **acl,
                reached: *reached,
                groups: groups.clone(),
                roles: roles.clone(),
            }));
        }
        paths.sort_by_key(|path| path.permission);
        paths
    }

    /// Returns the groups of a user, each with the shortest path to it.
    fn group_paths(&self, user: Uuid) -> HashMap<Uuid, Vec<Uuid>> {
        let direct = self.direct.get(&user).into_iter().flatten();
        let mut paths: HashMap<Uuid, Vec<Uuid>> = direct.map(|group| (*group, vec![*group])).collect();
        let mut open: VecDeque<Uuid> = paths.keys().copied().collect();
        while let Some(member) = open.pop_front() {
            for holder in self.holders.get(&member).into_iter().flatten() {
                if !paths.contains_key(holder) {
                    let path = paths[&member].iter().copied().chain([*holder]).collect();
                    paths.insert(*holder, path);
                    open.push_back(*holder);
                }
            }
        }
        paths
    }
}

/// Returns the permissions of a grant, each with the roles that lead to it.
fn given_by(access: &Access, gift: Gift) -> Vec<GivenPath> {
    let first = match gift {
        Gift::Permission(permission, restrict) => return vec![((permission, restrict), Vec::new())],
        Gift::Role(role) => role,
    };
    let (mut given, mut had) = (Vec::new(), HashSet::new());
    let (mut seen, mut open) = (HashSet::from([first]), VecDeque::from([vec![first]]));
    while let Some(path) = open.pop_front() {
        let Some(Role { permissions, roles }) = path.last().and_then(|role| access.roles.get(role)) else { continue };
        let new = permissions.iter().filter(|granted| had.insert(**granted));
        given.extend(new.map(|granted| (*granted, path.clone())));
        let inner = roles.iter().filter(|role| seen.insert(**role));
        open.extend(inner.map(|role| path.iter().copied().chain([*role]).collect::<Vec<_>>()));
    }
    given
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
                Explainer::new(&access, &target).paths_of(id(user)).iter().map(|path| path.permission).collect();
            for permission in Permission::ALL {
                prop_assert_eq!(rights.allow(*permission, &target), explained.contains(permission), "{:?}", permission);
            }
        }

        #[test]
        fn every_step_of_an_explanation_is_there(access in access(), user in 0..USERS, target in target()) {
            for path in Explainer::new(&access, &target).paths_of(id(user)) {
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

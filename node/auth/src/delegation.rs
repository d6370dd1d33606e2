//! Delegation of rights: nobody can grant more than they have.
//!
//! A change of grants, groups, roles or project groups can give rights to users. Its author must hold each of these
//! rights on the object of the grant or on a container. `authorization` decides earlier whether the author may change
//! the record at all.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use uuid::Uuid;

use crate::objects::{ObjectType, Permission, Target};
use crate::rights::{Access, Acl, Gift, Granted, Rights, Subject};

/// Part of a change that grants rights, relative to the state before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Giving {
    /// Creation of a grant.
    Grant(Acl),
    /// Addition of a user or another group to a group. The member gets the rights of the group.
    Member { group: Uuid },
    /// Addition of permissions to a role, which its holders get.
    Permissions { role: Uuid, gained: HashSet<Granted> },
    /// Addition of a project to a project group, whose grants then reach the project.
    Project { group: Uuid, project: Uuid },
}

/// Right that the author of a change grants without having it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    pub object: (ObjectType, Uuid),
    pub right: Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    Permission(Permission, Option<ObjectType>),
    /// Role that confers more than its permissions.
    Role(Uuid),
}

/// Roles that confer more than their permissions on an organization. Only their holders can grant them.
#[derive(Clone, Copy, Debug)]
pub struct Distinguished<'r>(pub &'r [Uuid]);

/// Returns the first right of the change that its author lacks.
///
/// `target` finds the containers of an object. It returns `None` for a deleted object, on which nothing can be granted.
pub fn excess(
    access: &Access,
    author: &Rights,
    giving: &Giving,
    distinguished: Distinguished<'_>,
    target: impl Fn((ObjectType, Uuid)) -> Option<Target>,
) -> Option<Excess> {
    let lacks = |object: (ObjectType, Uuid), granted: &HashSet<Granted>| {
        let target = target(object)?;
        let lacking = granted.iter().find(|granted| !author.holds(**granted, &target));
        lacking.map(|(permission, only)| Excess { object, right: Right::Permission(*permission, *only) })
    };
    let given = |object: (ObjectType, Uuid), gift: Gift| {
        let granted = match gift {
            Gift::Permission(permission, only) => HashSet::from([(permission, only)]),
            Gift::Role(role) => {
                let is_more = object.0 == ObjectType::Organization && distinguished.0.contains(&role);
                if is_more && !author.has_role(object, role) {
                    return Some(Excess { object, right: Right::Role(role) });
                }
                access.permissions_of(role)
            }
        };
        lacks(object, &granted)
    };
    match giving {
        Giving::Grant(acl) => given(acl.object, acl.gift),
        Giving::Member { group } => {
            let holders = above(*group, &access.groups, |group| &group.groups);
            let is_theirs = |acl: &&Acl| matches!(acl.subject, Subject::Group(of) if holders.contains(&of));
            access.acls.iter().filter(is_theirs).find_map(|acl| given(acl.object, acl.gift))
        }
        Giving::Permissions { role, gained } => {
            let holders = above(*role, &access.roles, |role| &role.roles);
            let has_role = |acl: &&Acl| matches!(acl.gift, Gift::Role(of) if holders.contains(&of));
            access.acls.iter().filter(has_role).find_map(|acl| lacks(acl.object, gained))
        }
        Giving::Project { group, project } => {
            let on_group = |acl: &&Acl| acl.object == (ObjectType::ProjectGroup, *group);
            let project = (ObjectType::Project, *project);
            access.acls.iter().filter(on_group).find_map(|acl| given(project, acl.gift))
        }
    }
}

/// Returns the record and all records that contain it, directly or through others.
fn above<T>(id: Uuid, all: &HashMap<Uuid, T>, members: impl Fn(&T) -> &Vec<Uuid>) -> HashSet<Uuid> {
    let mut holders: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
    for (holder, record) in all {
        members(record).iter().for_each(|member| holders.entry(*member).or_default().push(*holder));
    }
    reached(id, |member| holders.get(&member).into_iter().flatten().copied())
}

fn reached<T: Copy + Eq + Hash, N: IntoIterator<Item = T>>(from: T, next: impl Fn(T) -> N) -> HashSet<T> {
    let (mut seen, mut open) = (HashSet::from([from]), vec![from]);
    while let Some(one) = open.pop() {
        open.extend(next(one).into_iter().filter(|next| seen.insert(*next)));
    }
    seen
}

#[cfg(test)]
mod tests;

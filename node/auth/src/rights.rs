//! Rights of one user from groups, roles and grants. They are computed once after each change, so that a decision takes
//! a few lookups.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::objects::{ObjectType, Permission, Target};

/// A permission, and the type of things it is restricted to.
pub type Granted = (Permission, Option<ObjectType>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub users: Vec<Uuid>,
    pub groups: Vec<Uuid>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    pub permissions: Vec<Granted>,
    pub roles: Vec<Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    User(Uuid),
    Group(Uuid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gift {
    Permission(Permission, Option<ObjectType>),
    Role(Uuid),
}

/// Grant of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    pub object: (ObjectType, Uuid),
    pub subject: Subject,
    pub gift: Gift,
}

/// Groups, roles and grants of one organization, with system roles.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub groups: HashMap<Uuid, Group>,
    pub roles: HashMap<Uuid, Role>,
    /// The projects of each group of projects.
    pub project_groups: HashMap<Uuid, Vec<Uuid>>,
    pub acls: Vec<Acl>,
}

impl Access {
    /// Returns the rights of a user. Cycles of groups or roles are allowed.
    pub fn rights_of(&self, user: Uuid) -> Rights {
        let groups = self.groups_of(user);
        let mut rights = Rights::default();
        for acl in &self.acls {
            let is_theirs = match acl.subject {
                Subject::User(of) => of == user,
                Subject::Group(of) => groups.contains(&of),
            };
            if !is_theirs {
                continue;
            }
            let granted = match acl.gift {
                Gift::Permission(permission, restrict) => HashSet::from([(permission, restrict)]),
                Gift::Role(role) => {
                    rights.roles.insert((acl.object, role));
                    self.permissions_of(role)
                }
            };
            for on in self.reached_from(acl.object) {
                granted.iter().for_each(|granted| rights.grant(on, *granted));
            }
        }
        rights
    }

    /// Returns the objects that a grant reaches: a grant on a group of projects reaches each of them.
    pub(crate) fn reached_from(&self, object: (ObjectType, Uuid)) -> impl Iterator<Item = (ObjectType, Uuid)> {
        let projects = match object {
            (ObjectType::ProjectGroup, id) => self.project_groups.get(&id),
            _ => None,
        };
        let projects = projects.into_iter().flatten().map(|project| (ObjectType::Project, *project));
        std::iter::once(object).chain(projects)
    }

    /// The groups that the user is in, directly or by way of groups in them.
    fn groups_of(&self, user: Uuid) -> HashSet<Uuid> {
        let mut holders: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        let mut found = HashSet::new();
        for (id, group) in &self.groups {
            group.groups.iter().for_each(|member| holders.entry(*member).or_default().push(*id));
            if group.users.contains(&user) {
                found.insert(*id);
            }
        }
        let mut open: Vec<Uuid> = found.iter().copied().collect();
        while let Some(member) = open.pop() {
            for holder in holders.get(&member).into_iter().flatten() {
                if found.insert(*holder) {
                    open.push(*holder);
                }
            }
        }
        found
    }

    /// Returns the permissions of a role, with its included roles.
    pub fn permissions_of(&self, role: Uuid) -> HashSet<Granted> {
        let (mut seen, mut open, mut given) = (HashSet::from([role]), vec![role], HashSet::new());
        while let Some(role) = open.pop() {
            // One that was deleted gives nothing, and takes nothing from those beside it.
            let Some(role) = self.roles.get(&role) else { continue };
            given.extend(role.permissions.iter().copied());
            open.extend(role.roles.iter().copied().filter(|member| seen.insert(*member)));
        }
        given
    }
}

/// Rights of a user in one organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    granted: HashMap<(ObjectType, Uuid), Granting>,
    roles: HashSet<((ObjectType, Uuid), Uuid)>,
}

/// For each permission the types that it is restricted to, as bits; all of them where it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Granting([u32; Permission::ALL.len()]);

impl Rights {
    fn grant(&mut self, on: (ObjectType, Uuid), (permission, restrict): Granted) {
        self.granted.entry(on).or_default().0[permission as usize] |= types_of(restrict);
    }

    pub fn allow(&self, permission: Permission, target: &Target) -> bool {
        let wanted = bits([target.object]);
        let granted = target.reached_by().iter().filter_map(|on| self.granted.get(on));
        granted.into_iter().any(|granting| granting.0[permission as usize] & wanted != 0)
    }

    /// Whether the user has the permission on the target and on everything below it, as far as the restriction goes.
    pub fn holds(&self, (permission, restrict): Granted, target: &Target) -> bool {
        let wanted = types_of(restrict) & bits(target.object.below());
        let granted = target.reached_by().iter().filter_map(|on| self.granted.get(on));
        let held = granted.fold(0, |held, granting| held | granting.0[permission as usize]);
        wanted & !held == 0
    }

    /// Whether anything at all was granted on the target or on what it is in, so that it is no secret that it is there.
    pub fn reaches(&self, target: &Target) -> bool {
        target.reached_by().iter().any(|on| self.granted.contains_key(on))
    }

    /// Whether the role was given on this very object, to the user or to a group they are in.
    pub fn has_role(&self, on: (ObjectType, Uuid), role: Uuid) -> bool {
        self.roles.contains(&(on, role))
    }

    /// Whether there is anything at all.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }
}

/// Returns whether a grant with this restriction is about things of a type.
pub(crate) fn reaches_type(restrict: Option<ObjectType>, object: ObjectType) -> bool {
    types_of(restrict) & bits([object]) != 0
}

/// The types that a grant with this restriction is about.
fn types_of(restrict: Option<ObjectType>) -> u32 {
    match restrict {
        None => u32::MAX,
        Some(only) => bits(ObjectType::ALL.iter().copied().filter(|object| only.covers(*object))),
    }
}

fn bits(types: impl IntoIterator<Item = ObjectType>) -> u32 {
    types.into_iter().fold(0, |bits, object| bits | 1 << object as u32)
}

const _: () = assert!(ObjectType::ALL.len() <= u32::BITS as usize);

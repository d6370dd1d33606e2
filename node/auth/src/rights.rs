//! Rights of one user from groups, roles and grants. They are computed once after each change, so that decisions are
//! lookups.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::objects::{ObjectType, Permission, Target};

/// Permission, and the object type to which it is restricted.
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

/// Grant of a permission or role on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    pub object: (ObjectType, Uuid),
    pub subject: Subject,
    pub gift: Gift,
}

/// Groups, roles and grants of one organization, with the system roles.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub groups: HashMap<Uuid, Group>,
    pub roles: HashMap<Uuid, Role>,
    /// Projects of each project group.
    pub project_groups: HashMap<Uuid, Vec<Uuid>>,
    pub acls: Vec<Acl>,
}

impl Access {
    /// Returns the rights of a user. Groups and roles may form cycles.
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

    /// Returns the objects that a grant reaches. A grant on a project group also reaches its projects.
    pub(crate) fn reached_from(&self, object: (ObjectType, Uuid)) -> impl Iterator<Item = (ObjectType, Uuid)> {
        let projects = match object {
            (ObjectType::ProjectGroup, id) => self.project_groups.get(&id),
            _ => None,
        };
        let projects = projects.into_iter().flatten().map(|project| (ObjectType::Project, *project));
        std::iter::once(object).chain(projects)
    }

    /// Returns the groups of a user, including indirect ones.
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

    /// Returns the permissions of a role, including those of its member roles.
    pub fn permissions_of(&self, role: Uuid) -> HashSet<Granted> {
        let (mut seen, mut open, mut given) = (HashSet::from([role]), vec![role], HashSet::new());
        while let Some(role) = open.pop() {
            // A deleted role gives nothing and does not affect the others.
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

/// Bit set of object types for each permission. An unrestricted permission has all bits.
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

    /// Returns whether the user has the permission on the target and on everything below it that the restriction
    /// covers.
    pub fn holds(&self, (permission, restrict): Granted, target: &Target) -> bool {
        let wanted = types_of(restrict) & bits(target.object.below());
        let granted = target.reached_by().iter().filter_map(|on| self.granted.get(on));
        let held = granted.fold(0, |held, granting| held | granting.0[permission as usize]);
        wanted & !held == 0
    }

    /// Returns whether a grant exists on the target or a container, so that its existence is no secret.
    pub fn reaches(&self, target: &Target) -> bool {
        target.reached_by().iter().any(|on| self.granted.contains_key(on))
    }

    /// Returns whether the user has the role on this exact object, directly or through a group.
    pub fn has_role(&self, on: (ObjectType, Uuid), role: Uuid) -> bool {
        self.roles.contains(&(on, role))
    }

    /// Returns whether there are no grants at all.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }
}

/// Returns whether a grant with this restriction applies to objects of a type.
pub(crate) fn reaches_type(restrict: Option<ObjectType>, object: ObjectType) -> bool {
    types_of(restrict) & bits([object]) != 0
}

/// Returns the bit set of types to which a grant with this restriction applies.
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

//! Access rights in the catalog, computed once after each change. A decision and its records are read at the same
//! version.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use assay_node_auth::{
    Access, Acl, Distinguished, Excess, Gift, Giving, Granted, ObjectType, Principal, Right, Rights, Subject, excess,
};
use assay_storage_catalog::State;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{Record, RecordKind};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::authz::guard;
use crate::draft;
use crate::error::RecordsError;
use crate::kinds::{acl, group, organization, project_group, role};
use crate::list::Walk;

/// Kinds whose changes affect access rights.
const KINDS: [RecordKind; 6] = [
    RecordKind::GROUP,
    RecordKind::ROLE,
    RecordKind::PROJECT_GROUP,
    RecordKind::ACL,
    RecordKind::ORG_MEMBER,
    RecordKind::CLUSTER_SETTING,
];
/// Upper bound of the users with cached rights, above which the cache is cleared.
const USERS_KEPT_MAX: usize = 100_000;

/// View of the local catalog at one version, with the rights of users.
#[derive(Clone, Copy)]
pub struct CatalogView<'s> {
    state: &'s State,
    cache: &'s AccessCache,
}

impl fmt::Debug for CatalogView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogView(version {})", self.state.version())
    }
}

impl Deref for CatalogView<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state
    }
}

impl<'s> CatalogView<'s> {
    pub(crate) fn new(state: &'s State, cache: &'s AccessCache) -> CatalogView<'s> {
        CatalogView { state, cache }
    }

    /// Returns the rights of a member. The caller must check the membership, without which there are no rights.
    pub fn rights(&self, org: OrgId, user: Uuid) -> Result<Arc<Rights>, RecordsError> {
        self.of_organization(org, |OrganizationAccess { rights, access, .. }, users| {
            let rights = rights.entry(user).or_insert_with(|| {
                *users += 1;
                Arc::new(access.rights_of(user))
            });
            Arc::clone(rights)
        })
    }

    /// Returns the groups, roles and grants of an organization.
    pub fn access(&self, org: OrgId) -> Result<Arc<Access>, RecordsError> {
        self.of_organization(org, |of_organization, _| Arc::clone(&of_organization.access))
    }

    /// Refuses a change that grants rights which its author lacks. `field` is the request field with the grant.
    pub fn check_giving(&self, author: &Principal, field: &str, giving: &Giving) -> Result<(), RecordsError> {
        let access = self.access(author.org)?;
        // The current rights may be fewer than those in `author`.
        let rights = self.rights(author.org, author.user)?;
        let target = |(object, id)| guard::target_of(self, author.org, object, id);
        match excess(&access, &rights, giving, Distinguished(&[role::OWNER]), target) {
            None => Ok(()),
            Some(excess) => Err(RecordsError::Forbidden(described(field, &excess))),
        }
    }

    /// Returns whether there are grants on the object itself.
    pub fn has_grants_on(&self, org: OrgId, object: (ObjectType, Uuid)) -> Result<bool, RecordsError> {
        self.of_organization(org, |of_organization, _| of_organization.granted.contains(&object))
    }

    /// Returns the permissions of roles, including those of their member roles.
    pub fn permissions_of(
        &self,
        org: OrgId,
        roles: impl IntoIterator<Item = Uuid>,
    ) -> Result<HashSet<Granted>, RecordsError> {
        self.of_organization(org, |OrganizationAccess { access, .. }, _| {
            roles.into_iter().flat_map(|role| access.permissions_of(role)).collect()
        })
    }

    fn of_organization<T>(
        &self,
        org: OrgId,
        look: impl FnOnce(&mut OrganizationAccess, &mut usize) -> T,
    ) -> Result<T, RecordsError> {
        let version = self.state.changed(&KINDS);
        let mut found = self.cache.0.lock();
        if found.version != version || found.users >= USERS_KEPT_MAX {
            *found = CachedAccess { version, ..CachedAccess::default() };
        }
        let CachedAccess { users, orgs, .. } = &mut *found;
        let org = match orgs.entry(org) {
            std::collections::hash_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let access = access_of(self.state, org)?;
                let granted = access.acls.iter().map(|acl| acl.object).collect();
                place.insert(OrganizationAccess { access: Arc::new(access), granted, rights: HashMap::new() })
            }
        };
        Ok(look(org, users))
    }
}

fn described(field: &str, excess: &Excess) -> String {
    let (object, id) = excess.object;
    let right = match excess.right {
        Right::Permission(permission, None) => format!("`{}`", permission.word()),
        Right::Permission(permission, Some(only)) => format!("`{}` of every {}", permission.word(), only.word()),
        Right::Role(_) => "the role Owner itself".to_owned(),
    };
    format!(
        "`{field}`: this would grant {right} on the {} {id}, which this credential does not have; it can only grant \
         its own rights",
        object.word()
    )
}

/// Cache of access rights. It is filled during a read of the catalog, so that its entries are never outdated.
#[derive(Default)]
pub(crate) struct AccessCache(Mutex<CachedAccess>);

impl fmt::Debug for AccessCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessCache")
    }
}

#[derive(Default)]
struct CachedAccess {
    /// Version of the catalog at the last change of access.
    version: u64,
    users: usize,
    orgs: HashMap<OrgId, OrganizationAccess>,
}

struct OrganizationAccess {
    access: Arc<Access>,
    /// Objects of the grants.
    granted: HashSet<(ObjectType, Uuid)>,
    rights: HashMap<Uuid, Arc<Rights>>,
}

fn access_of(state: &State, org: OrgId) -> Result<Access, RecordsError> {
    let mut access = Access { roles: role::of_system().collect(), ..Access::default() };
    each(state, RecordKind::GROUP, org, |record| {
        access.groups.insert(record.id, group::read(&draft::read(record)?));
        Ok(())
    })?;
    each(state, RecordKind::ROLE, org, |record| {
        access.roles.insert(record.id, role::read(&draft::read(record)?));
        Ok(())
    })?;
    each(state, RecordKind::PROJECT_GROUP, org, |record| {
        access.project_groups.insert(record.id, project_group::read(&draft::read(record)?));
        Ok(())
    })?;
    each(state, RecordKind::ACL, org, |record| {
        access.acls.extend(acl::read(&draft::read(record)?));
        Ok(())
    })?;
    // An organization that predates grants has no groups. Its members own it until it gets its groups.
    if !organization::has_groups(state, org) {
        let object = (ObjectType::Organization, org.0);
        let owner = |user| Acl { object, subject: Subject::User(user), gift: Gift::Role(role::OWNER) };
        access.acls.extend(organization::members(state, org)?.into_iter().map(owner));
    }
    Ok(access)
}

fn each(
    state: &State,
    kind: RecordKind,
    org: OrgId,
    mut one: impl FnMut(&Record) -> Result<(), RecordsError>,
) -> Result<(), RecordsError> {
    let mut walk = Walk::of(kind, org);
    while !walk.is_over() {
        for record in walk.step(state, |record| !record.keys.is_empty())? {
            one(&record)?;
        }
    }
    Ok(())
}

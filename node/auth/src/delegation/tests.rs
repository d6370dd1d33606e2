//! Property tests that compare the rights of every user before and after a random change of access.

use assay_storage_model::OrgId;
use proptest::prelude::*;

use super::*;
use crate::rights::{Group, Role};
use crate::samples::{HOLDERS, ORG, PROJECTS, USERS, access, granted, id, on};

/// User without rights before the change.
const NEWCOMER: u128 = 99;

fn org() -> OrgId {
    OrgId(id(ORG))
}

/// Returns one object of each type in each container, and one target for a new object there.
fn world() -> Vec<Target> {
    use ObjectType::{
        AiSecret, Dataset, Experiment, Group, OrgAiSecret, OrgAuditLogs, OrgMember, OrgProject, Organization, Project,
        ProjectGroup, ProjectLog, Prompt, PromptSession, Role,
    };
    let single = [Organization, OrgMember, OrgProject, OrgAuditLogs, OrgAiSecret];
    let mut all: Vec<Target> = single.into_iter().map(|object| Target::of_organization(object, org())).collect();
    for object in [Project, Group, Role, ProjectGroup, AiSecret] {
        let own = (object != Project).then_some([20, 21, 30, 31]).into_iter().flatten().map(|own| Some(id(own)));
        all.extend(own.chain([None]).map(|own| Target::in_organization(object, own, org())));
    }
    for project in 10..10 + PROJECTS {
        all.push(Target::in_organization(Project, Some(id(project)), org()));
        for object in [Experiment, Dataset, Prompt, PromptSession, ProjectLog] {
            let own = if object == ProjectLog { project } else { project + 10 };
            all.extend([Some(id(own)), None].map(|own| Target::in_project(object, own, id(project), org())));
        }
    }
    all
}

fn target_in(world: &[Target], object: (ObjectType, Uuid)) -> Option<Target> {
    world.iter().find(|target| target.reached_by().first() == Some(&object) && target.object == object.0).cloned()
}

/// Change of access, and the resulting state.
#[derive(Clone, Debug)]
struct Change {
    giving: Giving,
    after: Access,
}

fn changed(
    access: &Access,
    which: u8,
    holder: Uuid,
    member: Uuid,
    granted: Granted,
    object: (ObjectType, Uuid),
) -> Change {
    let mut after = access.clone();
    let newcomer = Subject::User(id(NEWCOMER));
    let giving = match which {
        0 | 1 => {
            let gift = if which == 0 { Gift::Permission(granted.0, granted.1) } else { Gift::Role(holder) };
            let acl = Acl { object, subject: newcomer, gift };
            after.acls.push(acl);
            Giving::Grant(acl)
        }
        2 => {
            after.groups.entry(holder).or_default().users.push(id(NEWCOMER));
            Giving::Member { group: holder }
        }
        3 => {
            after.groups.entry(holder).or_default().groups.push(member);
            Giving::Member { group: holder }
        }
        4 => {
            after.roles.entry(holder).or_default().permissions.push(granted);
            Giving::Permissions { role: holder, gained: HashSet::from([granted]) }
        }
        5 => {
            after.roles.entry(holder).or_default().roles.push(member);
            Giving::Permissions { role: holder, gained: access.permissions_of(member) }
        }
        _ => {
            let (group, project) = (id(30 + u128::from(which % 2)), id(10 + member.as_u128() % PROJECTS));
            after.project_groups.entry(group).or_default().push(project);
            Giving::Project { group, project }
        }
    };
    Change { giving, after }
}

fn change() -> impl Strategy<Value = (Access, Change)> {
    let holder = || (0..HOLDERS).prop_map(id);
    (access(), 0..8_u8, holder(), holder(), granted(), on()).prop_map(
        |(access, which, holder, member, granted, object)| {
            let change = changed(&access, which, holder, member, granted, object);
            (access, change)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// Any right that a user gains by an accepted change was held by its author before.
    #[test]
    fn nobody_gets_more_than_the_author_had((before, change) in change(), author in 0..USERS) {
        let (world, author) = (world(), before.rights_of(id(author)));
        let found = excess(&before, &author, &change.giving, Distinguished(&[]), |object| target_in(&world, object));
        if found.is_none() {
            for user in (0..USERS).chain([NEWCOMER]) {
                let (had, has) = (before.rights_of(id(user)), change.after.rights_of(id(user)));
                for (target, permission) in world.iter().flat_map(|target| Permission::ALL.iter().map(move |one| (target, *one))) {
                    let is_new = has.allow(permission, target) && !had.allow(permission, target);
                    prop_assert!(!is_new || author.allow(permission, target), "{user}: {permission:?} on {target:?}");
                }
            }
        }
    }

    /// A refused change would give a newcomer a right that the author lacks. Project groups are excluded, because their
    /// grants also reach projects that join later.
    #[test]
    fn what_is_refused_is_more_than_the_author_had((before, change) in change(), author in 0..USERS) {
        let (world, author) = (world(), before.rights_of(id(author)));
        let found = excess(&before, &author, &change.giving, Distinguished(&[]), |object| target_in(&world, object));
        let is_to_newcomer = match &change.giving {
            Giving::Grant(_) => true,
            Giving::Member { group } => change.after.groups[group].users.contains(&id(NEWCOMER)),
            _ => false,
        };
        if let Some(excess) = found.filter(|excess| is_to_newcomer && excess.object.0 != ObjectType::ProjectGroup) {
            let has = change.after.rights_of(id(NEWCOMER));
            let more = |target: &Target| {
                Permission::ALL.iter().any(|one| has.allow(*one, target) && !author.allow(*one, target))
            };
            prop_assert!(world.iter().any(more), "{excess:?} is no excess");
        }
    }
}

/// Checks several changes against the grants of their author on the project.
#[test]
fn rights_are_passed_on_by_who_has_them() {
    let (project, role, group) = ((ObjectType::Project, id(10)), id(0), id(1));
    let grant = |user: u128, gift| Acl { object: project, subject: Subject::User(id(user)), gift };
    let to_group = Acl { object: project, subject: Subject::Group(group), gift: Gift::Role(role) };
    let base = Access {
        roles: HashMap::from([(role, Role { permissions: vec![(Permission::Read, None)], roles: vec![] })]),
        groups: HashMap::from([(group, Group::default())]),
        acls: vec![to_group],
        ..Access::default()
    };
    let world = world();
    let goes = |held: &[(Permission, Option<ObjectType>)], giving: Giving| {
        let mut access = base.clone();
        access.acls.extend(held.iter().map(|(permission, only)| grant(1, Gift::Permission(*permission, *only))));
        let author = access.rights_of(id(1));
        excess(&access, &author, &giving, Distinguished(&[]), |object| target_in(&world, object)).is_none()
    };
    let given = |permission, only| Giving::Grant(grant(2, Gift::Permission(permission, only)));
    let (read, datasets) = ((Permission::Read, None), (Permission::Read, Some(ObjectType::Dataset)));
    let grants_alone = (Permission::CreateAcls, None);
    assert!(goes(&[read], given(Permission::Read, None)));
    assert!(goes(&[read], given(Permission::Read, Some(ObjectType::Dataset))));
    assert!(goes(&[datasets], given(Permission::Read, Some(ObjectType::Dataset))));
    assert!(!goes(&[datasets], given(Permission::Read, None)));
    assert!(!goes(&[grants_alone], given(Permission::Read, None)), "to grant is not to have");
    assert!(goes(&[grants_alone], given(Permission::CreateAcls, None)));
    assert!(goes(&[read], Giving::Member { group }) && !goes(&[datasets], Giving::Member { group }));
    let gains = |granted| Giving::Permissions { role, gained: HashSet::from([granted]) };
    assert!(goes(&[read], gains(read)) && !goes(&[read], gains((Permission::Update, None))));
}

#[test]
fn a_role_that_means_more_is_given_on_by_who_has_it() {
    let (owner, organization) = (id(7), (ObjectType::Organization, id(ORG)));
    let all = Role { permissions: Permission::ALL.iter().map(|one| (*one, None)).collect(), roles: vec![] };
    let acl = |user: u128, gift| Acl { object: organization, subject: Subject::User(id(user)), gift };
    let mut access = Access { roles: HashMap::from([(owner, all)]), ..Access::default() };
    access.acls.push(acl(1, Gift::Role(owner)));
    access.acls.extend(Permission::ALL.iter().map(|one| acl(2, Gift::Permission(*one, None))));
    let world = world();
    let giving = Giving::Grant(acl(3, Gift::Role(owner)));
    let by = |user: u128, distinguished: &[Uuid]| {
        let author = access.rights_of(id(user));
        excess(&access, &author, &giving, Distinguished(distinguished), |object| target_in(&world, object))
    };
    assert_eq!(by(1, &[owner]), None);
    assert_eq!(by(2, &[owner]), Some(Excess { object: organization, right: Right::Role(owner) }));
    assert_eq!(by(2, &[]), None);
}

//! Random groups, roles and grants for the tests of decisions.

use assay_storage_model::OrgId;
use proptest::prelude::*;
use uuid::Uuid;

use crate::objects::{ObjectType, Permission, Target};
use crate::rights::{Access, Acl, Gift, Granted, Group, Role, Subject};

pub const ORG: u128 = 1;
pub const PROJECTS: u128 = 2;
pub const USERS: u128 = 3;
pub const HOLDERS: u128 = 5;

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn target() -> impl Strategy<Value = Target> {
    let org = OrgId(id(ORG));
    let within = prop::sample::select(&[ObjectType::Experiment, ObjectType::Dataset, ObjectType::ProjectLog][..]);
    let own = prop::option::of((20..22_u128).prop_map(id));
    let project = (10..10 + PROJECTS).prop_map(id);
    prop_oneof![
        (within, own.clone(), project)
            .prop_map(move |(object, own, project)| Target::in_project(object, own, project, org)),
        (30..32_u128).prop_map(move |group| Target::in_organization(ObjectType::ProjectGroup, Some(id(group)), org)),
        (10..10 + PROJECTS).prop_map(move |project| Target::in_organization(
            ObjectType::Project,
            Some(id(project)),
            org
        )),
        own.prop_map(move |own| Target::in_organization(ObjectType::AiSecret, own, org)),
        Just(Target::of_organization(ObjectType::OrgMember, org)),
        Just(Target::of_organization(ObjectType::Organization, org)),
    ]
}

pub fn permission() -> impl Strategy<Value = Permission> {
    prop::sample::select(&Permission::ALL[..3])
}

pub fn granted() -> impl Strategy<Value = Granted> {
    (permission(), prop::option::weighted(0.3, prop::sample::select(ObjectType::ALL)))
}

pub fn ids(below: u128) -> impl Strategy<Value = Vec<Uuid>> {
    prop::collection::vec((0..below).prop_map(id), 0..3)
}

/// On what targets can be reached from, and on some that none is.
pub fn on() -> impl Strategy<Value = (ObjectType, Uuid)> {
    let numbers = prop_oneof![Just(ORG), 10..10 + PROJECTS, 20..22_u128, 30..32_u128];
    (prop::sample::select(ObjectType::ALL), numbers.prop_map(id))
}

pub fn access() -> impl Strategy<Value = Access> {
    let subject = prop_oneof![
        (0..USERS).prop_map(|user| Subject::User(id(user))),
        (0..HOLDERS).prop_map(|group| Subject::Group(id(group))),
    ];
    let gift = prop_oneof![
        granted().prop_map(|(permission, restrict)| Gift::Permission(permission, restrict)),
        (0..HOLDERS).prop_map(|role| Gift::Role(id(role))),
    ];
    let acl = (on(), subject, gift).prop_map(|(object, subject, gift)| Acl { object, subject, gift });
    let group = (ids(USERS), ids(HOLDERS)).prop_map(|(users, groups)| Group { users, groups });
    let role = (prop::collection::vec(granted(), 0..3), ids(HOLDERS))
        .prop_map(|(permissions, roles)| Role { permissions, roles });
    let groups = prop::collection::hash_map((0..HOLDERS).prop_map(id), group, 0..HOLDERS as usize);
    let roles = prop::collection::hash_map((0..HOLDERS).prop_map(id), role, 0..HOLDERS as usize);
    let members = prop::collection::vec((10..10 + PROJECTS).prop_map(id), 0..3);
    let project_groups = prop::collection::hash_map((30..32_u128).prop_map(id), members, 0..2);
    (groups, roles, project_groups, prop::collection::vec(acl, 0..6))
        .prop_map(|(groups, roles, project_groups, acls)| Access { groups, roles, project_groups, acls })
}

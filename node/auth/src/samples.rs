//! Generators of random groups, roles and grants for tests, and a master key for tests of logins.

use std::sync::Arc;

use assay_storage_model::OrgId;
use proptest::prelude::*;
use uuid::Uuid;

use crate::login::{LoginKeySource, TICKET_NONCE_BYTES, TicketCipher};
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

/// Generates objects of grants, only some of which reach a target.
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

/// Master key of the tests, which is also its cipher. Its id consists of its first bytes.
pub struct SampleKey(pub [u8; 32]);

impl LoginKeySource for SampleKey {
    fn key_id(&self) -> String {
        format!("{:02x}{:02x}", self.0[0], self.0[1])
    }

    fn derived_key(&self, context: &str) -> [u8; 32] {
        blake3::derive_key(context, &self.0)
    }

    fn ticket_cipher(&self, context: &str) -> Arc<dyn TicketCipher> {
        Arc::new(SampleKey(self.derived_key(context)))
    }
}

const TAG_BYTES: usize = 32;

impl SampleKey {
    fn mixed(&self, nonce: &[u8], text: &[u8]) -> Vec<u8> {
        let mut stream = vec![0; text.len()];
        blake3::Hasher::new_keyed(&self.0).update(nonce).finalize_xof().fill(&mut stream);
        stream.iter().zip(text).map(|(one, other)| one ^ other).collect()
    }

    fn tag(&self, bound_to: &[u8], sealed: &[u8]) -> [u8; TAG_BYTES] {
        let length = u64::try_from(bound_to.len()).expect("a length").to_be_bytes();
        *blake3::Hasher::new_keyed(&self.0).update(&length).update(bound_to).update(sealed).finalize().as_bytes()
    }
}

impl TicketCipher for SampleKey {
    fn seal(&self, bound_to: &[u8], plain: &[u8], nonce: [u8; TICKET_NONCE_BYTES]) -> Option<Vec<u8>> {
        let mut sealed = [&nonce[..], &self.mixed(&nonce, plain)].concat();
        sealed.extend(self.tag(bound_to, &sealed));
        Some(sealed)
    }

    fn open(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (sealed, tag) = sealed.split_last_chunk::<TAG_BYTES>()?;
        let (nonce, encrypted) = sealed.split_first_chunk::<TICKET_NONCE_BYTES>()?;
        (self.tag(bound_to, sealed) == *tag).then(|| self.mixed(nonce, encrypted))
    }
}

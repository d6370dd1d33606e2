//! Tests of access: each kind and action with each way of granting or denying it.

use assay_node_auth::{ObjectType, Permission, Principal};
use assay_node_records::kinds::{
    ACL, AGENT, AI_SECRET, API_KEY, CUSTOM_COLUMN, DATASET, DATASET_SNAPSHOT, ENV_VAR, ENVIRONMENT, EXPERIMENT, GROUP,
    MCP_SERVER, PROJECT, PROJECT_AUTOMATION, PROJECT_SCORE, PROJECT_TAG, PROMPT, PROMPT_SESSION, ROLE, SPAN_IFRAME,
    VIEW,
};
use assay_node_records::{Kind, ListRequest, RecordsError};
use assay_storage_model::catalog::{CatalogCommand, Expect, PutRecord, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, ObjectKind, OrgId};
use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{World, body, id_of, missing, world};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Nothing,
    /// Granted to the user on the record, or on the object that it is a part of.
    Direct,
    ToTheirGroup,
    ToAGroupThatHasTheirs,
    ByARole,
    ByARoleThatHasIt,
    /// Granted on the container.
    OnTheParent,
    OnTheOrganization,
    RestrictedToItsType,
    RestrictedToAnother,
    /// All permissions except the required one.
    AllElse,
    TakenAway,
    /// The user has left the organization.
    Left,
}

pub(super) const WAYS: [Way; 13] = [
    Way::Nothing,
    Way::Direct,
    Way::ToTheirGroup,
    Way::ToAGroupThatHasTheirs,
    Way::ByARole,
    Way::ByARoleThatHasIt,
    Way::OnTheParent,
    Way::OnTheOrganization,
    Way::RestrictedToItsType,
    Way::RestrictedToAnother,
    Way::AllElse,
    Way::TakenAway,
    Way::Left,
];

/// Record, and the object that decides on access to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessTarget {
    pub kind: &'static Kind,
    pub id: Uuid,
    pub project: Option<Uuid>,
    /// Object of grants: the record, or for a part the object that it belongs to.
    pub object: (ObjectType, Uuid),
    pub is_part: bool,
}

pub(super) const DOING: [Permission; 4] =
    [Permission::Create, Permission::Read, Permission::Update, Permission::Delete];

impl World {
    async fn thing(&self, kind: &'static Kind, name: &str) -> AccessTarget {
        let org = self.owner.org.0;
        let own = ObjectType::parse(kind.name());
        let in_organization = [PROJECT.name(), GROUP.name(), ROLE.name(), AI_SECRET.name(), ENVIRONMENT.name()];
        let in_organization = in_organization.contains(&kind.name());
        let project = if in_organization { None } else { Some(self.project(&format!("project of {name}")).await) };
        let home = match project.filter(|_| kind.name() == DATASET_SNAPSHOT.name()) {
            Some(project) => (ObjectType::Dataset, id_of(&self.dataset(project, "d").await)),
            None => project.map_or((ObjectType::Organization, org), |project| (ObjectType::Project, project)),
        };
        let made = self.records.create(&self.owner, kind, sent(kind, name, home.1)).await.expect("the owner may");
        let id = id_of(&made.object);
        let object = own.map_or(home, |own| (own, id));
        AccessTarget { kind, id, project, object, is_part: own.is_none() }
    }

    pub async fn member(&self, email: &str) -> Principal {
        let invited = json!({"invite_users": {"emails": [email]}});
        self.identity.change_members(&self.owner, body(invited)).await.expect("invites");
        let made = self.identity.admin_create_key("acme", email, "theirs").await.expect("a key");
        self.identity.authenticate(made["api_key"].as_str().expect("a key"), None).await.expect("is known")
    }

    pub(super) async fn grant(&self, (object, id): (ObjectType, Uuid), to: Value, gift: Value) -> Uuid {
        let mut sent = json!({"object_type": object.word(), "object_id": id});
        for more in [to, gift] {
            sent.as_object_mut().expect("an object").extend(body(more));
        }
        id_of(&self.records.create(&self.owner, &ACL, body(sent)).await.expect("grants").object)
    }

    async fn group(&self, name: &str, users: &[Uuid], groups: &[Uuid]) -> Uuid {
        let sent = json!({"name": name, "member_users": users, "member_groups": groups});
        id_of(&self.records.create(&self.owner, &GROUP, body(sent)).await.expect("a group").object)
    }

    async fn role(&self, name: &str, permissions: &[Permission], roles: &[Uuid]) -> Uuid {
        let permissions: Vec<Value> =
            permissions.iter().map(|permission| json!({"permission": permission.word()})).collect();
        let sent = json!({"name": name, "member_permissions": permissions, "member_roles": roles});
        id_of(&self.records.create(&self.owner, &ROLE, body(sent)).await.expect("a role").object)
    }

    /// Arranges a grant in this way, and returns whether it allows the action.
    pub(super) async fn arrange(
        &self,
        way: Way,
        who: &Principal,
        thing: &AccessTarget,
        doing: Permission,
        unique: &str,
    ) -> bool {
        let org = (ObjectType::Organization, who.org.0);
        let to = json!({"user_id": who.user});
        // A change of a part requires permission to update its object.
        let needed = if thing.is_part && doing != Permission::Read { Permission::Update } else { doing };
        let gift = json!({"permission": needed.word()});
        let parent = thing.project.map_or(org, |project| (ObjectType::Project, project));
        // A new record can only be granted on its future container.
        let on = if doing == Permission::Create && !thing.is_part { parent } else { thing.object };
        let own = thing.object.0;
        match way {
            Way::Nothing => return false,
            Way::Direct => drop(self.grant(on, to, gift).await),
            Way::ToTheirGroup => {
                let group = self.group(&format!("g {unique}"), &[who.user], &[]).await;
                self.grant(on, json!({"group_id": group}), gift).await;
            }
            Way::ToAGroupThatHasTheirs => {
                let inner = self.group(&format!("inner {unique}"), &[who.user], &[]).await;
                let between = self.group(&format!("between {unique}"), &[], &[inner]).await;
                let outer = self.group(&format!("outer {unique}"), &[], &[between]).await;
                self.grant(on, json!({"group_id": outer}), gift).await;
            }
            Way::ByARole => {
                let role = self.role(&format!("r {unique}"), &[needed], &[]).await;
                self.grant(on, to, json!({"role_id": role})).await;
            }
            Way::ByARoleThatHasIt => {
                let inner = self.role(&format!("inner {unique}"), &[needed], &[]).await;
                let outer = self.role(&format!("outer {unique}"), &[], &[inner]).await;
                self.grant(on, to, json!({"role_id": outer})).await;
            }
            Way::OnTheParent => drop(self.grant(parent, to, gift).await),
            Way::OnTheOrganization => drop(self.grant(org, to, gift).await),
            Way::RestrictedToItsType => {
                let gift = json!({"permission": needed.word(), "restrict_object_type": own.word()});
                self.grant(org, to, gift).await;
            }
            Way::RestrictedToAnother => {
                let gift = json!({"permission": needed.word(), "restrict_object_type": "org_audit_logs"});
                self.grant(org, to, gift).await;
                return false;
            }
            Way::AllElse => {
                for other in Permission::ALL.iter().filter(|other| **other != needed) {
                    self.grant(on, to.clone(), json!({"permission": other.word()})).await;
                }
                return false;
            }
            Way::TakenAway => {
                let acl = self.grant(on, to, gift).await;
                self.records.delete(&self.owner, &ACL, acl).await.expect("takes away");
                return false;
            }
            Way::Left => {
                self.grant(on, to, gift).await;
                let removed = json!({"remove_users": {"ids": [who.user]}});
                self.identity.change_members(&self.owner, body(removed)).await.expect("removes");
                return false;
            }
        }
        true
    }

    /// Attempts the action.
    async fn attempt(
        &self,
        who: &Principal,
        thing: &AccessTarget,
        doing: Permission,
        unique: &str,
    ) -> Result<(), RecordsError> {
        let AccessTarget { kind, id, project, .. } = *thing;
        match doing {
            Permission::Create => {
                let home = if thing.is_part { thing.object.1 } else { project.unwrap_or(who.org.0) };
                self.records.create(who, kind, sent(kind, &format!("new {unique}"), home)).await.map(drop)
            }
            Permission::Read => {
                let got = self.records.get(who, kind, id).await.map(drop);
                let request = ListRequest { ids: vec![id], ..ListRequest::default() };
                // A user who has left gets an error instead of a list.
                let listed = self.records.list(who, kind, &request).await.unwrap_or_default();
                assert_eq!(listed.len() == 1, got.is_ok(), "{kind:?}: what is got is what is listed");
                got
            }
            Permission::Update => {
                let named = if kind.name() == PROMPT.name() { "slug" } else { "name" };
                let sent = body(json!({named: format!("changed {unique}")}));
                self.records.patch(who, kind, id, sent).await.map(drop)
            }
            _ => self.records.delete(who, kind, id).await.map(drop),
        }
    }
}

/// Returns the body of a create in a project or an object.
fn sent(kind: &Kind, name: &str, home: Uuid) -> serde_json::Map<String, Value> {
    let mut sent = json!({"name": name, "project_id": home});
    match kind.name() {
        "project" | "group" | "role" => sent = json!({"name": name}),
        "mcp_server" | "span_iframe" => sent["url"] = "https://example.com/x".into(),
        "ai_secret" => sent = json!({"name": name, "secret": "sk-of-a-provider"}),
        "env_var" => sent = json!({"name": name, "object_type": "project", "object_id": home, "value": "v"}),
        "view" => sent = json!({"name": name, "object_type": "project", "object_id": home, "view_type": "logs"}),
        "dataset_snapshot" => sent = json!({"name": name, "dataset_id": home, "xact_id": "1000192656880881099"}),
        "environment" => sent = json!({"name": name, "slug": name}),
        "prompt" => sent = json!({"slug": name, "project_id": home}),
        "project_score" => sent["score_type"] = "slider".into(),
        "custom_column" => {
            sent["source"] = "dataset".into();
            sent["expr"] = "input.question".into();
        }
        "project_automation" => {
            sent["config"] = json!({"event_type": "retention", "object_type": "dataset", "retention_days": 30});
        }
        _ => {}
    }
    body(sent)
}

#[tokio::test]
async fn every_kind_and_every_action_is_open_to_whom_it_was_granted() {
    let world = world().await;
    let kinds: [&'static Kind; 19] = [
        &AGENT,
        &DATASET_SNAPSHOT,
        &ENVIRONMENT,
        &PROMPT,
        &PROMPT_SESSION,
        &VIEW,
        &AI_SECRET,
        &ENV_VAR,
        &PROJECT,
        &EXPERIMENT,
        &DATASET,
        &GROUP,
        &ROLE,
        &PROJECT_TAG,
        &PROJECT_SCORE,
        &SPAN_IFRAME,
        &CUSTOM_COLUMN,
        &MCP_SERVER,
        &PROJECT_AUTOMATION,
    ];
    let (mut wrong, mut open, mut shut) = (Vec::new(), 0, 0);
    for kind in kinds {
        for doing in DOING {
            for way in WAYS {
                let unique = format!("{} {} {way:?}", kind.name(), doing.word());
                let who = world.member(&format!("{}@example.com", unique.replace(' ', "-"))).await;
                let thing = world.thing(kind, &unique).await;
                let is_open = world.arrange(way, &who, &thing, doing, &unique).await;
                let done = world.attempt(&who, &thing, doing, &unique).await;
                let as_expected = match &done {
                    Ok(()) => is_open,
                    Err(RecordsError::NotFound(_) | RecordsError::Forbidden(_)) => !is_open,
                    // The credentials of a former member were deleted with the membership.
                    Err(RecordsError::Unauthenticated(_)) => !is_open && matches!(way, Way::Left),
                    Err(_) => false,
                };
                if !as_expected {
                    wrong.push(format!("{unique}: {done:?}"));
                }
                if is_open { open += 1 } else { shut += 1 }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((open, shut), (608, 380));
}

#[tokio::test]
async fn rows_are_their_objects_and_logs_are_granted_apart_from_their_project() {
    let world = world().await;
    let who = world.member("ann@example.com").await;
    let project = world.project("p").await;
    let dataset = id_of(&world.dataset(project, "d").await);
    let logs = async |doing| world.records.object(&who, ObjectKind::ProjectLogs, project, doing).await.map(drop);
    let rows = async |doing| world.records.object(&who, ObjectKind::Dataset, dataset, doing).await.map(drop);
    missing(logs(Permission::Read).await);
    missing(rows(Permission::Read).await);
    let to = || json!({"user_id": who.user});
    world.grant((ObjectType::ProjectLog, project), to(), json!({"permission": "update"})).await;
    assert_eq!(logs(Permission::Update).await, Ok(()), "whoever only logs need not read");
    missing(logs(Permission::Read).await);
    missing(world.records.get(&who, &PROJECT, project).await);
    world.grant((ObjectType::Project, project), to(), json!({"permission": "read"})).await;
    assert_eq!((logs(Permission::Read).await, rows(Permission::Read).await), (Ok(()), Ok(())));
    assert!(matches!(rows(Permission::Update).await, Err(RecordsError::Forbidden(_))));
    world.grant((ObjectType::Dataset, dataset), to(), json!({"permission": "update"})).await;
    assert_eq!(rows(Permission::Update).await, Ok(()));
}

#[tokio::test]
async fn grants_need_a_grant_to_make_them() {
    let world = world().await;
    let (who, other) = (world.member("ann@example.com").await, world.member("ben@example.com").await);
    let project = world.project("p").await;
    let sent =
        || body(json!({"object_type": "project", "object_id": project, "user_id": other.user, "permission": "read"}));
    missing(world.records.create(&who, &ACL, sent()).await);
    world.grant((ObjectType::Project, project), json!({"user_id": who.user}), json!({"permission": "read"})).await;
    assert!(matches!(world.records.create(&who, &ACL, sent()).await, Err(RecordsError::Forbidden(_))));
    world
        .grant((ObjectType::Project, project), json!({"user_id": who.user}), json!({"permission": "create_acls"}))
        .await;
    let made = world.records.create(&who, &ACL, sent()).await.expect("may");
    let again = world.records.create(&world.owner, &ACL, sent()).await.expect("is there");
    assert!(again.found_existing && again.object == made.object, "the same grant is one");
    world.records.get(&other, &PROJECT, project).await.expect("was granted");
    let request = |more: &[(&str, &str)]| {
        let project = project.to_string();
        let pairs = [("object_type", "project"), ("object_id", project.as_str())];
        let pairs = pairs.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ListRequest::from_query(pairs).expect("a query")
    };
    assert_eq!(world.records.acls(&who, &request(&[])).await.expect("lists").len(), 0, "to make is not to read");
    assert_eq!(world.records.acls(&world.owner, &request(&[])).await.expect("lists").len(), 3);
    assert_eq!(world.records.acls(&world.owner, &request(&[("permission", "read")])).await.expect("lists").len(), 2);
    missing(world.records.delete_acl(&other, sent()).await);
    world.records.delete_acl(&world.owner, sent()).await.expect("takes away");
    missing(world.records.get(&other, &PROJECT, project).await);
    let both = json!({"add_acls": [Value::Object(sent())], "remove_acls": [Value::Object(sent())]});
    let updated = world.records.update_acls(&world.owner, body(both)).await.expect("updates");
    assert_eq!(
        (updated["added_acls"].as_array().map(Vec::len), updated["removed_acls"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
}

#[tokio::test]
async fn a_grant_that_makes_no_sense_is_refused_by_name() {
    let world = world().await;
    let project = world.project("p").await;
    let (user, nobody) = (world.owner.user, Uuid::from_u128(9));
    for (sent, names) in [
        (json!({"object_type": "project", "object_id": project}), "exactly one of `user_id` and `group_id`"),
        (
            json!({"object_type": "project", "object_id": project, "user_id": user}),
            "exactly one of `permission` and `role_id`",
        ),
        (
            json!({"object_type": "project", "object_id": project, "user_id": nobody, "permission": "read"}),
            "`user_id`: no user",
        ),
        (
            json!({"object_type": "project", "object_id": project, "group_id": nobody, "permission": "read"}),
            "`group_id`: no group",
        ),
        (
            json!({"object_type": "project", "object_id": project, "user_id": user, "role_id": nobody}),
            "`role_id`: no role",
        ),
        (
            json!({"object_type": "projects", "object_id": project, "user_id": user, "permission": "read"}),
            "`object_type`",
        ),
        (
            json!({"object_type": "project", "object_id": project, "user_id": user, "permission": "write"}),
            "`permission`",
        ),
        (json!({"object_id": project, "user_id": user, "permission": "read"}), "`object_type` is missing"),
    ] {
        super::bad(world.records.create(&world.owner, &ACL, body(sent)).await, names);
    }
    let sent = json!({"object_type": "project", "object_id": nobody, "user_id": user, "permission": "read"});
    missing(world.records.create(&world.owner, &ACL, body(sent)).await);
}

#[tokio::test]
async fn roles_of_the_system_are_everybodys_and_never_change() {
    let world = world().await;
    let listed = world.listed(&ROLE, &[]).await;
    assert_eq!(listed, ["Owner", "Engineer", "Viewer"]);
    let owner = world.list(&ROLE, &[("role_name", "Owner")]).await.expect("lists").remove(0);
    assert_eq!(owner["org_id"], Value::Null);
    let id = id_of(&owner);
    let refused = world.records.patch(&world.owner, &ROLE, id, body(json!({"name": "Mine"}))).await;
    assert!(matches!(refused, Err(RecordsError::Forbidden(_))), "{refused:?}");
    assert!(matches!(world.records.delete(&world.owner, &ROLE, id).await, Err(RecordsError::Forbidden(_))));
    let same = world.records.create(&world.owner, &ROLE, body(json!({"name": "Viewer"}))).await.expect("is there");
    assert!(same.found_existing && same.object["org_id"] == Value::Null);
    let put = world.records.replace(&world.owner, &ROLE, body(json!({"name": "Viewer"}))).await;
    assert!(matches!(put, Err(RecordsError::Forbidden(_))), "{put:?}");
    let own = world.role("Own", &[Permission::Read], &[id]).await;
    super::bad(
        world.records.patch(&world.owner, &ROLE, own, body(json!({"name": "Owner"}))).await,
        "is a role of the system",
    );
    assert_eq!(world.listed(&ROLE, &[("starting_after", &own.to_string())]).await, ["Owner", "Engineer", "Viewer"]);
    assert_eq!(world.listed(&ROLE, &[("starting_after", &id.to_string())]).await, ["Engineer", "Viewer"]);
    assert_eq!(world.listed(&ROLE, &[("ending_before", &id.to_string())]).await, ["Own"]);
}

#[tokio::test]
async fn engineers_and_viewers_do_what_their_names_say() {
    let world = world().await;
    let project = world.project("p").await;
    for (group, creates, reads) in [("Engineers", true, true), ("Viewers", false, true)] {
        let who = world.member(&format!("{group}@example.com")).await;
        let invited = json!({"invite_users": {"ids": [who.user], "group_name": group}});
        world.identity.change_members(&world.owner, body(invited)).await.expect("invites");
        assert_eq!(world.records.get(&who, &PROJECT, project).await.is_ok(), reads);
        let named = body(json!({"name": format!("of {group}")}));
        assert_eq!(world.records.create(&who, &PROJECT, named).await.is_ok(), creates, "{group}");
        // Getting a project by its name requires no permission to create one.
        let same = world.records.create(&who, &PROJECT, body(json!({"name": "p"}))).await.expect("is there");
        assert!(same.found_existing);
        let group = json!({"name": "mine", "member_users": [who.user]});
        assert!(world.records.create(&who, &GROUP, body(group)).await.is_err(), "no say in who may do what");
        let sent = json!({"object_type": "project", "object_id": project, "user_id": who.user, "permission": "delete"});
        assert!(world.records.create(&who, &ACL, body(sent)).await.is_err());
    }
}

#[tokio::test]
async fn somebody_always_owns_the_organization() {
    let world = world().await;
    let owner = json!({"remove_users": {"ids": [world.owner.user]}});
    super::bad(world.identity.change_members(&world.owner, body(owner.clone())).await, "would have no owner left");
    let other = world.member("ann@example.com").await;
    let invited = json!({"invite_users": {"ids": [other.user], "group_names": ["Owners"]}});
    world.identity.change_members(&world.owner, body(invited)).await.expect("invites");
    world.identity.change_members(&other, body(owner)).await.expect("removes");
    assert!(world.identity.authenticate(super::KEY, None).await.is_err(), "a key of nobody's");
    let back = json!({"invite_users": {"emails": ["owner@example.com"]}});
    world.identity.change_members(&other, body(back)).await.expect("comes back");
    assert!(world.identity.authenticate(super::KEY, None).await.is_err(), "the key went with them");
    let key = world.identity.admin_create_key("acme", "owner@example.com", "another").await.expect("a key");
    let back =
        world.identity.authenticate(key["api_key"].as_str().expect("a key"), None).await.expect("is known again");
    assert!(back.rights.is_empty(), "and has nothing of what they had");
    missing(world.records.create(&back, &API_KEY, body(json!({"name": "k", "org_name": "other"}))).await);
}

#[tokio::test]
async fn who_owns_all_organizations_of_a_user_may_act_as_them() {
    let world = world().await;
    let (records, identity) = (&world.records, &world.identity);
    let project = world.project("p").await;
    let ann = world.member("ann@example.com").await;
    let ben = identity.admin_create_key("acme", "ann@example.com", "k").await.expect("a key");
    let as_user = async |key: &str, named: &str| identity.authenticate_as(key, None, Some(named)).await;
    for named in [ann.user.to_string(), "Ann@example.com".to_owned()] {
        let who = as_user(super::KEY, &named).await.expect("may");
        assert_eq!(
            (who.user, who.impersonator, who.credential.record()),
            (ann.user, Some(world.owner.user), world.owner.credential.record())
        );
        missing(records.get(&who, &PROJECT, project).await);
        assert_eq!(identity.organizations(&who).await.expect("lists").len(), 1);
    }
    let itself = as_user(super::KEY, "owner@example.com").await.expect("may");
    assert_eq!((itself.user, itself.impersonator), (world.owner.user, None));
    let refused = |result: Result<Principal, RecordsError>| {
        assert!(matches!(result, Err(RecordsError::Forbidden(_))), "{result:?}")
    };
    refused(as_user(super::KEY, "nobody@example.com").await);
    refused(as_user(super::KEY, &Uuid::from_u128(9).to_string()).await);
    // A role with all permissions is not the role Owner.
    let all = world.role("all", Permission::ALL, &[]).await;
    world
        .grant((ObjectType::Organization, world.owner.org.0), json!({"user_id": ann.user}), json!({"role_id": all}))
        .await;
    refused(as_user(ben["api_key"].as_str().expect("a key"), "owner@example.com").await);
    // The owner has no rights in this organization.
    identity.admin_create_organization("beta", "other@example.com").await.expect("creates");
    identity.admin_create_user("beta", "ann@example.com").await.expect("joins");
    refused(as_user(super::KEY, "ann@example.com").await);
    identity.admin_create_user("beta", "owner@example.com").await.expect("joins");
    as_user(super::KEY, "ann@example.com").await.expect("owns both");
}

/// The old version created an organization with a member and no grants.
#[tokio::test]
async fn members_of_an_organization_from_before_there_were_grants_own_it() {
    let world = world().await;
    let old = |name: &str| {
        let id = Uuid::new_v4();
        let put = |kind, id, org, scope: String, name: &str, body: Value| PutRecord {
            kind,
            id,
            org,
            expect: Expect::Absent,
            keys: vec![UniqueKey::new(scope, name)],
            body: body.to_string().into_bytes(),
            at: 1,
        };
        let member = json!({"user_id": world.owner.user, "role": "owner"});
        let key = format!("org_member/{id}");
        let user = world.owner.user.to_string();
        vec![
            put(RecordKind::ORGANIZATION, id, None, "organization.name".into(), name, json!({"name": name})),
            put(RecordKind::ORG_MEMBER, Uuid::new_v4(), Some(OrgId(id)), key, &user, member),
        ]
    };
    let commands = old("old").into_iter().map(|put| Bytes::from(CatalogCommand::Put(put).encode())).collect();
    world.cluster.propose(GroupId::CATALOG, commands).await.expect("writes");
    let create = async |name: &str| {
        let who = world.identity.authenticate(super::KEY, Some("old")).await.expect("is in it");
        world.records.create(&who, &PROJECT, body(json!({"name": name}))).await.map(drop)
    };
    assert_eq!(create("before").await, Ok(()));
    world.records.found(super::founding(Some(super::KEY))).await.expect("starts again");
    assert_eq!(create("after").await, Ok(()));
    let who = world.identity.authenticate(super::KEY, Some("old")).await.expect("is in it");
    let groups = world.records.list(&who, &GROUP, &ListRequest::default()).await.expect("lists");
    assert_eq!(super::names(&groups).len(), 3);
    let owners = groups.iter().find(|group| group["name"] == "Owners").expect("is there");
    assert_eq!(owners["member_users"], json!([who.user]));
}

#[tokio::test]
async fn a_name_that_is_taken_out_of_sight_is_told_and_nothing_else() {
    let world = world().await;
    let who = world.member("ann@example.com").await;
    let project = world.project("secret").await;
    let named = || body(json!({"name": "secret"}));
    let refused = world.records.create(&who, &PROJECT, named()).await.expect_err("may make none");
    assert!(matches!(refused, RecordsError::Forbidden(_)) && !refused.to_string().contains(&project.to_string()));
    let org = (ObjectType::Organization, who.org.0);
    world.grant(org, json!({"user_id": who.user}), json!({"permission": "create"})).await;
    let refused = world.records.create(&who, &PROJECT, named()).await.expect_err("may not see it");
    assert!(matches!(refused, RecordsError::Taken(_)) && !refused.to_string().contains(&project.to_string()));
}

#[tokio::test]
async fn grants_on_what_is_gone_go_with_the_next_sweep() {
    let world = world().await;
    let who = world.member("ann@example.com").await;
    let (project, stays) = (world.project("p").await, world.project("stays").await);
    for project in [project, stays] {
        let to = json!({"user_id": who.user});
        world.grant((ObjectType::Project, project), to, json!({"permission": "read"})).await;
    }
    world.records.delete(&world.owner, &PROJECT, project).await.expect("deletes");
    let left = || {
        let catalog = world.cluster.catalog().read();
        let on = |record: &std::sync::Arc<assay_storage_model::catalog::Record>| {
            let text = String::from_utf8_lossy(&record.body).into_owned();
            [project, stays].map(|id| text.contains(&id.to_string()))
        };
        catalog
            .all(RecordKind::ACL)
            .map(on)
            .fold([0, 0], |[a, b], [one, other]| [a + i32::from(one), b + i32::from(other)])
    };
    assert_eq!(left(), [1, 1]);
    assert_eq!(world.records.sweep().await.expect("sweeps").records, 1);
    assert_eq!(left(), [0, 1]);
}

#[tokio::test]
async fn keys_of_others_are_seen_by_who_manages_members() {
    let world = world().await;
    let who = world.member("ann@example.com").await;
    let invited = json!({"invite_users": {"ids": [who.user], "group_name": "Engineers"}});
    world.identity.change_members(&world.owner, body(invited)).await.expect("invites");
    let seen = world.records.list(&who, &API_KEY, &ListRequest::default()).await.expect("lists");
    assert_eq!(super::names(&seen), ["theirs"]);
    missing(world.records.get(&who, &API_KEY, world.owner.credential.record()).await);
    missing(world.records.delete(&who, &API_KEY, world.owner.credential.record()).await);
    assert_eq!(world.listed(&API_KEY, &[]).await, ["theirs", "owner"]);
}

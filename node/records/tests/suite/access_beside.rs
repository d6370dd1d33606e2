//! Tests of access to records with routes of their own, namely pins and service tokens, and of information leaks.

use assay_node_auth::{ObjectType, Permission, Principal};
use assay_node_records::kinds::{
    ACL, AI_SECRET, API_KEY, DATASET, ENVIRONMENT, EXPERIMENT, GROUP, PROJECT_TAG, PROMPT, SERVICE_TOKEN,
};
use assay_node_records::{Kind, ListRequest, Pinned, RecordsError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::access::{AccessTarget, DOING, WAYS, Way};
use super::{World, bad, body, id_of, world};

const VERSION: &str = "1000192656880881099";

fn as_expected<T>(done: &Result<T, RecordsError>, is_open: bool) -> bool {
    match done {
        Ok(_) => is_open,
        // The token of a former member is unknown.
        Err(RecordsError::NotFound(_) | RecordsError::Forbidden(_) | RecordsError::Unauthenticated(_)) => !is_open,
        Err(_) => false,
    }
}

impl World {
    async fn environment(&self, slug: &str) {
        let sent = body(json!({"name": slug, "slug": slug}));
        self.records.create(&self.owner, &ENVIRONMENT, sent).await.expect("an environment");
    }

    /// Attempts an action on the pinned versions of an object.
    async fn attempt_on_pins(&self, who: &Principal, of: &Pinned, doing: Permission) -> Result<(), RecordsError> {
        let version = |more: Value| {
            let mut sent = body(json!({"object_version": VERSION}));
            sent.extend(body(more));
            sent
        };
        match doing {
            Permission::Create => {
                self.records.add_pin(who, of, version(json!({"environment_slug": "spare"}))).await.map(drop)
            }
            Permission::Read => {
                let got = self.records.pin(who, of, "used").await.map(drop);
                let listed = self.records.pins(who, of).await;
                assert_eq!(listed.is_ok_and(|pins| pins.len() == 1), got.is_ok(), "what is got is what is listed");
                got
            }
            Permission::Update => self.records.set_pin(who, of, "used", version(json!({}))).await.map(drop),
            _ => self.records.remove_pin(who, of, "used").await.map(drop),
        }
    }
}

#[tokio::test]
async fn versions_in_environments_are_open_to_whom_their_object_is() {
    let world = world().await;
    for slug in ["used", "spare"] {
        world.environment(slug).await;
    }
    let (mut wrong, mut open, mut shut) = (Vec::new(), 0, 0);
    for (kind, object) in [(&DATASET, ObjectType::Dataset), (&PROMPT, ObjectType::Prompt)] {
        let kind: &'static Kind = kind;
        for doing in DOING {
            for way in WAYS {
                let unique = format!("{} {} {way:?}", kind.name(), doing.word());
                let who = world.member(&format!("{}@example.com", unique.replace(' ', "-"))).await;
                let project = world.project(&unique).await;
                let sent = body(json!({"name": "it", "slug": "it", "project_id": project}));
                let id = id_of(&world.records.create(&world.owner, kind, sent).await.expect("the owner may").object);
                let thing = AccessTarget { kind, id, project: Some(project), object: (object, id), is_part: true };
                let of = Pinned::of(object.word(), id).expect("is pinned");
                let version = body(json!({"object_version": VERSION}));
                world.records.set_pin(&world.owner, &of, "used", version).await.expect("the owner may");
                let is_open = world.arrange(way, &who, &thing, doing, &unique).await;
                let done = world.attempt_on_pins(&who, &of, doing).await;
                if !as_expected(&done, is_open) {
                    wrong.push(format!("{unique}: {done:?}"));
                }
                if is_open { open += 1 } else { shut += 1 }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((open, shut), (64, 40));
}

/// Reading requires permission to read the keys of members, and deletion also requires `delete` on members. Users
/// cannot create tokens.
#[tokio::test]
async fn service_tokens_are_open_to_who_manages_members() {
    let world = world().await;
    let made = world.identity.admin_create_service_account("acme", "robot").await.expect("an account");
    let account: Uuid = made["id"].as_str().expect("an id").parse().expect("a UUID");
    let org = (ObjectType::OrgMember, world.owner.org.0);
    let (mut wrong, mut open, mut shut) = (Vec::new(), 0, 0);
    for (doing, granted) in [
        (Permission::Create, Permission::Create),
        (Permission::Read, Permission::ReadAcls),
        (Permission::Update, Permission::Update),
        (Permission::Delete, Permission::Delete),
    ] {
        for way in WAYS {
            let unique = format!("token {} {way:?}", doing.word());
            let who = world.member(&format!("{}@example.com", unique.replace(' ', "-"))).await;
            let token = world.identity.admin_create_service_token("acme", &account.to_string(), &unique).await;
            let id = id_of(&token.expect("a token"));
            let thing = AccessTarget { kind: &SERVICE_TOKEN, id, project: None, object: org, is_part: false };
            if doing == Permission::Delete && !matches!(way, Way::Nothing | Way::Left) {
                world.grant(org, json!({"user_id": who.user}), json!({"permission": "read_acls"})).await;
            }
            let granted = world.arrange(way, &who, &thing, granted, &unique).await;
            let is_open = granted && matches!(doing, Permission::Read | Permission::Delete);
            let sent = || body(json!({"name": "another", "service_account_id": account}));
            let done = match doing {
                Permission::Create => world.records.create(&who, &SERVICE_TOKEN, sent()).await.map(drop),
                Permission::Read => {
                    let got = world.records.get(&who, &SERVICE_TOKEN, id).await.map(drop);
                    let request = ListRequest { ids: vec![id], ..ListRequest::default() };
                    let listed = world.records.list(&who, &SERVICE_TOKEN, &request).await.unwrap_or_default();
                    assert_eq!(listed.len() == 1, got.is_ok(), "what is got is what is listed");
                    got
                }
                // A token has no changeable fields and no route for changes.
                Permission::Update => world.records.delete(&who, &SERVICE_TOKEN, id).await.map(drop),
                _ => world.records.delete(&who, &SERVICE_TOKEN, id).await.map(drop),
            };
            // All other permissions include deletion.
            let is_open = is_open || (doing == Permission::Update && way == Way::AllElse);
            if !as_expected(&done, is_open) {
                wrong.push(format!("{unique}: {done:?}"));
            }
            if is_open { open += 1 } else { shut += 1 }
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((open, shut), (17, 35));
}

/// Invisible names give the same error as missing ones, without an id.
#[tokio::test]
async fn a_name_tells_nothing_of_what_has_it() {
    let world = world().await;
    let who = world.member("ann@example.com").await;
    let (owner, records) = (&world.owner, &world.records);
    let make = async |kind: &'static Kind, sent: Value| {
        id_of(&records.create(owner, kind, body(sent)).await.expect("the owner may").object)
    };
    let project = world.project("p").await;
    make(&GROUP, json!({"name": "hidden"})).await;
    make(&AI_SECRET, json!({"name": "hidden", "secret": "s"})).await;
    make(&PROJECT_TAG, json!({"project_id": project, "name": "hidden"})).await;
    make(&EXPERIMENT, json!({"project_id": project, "name": "hidden"})).await;
    let grant = json!({"object_type": "project", "object_id": project, "user_id": owner.user, "permission": "read"});
    make(&ACL, grant.clone()).await;
    // The user may learn that the project exists.
    let to = json!({"user_id": who.user});
    let on_project = (ObjectType::Project, project);
    world.grant(on_project, to.clone(), json!({"permission": "read", "restrict_object_type": "dataset"})).await;

    let replace = async |kind: &'static Kind, name: &str| {
        let sent = body(json!({"name": name, "project_id": project}));
        format!("{:?}", records.replace(&who, kind, sent).await.expect_err("is shut"))
    };
    for kind in [&GROUP, &PROJECT_TAG] {
        assert_eq!(replace(kind, "hidden").await, replace(kind, "free").await);
    }
    let named = async |name: &str| {
        let gone = records.delete_named(&who, &AI_SECRET, &body(json!({ "name": name }))).await;
        gone.expect_err("is shut").to_string().replace(name, "it")
    };
    assert_eq!(named("hidden").await, named("free").await);
    let taken = async |grant: &Value| format!("{:?}", records.delete_acl(&who, body(grant.clone())).await);
    let mut other = grant.clone();
    other["permission"] = "update".into();
    assert_eq!(taken(&grant).await, taken(&other).await);
    let compared = async |base: &str| {
        let sent = json!({"project_id": project, "name": "new", "base_experiment": base});
        let made = records.create(&who, &EXPERIMENT, body(sent)).await;
        made.expect_err("is shut").to_string().replace(base, "it")
    };
    assert_eq!(compared("hidden").await, compared("free").await);
    world.grant(on_project, to.clone(), json!({"permission": "create", "restrict_object_type": "experiment"})).await;
    assert_eq!(compared("hidden").await, compared("free").await);
    assert!(compared("hidden").await.contains("base experiment"), "what is not theirs to see is none to compare with");
    world.grant((ObjectType::Organization, who.org.0), to, json!({"permission": "create"})).await;
    let taken = records.replace(&who, &GROUP, body(json!({"name": "hidden"}))).await;
    assert!(matches!(taken, Err(RecordsError::Taken(_))), "who may make one learns that the name is taken: {taken:?}");
}

/// A list continues only from records that its reader could see.
#[tokio::test]
async fn a_cursor_tells_nothing_of_what_it_is_at() {
    let world = world().await;
    let who = world.member("ann@example.com").await;
    let project = world.project("p").await;
    let (hidden, seen) = (id_of(&world.dataset(project, "hidden").await), id_of(&world.dataset(project, "seen").await));
    world.grant((ObjectType::Dataset, seen), json!({"user_id": who.user}), json!({"permission": "read"})).await;
    let from = |id| ListRequest { starting_after: Some(id), ..ListRequest::default() };
    bad(world.records.list(&who, &DATASET, &from(hidden)).await, "it never had such a record");
    world.records.list(&who, &DATASET, &from(seen)).await.expect("goes on");
    world.records.list(&world.owner, &DATASET, &from(hidden)).await.expect("goes on");
    world.records.delete(&world.owner, &DATASET, seen).await.expect("deletes");
    world.records.list(&who, &DATASET, &from(seen)).await.expect("a list may have ended at what is gone");
    let key = world.owner.credential.record();
    bad(world.records.list(&who, &API_KEY, &from(key)).await, "it never had such a record");

    let stranger = world.identity.admin_create_organization("beta", "ben@example.com").await.expect("creates");
    let id = |value: &Value| -> Uuid { value.as_str().expect("an id").parse().expect("a UUID") };
    bad(world.identity.users(&world.owner, &from(id(&stranger["owner"]["id"]))).await, "it never had such a record");
    bad(world.identity.list_organizations(&who, &from(id(&stranger["id"]))).await, "it never had such a record");
    world.identity.users(&world.owner, &from(who.user)).await.expect("goes on");
}

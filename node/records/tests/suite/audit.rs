//! Tests of audit entries, and of changes that fail because their entry cannot be written.

use std::sync::atomic::Ordering;

use assay_node_auth::Principal;
use assay_node_records::kinds::{ACL, API_KEY, DATASET, EXPERIMENT, GROUP, PROJECT, ROLE};
use assay_node_records::{Kind, ListRequest, RecordsError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{World, body, id_of, world};

impl World {
    /// Returns the entries since the last call: action, kind, name.
    fn told(&self) -> Vec<(String, String, Option<String>)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let said = std::mem::take(&mut *self.kept.entries.lock()).into_iter().map(|(org, entry)| {
            assert_eq!(org, self.owner.org);
            assert!(entry["actor"]["type"] == "operator" || entry["actor"]["user_id"] == self.owner.user.to_string());
            let action = text(&entry["action"]).expect("an action");
            (action, text(&entry["object_type"]).expect("a type"), text(&entry["object_name"]))
        });
        said.collect()
    }

    async fn made(&self, kind: &'static Kind, sent: Value) -> Uuid {
        id_of(&self.records.create(&self.owner, kind, body(sent)).await.expect("makes").object)
    }
}

fn said(action: &str, kind: &str, name: Option<&str>) -> (String, String, Option<String>) {
    (action.into(), kind.into(), name.map(str::to_owned))
}

#[tokio::test]
async fn changes_of_access_and_all_that_goes_are_put_on_record() {
    let world = world().await;
    let (records, owner) = (&world.records, &world.owner);
    let identity = &world.identity;
    assert_eq!(world.told(), [], "a first start is nobody's");
    let project = world.made(&PROJECT, json!({"name": "p"})).await;
    let dataset = world.made(&DATASET, json!({"project_id": project, "name": "d"})).await;
    records.patch(owner, &PROJECT, project, body(json!({"description": "x"}))).await.expect("changes");
    assert_eq!(world.told(), [], "what is no access is not kept until it goes");

    let group = world.made(&GROUP, json!({"name": "g"})).await;
    records.patch(owner, &GROUP, group, body(json!({"add_member_users": [owner.user]}))).await.expect("changes");
    records.replace(owner, &ROLE, body(json!({"name": "r"}))).await.expect("makes");
    let grant = json!({"object_type": "project", "object_id": project, "group_id": group, "permission": "read"});
    let acl = world.made(&ACL, grant).await;
    records.delete(owner, &ACL, acl).await.expect("goes");
    let key = world.made(&API_KEY, json!({"name": "k"})).await;
    records.delete(owner, &API_KEY, key).await.expect("goes");
    records.delete(owner, &DATASET, dataset).await.expect("goes");
    let invited = json!({"invite_users": {"emails": ["ann@example.com"]}});
    identity.change_members(owner, body(invited)).await.expect("invites");
    identity.admin_create_key("acme", "ann@example.com", "theirs").await.expect("a key");
    assert_eq!(
        world.told(),
        [
            said("create", "group", Some("g")),
            said("update", "group", Some("g")),
            said("create", "role", Some("r")),
            said("create", "acl", None),
            said("delete", "acl", None),
            said("create", "api_key", Some("k")),
            said("delete", "api_key", Some("k")),
            said("delete", "dataset", Some("d")),
            said("create", "user", None),
            said("create", "org_member", None),
            said("create", "api_key", Some("theirs")),
        ]
    );
}

#[tokio::test]
async fn an_entry_says_what_changed_and_nothing_of_a_secret() {
    let world = world().await;
    let group = world.made(&GROUP, json!({"name": "g"})).await;
    world.told();
    let changed = body(json!({"description": "d"}));
    world.records.patch(&world.owner, &GROUP, group, changed).await.expect("changes");
    let (_, entry) = world.kept.entries.lock().pop().expect("an entry");
    assert_eq!(entry["object_id"], group.to_string());
    assert_eq!(
        (&entry["details"]["before"]["description"], &entry["details"]["after"]["description"]),
        (&Value::Null, &json!("d"))
    );
    assert_eq!(
        (&entry["actor"]["user_email"], &entry["actor"]["impersonator_id"]),
        (&json!("owner@example.com"), &Value::Null)
    );

    let created = world.records.create(&world.owner, &API_KEY, body(json!({"name": "k"}))).await.expect("makes");
    let secret = created.secret.expect("is shown once");
    let (_, entry) = world.kept.entries.lock().pop().expect("an entry");
    let text = Value::Object(entry).to_string();
    assert!(!text.contains(secret.expose()) && !text.contains("preview"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_put_on_record_is_not_done() {
    let world = world().await;
    let (records, owner) = (&world.records, &world.owner);
    let identity = &world.identity;
    let project = world.made(&PROJECT, json!({"name": "p"})).await;
    let group = world.made(&GROUP, json!({"name": "g"})).await;
    world.kept.fails.store(true, Ordering::Relaxed);
    let refused = |result: Result<Value, RecordsError>| match result {
        Err(RecordsError::Unavailable(why)) => {
            assert!(why.contains("nothing was done") && why.contains("no room"), "{why}")
        }
        other => panic!("{other:?}"),
    };
    let create = async |kind, sent: Value| records.create(owner, kind, body(sent)).await.map(|made| made.object);
    refused(create(&GROUP, json!({"name": "h"})).await);
    refused(create(&API_KEY, json!({"name": "k"})).await);
    refused(records.patch(owner, &GROUP, group, body(json!({"description": "d"}))).await);
    refused(records.delete(owner, &GROUP, group).await);
    refused(records.delete(owner, &PROJECT, project).await);
    refused(identity.change_members(owner, body(json!({"invite_users": {"emails": ["ann@example.com"]}}))).await);
    create(&EXPERIMENT, json!({"project_id": project, "name": "e"})).await.expect("is no access");

    world.kept.fails.store(false, Ordering::Relaxed);
    let groups = records.list(owner, &GROUP, &ListRequest::default()).await.expect("lists");
    assert!(groups.iter().any(|found| found["name"] == "g" && found["description"] == Value::Null));
    assert!(!groups.iter().any(|found| found["name"] == "h"));
    records.get(owner, &PROJECT, project).await.expect("is there");
    assert_eq!(identity.users(owner, &ListRequest::default()).await.expect("lists").len(), 1);
}

#[tokio::test]
async fn acting_as_another_is_put_on_record_once_in_a_while() {
    let world = world().await;
    let invited = json!({"invite_users": {"emails": ["ann@example.com"]}});
    world.identity.change_members(&world.owner, body(invited)).await.expect("invites");
    world.kept.entries.lock().clear();
    let act = async || world.identity.authenticate_as(super::KEY, None, Some("ann@example.com")).await;
    world.kept.fails.store(true, Ordering::Relaxed);
    assert!(matches!(act().await, Err(RecordsError::Unavailable(_))));
    world.kept.fails.store(false, Ordering::Relaxed);
    let ann: Principal = act().await.expect("acts");
    act().await.expect("acts");
    let entries = std::mem::take(&mut *world.kept.entries.lock());
    let [(_, entry)] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((&entry["action"], &entry["object_id"]), (&json!("impersonate"), &json!(ann.user.to_string())));
    assert_eq!(entry["actor"]["impersonator_id"], world.owner.user.to_string());
}

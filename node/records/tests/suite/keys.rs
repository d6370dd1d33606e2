//! Tests of API keys: one-time display, previews, and immediate effect of deletion.

use assay_node_auth::Permission;
use assay_node_records::kinds::{API_KEY, PROJECT};
use assay_node_records::{ListRequest, RecordsError};
use assay_storage_model::ObjectKind;
use serde_json::json;
use uuid::Uuid;

use super::{KEY, bad, body, id_of, missing, world};

#[tokio::test]
async fn a_key_is_shown_once_and_listed_by_its_preview() {
    let world = world().await;
    let create = async |sent| world.records.create(&world.owner, &API_KEY, body(sent)).await;
    let made = create(json!({"name": "ci", "org_name": "acme"})).await.expect("creates");
    let secret = made.secret.expect("a secret");
    assert!(!made.found_existing);
    assert!(!made.object.to_string().contains(secret.expose()));
    let end = &secret.expose()[secret.expose().len() - 4..];
    assert_eq!(made.object["preview_name"], format!("sk-***{end}"));
    assert_eq!(made.object["user_email"], "owner@example.com");
    assert_eq!(made.object["org_id"], json!(world.owner.org));

    let twin = create(json!({"name": "ci", "org_id": world.owner.org})).await.expect("creates");
    assert_ne!(twin.object["id"], made.object["id"], "names of keys are not unique");
    assert_eq!(world.listed(&API_KEY, &[]).await, ["ci", "ci", "owner"]);
    assert_eq!(world.listed(&API_KEY, &[("api_key_name", "owner")]).await, ["owner"]);
    assert_eq!(world.listed(&API_KEY, &[("api_key_name", "none")]).await, Vec::<String>::new());
    let all = world.list(&API_KEY, &[]).await.expect("lists");
    assert!(all.iter().all(|key| !key.to_string().contains(secret.expose()) && !key.to_string().contains(KEY)));
    assert_eq!(world.records.get(&world.owner, &API_KEY, id_of(&made.object)).await, Ok(made.object));
}

#[tokio::test]
async fn a_deleted_key_is_refused_at_once() {
    let world = world().await;
    let made = world.records.create(&world.owner, &API_KEY, body(json!({"name": "k"}))).await.expect("creates");
    let (id, secret) = (id_of(&made.object), made.secret.expect("a secret"));
    let who = world.identity.authenticate(secret.expose(), None).await.expect("is known");
    assert_eq!((who.credential.record(), who.user, who.org), (id, world.owner.user, world.owner.org));
    let deleted = world.records.delete(&who, &API_KEY, id).await.expect("deletes");
    assert!(deleted["deleted_at"].is_string());
    let refused = world.identity.authenticate(secret.expose(), None).await;
    assert!(matches!(refused, Err(RecordsError::Unauthenticated(_))), "{refused:?}");
    assert!(matches!(world.identity.organizations(&who).await, Err(RecordsError::Unauthenticated(_))));
    missing(world.records.get(&world.owner, &API_KEY, id).await);
}

/// A caller may be authenticated on a node that has not received the delete yet. Newer state refuses all further
/// actions.
#[tokio::test]
async fn a_key_that_goes_while_it_is_used_does_nothing_more() {
    let world = world().await;
    let (records, identity) = (&world.records, &world.identity);
    let project = world.project("p").await;
    let made = records.create(&world.owner, &API_KEY, body(json!({"name": "k"}))).await.expect("creates");
    let who = identity.authenticate(made.secret.expect("a secret").expose(), None).await.expect("is known");
    records.object(&who, ObjectKind::ProjectLogs, project, Permission::Update).await.expect("is reached");
    records.delete(&world.owner, &API_KEY, id_of(&made.object)).await.expect("deletes");

    for id in [project, Uuid::from_u128(9)] {
        refused(records.get(&who, &PROJECT, id).await);
        refused(records.object(&who, ObjectKind::ProjectLogs, id, Permission::Update).await);
        refused(records.patch(&who, &PROJECT, id, body(json!({"name": "q"}))).await);
        refused(records.delete(&who, &PROJECT, id).await);
    }
    for sent in [json!({"name": "q"}), json!({"name": "q", "org_name": "none"})] {
        refused(records.create(&who, &PROJECT, body(sent)).await);
    }
    refused(records.list(&who, &PROJECT, &ListRequest::default()).await);
    assert_eq!(world.listed(&PROJECT, &[]).await, ["p"]);
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, RecordsError>) {
    assert!(matches!(outcome, Err(RecordsError::Unauthenticated(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_key_for_another_organization_is_not_made() {
    let world = world().await;
    let create = async |sent| world.records.create(&world.owner, &API_KEY, body(sent)).await;
    world.identity.admin_create_organization("beta", "other@example.com").await.expect("creates");
    missing(create(json!({"name": "k", "org_name": "beta"})).await);
    missing(create(json!({"name": "k", "org_id": Uuid::from_u128(9)})).await);
    bad(create(json!({"name": "k", "org_id": "x"})).await, "`org_id`");
    bad(create(json!({"org_name": "acme"})).await, "`name`");
}

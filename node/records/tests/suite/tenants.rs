//! Tests of the isolation of two organizations.

use assay_node_auth::Permission;
use assay_node_records::kinds::{API_KEY, DATASET, EXPERIMENT, PROJECT};
use assay_node_records::{ListRequest, RecordsError};
use assay_storage_model::ObjectKind;
use serde_json::json;

use super::{KEY, body, id_of, missing, names, world};

#[tokio::test]
async fn nothing_of_another_organization_is_seen_or_changed() {
    let world = world().await;
    let (records, identity) = (&world.records, &world.identity);
    let made = identity.admin_create_organization("beta", "other@example.com").await.expect("creates");
    let other = identity.authenticate(made["api_key"].as_str().expect("a key"), None).await.expect("the other owner");

    let project = world.project("p").await;
    let experiment = id_of(&world.experiment(project, json!({"name": "e"})).await);
    let dataset = id_of(&world.dataset(project, "d").await);
    let all = [
        (&PROJECT, project),
        (&EXPERIMENT, experiment),
        (&DATASET, dataset),
        (&API_KEY, world.owner.credential.record()),
    ];
    for (kind, id) in all {
        let unknown = records.get(&other, kind, uuid::Uuid::from_u128(9)).await;
        let foreign = records.get(&other, kind, id).await;
        let said =
            |result: Result<_, RecordsError>| result.map(|_: serde_json::Value| ()).expect_err("refused").to_string();
        let id_text = id.to_string();
        let expected = said(unknown).replace(&uuid::Uuid::from_u128(9).to_string(), &id_text);
        assert_eq!(said(foreign), expected, "unknown and forbidden answer alike");
        missing(records.patch(&other, kind, id, body(json!({"name": "mine"}))).await);
        missing(records.delete(&other, kind, id).await);
        for query in [vec![], vec![("ids", id_text.as_str())], vec![("name", "p")], vec![("org_name", "acme")]] {
            let pairs = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let request = ListRequest::from_query(pairs).expect("a query");
            let listed = records.list(&other, kind, &request).await.expect("lists");
            let own = if kind.name() == "api_key" && query.is_empty() { vec!["owner"] } else { vec![] };
            assert_eq!(names(&listed), own, "{kind:?} {query:?}");
        }
        let after = ListRequest { starting_after: Some(id), ..ListRequest::default() };
        assert!(matches!(records.list(&other, kind, &after).await, Err(RecordsError::BadRequest(_))));
    }
    for (kind, id) in [
        (ObjectKind::ProjectLogs, project),
        (ObjectKind::ProjectPrompts, project),
        (ObjectKind::Experiment, experiment),
        (ObjectKind::Dataset, dataset),
    ] {
        for action in [Permission::Create, Permission::Read, Permission::Update, Permission::Delete] {
            records.object(&world.owner, kind, id, action).await.expect("the owner's");
            missing(records.object(&other, kind, id, action).await);
        }
    }
    missing(records.object(&world.owner, ObjectKind::Experiment, dataset, Permission::Read).await);
    missing(records.object(&world.owner, ObjectKind::PlaygroundLogs, project, Permission::Read).await);
    missing(records.create(&other, &EXPERIMENT, body(json!({"project_id": project, "name": "x"}))).await);
    missing(records.project_by_name(&other, "p", false).await);

    let same_name = records.create(&other, &PROJECT, body(json!({"name": "p"}))).await.expect("creates");
    assert!(!same_name.found_existing, "names are unique within an organization");
    assert_ne!(id_of(&same_name.object), project);
    assert_eq!(world.listed(&PROJECT, &[]).await, ["p"]);
}

#[tokio::test]
async fn a_key_of_two_organizations_reaches_what_is_in_either() {
    let world = world().await;
    let (records, identity) = (&world.records, &world.identity);
    identity.admin_create_organization("beta", "owner@example.com").await.expect("creates");
    let made = records.create(&world.owner, &PROJECT, body(json!({"name": "b", "org_name": "beta"}))).await;
    let project = id_of(&made.expect("creates").object);
    // Requests by id use the organization of the object, lists use the requested one.
    let home =
        records.object(&world.owner, ObjectKind::ProjectLogs, project, Permission::Create).await.expect("reaches");
    let beta = identity.authenticate(KEY, Some("beta")).await.expect("beta");
    assert_eq!(home.org, beta.org);
    assert_eq!(world.listed(&PROJECT, &[]).await, Vec::<String>::new());
    assert_eq!(world.listed(&PROJECT, &[("org_name", "beta")]).await, ["b"]);
    let experiment = world.experiment(project, json!({"name": "e"})).await;
    assert_eq!(records.get(&beta, &EXPERIMENT, id_of(&experiment)).await, Ok(experiment));
}

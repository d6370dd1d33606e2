//! Tests of creates: existing names, generated names of experiments, base experiments.

use assay_node_records::RecordsError;
use assay_node_records::kinds::{DATASET, EXPERIMENT, PROJECT};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{World, bad, body, id_of, missing, world};

#[tokio::test]
async fn creating_a_name_again_gives_the_first_one_unmodified() {
    let world = world().await;
    let create = async |sent: Value| world.records.create(&world.owner, &PROJECT, body(sent)).await.expect("creates");
    let first = create(json!({"name": "p", "description": "one"})).await;
    assert!(!first.found_existing && first.secret.is_none());
    let again = create(json!({"name": "p", "description": "two", "org_name": "acme"})).await;
    assert!(again.found_existing);
    assert_eq!(first.object, again.object);
    assert_eq!(world.records.get(&world.owner, &PROJECT, id_of(&first.object)).await, Ok(first.object));
    assert!(!create(json!({"name": "P"})).await.found_existing, "names match exactly");

    let project = world.project("p").await;
    let dataset = world.dataset(project, "d").await;
    assert_eq!(world.dataset(project, "d").await, dataset);
    assert_ne!(world.dataset(world.project("other").await, "d").await, dataset, "unique in its project");
}

#[tokio::test]
async fn many_who_create_one_name_at_once_get_one_record() {
    let world = world().await;
    let creates = (0..16).map(|_| world.records.create(&world.owner, &PROJECT, body(json!({"name": "race"}))));
    let made: Vec<_> =
        futures::future::join_all(creates).await.into_iter().map(|made| made.expect("creates")).collect();
    assert_eq!(made.iter().filter(|made| !made.found_existing).count(), 1);
    assert!(made.iter().all(|other| other.object == made[0].object));
}

#[tokio::test]
async fn a_new_record_shows_what_the_contract_names() {
    let world = world().await;
    let project = world.project("p").await;
    let shown = world.records.get(&world.owner, &PROJECT, project).await.expect("reads");
    assert_eq!(shown["org_id"], json!(world.owner.org));
    assert_eq!(shown["user_id"], json!(world.owner.user));
    assert_eq!((&shown["deleted_at"], &shown["settings"]), (&Value::Null, &Value::Null));
    assert!(shown["created"].as_str().is_some_and(|at| at.ends_with('Z')));

    let dataset = world.dataset(project, "My data").await;
    assert!(dataset["url_slug"].as_str().is_some_and(|slug| slug.starts_with("my-data-")));
    assert_eq!(dataset["project_id"], json!(project));

    let info = json!({"commit": "c1", "branch": "main", "unknown": 1});
    let experiment = world.experiment(project, json!({"name": "e", "repo_info": info})).await;
    assert_eq!((&experiment["public"], &experiment["commit"]), (&json!(false), &json!("c1")));
    assert_eq!(experiment["repo_info"], json!({"commit": "c1", "branch": "main"}));
}

#[tokio::test]
async fn an_experiment_is_reused_by_name_unless_a_new_one_is_asked_for() {
    let world = world().await;
    let project = world.project("p").await;
    let first = world.experiment(project, json!({"name": "e"})).await;
    assert_eq!(world.experiment(project, json!({"name": "e"})).await, first);
    assert_eq!(world.experiment(project, json!({"name": "e", "ensure_new": false})).await, first);

    let mut seen = vec![first["name"].clone()];
    for _ in 0..4 {
        let fresh = world.experiment(project, json!({"name": "e", "ensure_new": true})).await;
        assert!(fresh["name"].as_str().is_some_and(|name| name.starts_with("e-")), "{fresh}");
        assert!(!seen.contains(&fresh["name"]));
        seen.push(fresh["name"].clone());
    }
    let free = world.experiment(project, json!({"name": "free", "ensure_new": true})).await;
    assert_eq!(free["name"], "free", "a name that is free stays as it is");
    for _ in 0..3 {
        let unnamed = world.experiment(project, json!({"repo_info": {"branch": "main"}})).await;
        assert!(unnamed["name"].as_str().is_some_and(|name| name.starts_with("main-")), "{unnamed}");
        assert!(!seen.contains(&unnamed["name"]));
        seen.push(unnamed["name"].clone());
    }
}

#[tokio::test]
async fn fresh_experiments_made_at_once_are_all_there() {
    let world = world().await;
    let project = world.project("p").await;
    let sent = json!({"name": "e", "ensure_new": true});
    let made = futures::future::join_all((0..12).map(|_| world.experiment(project, sent.clone()))).await;
    let names: std::collections::BTreeSet<_> = made.iter().map(|made| made["name"].to_string()).collect();
    assert_eq!(names.len(), 12);
    assert_eq!(world.listed(&EXPERIMENT, &[]).await.len(), 12);
}

async fn based(world: &World, project: Uuid, more: Value) -> Value {
    let mut sent = body(more);
    sent.insert("ensure_new".into(), true.into());
    world.experiment(project, Value::Object(sent)).await["base_exp_id"].clone()
}

#[tokio::test]
async fn a_base_is_found_by_id_by_name_and_by_commit() {
    let world = world().await;
    let (project, elsewhere) = (world.project("p").await, world.project("q").await);
    let on = |commit: &str| json!({"ensure_new": true, "name": commit, "repo_info": {"commit": commit}});
    let old = world.experiment(project, on("c1")).await;
    let newer = world.experiment(project, on("c1")).await;
    let near = world.experiment(project, on("c2")).await;
    world.experiment(elsewhere, on("c3")).await;

    assert_eq!(based(&world, project, json!({"base_exp_id": old["id"], "ancestor_commits": ["c2"]})).await, old["id"]);
    assert_eq!(based(&world, project, json!({"base_experiment": "c2"})).await, near["id"]);
    assert_eq!(based(&world, project, json!({"ancestor_commits": ["c3", "c2", "c1"]})).await, near["id"]);
    assert_eq!(based(&world, project, json!({"ancestor_commits": ["c0", "c1"]})).await, newer["id"]);
    assert_eq!(based(&world, project, json!({"ancestor_commits": ["c3"]})).await, Value::Null);
    assert_eq!(based(&world, project, json!({})).await, Value::Null);
    let unknown = body(json!({"project_id": project, "base_experiment": "gone"}));
    bad(world.records.create(&world.owner, &EXPERIMENT, unknown).await, "base experiment");
}

#[tokio::test]
async fn a_create_is_refused_with_its_reason() {
    let world = world().await;
    let create = async |kind, sent| world.records.create(&world.owner, kind, body(sent)).await;
    bad(create(&PROJECT, json!({"name": ""})).await, "`name`");
    bad(create(&PROJECT, json!({"name": "p", "org_name": 1})).await, "`org_name`");
    missing(create(&PROJECT, json!({"name": "p", "org_name": "nowhere"})).await);
    missing(create(&DATASET, json!({"name": "d", "project_id": Uuid::from_u128(9)})).await);
    let project = world.project("p").await;
    bad(create(&EXPERIMENT, json!({"name": "e", "project_id": project, "ensure_new": "yes"})).await, "`ensure_new`");
    bad(create(&EXPERIMENT, json!({"project_id": project, "ancestor_commits": "c"})).await, "`ancestor_commits`");
    let prose = "x".repeat(60 << 10);
    let diff = "x".repeat(250 << 10);
    let deep: Value = json!({"a": "x".repeat(250 << 10)});
    let sent = json!({"project_id": project, "name": "e", "description": prose, "metadata": deep,
        "internal_metadata": deep, "repo_info": {"git_diff": diff, "commit_message": prose}, "tags": vec!["x".repeat(1000); 900]});
    let large = create(&EXPERIMENT, sent).await;
    assert!(matches!(large, Err(RecordsError::TooLarge(_))), "{large:?}");
    assert_eq!(world.listed(&EXPERIMENT, &[]).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_project_is_found_by_its_name_and_made_if_asked() {
    let world = world().await;
    missing(world.records.project_by_name(&world.owner, "p", false).await);
    let made = world.records.project_by_name(&world.owner, "p", true).await.expect("makes");
    assert!(made.made && made.org == world.owner.org && made.name == "p");
    let found = world.records.project_by_name(&world.owner, "p", false).await.expect("finds");
    let again = world.records.project_by_name(&world.owner, "p", true).await.expect("finds");
    assert!(!found.made && found == again && found.id == made.id);
    bad(world.records.project_by_name(&world.owner, "", true).await, "`name`");
}

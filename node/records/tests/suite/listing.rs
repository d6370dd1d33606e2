//! Tests of filters and pages of lists.

use assay_node_records::kinds::{DATASET, EXPERIMENT, PROJECT};
use serde_json::json;
use uuid::Uuid;

use super::{bad, id_of, world};

/// Query, and the expected names.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[tokio::test]
async fn filters_match_exactly_and_together() {
    let world = world().await;
    let (p, q) = (world.project("p").await, world.project("q").await);
    for (project, name) in [(p, "a"), (p, "b"), (q, "a"), (q, "c")] {
        world.experiment(project, json!({ "name": name, "metadata": {"who": name, "in": {"n": 1}} })).await;
        world.dataset(project, name).await;
    }
    let (p, q) = (p.to_string(), q.to_string());
    let none = Uuid::from_u128(9).to_string();
    let cases: &[Case] = &[
        (&[], &["c", "a", "b", "a"]),
        (&[("project_id", &p)], &["b", "a"]),
        (&[("project_name", "q")], &["c", "a"]),
        (&[("project_name", "q"), ("project_id", &p)], &[]),
        (&[("project_name", "q"), ("project_id", &q)], &["c", "a"]),
        (&[("project_name", "")], &["c", "a", "b", "a"]),
        (&[("project_name", "P")], &[]),
        (&[("project_id", &none)], &[]),
        (&[("name", "a")], &["a", "a"]),
        (&[("name", "a"), ("project_name", "p")], &["a"]),
        (&[("name", "c"), ("project_name", "p")], &[]),
        (&[("name", "a"), ("name", "b"), ("project_name", "p")], &["b", "a"]),
        (&[("org_name", "acme"), ("name", "c")], &["c"]),
        (&[("org_name", "")], &["c", "a", "b", "a"]),
        (&[("org_name", "other")], &[]),
        (&[("limit", "0")], &[]),
        (&[("limit", "2")], &["c", "a"]),
        (&[("query_source", "x"), ("limit", "1")], &["c"]),
    ];
    for (query, expected) in cases {
        assert_eq!(world.listed(&EXPERIMENT, query).await, *expected, "{query:?}");
        assert_eq!(world.listed(&DATASET, query).await, *expected, "{query:?}");
    }
    let own: &[Case] = &[
        (&[("experiment_name", "a"), ("project_name", "p")], &["a"]),
        (&[("metadata", r#"{"who": "b"}"#)], &["b"]),
        (&[("metadata", r#"{"in": {"n": 1}, "who": "a"}"#), ("project_name", "q")], &["a"]),
        (&[("metadata", r#"{"in": {"n": 2}}"#)], &[]),
        (&[("metadata", "{}"), ("limit", "3")], &["c", "a", "b"]),
    ];
    for (query, expected) in own {
        assert_eq!(world.listed(&EXPERIMENT, query).await, *expected, "{query:?}");
    }
    assert_eq!(world.listed(&DATASET, &[("dataset_name", "c")]).await, ["c"]);
    assert_eq!(world.listed(&PROJECT, &[("project_name", "p")]).await, ["p"]);
    assert_eq!(world.listed(&PROJECT, &[("name", "q")]).await, ["q"]);
    bad(world.list(&EXPERIMENT, &[("project_id", "x")]).await, "`project_id`");
    bad(world.list(&EXPERIMENT, &[("metadata", "x")]).await, "`metadata`");
}

#[tokio::test]
async fn ids_are_looked_up_newest_first() {
    let world = world().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(world.project(name).await.to_string());
    }
    let none = Uuid::from_u128(9).to_string();
    assert_eq!(world.listed(&PROJECT, &[("ids", &ids[0]), ("ids", &ids[2]), ("ids", &ids[0])]).await, ["c", "a"]);
    assert_eq!(world.listed(&PROJECT, &[("ids", &none)]).await, Vec::<String>::new());
    assert_eq!(world.listed(&PROJECT, &[("ids", &ids[0]), ("name", "b")]).await, Vec::<String>::new());
    assert_eq!(world.listed(&PROJECT, &[("ids", &ids[1]), ("starting_after", &ids[2])]).await, ["b"]);
    assert_eq!(world.listed(&PROJECT, &[("ids", &ids[2]), ("starting_after", &ids[2])]).await, Vec::<String>::new());
}

#[tokio::test]
async fn pages_go_both_ways_and_end_empty() {
    let world = world().await;
    let project = world.project("p").await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let metadata = json!({ "even": n % 2 == 0 });
        ids.push(
            id_of(&world.experiment(project, json!({ "name": n.to_string(), "metadata": metadata })).await).to_string(),
        );
    }
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let page = world.list(&EXPERIMENT, &[("limit", "3"), ("starting_after", &after)]).await.expect("lists");
        let Some(last) = page.last() else {
            break;
        };
        after = id_of(last).to_string();
        seen.extend(super::names(&page).into_iter().map(str::to_owned));
    }
    assert_eq!(seen, ["6", "5", "4", "3", "2", "1", "0"]);

    let before = async |id: &str, limit| world.listed(&EXPERIMENT, &[("limit", limit), ("ending_before", id)]).await;
    assert_eq!(before(&ids[2], "2").await, ["4", "3"]);
    assert_eq!(before(&ids[2], "9").await, ["6", "5", "4", "3"]);
    assert_eq!(before(&ids[6], "9").await, Vec::<String>::new());
    let even = ("metadata", r#"{"even": true}"#);
    assert_eq!(world.listed(&EXPERIMENT, &[even, ("limit", "2"), ("ending_before", &ids[1])]).await, ["4", "2"]);
    assert_eq!(world.listed(&EXPERIMENT, &[even, ("limit", "2"), ("starting_after", &ids[6])]).await, ["4", "2"]);

    bad(world.list(&EXPERIMENT, &[("starting_after", &ids[0]), ("ending_before", &ids[1])]).await, "`ending_before`");
    let unknown = Uuid::from_u128(9).to_string();
    bad(world.list(&EXPERIMENT, &[("starting_after", &unknown)]).await, &unknown);
}

#[tokio::test]
async fn a_list_goes_on_from_a_deleted_record() {
    let world = world().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        ids.push(world.project(name).await);
    }
    world.records.delete(&world.owner, &PROJECT, ids[2]).await.expect("deletes");
    let gone = ids[2].to_string();
    assert_eq!(world.listed(&PROJECT, &[]).await, ["e", "d", "b", "a"]);
    assert_eq!(world.listed(&PROJECT, &[("starting_after", &gone)]).await, ["b", "a"]);
    assert_eq!(world.listed(&PROJECT, &[("ending_before", &gone)]).await, ["e", "d"]);
    assert_eq!(world.listed(&PROJECT, &[("ending_before", &gone), ("limit", "1")]).await, ["d"]);
}

#[tokio::test]
async fn a_walk_of_several_batches_misses_nothing() {
    let world = world().await;
    let project = world.project("p").await;
    // This needs several batches of a thousand records.
    let names: Vec<_> = (0..1100).map(|n| format!("d{n}")).collect();
    futures::future::join_all(names.iter().map(|name| world.dataset(project, name))).await;
    let all = world.listed(&DATASET, &[]).await;
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 1100);
    let oldest = world.list(&DATASET, &[]).await.expect("lists").last().map(|last| id_of(last).to_string());
    let before = world.listed(&DATASET, &[("ending_before", &oldest.expect("one"))]).await;
    assert_eq!(before, all[..1099]);
    assert_eq!(world.listed(&DATASET, &[("name", "d7")]).await, ["d7"]);
}

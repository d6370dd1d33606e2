//! Tests of deletes, which are visible immediately and remove rows and contained records.

use assay_cluster::Cluster;
use assay_node_auth::Permission;
use assay_node_records::Swept;
use assay_node_records::kinds::{DATASET, EXPERIMENT, PROJECT};
use assay_storage_model::catalog::{CatalogCommand, Expect, PutRecord, RecordKind};
use assay_storage_model::command::{Command, Outcome, RowOp, Write};
use assay_storage_model::{GroupId, ObjectKey, ObjectKind, Xact, command};
use bytes::Bytes;
use serde_json::json;

use super::{id_of, missing, world};

/// Writes one row through the shard, like the crate of objects.
async fn write(cluster: &Cluster, object: ObjectKey) -> Outcome {
    let row = RowOp {
        id: "row",
        action: command::Action::Upsert,
        span_id: "row",
        root_span_id: "row",
        is_root: true,
        created: 0,
        doc: br#"{"id":"row"}"#,
        rules: b"",
        audit: b"",
    };
    let write = Command::Write(Write { object, assigned: Xact::ZERO, request: None, rows: vec![row] });
    cluster.write(cluster.locate(&object), Bytes::from(write.encode())).await.expect("writes")
}

#[tokio::test]
async fn a_deleted_record_is_gone_its_name_is_free_and_its_rows_are_dropped() {
    let world = world().await;
    let project = world.project("p").await;
    let experiment = world.experiment(project, json!({"name": "e", "description": "old"})).await;
    let id = id_of(&experiment);
    let object = async || world.records.object(&world.owner, ObjectKind::Experiment, id, Permission::Create).await;
    let home = object().await.expect("is there");
    assert_eq!((home.org, home.project_id), (world.owner.org, project));
    assert!(matches!(write(&world.cluster, home.key).await, Outcome::Written { .. }));

    let deleted = world.records.delete(&world.owner, &EXPERIMENT, id).await.expect("deletes");
    assert!(deleted["deleted_at"].is_string());
    assert_eq!((&deleted["name"], &deleted["description"]), (&experiment["name"], &experiment["description"]));
    missing(world.records.get(&world.owner, &EXPERIMENT, id).await);
    missing(world.records.delete(&world.owner, &EXPERIMENT, id).await);
    missing(object().await);
    assert_eq!(world.listed(&EXPERIMENT, &[("experiment_name", "e")]).await, Vec::<String>::new());
    assert_eq!(write(&world.cluster, home.key).await, Outcome::ObjectGone);

    let again = world.experiment(project, json!({"name": "e"})).await;
    assert_ne!(again["id"], experiment["id"]);
    assert_eq!(again["description"], serde_json::Value::Null);
    assert_eq!(world.records.sweep().await, Ok(Swept { records: 0 }), "nothing is left");
}

#[tokio::test]
async fn what_is_in_a_project_goes_with_it() {
    let world = world().await;
    let (p, q) = (world.project("p").await, world.project("q").await);
    let mut gone = vec![ObjectKey::new(world.owner.org, ObjectKind::ProjectLogs, p)];
    for n in 0..20 {
        let id = id_of(&world.experiment(p, json!({"name": n.to_string()})).await);
        gone.push(ObjectKey::new(world.owner.org, ObjectKind::Experiment, id));
        let id = id_of(&world.dataset(p, &n.to_string()).await);
        gone.push(ObjectKey::new(world.owner.org, ObjectKind::Dataset, id));
    }
    let stays = id_of(&world.experiment(q, json!({"name": "stays"})).await);
    world.records.delete(&world.owner, &PROJECT, p).await.expect("deletes");
    for object in gone {
        assert_eq!(write(&world.cluster, object).await, Outcome::ObjectGone, "{object}");
        missing(world.records.object(&world.owner, object.kind, object.id, Permission::Read).await);
    }
    assert_eq!(world.listed(&EXPERIMENT, &[]).await, ["stays"]);
    assert_eq!(world.listed(&DATASET, &[]).await, Vec::<String>::new());
    world.records.object(&world.owner, ObjectKind::Experiment, stays, Permission::Create).await.expect("stays");
    assert!(world.project("p").await != p);
}

/// Leaves the record without keys, as after a crash in the first step of a delete.
async fn cut_short(world: &super::World, kind: RecordKind, id: uuid::Uuid) {
    let put = PutRecord {
        kind,
        id,
        org: Some(world.owner.org),
        expect: Expect::Any,
        keys: Vec::new(),
        body: b"{}".to_vec(),
        at: 1,
    };
    let command = Bytes::from(CatalogCommand::Put(put).encode());
    world.cluster.propose(GroupId::CATALOG, vec![command]).await.expect("proposes");
}

#[tokio::test]
async fn a_delete_that_was_cut_short_holds_and_a_sweep_finishes_it() {
    let world = world().await;
    let (p, q) = (world.project("p").await, world.project("q").await);
    let inner = id_of(&world.experiment(p, json!({"name": "inner"})).await);
    let own = id_of(&world.dataset(q, "own").await);
    cut_short(&world, RecordKind::PROJECT, p).await;
    cut_short(&world, RecordKind::DATASET, own).await;

    missing(world.records.get(&world.owner, &PROJECT, p).await);
    missing(world.records.get(&world.owner, &EXPERIMENT, inner).await);
    missing(world.records.get(&world.owner, &DATASET, own).await);
    assert_eq!(world.listed(&EXPERIMENT, &[]).await, Vec::<String>::new());
    assert_eq!(world.listed(&PROJECT, &[]).await, ["q"]);
    let before = world.cluster.catalog().read().records();
    assert_eq!(world.records.sweep().await, Ok(Swept { records: 2 }));
    assert_eq!(world.cluster.catalog().read().records(), before - 3);
    let object = ObjectKey::new(world.owner.org, ObjectKind::Experiment, inner);
    assert_eq!(write(&world.cluster, object).await, Outcome::ObjectGone);
    assert_eq!(world.records.sweep().await, Ok(Swept { records: 0 }));
}

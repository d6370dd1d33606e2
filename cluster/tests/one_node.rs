//! Cluster of one node: the directory, writes and reads through consensus, seals, and restarts.

use std::path::Path;
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig, HomeError, OnFatal, OpenError};
use assay_storage_log::{LogConfig, LogError};
use assay_storage_model::command::{Action, Command, Outcome, RowOp, Write};
use assay_storage_model::{ClusterId, GroupId, ObjectKey, ObjectKind, OrgId, Xact};
use bytes::Bytes;
use uuid::Uuid;

fn config(dir: &Path) -> ClusterConfig {
    ClusterConfig {
        data_dir: dir.to_owned(),
        shards: 4,
        log: LogConfig { file_bytes: 1 << 20, budget_bytes: 8 << 20, ..LogConfig::default() },
        on_fatal: OnFatal::call(|why| panic!("{why}")),
        ..ClusterConfig::default()
    }
}

/// Opens the node after a crash. The dropped one ends in the background, and releases its lock and its log a moment
/// later.
async fn open(dir: &Path) -> Cluster {
    for _ in 0..500 {
        match Cluster::open(config(dir)).await {
            Err(OpenError::Home(HomeError::Locked(_)) | OpenError::Log(LogError::Io { .. })) => {
                tokio::time::sleep(Duration::from_millis(20)).await
            }
            opened => return opened.expect("opens"),
        }
    }
    panic!("the log stays locked");
}

fn object(n: u128) -> ObjectKey {
    ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(n))
}

fn upsert(object: ObjectKey, id: &str, text: &str) -> Bytes {
    let doc = format!(r#"{{"id":"{id}","input":"{text}"}}"#);
    let row = RowOp {
        id,
        action: Action::Upsert,
        span_id: id,
        root_span_id: id,
        is_root: true,
        created: 0,
        doc: doc.as_bytes(),
        rules: b"",
        audit: b"",
    };
    Bytes::from(Command::Write(Write { object, assigned: Xact::ZERO, request: None, rows: vec![row] }).encode())
}

async fn write(cluster: &Cluster, object: ObjectKey, id: &str, text: &str) -> Xact {
    match cluster.write(cluster.locate(&object), upsert(object, id, text)).await.expect("writes") {
        Outcome::Written { xact } => xact,
        other => panic!("{other:?}"),
    }
}

async fn read(cluster: &Cluster, object: ObjectKey, id: &str) -> Option<String> {
    let shard = cluster.locate(&object);
    cluster.fence(GroupId::of_shard(shard)).await.expect("fences");
    let view = cluster.shard(shard).expect("is here").view();
    let row = view.get(&object, id, view.version()).expect("reads")?;
    Some(String::from_utf8(row.doc.to_vec()).expect("text"))
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_crash_and_a_seal_in_the_middle() {
    let dir = tempfile::tempdir().expect("a directory");
    for round in 0..4_u128 {
        let cluster = open(dir.path()).await;
        for n in 0..20 {
            assert!(write(&cluster, object(n), &format!("row-{round}"), "some text").await > Xact::ZERO);
        }
        if round % 2 == 1 {
            for shard in 0..cluster.shards() {
                cluster.seal(GroupId::of_shard(assay_storage_model::ShardId(shard))).await.expect("seals");
            }
            cluster.seal(GroupId::CATALOG).await.expect("seals");
        }
        for n in 0..20 {
            for earlier in 0..=round {
                assert!(
                    read(&cluster, object(n), &format!("row-{earlier}")).await.is_some(),
                    "{earlier} of {n} in {round}"
                );
            }
        }
        match round {
            0 | 1 => drop(cluster),
            _ => cluster.shutdown().await.expect("shuts down"),
        }
    }
}

#[tokio::test]
async fn a_seal_with_nothing_new_returns() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = open(dir.path()).await;
    write(&cluster, object(1), "a", "text").await;
    let group = GroupId::of_shard(cluster.locate(&object(1)));
    let first = cluster.seal(group).await.expect("seals");
    for _ in 0..50 {
        // A request that follows at once finds consensus still busy with the previous one.
        assert_eq!(cluster.seal(group).await.expect("seals again"), first);
    }
    cluster.shutdown().await.expect("shuts down");
}

#[tokio::test]
async fn a_large_write_goes_through_a_blob_that_goes_when_it_is_sealed() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "x".repeat(3 << 20);
    {
        let cluster = open(dir.path()).await;
        write(&cluster, object(1), "large", &text).await;
        assert_eq!(cluster.blobs().list().expect("lists").len(), 1);
    }
    let cluster = open(dir.path()).await;
    assert!(read(&cluster, object(1), "large").await.is_some_and(|doc| doc.len() > text.len()));
    cluster.seal(GroupId::of_shard(cluster.locate(&object(1)))).await.expect("seals");
    for _ in 0..200 {
        if cluster.blobs().list().expect("lists").is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(cluster.blobs().list().expect("lists"), []);
    assert!(read(&cluster, object(1), "large").await.is_some());
    cluster.shutdown().await.expect("shuts down");
}

#[tokio::test]
async fn a_directory_in_use_or_of_another_cluster_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = open(dir.path()).await;
    let refused = Cluster::open(config(dir.path())).await;
    assert!(matches!(refused, Err(OpenError::Home(HomeError::Locked(_)))));
    cluster.shutdown().await.expect("shuts down");
    drop(cluster);
    let other = ClusterConfig { cluster: Some(ClusterId(Uuid::from_u128(9))), ..config(dir.path()) };
    assert!(matches!(Cluster::open(other).await, Err(OpenError::Home(HomeError::OtherCluster { .. }))));
}

#[tokio::test]
async fn a_log_that_is_gone_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().expect("a directory");
    {
        let cluster = open(dir.path()).await;
        write(&cluster, object(1), "a", "text").await;
        cluster.shutdown().await.expect("shuts down");
    }
    std::fs::remove_dir_all(dir.path().join("log")).expect("removes");
    let refused = Cluster::open(config(dir.path())).await.map(drop);
    assert!(refused.is_err(), "the watermark says that there was a log");
    std::fs::remove_file(dir.path().join("log.watermark")).expect("removes");
    let refused = Cluster::open(config(dir.path())).await.map(drop);
    assert!(matches!(refused, Err(OpenError::LogOfOtherTime(_))), "{refused:?}");
    // A program before 0.5 recorded no starts.
    std::fs::remove_file(dir.path().join("STARTS")).expect("removes");
    let refused = Cluster::open(config(dir.path())).await.map(drop);
    assert!(matches!(refused, Err(OpenError::Group(_))), "{refused:?}");
}

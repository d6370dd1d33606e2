//! Tests of a replica that does not open at a start. Nothing is removed before the others confirmed that they do
//! without it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{Cluster, OpenError};
use assay_storage_disk::RealDisk;
use assay_storage_disk::faulty::{Fault, FaultPlan, FaultyDisk, Operation};
use assay_storage_model::{GroupId, ShardId};

use crate::nodes::{
    SEALS_TO_COMPACT, SETTLED_MAX, TestNode, file_below, files_below, flip_a_bit, founded, merge_rows, rows_are_there,
    seal_all, settled, stop, wait_for, write_rows,
};

/// Long enough for many checks of replicas that do not run.
const A_WHILE: Duration = Duration::from_secs(3);
const SHARD: ShardId = ShardId(0);

fn group() -> GroupId {
    GroupId::of_shard(SHARD)
}

/// Waits until a node has another replica of the group than the damaged one.
async fn rebuilt(place: &TestNode, node: &Cluster, damaged: u64) {
    wait_for("it is rebuilt", async || {
        let now = &place.replicas()[&group()];
        now.0 != damaged && now.2 == "kept" && node.has_data(group())
    })
    .await;
}

/// Regression: a node that could not open a shard's files deleted its log and its votes. The next restarted node did
/// the same, and the quorum was permanently lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_voters_neither_damage_nor_a_failing_disk_takes_one_away() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 2, 2).await;
    let (place, second) = nodes.pop().expect("two");
    let (_, first) = nodes.pop().expect("two");
    seal_all(&second).await;
    write_rows(&first, "in the log").await;
    stop(second).await;
    let kept = place.replicas();
    let dir = kept[&group()].1.clone();

    let no_files = FaultPlan::fail(Operation::Open, 1, Fault::InputOutput).on_path(".parquet").lasting();
    let refused = place.open_on(Arc::new(FaultyDisk::new(Arc::new(RealDisk), no_files))).await;
    let refused = refused.expect_err("a start that cannot read its files is none");
    assert!(matches!(refused, OpenError::Shard { .. }), "{refused}");
    assert!(refused.to_string().contains("nothing was changed"), "{refused}");
    assert_eq!(place.replicas(), kept, "nothing was given up");
    // Like a dropped node, it ends in the background.
    tokio::time::sleep(Duration::from_millis(500)).await;

    let seal = file_below(&dir, "kv.seal").expect("a kept state");
    flip_a_bit(&seal);
    let second = place.open().await;
    tokio::time::sleep(A_WHILE).await;
    assert!(second.shard(SHARD).is_none(), "it is closed");
    assert!(second.shard(ShardId(1)).is_some(), "the others are not");
    assert_eq!(place.replicas(), kept, "without it there is no majority, so it stays");
    assert!(dir.join("CURRENT").exists());
    stop(second).await;

    flip_a_bit(&seal);
    let second = place.open().await;
    settled(&first).await;
    assert_eq!(place.replicas(), kept);
    assert!(rows_are_there(&second, "in the log").await > 0 && rows_are_there(&first, "first").await > 0);
    write_rows(&second, "after").await;
    stop(second).await;
    stop(first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_voters_a_damaged_one_is_rebuilt_under_another_number() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 3, 3).await;
    let (place, third) = nodes.pop().expect("three");
    seal_all(&third).await;
    stop(third).await;
    let (number, dir, _) = place.replicas()[&group()].clone();
    flip_a_bit(&file_below(&dir, "kv.seal").expect("a kept state"));
    let third = place.open().await;
    rebuilt(&place, &third, number).await;
    settled(&nodes[0].1).await;
    let objects = rows_are_there(&third, "first").await;
    assert_eq!(objects, rows_are_there(&nodes[0].1, "first").await);
    assert!(dir.with_extension("damaged").exists(), "what it had is set aside");
    stop(third).await;
    for (_, node) in nodes {
        stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_other_node_has_stops_the_start_and_stays() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 2, 1).await;
    let (place, second) = nodes.pop().expect("two");
    seal_all(&second).await;
    stop(second).await;
    let kept = place.replicas();
    let shard = kept.keys().find(|group| **group != GroupId::CATALOG).expect("a shard is on the second node");
    let seal = file_below(&kept[shard].1, "kv.seal").expect("a kept state");
    flip_a_bit(&seal);
    let refused = place.try_open().await.expect_err("nobody else has it");
    assert!(matches!(refused, OpenError::DamagedAlone { .. }), "{refused}");
    assert_eq!(place.replicas(), kept);
    tokio::time::sleep(Duration::from_millis(500)).await;

    flip_a_bit(&seal);
    let second = place.open().await;
    settled(&nodes[0].1).await;
    assert!(rows_are_there(&second, "first").await > 0);
    stop(second).await;
    stop(nodes.remove(0).1).await;
}

/// Regression: one flipped bit that compaction read ended the whole node, with all of its other replicas.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_compaction_meets_costs_one_replica_and_no_node() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 3, 3).await;
    let (place, third) = nodes.pop().expect("three");
    let (number, dir, _) = place.replicas()[&group()].clone();
    for round in 0..SEALS_TO_COMPACT - 1 {
        write_rows(&nodes[0].1, &format!("row {round}")).await;
        // It must have the sealed rows.
        rows_are_there(&third, &format!("row {round}")).await;
        seal_all(&third).await;
    }
    let segments = files_below(&dir, ".parquet");
    assert!(!segments.is_empty(), "nothing was sealed to {}", dir.display());
    segments.iter().for_each(|segment| flip_a_bit(segment));
    write_rows(&nodes[0].1, "the last row").await;
    // Nobody reads the damaged data before compaction, which may have run already.
    if third.fence(group()).await.is_ok()
        && let Err(why) = third.seal(group()).await
    {
        eprintln!("not sealed: {why}");
    }
    let begun = Instant::now();
    loop {
        let now = place.replicas()[&group()].clone();
        if now.0 != number && now.2 == "kept" && third.has_data(group()) {
            break;
        }
        // A busy machine may need a second check, which comes after a minute.
        assert!(
            begun.elapsed() < 3 * SETTLED_MAX,
            "not rebuilt: it was {number} and is {now:?}; {:?}",
            third.not_ready()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    settled(&nodes[0].1).await;
    assert!(rows_are_there(&third, "the last row").await > 0);
    let after = place.replicas();
    assert!(after.values().filter(|(_, _, state)| state == "kept").count() > 1, "the others stay: {after:?}");
    stop(third).await;
    for (_, node) in nodes {
        stop(node).await;
    }
}

/// Regression: a merge onto a damaged row ended the whole node, which ended again at every start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_a_merge_meets_costs_one_replica_and_no_node() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 3, 3).await;
    let (place, third) = nodes.pop().expect("three");
    write_rows(&nodes[0].1, "a row").await;
    rows_are_there(&third, "a row").await;
    seal_all(&third).await;
    let (number, dir, _) = place.replicas()[&group()].clone();
    let segments = files_below(&dir, ".parquet");
    assert!(!segments.is_empty(), "nothing was sealed to {}", dir.display());
    segments.iter().for_each(|segment| flip_a_bit(segment));
    third.shard(SHARD).expect("it runs").release_cached();
    merge_rows(&nodes[0].1, "a row").await;
    rebuilt(&place, &third, number).await;
    settled(&nodes[0].1).await;
    assert!(rows_are_there(&third, "a row").await > 0);
    stop(third).await;
    for (_, node) in nodes {
        stop(node).await;
    }
}

/// Regression: a new segment that was damaged when the seal read it back ended the whole node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bit_that_a_seal_meets_costs_one_replica_and_no_node() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 3, 3).await;
    let (place, third) = nodes.pop().expect("three");
    stop(third).await;
    let disk = FaultyDisk::new(Arc::new(RealDisk), FaultPlan::none());
    let third = place.open_on(Arc::new(disk.clone())).await.expect("opens");
    write_rows(&nodes[0].1, "a row").await;
    rows_are_there(&third, "a row").await;
    let (number, dir, _) = place.replicas()[&group()].clone();
    let flips = FaultPlan::fail(Operation::ReadAt, 1, Fault::FlippedBit);
    disk.set_plan(flips.on_path(&dir.join("g").to_string_lossy()).lasting());
    third.seal(group()).await.expect_err("what was written is damaged");
    rebuilt(&place, &third, number).await;
    settled(&nodes[0].1).await;
    assert!(rows_are_there(&third, "a row").await > 0);
    stop(third).await;
    for (_, node) in nodes {
        stop(node).await;
    }
}

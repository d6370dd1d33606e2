//! Tests of interrupted work of a reconciler, which is finished while the node runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{CATALOG_SILENCE_MAX, OpenError, recover, recovery};
use assay_storage_disk::RealDisk;
use assay_storage_disk::faulty::{Fault, FaultPlan, FaultyDisk, Operation};
use assay_storage_model::{GroupId, ShardId};

use crate::nodes::{SHARDS, TestNode, founded, rows_are_there, settled, stop, wait_for};

/// Longer than a round of the reconciler, and than its wait for users of a shard.
const A_WHILE: Duration = Duration::from_secs(4);

/// Regression: a replica was recorded, its directory found no space, and it was not retried before the next start. A
/// recovery on that node considered the replica complete before it was filled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_found_no_room_starts_when_there_is() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 1, 2).await;
    let (_, first) = nodes.pop().expect("one");
    let place = TestNode::new(home.path(), "2", 2);
    place.join(&first).await;
    let full = || FaultPlan::fail(Operation::CreateDirAll, 1, Fault::NoSpace).on_path("/shards/").lasting();
    let second = place.open_on(Arc::new(FaultyDisk::new(Arc::new(RealDisk), full()))).await.expect("opens");
    wait_for("replicas are written down", async || place.replicas().len() > 1 && second.hears_catalog()).await;
    stop(second).await;

    let config = place.config(Arc::new(RealDisk));
    let found = recovery(&config).expect("looks");
    assert_eq!(found.lost, (0..SHARDS).map(ShardId).collect::<Vec<_>>(), "they were never filled: {found:?}");
    let refused = recover(&config).await.expect_err("there is nothing to go on with");
    assert!(matches!(refused, OpenError::NotAllHere(_)), "{refused}");
    assert!(!place.dir.join("RECOVERING").exists(), "nothing was begun");

    let disk = Arc::new(FaultyDisk::new(Arc::new(RealDisk), full()));
    let second = place.open_on(Arc::clone(&disk) as _).await;
    // A start creates recorded replicas, and finds no space either.
    assert!(matches!(second, Err(OpenError::Shard { .. })));
    disk.set_plan(FaultPlan::none());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = place.open_on(Arc::clone(&disk) as _).await.expect("opens");
    settled(&first).await;
    assert!(rows_are_there(&second, "first").await > 0);
    stop(second).await;

    let third = TestNode::new(home.path(), "3", 2);
    let second = place.open().await;
    settled(&first).await;
    third.join(&first).await;
    disk.set_plan(full());
    let opened = third.open_on(Arc::clone(&disk) as _).await.expect("opens");
    wait_for("a replica is written down", async || third.replicas().len() > 1).await;
    tokio::time::sleep(A_WHILE).await;
    assert!((0..SHARDS).all(|shard| opened.shard(ShardId(shard)).is_none()));
    disk.set_plan(FaultPlan::none());
    settled(&first).await;
    let here = (0..SHARDS).filter(|shard| opened.has_data(GroupId::of_shard(ShardId(*shard)))).count();
    assert!(here > 0 && here == third.replicas().len() - 1, "{here} of {:?}", third.replicas());
    for node in [opened, second, first] {
        stop(node).await;
    }
}

/// Regression: a leaving replica was still being read, and its directory stayed until the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_leaves_goes_when_nobody_holds_it() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 1, 1).await;
    let (own, first) = nodes.pop().expect("one");
    let held: Vec<_> = (0..SHARDS).filter_map(|shard| first.shard(ShardId(shard))).collect();
    let place = TestNode::new(home.path(), "2", 1);
    place.join(&first).await;
    let second = place.open().await;
    let leaving = || own.replicas().into_values().filter(|(_, _, state)| state == "leaving").collect::<Vec<_>>();
    wait_for("replicas leave", async || !leaving().is_empty()).await;
    tokio::time::sleep(A_WHILE).await;
    let left = leaving();
    assert!(!left.is_empty() && left.iter().all(|(_, dir, _)| dir.exists()), "they are held: {left:?}");
    drop(held);
    wait_for("they are gone", async || leaving().is_empty() && left.iter().all(|(_, dir, _)| !dir.exists())).await;
    settled(&first).await;
    assert!(rows_are_there(&first, "first").await + rows_are_there(&second, "first").await > 0);
    stop(second).await;
    stop(first).await;
}

/// Regression: requests right after a start were refused at once until there was contact with the catalog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_is_waited_for_and_silence_is_not() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 2, 2).await;
    let (second_place, second) = nodes.pop().expect("two");
    let (first_place, first) = nodes.pop().expect("two");
    stop(second).await;
    let second = second_place.open().await;
    assert!(second.hears_catalog_soon().await, "the other one answers");
    stop(second).await;
    stop(first).await;

    let second = second_place.open().await;
    let began = Instant::now();
    assert!(!second.hears_catalog_soon().await, "who votes is away");
    assert!(began.elapsed() <= CATALOG_SILENCE_MAX + Duration::from_secs(2), "{:?}", began.elapsed());
    let began = Instant::now();
    assert!(!second.hears_catalog_soon().await);
    assert!(began.elapsed() < Duration::from_secs(1), "the start is over: {:?}", began.elapsed());
    let first = first_place.open().await;
    wait_for("the catalog is heard", async || second.hears_catalog()).await;
    stop(first).await;
    stop(second).await;
}

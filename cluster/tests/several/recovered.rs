//! Tests of recovery with one node that had missed changes.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{AskError, HomeError, OpenError, recover, recovery};
use assay_storage_disk::RealDisk;
use assay_storage_log::LogError;
use assay_storage_model::{GroupId, NodeId, ShardId};
use bytes::Bytes;

use crate::nodes::{TestNode, copy_all, founded, rows_are_there, seal_all, settled, stop, wait_for, write_rows};

/// Far above the number of terms that nodes reach in a few seconds of elections.
const TERMS: u64 = 1 << 20;

/// Regression: a node of three was down while the other two admitted a fourth. After its recovery it reassigned the
/// numbers of the fourth node and its replicas, and accepted messages of the fourth. It also led in a term that the
/// others may have reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lagged_gives_no_number_out_again() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes = founded(home.path(), 3, 3).await;
    let (third_place, third) = nodes.pop().expect("three");
    stop(third).await;
    let left = TestNode { dir: home.path().join("left"), ..third_place.clone() };
    copy_all(&third_place.dir, &left.dir);

    let third = third_place.open().await;
    let fourth_place = TestNode::new(home.path(), "4", 3);
    assert_eq!(fourth_place.join(&nodes[0].1).await, NodeId(4));
    let fourth = fourth_place.open().await;
    wait_for("it has replicas", async || fourth_place.replicas().len() > 1).await;
    settled(&nodes[0].1).await;
    seal_all(&fourth).await;
    for node in [fourth, third] {
        stop(node).await;
    }
    for (_, node) in nodes.drain(..) {
        stop(node).await;
    }
    let places = ["1", "2", "3", "4"].map(|name| TestNode { dir: home.path().join(name), ..left.clone() });
    let placed = places.iter().flat_map(|place| place.replicas().into_values().map(|(number, _, _)| number));
    let highest = placed.max().expect("replicas");

    let config = left.config(Arc::new(RealDisk));
    let found = recovery(&config).expect("looks");
    assert_eq!(found.given_up, [NodeId(1), NodeId(2)], "it never heard of the fourth");
    assert!(found.lost.is_empty() && found.not_voting.is_empty() && !found.catalog_not_voting, "{found:?}");
    recover(&config).await.expect("recovers");
    recover(&config).await.expect("does the same again");
    let alone = left.open().await;
    settled(&alone).await;
    assert!(rows_are_there(&alone, "first").await > 0);
    write_rows(&alone, "alone").await;
    assert!(left.replicas().values().all(|(number, _, _)| *number > highest), "{:?}", left.replicas());
    for group in [GroupId::CATALOG, GroupId::of_shard(ShardId(0))] {
        let status = alone.group(group).expect("here").status();
        assert!(status.leads && status.term > TERMS, "{status:?}");
    }

    let fourth = fourth_place.open().await;
    let asked = fourth.ask(NodeId(3), "cluster.status", Bytes::new(), Duration::from_secs(5)).await;
    assert!(matches!(&asked, Err(AskError::Refused { why, .. }) if why.contains("removed")), "{asked:?}");
    stop(fourth).await;

    // Of two nodes the second is given nothing that three are to have.
    let mut newcomers = Vec::new();
    for name in ["5", "6"] {
        let place = TestNode::new(home.path(), name, 3);
        let number = place.join(&alone).await;
        assert!(number > NodeId(10_000), "{number}");
        newcomers.push((place.open().await, place));
    }
    for (newcomer, place) in &newcomers {
        wait_for("it is filled", async || newcomer.has_data(GroupId::of_shard(ShardId(0)))).await;
        settled(&alone).await;
        assert_eq!(rows_are_there(newcomer, "alone").await, rows_are_there(&alone, "alone").await);
        let replicas = place.replicas();
        assert!(replicas.values().all(|(number, _, _)| *number > highest), "{replicas:?}");
    }
    for (newcomer, _) in newcomers {
        stop(newcomer).await;
    }
    stop(alone).await;
}

/// Starts the node once the one that refused to start has ended in the background.
async fn recovered(place: &TestNode) {
    loop {
        match recover(&place.config(Arc::new(RealDisk))).await {
            Err(OpenError::Home(HomeError::Locked(_)) | OpenError::Log(LogError::Io { .. })) => {
                tokio::time::sleep(Duration::from_millis(20)).await
            }
            done => return drop(done.expect("recovers")),
        }
    }
}

/// Regression: a recovery that ended half way was ignored by the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_was_cut_short_is_not_passed_over() {
    let home = tempfile::tempdir().expect("a directory");
    let nodes = founded(home.path(), 2, 2).await;
    let place = nodes[1].0.clone();
    for (_, node) in nodes {
        stop(node).await;
    }
    std::fs::write(place.dir.join("RECOVERING"), b"the next start finishes a recovery\n").expect("written");
    let refused = place.try_open().await.expect_err("its groups are as they were");
    assert!(matches!(&refused, OpenError::Recovery(why) if why.contains("recover --force")), "{refused}");
    recovered(&place).await;
    let alone = place.open().await;
    settled(&alone).await;
    assert!(rows_are_there(&alone, "first").await > 0);
    stop(alone).await;
}

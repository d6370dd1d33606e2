//! Tests of nodes that do not reach each other but reach a third one, and of a node at a new address.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_cluster::{AskError, Cluster};
use assay_storage_model::{GroupId, NodeId, ShardId};
use bytes::Bytes;
use futures::future::join_all;

use crate::nodes::{SHARDS, TestNode, founded, rows_are_there, settled, stop, wait_for, write_row, write_rows};

/// Time limit until writes succeed again. Detection takes a third of a second, an election one second, and a write in
/// flight is cancelled after two. The rest is margin for busy machines.
const SERVED_AGAIN_MAX: Duration = Duration::from_secs(30);
const HELD: Duration = Duration::from_secs(4);
const LOST_FOR: Duration = Duration::from_secs(2);
/// Time limit of an election and its consequences. A request to the old address alone is repeated for longer.
const FOUND_MAX: Duration = Duration::from_secs(4);
/// Longer than a moved node is called at its old address.
const INTRODUCED_FOR: Duration = Duration::from_secs(3);

fn groups() -> impl Iterator<Item = GroupId> {
    (0..SHARDS).map(|number| GroupId::of_shard(ShardId(number))).chain([GroupId::CATALOG])
}

fn terms(all: &[(TestNode, Cluster)]) -> BTreeMap<GroupId, u64> {
    let highest = |group| all.iter().filter_map(|(_, node)| Some(node.group(group)?.status().term)).max().unwrap_or(0);
    groups().map(|group| (group, highest(group))).collect()
}

/// Checks that every node takes a write to some shard, reads it, and may decide on permissions, all concurrently.
async fn some_serve(all: &[(TestNode, Cluster)], id: &str) {
    let each = all.iter().zip(0..).map(|((_, node), object)| async move {
        write_row(node, id, object).await;
        for group in groups() {
            node.fence(group).await.expect("a leader is heard");
        }
        assert!(node.hears_catalog(), "{}", node.catalog_silence());
    });
    join_all(each).await;
}

/// Checks that every node takes writes to all shards, reads all writes, and may decide on permissions.
async fn all_serve(all: &[(TestNode, Cluster)], id: &str) {
    for (number, (_, node)) in all.iter().enumerate() {
        let id = format!("{id}-{number}");
        write_rows(node, &id).await;
        for (_, reader) in all {
            rows_are_there(reader, &id).await;
            reader.fence(GroupId::CATALOG).await.expect("the catalog is heard");
            assert!(reader.hears_catalog(), "{}", reader.catalog_silence());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_do_not_reach_each_other_are_served_through_a_third() {
    let home = tempfile::tempdir().expect("a directory");
    let all = founded(home.path(), 3, 3).await;
    let both = [(1, 2), (2, 1)];
    for (name, cut) in [("ring", &both[..]), ("one-way", &both[..1]), ("other-way", &both[1..])] {
        all[0].0.cuts.set(cut.iter().copied());
        let begun = Instant::now();
        some_serve(&all, name).await;
        println!("{name}: all served {:?} after the cut", begun.elapsed());
        assert!(begun.elapsed() < SERVED_AGAIN_MAX, "{name}: {:?}", begun.elapsed());
        let (before, held) = (terms(&all), Instant::now());
        let mut rounds = 0;
        while held.elapsed() < HELD {
            some_serve(&all, &format!("{name}-{rounds}")).await;
            rounds += 1;
        }
        println!("{name}: {rounds} rounds in {:?}", held.elapsed());
        let elections: u64 = terms(&all).iter().map(|(group, term)| term - before[group]).sum();
        assert!(elections <= 3, "{name}: leads do not stay: {elections} elections in {HELD:?}");
        all[0].0.cuts.set([]);
        some_serve(&all, &format!("{name}-healed")).await;
    }
    all_serve(&all, "healed").await;
    for (_, node) in all {
        stop(node).await;
    }
}

fn moved_to_another_address(place: &TestNode) -> TestNode {
    let address = TestNode::new(Path::new("unused"), "unused", 3).address;
    TestNode { address, ..place.clone() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_whose_address_changed_comes_back() {
    let home = tempfile::tempdir().expect("a directory");
    let mut all = founded(home.path(), 3, 3).await;

    // A copy of its directory that is started elsewhere would do this.
    let (_, third) = &all[2];
    let refused = third.ask(NodeId(1), "cluster.introduce", Bytes::from_static(b"127.0.0.1:9"), SERVED_AGAIN_MAX).await;
    let Err(AskError::Refused { why, .. }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("stop that process first"), "{why}");

    let (place, third) = all.pop().expect("three");
    stop(third).await;
    let place = moved_to_another_address(&place);
    let third = place.open().await;
    let begun = Instant::now();
    wait_for("ready at the new address", async || third.is_ready()).await;
    println!("ready {:?} after the start at a new address", begun.elapsed());
    settled(&all[0].1).await;
    let known = all[0].1.status().await.nodes.into_iter().find(|node| node.id == third.node()).expect("it is known");
    assert_eq!(known.address.as_deref(), Some(&*place.address));
    write_rows(&third, "moved").await;
    rows_are_there(&third, "first").await;
    stop(third).await;
    for (_, node) in all {
        stop(node).await;
    }
}

/// The two nodes need each other for a majority. The unmoved one calls the other at its old address until it learns the
/// new one, and no record can be changed before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_moved_node_is_found_by_the_only_other_one() {
    let home = tempfile::tempdir().expect("a directory");
    let mut all = founded(home.path(), 3, 3).await;
    let (place, third) = all.pop().expect("three");
    let (_, second) = all.pop().expect("two");
    let (_, first) = all.pop().expect("one");
    tokio::join!(stop(second), stop(third));
    // Wait until the first node asks for a leader that is gone.
    tokio::time::sleep(LOST_FOR).await;
    let place = moved_to_another_address(&place);
    let third = place.open().await;
    let begun = Instant::now();
    for node in [&first, &third] {
        node.fence(GroupId::CATALOG).await.expect("the catalog is heard");
    }
    println!("the catalog is heard {:?} after the start at a new address", begun.elapsed());
    assert!(begun.elapsed() < FOUND_MAX, "{:?}", begun.elapsed());
    stop(third).await;
    stop(first).await;
}

/// An address that could not be recorded is forgotten, because the node may have returned to its recorded one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_moved_back_is_found() {
    let home = tempfile::tempdir().expect("a directory");
    let mut all = founded(home.path(), 3, 3).await;
    let (place, third) = all.pop().expect("three");
    let (_, second) = all.pop().expect("two");
    let (_, first) = all.pop().expect("one");
    stop(second).await;
    // The first node receives messages of the third, and has no majority to change a record with.
    place.cuts.set([(1, 3)]);
    let introduced =
        third.ask(NodeId(1), "cluster.introduce", Bytes::from_static(b"127.0.0.1:9"), INTRODUCED_FOR).await;
    introduced.expect_err("no answer passes");
    place.cuts.set([]);
    let healed = Instant::now();
    for node in [&first, &third] {
        node.fence(GroupId::CATALOG).await.expect("the catalog is heard");
    }
    println!("the catalog is heard {:?} after the cut", healed.elapsed());
    assert!(healed.elapsed() < FOUND_MAX, "{:?}", healed.elapsed());
    stop(third).await;
    stop(first).await;
}

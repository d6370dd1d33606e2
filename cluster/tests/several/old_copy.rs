//! Tests of directories restored from an older copy, whole or in part, and of copies that run beside the original.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use assay_cluster::{Cluster, ClusterConfig, OnFatal, OpenError, closed_groups};
use assay_storage_disk::RealDisk;
use assay_storage_model::GroupId;

use crate::nodes::{TestNode, copy_all, founded, rows_are_there, seal_all, settled, stop, wait_for, write_rows};

/// Longer than elections take, and than a process waits for nodes that do not respond.
const A_WHILE: Duration = Duration::from_secs(5);
/// Time limit from a start on an old copy to a complete cluster. It takes a few seconds on an idle machine.
const REBUILT_WITHIN: Duration = Duration::from_secs(45);

fn copy_of(place: &TestNode) -> PathBuf {
    let copy = place.dir.with_extension("copy");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).expect("removed");
    }
    copy_all(&place.dir, &copy);
    copy
}

fn put_back(copy: &Path, place: &TestNode) {
    std::fs::remove_dir_all(&place.dir).expect("removed");
    copy_all(copy, &place.dir);
}

fn remove_if_there(path: &Path) {
    if path.exists() {
        std::fs::remove_file(path).expect("removed");
    }
}

/// Removes the starts, as if a program before 0.5 had used the directory last.
fn forget_starts(dir: &Path) {
    remove_if_there(&dir.join("STARTS"));
    remove_if_there(&dir.join("log").join("START"));
}

fn numbers(place: &TestNode) -> BTreeMap<GroupId, u64> {
    place.replicas().into_iter().map(|(group, (number, ..))| (group, number)).collect()
}

/// Creates three nodes, and an older copy of the third one's directory, which a later start has used since.
async fn with_old_copy(home: &Path) -> (Vec<(TestNode, Option<Cluster>)>, PathBuf) {
    let mut nodes: Vec<(TestNode, Option<Cluster>)> =
        founded(home, 3, 3).await.into_iter().map(|(place, node)| (place, Some(node))).collect();
    stop_one(&mut nodes, 2).await;
    let copy = copy_of(&nodes[2].0);
    start_one(&mut nodes, 2).await;
    settled(nodes[0].1.as_ref().expect("runs")).await;
    for (place, _) in &nodes[..2] {
        wait_for("the later start is seen", async || has_seen_last_start(place, &nodes[2].0)).await;
    }
    (nodes, copy)
}

/// Returns whether a node has kept the last start of another one. An older copy cannot be distinguished from a
/// directory whose later starts were not seen.
fn has_seen_last_start(place: &TestNode, other: &TestNode) -> bool {
    let starts = |place: &TestNode| std::fs::read_to_string(place.dir.join("STARTS")).expect("reads");
    let last = starts(other).lines().filter_map(|line| line.strip_prefix("start ")).next_back().map(str::to_owned);
    let last = last.expect("a start");
    starts(place).lines().any(|line| line.starts_with("seen ") && line.ends_with(&last))
}

async fn stop_one(nodes: &mut [(TestNode, Option<Cluster>)], at: usize) {
    stop(nodes[at].1.take().expect("runs")).await;
}

async fn start_one(nodes: &mut [(TestNode, Option<Cluster>)], at: usize) {
    nodes[at].1 = Some(nodes[at].0.open().await);
}

async fn stop_all(nodes: Vec<(TestNode, Option<Cluster>)>) {
    for node in nodes.into_iter().filter_map(|(_, node)| node) {
        stop(node).await;
    }
}

fn says_why(node: &Cluster, what: &str) -> bool {
    node.not_ready().iter().any(|why| why.contains(what))
}

/// Regression: one old disk and two short outages silently lost nearly all that two nodes had acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_copy_does_not_vote_where_the_quorum_would_move_to_it() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut nodes, copy) = with_old_copy(home.path()).await;
    let before = numbers(&nodes[2].0);
    stop_one(&mut nodes, 1).await;
    write_rows(nodes[0].1.as_ref().expect("runs"), "acknowledged by 1 and 3").await;
    stop_one(&mut nodes, 2).await;
    stop_one(&mut nodes, 0).await;

    put_back(&copy, &nodes[2].0);
    start_one(&mut nodes, 1).await;
    start_one(&mut nodes, 2).await;
    let third = nodes[2].1.as_ref().expect("runs");
    wait_for("the old copy is refused", async || says_why(third, "copy of the catalog is closed")).await;
    tokio::time::sleep(A_WHILE).await;
    for (_, node) in &nodes[1..] {
        assert!(!node.as_ref().expect("runs").hears_catalog(), "an old copy and a node that was away serve");
    }

    // `assay doctor` reports the same of the directory.
    let closed = closed_groups(Arc::new(RealDisk), &nodes[2].0.dir).expect("reads");
    assert_eq!(closed.into_iter().collect::<BTreeSet<_>>(), before.keys().copied().collect());

    start_one(&mut nodes, 0).await;
    let began = Instant::now();
    let first = nodes[0].1.as_ref().expect("runs");
    settled(first).await;
    eprintln!("whole {:?} after the first node came back", began.elapsed());
    for (_, node) in &nodes {
        assert!(rows_are_there(node.as_ref().expect("runs"), "acknowledged by 1 and 3").await > 0);
    }
    let after = numbers(&nodes[2].0);
    assert!(before.iter().all(|(group, number)| after[group] != *number), "rebuilt: {before:?}, {after:?}");
    write_rows(nodes[2].1.as_ref().expect("runs"), "after").await;
    stop_all(nodes).await;
}

/// Regression: the returned node was not ready for as long as the leaders stayed, without any report of the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_copy_is_rebuilt_soon_where_the_others_are_there() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut nodes, copy) = with_old_copy(home.path()).await;
    write_rows(nodes[0].1.as_ref().expect("runs"), "later").await;
    stop_one(&mut nodes, 2).await;
    put_back(&copy, &nodes[2].0);
    let began = Instant::now();
    start_one(&mut nodes, 2).await;
    is_rebuilt(&nodes, began).await;
    stop_all(nodes).await;
}

/// The only node that knows the later start does not reach the old copy itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_copy_is_refused_through_a_third_node() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes: Vec<(TestNode, Option<Cluster>)> =
        founded(home.path(), 3, 3).await.into_iter().map(|(place, node)| (place, Some(node))).collect();
    stop_one(&mut nodes, 2).await;
    let copy = copy_of(&nodes[2].0);
    stop_one(&mut nodes, 1).await;
    start_one(&mut nodes, 2).await;
    write_rows(nodes[2].1.as_ref().expect("runs"), "later").await;
    stop_one(&mut nodes, 2).await;

    put_back(&copy, &nodes[2].0);
    let before = numbers(&nodes[2].0);
    nodes[0].0.cuts.set([(1, 3), (3, 1)]);
    start_one(&mut nodes, 1).await;
    let began = Instant::now();
    start_one(&mut nodes, 2).await;
    is_rebuilt(&nodes, began).await;
    let after = numbers(&nodes[2].0);
    assert!(before.iter().all(|(group, number)| after[group] != *number), "rebuilt: {before:?}, {after:?}");

    // A start without objections is compared with all nodes in the same way.
    stop_one(&mut nodes, 2).await;
    start_one(&mut nodes, 2).await;
    let third = nodes[2].1.as_ref().expect("runs");
    wait_for("it is ready", async || third.is_ready()).await;
    write_rows(third, "half connected").await;
    assert_eq!(numbers(&nodes[2].0), after, "nothing is rebuilt");
    assert!(rows_are_there(nodes[0].1.as_ref().expect("runs"), "half connected").await > 0);
    stop_all(nodes).await;
}

/// Its history has no conflict, but its log is shorter than the leaders' record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_running_node_is_told_by_what_that_one_had_acknowledged() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut nodes, copy) = with_old_copy(home.path()).await;
    write_rows(nodes[0].1.as_ref().expect("runs"), "later").await;
    stop_one(&mut nodes, 2).await;
    let dir = nodes[2].0.dir.clone();
    let newest = [dir.join("STARTS"), dir.join("log/START")].map(|path| (std::fs::read(&path).expect("reads"), path));
    put_back(&copy, &nodes[2].0);
    newest.into_iter().for_each(|(bytes, path)| std::fs::write(path, bytes).expect("writes"));
    let before = numbers(&nodes[2].0);
    let began = Instant::now();
    start_one(&mut nodes, 2).await;
    is_rebuilt(&nodes, began).await;
    let after = numbers(&nodes[2].0);
    assert!(before.iter().any(|(group, number)| after[group] != *number), "{before:?}, {after:?}");
    stop_all(nodes).await;
}

async fn is_rebuilt(nodes: &[(TestNode, Option<Cluster>)], began: Instant) {
    let third = nodes[2].1.as_ref().expect("runs");
    wait_for("it is ready", async || third.is_ready()).await;
    settled(nodes[0].1.as_ref().expect("runs")).await;
    eprintln!("rebuilt after {:?}", began.elapsed());
    assert!(began.elapsed() < REBUILT_WITHIN, "{:?}", began.elapsed());
    assert!(rows_are_there(third, "later").await > 0);
}

/// Regression: votes of the time between were forgotten silently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_log_under_a_newer_state_is_seen_at_the_start() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes: Vec<(TestNode, Option<Cluster>)> =
        founded(home.path(), 3, 3).await.into_iter().map(|(place, node)| (place, Some(node))).collect();
    stop_one(&mut nodes, 2).await;
    let copy = copy_of(&nodes[2].0);
    start_one(&mut nodes, 2).await;
    settled(nodes[0].1.as_ref().expect("runs")).await;
    write_rows(nodes[0].1.as_ref().expect("runs"), "later").await;
    seal_all(nodes[2].1.as_ref().expect("runs")).await;
    stop_one(&mut nodes, 2).await;
    let before = numbers(&nodes[2].0);
    let dir = nodes[2].0.dir.clone();
    std::fs::remove_dir_all(dir.join("log")).expect("removed");
    copy_all(&copy.join("log"), &dir.join("log"));
    std::fs::copy(copy.join("log.watermark"), dir.join("log.watermark")).expect("copied");

    let began = Instant::now();
    start_one(&mut nodes, 2).await;
    is_rebuilt(&nodes, began).await;
    let after = numbers(&nodes[2].0);
    assert!(before.iter().all(|(group, number)| after[group] != *number), "rebuilt: {before:?}, {after:?}");
    stop_all(nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_alone_refuses_an_old_log() {
    let home = tempfile::tempdir().expect("a directory");
    let (place, node) = founded(home.path(), 1, 1).await.pop().expect("one");
    stop(node).await;
    let copy = copy_of(&place);
    let node = place.open().await;
    write_rows(&node, "later").await;
    stop(node).await;
    std::fs::remove_dir_all(place.dir.join("log")).expect("removed");
    std::fs::copy(copy.join("log.watermark"), place.dir.join("log.watermark")).expect("copied");
    copy_all(&copy.join("log"), &place.dir.join("log"));
    let refused = place.try_open().await.expect_err("what nobody else has is missing");
    assert!(refused.to_string().contains("of another time"), "{refused}");
    assert!(matches!(refused, OpenError::LogOfOtherTime(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_start_alone_after_all_were_stopped() {
    let home = tempfile::tempdir().expect("a directory");
    let mut nodes: Vec<(TestNode, Option<Cluster>)> =
        founded(home.path(), 3, 3).await.into_iter().map(|(place, node)| (place, Some(node))).collect();
    for at in 0..3 {
        stop_one(&mut nodes, at).await;
    }
    for at in [0, 1] {
        start_one(&mut nodes, at).await;
    }
    let [first, second] = [0, 1].map(|at| nodes[at].1.as_ref().expect("runs"));
    wait_for("they serve", async || first.is_ready() && second.is_ready()).await;
    write_rows(second, "by two").await;
    assert!(rows_are_there(first, "by two").await > 0 && rows_are_there(second, "first").await > 0);
    stop_all(nodes).await;
}

/// A copy that runs beside the original must neither be accepted nor take its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_runs_beside_its_node_stays_out() {
    let home = tempfile::tempdir().expect("a directory");
    let (nodes, copy) = with_old_copy(home.path()).await;
    let place = TestNode { dir: copy, ..TestNode::new(home.path(), "double", 3) };
    let double = place.open().await;
    wait_for("it is refused", async || says_why(&double, "another process responds")).await;
    tokio::time::sleep(A_WHILE).await;
    assert!(!double.is_ready() && !double.hears_catalog());
    let third = nodes[2].1.as_ref().expect("runs");
    assert!(third.is_ready(), "{:?}", third.not_ready());
    write_rows(third, "beside a double").await;
    assert!(rows_are_there(third, "beside a double").await > 0);
    stop(double).await;
    stop_all(nodes).await;
}

/// Regression: if an old copy was not detected, the node with the lost writes ended at every start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_group_went_on_without_its_entries_closes_its_replicas() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut nodes, copy) = with_old_copy(home.path()).await;
    stop_one(&mut nodes, 1).await;
    write_rows(nodes[0].1.as_ref().expect("runs"), "lost").await;
    seal_all(nodes[0].1.as_ref().expect("runs")).await;
    stop_one(&mut nodes, 2).await;
    stop_one(&mut nodes, 0).await;
    put_back(&copy, &nodes[2].0);
    nodes.iter().for_each(|(place, _)| forget_starts(&place.dir));
    nodes.iter().for_each(|(place, _)| remove_if_there(&place.dir.join("ACKNOWLEDGED")));
    start_one(&mut nodes, 1).await;
    start_one(&mut nodes, 2).await;
    let second = nodes[1].1.as_ref().expect("runs");
    wait_for("two nodes that know nothing serve", async || second.is_ready()).await;
    write_rows(second, "instead").await;

    // If its catalog is also of another history, it ends with a message and renews the catalog at the next start.
    let fatal = Arc::new(Mutex::new(None));
    let open = async |place: &TestNode| {
        let fatal = Arc::clone(&fatal);
        let on_fatal = OnFatal::call(move |why| *fatal.lock().expect("no panic") = Some(why));
        let config = ClusterConfig { on_fatal, ..place.config(Arc::new(RealDisk)) };
        Cluster::open(config).await.expect("opens")
    };
    nodes[0].1 = Some(open(&nodes[0].0).await);
    let (began, mut restarts) = (Instant::now(), 0);
    loop {
        if began.elapsed() > 4 * REBUILT_WITHIN {
            let not_ready = nodes[0].1.as_ref().map(Cluster::not_ready);
            let unsettled = nodes[1].1.as_ref().expect("runs").status().await.unsettled;
            panic!("not whole after {restarts} restarts: {not_ready:?}, {unsettled:?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let ended = fatal.lock().expect("no panic").take();
        if let Some(why) = ended {
            assert!(why.contains("another history") || why.contains("must not continue"), "{why}");
            restarts += 1;
            drop(nodes[0].1.take().expect("runs").shutdown().await);
            tokio::time::sleep(Duration::from_secs(1)).await;
            nodes[0].1 = Some(open(&nodes[0].0).await);
        } else if nodes[0].1.as_ref().is_some_and(Cluster::is_ready)
            && nodes[1].1.as_ref().expect("runs").status().await.settled
        {
            break;
        }
    }
    assert!(restarts <= 1, "{restarts} restarts");
    assert!(rows_are_there(nodes[0].1.as_ref().expect("runs"), "instead").await > 0);
    stop_all(nodes).await;
}

//! Tests of handovers from impaired nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_storage_model::WriteFailure;
use bytes::Bytes;

use super::TestGroup;
use crate::{HandOverError, Impairment};

/// Regression: applying a large write waited for a file descriptor. The lead stayed meanwhile, and every write of the
/// group waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_impaired_leader_hands_over_without_the_writes_that_do_not_end() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    let from = raft.leader().await;
    let to = *raft.places.keys().find(|id| **id != from).expect("another");
    let (giving, writing) = (raft.group(from), raft.group(from));
    let stuck = Arc::clone(raft.places[&from].machine.lock().as_ref().expect("it runs"));
    stuck.block_applies(true);
    let unfinished = tokio::spawn(async move { writing.write(Bytes::from_static(b"unfinished")).await });
    raft.wait("the write at the other", |raft| (raft.commands(to).len() == 2).then_some(())).await;
    assert_eq!(giving.hand_over(to).await, Err(HandOverError::Busy), "a handover without need keeps the lead");
    let handed = giving.hand_over_from_impaired_node(to, Impairment::NoFiles).await;
    assert_eq!((handed, raft.group(to).leads()), (Ok(()), true));
    raft.write("after").await;
    assert!(matches!(unfinished.await.expect("ends"), Err(WriteFailure::Unknown { .. })));
    stuck.block_applies(false);
    raft.everywhere(3).await;
    for id in raft.places.keys() {
        assert_eq!(
            raft.commands(*id),
            ["before", "unfinished", "after"].map(|text| Bytes::from_static(text.as_bytes()))
        );
    }
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

/// Regression: the leader could not open the file of a large write for its followers, which refused every entry until
/// they had it. The other replica never caught up, and the lead stayed for as long as files were short.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_impaired_leader_hands_over_to_a_replica_that_its_entries_do_not_reach() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    raft.everywhere(1).await;
    let from = raft.leader().await;
    let to = *raft.places.keys().find(|id| **id != from).expect("another");
    let (giving, writing) = (raft.group(from), raft.group(from));
    let last = giving.status().last;
    raft.wire.refuses_entries.store(true, Ordering::Relaxed);
    let lost = tokio::spawn(async move { writing.write(Bytes::from_static(b"lost")).await });
    raft.wait("the entry at the leader", |raft| (raft.group(from).status().last > last).then_some(())).await;
    assert_eq!(giving.hand_over(to).await, Err(HandOverError::Busy), "a handover without need keeps the lead");
    let handed = giving.hand_over_from_impaired_node(to, Impairment::NoFiles).await;
    assert_eq!((handed, raft.group(to).leads()), (Ok(()), true));
    raft.wire.refuses_entries.store(false, Ordering::Relaxed);
    raft.write("after").await;
    assert!(matches!(lost.await.expect("ends"), Err(WriteFailure::Unknown { .. })));
    raft.everywhere(2).await;
    for id in raft.places.keys() {
        assert_eq!(raft.commands(*id), ["before", "after"].map(|text| Bytes::from_static(text.as_bytes())));
    }
    assert!(raft.fatal.lock().is_empty(), "{:?}", raft.fatal.lock());
}

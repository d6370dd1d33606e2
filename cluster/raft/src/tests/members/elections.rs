//! Tests of elections: which replica stands, and when.

use assay_storage_model::{NotWritten, WriteFailure};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::TestGroup;

/// A node whose disk is slow won elections and gave the lead away again, and writes waited for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_yields_leads_only_when_nobody_else_can() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    let leader = house.leader().await;
    let others: Vec<_> = house.places.keys().copied().filter(|id| *id != leader).collect();
    let [yielding, standing] = others[..] else { panic!("three replicas: {others:?}") };
    let longest = house.group(yielding).timing().yield_max();
    house.group(yielding).yield_elections(true);
    house.wire.cut.lock().insert(leader);
    let began = Instant::now();
    while !house.group(standing).leads() {
        assert!(!house.group(yielding).leads(), "the one that yields leads, and another could");
        assert!(began.elapsed() < longest, "nobody leads after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.group(leader).yield_elections(true);
    house.wire.cut.lock().remove(&leader);
    house.write("between").await;
    house.everywhere(2).await;
    house.wire.cut.lock().insert(standing);
    let began = Instant::now();
    while ![yielding, leader].into_iter().any(|id| house.group(id).leads()) {
        assert!(began.elapsed() < longest * 4, "nobody leads after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() > longest * 2 / 3, "a replica that yields stood after {:?}", began.elapsed());
}

/// Regression: an isolated follower raised the term with every election timeout, and deposed the leader once it was
/// reachable again. The write in flight then had an unknown outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_alone_hears_no_leader_deposes_nobody() {
    const CUT_FOR: Duration = Duration::from_secs(4);
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    house.everywhere(1).await;
    let leader = house.leader().await;
    let other = *house.places.keys().find(|id| **id != leader).expect("another");
    let term = || house.group(leader).status().term;
    let before = term();
    let from_leader_only = || *house.wire.apart.lock() = Some([leader, other]);
    let from_both = || {
        house.wire.cut.lock().insert(other);
    };
    let mut written = 1;
    for cut in [&from_leader_only as &dyn Fn(), &from_both] {
        cut();
        let until = Instant::now() + CUT_FOR;
        while Instant::now() < until {
            let write = house.group(leader).write(Bytes::from(format!("w{written}"))).await;
            write.expect("two of three take a write");
            written += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        *house.wire.apart.lock() = None;
        house.wire.cut.lock().clear();
        house.everywhere(written).await;
        assert_eq!(term(), before, "the replica that was cut off stood for election");
    }
}

/// The new leader did not reach the old one, which took its lead for kept and let writes through: their outcome was unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_steps_down_when_the_next_one_says_that_it_leads() {
    let house = TestGroup::founded(3, 3).await;
    house.write("before").await;
    house.everywhere(1).await;
    let leader = house.leader().await;
    let next = *house.places.keys().find(|id| **id != leader).expect("another");
    let (group, writing) = (house.group(leader), house.group(leader));
    let writer = tokio::spawn(async move {
        let mut number = 0;
        loop {
            number += 1;
            match writing.write(Bytes::from(format!("w{number}"))).await {
                Ok(_) => {}
                Err(WriteFailure::NotWritten(why)) => return why,
                Err(WriteFailure::Unknown { why }) => panic!("write {number}: {why}"),
            }
        }
    });
    house.wire.deaf.lock().insert(leader);
    group.hand_over(next).await.expect("the lead is handed over");
    assert!(!group.leads() && house.group(next).leads());
    let refused = writer.await.expect("no write has an unknown outcome");
    assert!(matches!(refused, NotWritten::NotLeader), "{refused}");
}

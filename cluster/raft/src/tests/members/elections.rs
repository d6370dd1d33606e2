//! Tests of elections: which replica stands, and when.

use assay_storage_model::{NotWritten, ReplicaId, WriteFailure};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::TestGroup;

/// Upper bound of the wait for a leader.
const ELECTED_MAX: Duration = Duration::from_secs(60);
/// Attempts at an election in which the replica that does not yield is in time.
const ATTEMPTS: usize = 5;

/// Group whose leader is isolated, and which elected the replica that does not yield.
struct YieldingElection {
    group: TestGroup,
    leader: ReplicaId,
    yielding: ReplicaId,
    standing: ReplicaId,
}

/// Returns `None` if the machine was so slow that the other replica stood as well.
async fn yielding_election() -> Option<YieldingElection> {
    let group = TestGroup::founded(3, 3).await;
    group.write("before").await;
    let leader = group.leader().await;
    let others: Vec<_> = group.places.keys().copied().filter(|id| *id != leader).collect();
    let [yielding, standing] = others[..] else { panic!("three replicas: {others:?}") };
    let longest = group.group(yielding).timing().yield_max();
    group.group(yielding).yield_elections(true);
    group.wire.cut.lock().insert(leader);
    let began = Instant::now();
    while !group.group(standing).leads() {
        if group.group(yielding).leads() {
            assert!(began.elapsed() >= longest, "the one that yields leads, and another could");
            return None;
        }
        assert!(began.elapsed() < ELECTED_MAX, "nobody leads after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some(YieldingElection { group, leader, yielding, standing })
}

/// Regression: a node with a slow disk won elections and handed the lead over again, and writes waited for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_yields_leads_only_when_nobody_else_can() {
    let mut elected = None;
    for _ in 0..ATTEMPTS {
        elected = yielding_election().await;
        if elected.is_some() {
            break;
        }
    }
    let YieldingElection { group: raft, leader, yielding, standing } = elected.expect("one election in time");
    let longest = raft.group(yielding).timing().yield_max();
    raft.group(leader).yield_elections(true);
    raft.wire.cut.lock().remove(&leader);
    raft.write("between").await;
    raft.everywhere(2).await;
    raft.wire.cut.lock().insert(standing);
    let began = Instant::now();
    while ![yielding, leader].into_iter().any(|id| raft.group(id).leads()) {
        assert!(began.elapsed() < ELECTED_MAX, "nobody leads after {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() > longest * 2 / 3, "a replica that yields stood after {:?}", began.elapsed());
}

/// Regression: an isolated follower raised the term with every election timeout, and deposed the leader once it was
/// reachable again. The write in flight then had an unknown outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_alone_hears_no_leader_deposes_nobody() {
    const CUT_FOR: Duration = Duration::from_secs(4);
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    raft.everywhere(1).await;
    let leader = raft.leader().await;
    let other = *raft.places.keys().find(|id| **id != leader).expect("another");
    let term = || raft.group(leader).status().term;
    let before = term();
    let from_leader_only = || *raft.wire.apart.lock() = Some([leader, other]);
    let from_both = || {
        raft.wire.cut.lock().insert(other);
    };
    let mut written = 1;
    for cut in [&from_leader_only as &dyn Fn(), &from_both] {
        cut();
        let until = Instant::now() + CUT_FOR;
        while Instant::now() < until {
            let write = raft.group(leader).write(Bytes::from(format!("w{written}"))).await;
            write.expect("two of three take a write");
            written += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        *raft.wire.apart.lock() = None;
        raft.wire.cut.lock().clear();
        raft.everywhere(written).await;
        assert_eq!(term(), before, "the replica that was cut off stood for election");
    }
}

/// Regression: the new leader did not reach the old one. The old one assumed that it kept the lead and let writes
/// through, whose outcome was unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_steps_down_when_the_next_one_says_that_it_leads() {
    let raft = TestGroup::founded(3, 3).await;
    raft.write("before").await;
    raft.everywhere(1).await;
    let leader = raft.leader().await;
    let next = *raft.places.keys().find(|id| **id != leader).expect("another");
    let (group, writing) = (raft.group(leader), raft.group(leader));
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
    raft.wire.deaf.lock().insert(leader);
    group.hand_over(next).await.expect("the lead is handed over");
    assert!(!group.leads() && raft.group(next).leads());
    let refused = writer.await.expect("no write has an unknown outcome");
    assert!(matches!(refused, NotWritten::NotLeader), "{refused}");
}

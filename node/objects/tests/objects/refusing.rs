//! Tests that refused requests leave nothing behind.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use assay_node_objects::{FetchRequest, ObjectLimits, ObjectWrite, Patience, ReadError, WriteError};
use assay_storage_model::NotWritten;
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{fixture, held_fixture, log, sent};

#[tokio::test]
async fn one_bad_row_keeps_every_object_of_the_call_unwritten() {
    let fixture = fixture().await;
    let write = |n, row| ObjectWrite { object: log(n), rows: sent(vec![json!({"id": "good"}), row]), request: None };
    let writes = vec![write(1, json!({"id": "b"})), write(2, json!({"id": "b", "scores": {"s": 7}}))];
    let Err(WriteError::Row { write, error }) = fixture.objects.write(writes, Patience::usual()).await else {
        panic!("is refused")
    };
    assert_eq!((write, error.row, error.path.as_str()), (1, 1, "scores.s"));
    for n in [1, 2] {
        assert!(fixture.all(log(n)).await.ids().is_empty());
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_merge_that_makes_too_large_a_row_is_refused_with_its_place_and_stops_nobody() {
    let fixture = fixture().await;
    let big = "x".repeat(6 << 20);
    fixture.write(log(1), vec![json!({"id": "a", "input": big})]).await;
    // The first two rows fold into one, so the third row is the second one of the write.
    let rows = vec![
        json!({"id": "b"}),
        json!({"id": "b", "output": 1, "_is_merge": true}),
        json!({"id": "a", "output": big, "_is_merge": true}),
    ];
    let empty = ObjectWrite { object: log(2), rows: Vec::new(), request: None };
    let write = ObjectWrite { object: log(1), rows: sent(rows), request: None };
    let refused = fixture.objects.write(vec![empty, write], Patience::usual()).await;
    let Err(WriteError::Row { write: 1, error }) = refused else { panic!("{refused:?}") };
    assert_eq!(error.row, 2);
    fixture.write(log(1), vec![json!({"id": "c"})]).await;
    assert_eq!(fixture.all(log(1)).await.ids(), ["c", "a"]);
    fixture.close().await;
}

#[tokio::test]
async fn a_dropped_object_is_gone_for_writers_and_readers_and_for_the_call_that_names_it() {
    let fixture = fixture().await;
    fixture.write(log(1), vec![json!({"id": "a"})]).await;
    fixture.drop_object(log(1)).await;
    assert_eq!(fixture.try_write(log(1), vec![json!({"id": "b"})]).await, Err(WriteError::Gone { object: log(1) }));
    let write = |n| ObjectWrite { object: log(n), rows: sent(vec![json!({"id": "c"})]), request: None };
    let both = fixture.objects.write(vec![write(2), write(1)], Patience::usual()).await;
    assert_eq!(both, Err(WriteError::Gone { object: log(1) }));
    assert!(fixture.all(log(2)).await.ids().is_empty());
    for limit in [None, Some(0)] {
        let read = fixture.try_fetch(log(1), FetchRequest { limit, ..FetchRequest::default() }).await;
        assert_eq!(read.err(), Some(ReadError::Gone { object: log(1) }));
    }
    fixture.close().await;
}

fn row(n: u128, id: &str) -> Vec<ObjectWrite> {
    vec![ObjectWrite { object: log(n), rows: sent(vec![json!({"id": id})]), request: None }]
}

/// Returns the patience of a write with a short wait.
fn patient_for(wait: Duration) -> Patience {
    Patience { until: Instant::now() + wait, ..Patience::usual() }
}

/// Polls a write once, so that it has entered the queue.
async fn begun<T>(write: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    std::future::poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await
}

/// Before the queue existed, most of these were refused at once.
#[tokio::test]
async fn writes_that_find_no_place_wait_for_one_and_keep_their_order() {
    let (fixture, hold) = held_fixture(ObjectLimits { object_writes: 4, ..ObjectLimits::default() }).await;
    let mut writes = Vec::new();
    for n in 0..64 {
        let mut write = Box::pin(fixture.objects.write(row(1, &format!("row-{n:02}")), Patience::usual()));
        assert!(begun(&mut write).await.is_pending());
        writes.push(write);
    }
    let counts = fixture.objects.counts();
    assert_eq!((counts.waiting_writes, counts.queued_calls), (4, 60));
    hold.end();
    let written = futures::future::join_all(writes).await;
    let xacts: Vec<_> = written.into_iter().map(|written| written.expect("writes")[0].xact).collect();
    assert!(xacts.is_sorted(), "each is written in its turn");
    assert_eq!(fixture.all(log(1)).await.ids().len(), 64);
    let counts = fixture.objects.counts();
    assert_eq!((counts.busy, counts.waiting_bytes, counts.queued_calls, counts.waits), (0, 0, 0, 60));
    assert!(counts.wait_seconds > 0.0);
    fixture.close().await;
}

#[tokio::test]
async fn a_write_is_busy_when_its_deadline_has_passed_and_not_before() {
    let (fixture, hold) = held_fixture(ObjectLimits { object_writes: 1, ..ObjectLimits::default() }).await;
    let mut first = Box::pin(fixture.objects.write(row(1, "first"), Patience::usual()));
    assert!(begun(&mut first).await.is_pending());
    let (began, wait) = (Instant::now(), Duration::from_millis(300));
    let refused = fixture.objects.write(row(1, "late"), patient_for(wait)).await;
    let Err(WriteError::NotWritten { why: NotWritten::Busy(_), retry_after }) = refused else { panic!("{refused:?}") };
    assert!(began.elapsed() >= wait && retry_after > Duration::ZERO);
    hold.end();
    first.await.expect("writes");
    assert_eq!(fixture.all(log(1)).await.ids(), ["first"], "what was refused is not written later");
    assert_eq!(fixture.objects.counts().busy, 1);
    fixture.close().await;
}

#[tokio::test]
async fn a_flood_of_one_object_delays_no_write_of_another() {
    let (fixture, hold) = held_fixture(ObjectLimits { object_writes: 4, ..ObjectLimits::default() }).await;
    let mut flood = Vec::new();
    for n in 0..100 {
        let mut write = Box::pin(fixture.objects.write(row(1, &format!("{n:03}")), Patience::usual()));
        assert!(begun(&mut write).await.is_pending());
        flood.push(write);
    }
    let mut other = Box::pin(fixture.objects.write(row(2, "other"), Patience::usual()));
    assert!(begun(&mut other).await.is_pending());
    let counts = fixture.objects.counts();
    assert_eq!((counts.waiting_writes, counts.queued_calls), (5, 96), "the other one has its place");
    hold.end();
    other.await.expect("writes");
    assert!(futures::future::join_all(flood).await.into_iter().all(|written| written.is_ok()));
    fixture.close().await;
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_place_in_the_queue_up() {
    let (fixture, hold) = held_fixture(ObjectLimits { object_writes: 1, ..ObjectLimits::default() }).await;
    let mut writes = Vec::new();
    for id in ["first", "leaves", "last"] {
        let mut write = Box::pin(fixture.objects.write(row(1, id), Patience::usual()));
        assert!(begun(&mut write).await.is_pending());
        writes.push(write);
    }
    drop(writes.remove(1));
    assert_eq!(fixture.objects.counts().queued_calls, 1);
    hold.end();
    assert!(futures::future::join_all(writes).await.into_iter().all(|written| written.is_ok()));
    let seen = fixture.all(log(1)).await;
    assert_eq!(seen.ids(), ["last", "first"], "what left was not written");
    fixture.close().await;
}

#[tokio::test]
async fn a_call_over_several_objects_waits_for_all_of_them_and_holds_none_back() {
    let (fixture, hold) = held_fixture(ObjectLimits { object_writes: 1, ..ObjectLimits::default() }).await;
    let mut first = Box::pin(fixture.objects.write(row(1, "first"), Patience::usual()));
    assert!(begun(&mut first).await.is_pending());
    let both: Vec<ObjectWrite> = [row(2, "both"), row(1, "both")].concat();
    let mut both = Box::pin(fixture.objects.write(both, Patience::usual()));
    assert!(begun(&mut both).await.is_pending());
    let counts = fixture.objects.counts();
    assert_eq!((counts.waiting_writes, counts.queued_calls), (1, 1), "it holds no place of the one that has room");
    let mut other = Box::pin(fixture.objects.write(row(2, "other"), Patience::usual()));
    assert!(begun(&mut other).await.is_pending());
    assert_eq!(fixture.objects.counts().waiting_writes, 2, "the other has its place at once");
    hold.end();
    let (first, both, other) = tokio::join!(first, both, other);
    assert!(first.is_ok() && both.is_ok() && other.is_ok());
    assert_eq!(fixture.all(log(2)).await.ids(), ["both", "other"]);
    fixture.close().await;
}

#[tokio::test]
async fn a_shutdown_refuses_what_waits_and_writes_nothing_of_it() {
    let (fixture, hold) = held_fixture(ObjectLimits { object_writes: 1, ..ObjectLimits::default() }).await;
    let mut writes =
        [row(1, "first"), row(1, "waits")].map(|write| Box::pin(fixture.objects.write(write, Patience::usual())));
    for write in &mut writes {
        assert!(begun(write).await.is_pending());
    }
    let [first, waits] = writes;
    let objects = fixture.objects.clone();
    let shutdown = tokio::spawn(async move { objects.shutdown().await });
    let refused = waits.await;
    assert!(matches!(refused, Err(WriteError::NotWritten { .. })), "{refused:?}");
    hold.end();
    first.await.expect("what had its place is written");
    shutdown.await.expect("ends");
    fixture.cluster.shutdown().await.expect("shuts down");
}

#[tokio::test]
async fn after_shutdown_nothing_is_taken_and_what_was_taken_is_answered() {
    let fixture = fixture().await;
    let objects = fixture.objects.clone();
    let write = || ObjectWrite { object: log(1), rows: sent(vec![json!({"id": "a"})]), request: None };
    let mut taken = Box::pin(objects.write(vec![write()], Patience::usual()));
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(taken.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    let (taken, ()) = tokio::join!(taken, fixture.objects.shutdown());
    taken.expect("writes");
    assert!(matches!(objects.write(vec![write()], Patience::usual()).await, Err(WriteError::NotWritten { .. })));
    assert!(matches!(fixture.try_fetch(log(1), FetchRequest::default()).await, Err(ReadError::Unavailable(_))));
    fixture.cluster.shutdown().await.expect("shuts down");
}

#[tokio::test]
async fn a_write_without_rows_is_answered_and_changes_nothing() {
    let fixture = fixture().await;
    let written = fixture.write(log(1), Vec::new()).await;
    assert!(written.row_ids.is_empty() && fixture.objects.counts().started == 0);
    fixture.close().await;
}

#[test]
fn it_starts_without_any_runtime_and_ends_when_it_is_dropped() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cluster = runtime.block_on(fixture()).cluster;
    let clock = assay_node_objects::node_clock(&cluster);
    let limits = ObjectLimits { threads: 3, ..ObjectLimits::default() };
    let objects = assay_node_objects::Objects::start(cluster, limits, clock);
    let write = ObjectWrite { object: log(1), rows: sent(vec![json!({"id": "a"})]), request: None };
    runtime.block_on(objects.write(vec![write], Patience::usual())).expect("writes");
}

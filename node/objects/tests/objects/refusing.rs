//! What is refused leaves nothing behind.

use std::time::Duration;

use assay_node_objects::{FetchRequest, ObjectLimits, ObjectWrite, ReadError, WriteError};
use serde_json::json;

use crate::house::{house, house_with, log, sent};

#[tokio::test]
async fn one_bad_row_keeps_every_object_of_the_call_unwritten() {
    let house = house().await;
    let write = |n, row| ObjectWrite { object: log(n), rows: sent(vec![json!({"id": "good"}), row]), request: None };
    let writes = vec![write(1, json!({"id": "b"})), write(2, json!({"id": "b", "scores": {"s": 7}}))];
    let Err(WriteError::Row { write, error }) = house.objects.write(writes).await else { panic!("is refused") };
    assert_eq!((write, error.row, error.path.as_str()), (1, 1, "scores.s"));
    for n in [1, 2] {
        assert!(house.all(log(n)).await.ids().is_empty());
    }
    house.close().await;
}

#[tokio::test]
async fn a_merge_that_makes_too_large_a_row_is_refused_with_its_place_and_stops_nobody() {
    let house = house().await;
    let big = "x".repeat(6 << 20);
    house.write(log(1), vec![json!({"id": "a", "input": big})]).await;
    // The first two rows fold into one, so that the third is the second of what is written.
    let rows = vec![
        json!({"id": "b"}),
        json!({"id": "b", "output": 1, "_is_merge": true}),
        json!({"id": "a", "output": big, "_is_merge": true}),
    ];
    let empty = ObjectWrite { object: log(2), rows: Vec::new(), request: None };
    let write = ObjectWrite { object: log(1), rows: sent(rows), request: None };
    let refused = house.objects.write(vec![empty, write]).await;
    let Err(WriteError::Row { write: 1, error }) = refused else { panic!("{refused:?}") };
    assert_eq!(error.row, 2);
    house.write(log(1), vec![json!({"id": "c"})]).await;
    assert_eq!(house.all(log(1)).await.ids(), ["c", "a"]);
    house.close().await;
}

#[tokio::test]
async fn a_dropped_object_is_gone_for_writers_and_readers_and_for_the_call_that_names_it() {
    let house = house().await;
    house.write(log(1), vec![json!({"id": "a"})]).await;
    house.drop_object(log(1)).await;
    assert_eq!(house.try_write(log(1), vec![json!({"id": "b"})]).await, Err(WriteError::Gone { object: log(1) }));
    let write = |n| ObjectWrite { object: log(n), rows: sent(vec![json!({"id": "c"})]), request: None };
    let both = house.objects.write(vec![write(2), write(1)]).await;
    assert_eq!(both, Err(WriteError::Gone { object: log(1) }));
    assert!(house.all(log(2)).await.ids().is_empty());
    for limit in [None, Some(0)] {
        let read = house.try_fetch(log(1), FetchRequest { limit, ..FetchRequest::default() }).await;
        assert_eq!(read.err(), Some(ReadError::Gone { object: log(1) }));
    }
    house.close().await;
}

#[tokio::test]
async fn a_full_mailbox_is_busy_and_loses_nothing() {
    let house = house_with(ObjectLimits { object_writes: 4, ..ObjectLimits::default() }).await;
    let writers: Vec<_> = (0..64)
        .map(|n| {
            let objects = house.objects.clone();
            let rows = vec![json!({"id": format!("row-{n:02}")})];
            tokio::spawn(async move {
                objects.write(vec![ObjectWrite { object: log(1), rows: sent(rows), request: None }]).await
            })
        })
        .collect();
    let (mut written, mut busy) = (Vec::new(), 0);
    for (n, writer) in writers.into_iter().enumerate() {
        match writer.await.expect("ends well") {
            Ok(_) => written.push(format!("row-{n:02}")),
            Err(WriteError::Busy { retry_after, .. }) => {
                assert!(retry_after > Duration::ZERO);
                busy += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(busy > 0 && !written.is_empty(), "{busy} were busy");
    let seen = house.all(log(1)).await;
    let mut found = seen.ids();
    found.sort_unstable();
    assert_eq!(found, written, "those that were answered, and no other");
    assert_eq!((house.objects.counts().busy, house.objects.counts().waiting_bytes), (busy, 0));
    house.close().await;
}

#[tokio::test]
async fn a_full_mailbox_refuses_the_whole_call() {
    let limits = ObjectLimits { object_bytes: 1000, ..ObjectLimits::default() };
    let house = house_with(limits).await;
    let write = |n, text: &str| ObjectWrite {
        object: log(n),
        rows: sent(vec![json!({"id": text, "input": text})]),
        request: None,
    };
    let big = "x".repeat(1000);
    // Two writes to one object are more than may wait once one waits already.
    let first = house.objects.write(vec![write(1, &big[..500])]);
    let mut first = Box::pin(first);
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(first.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    let refused = house.objects.write(vec![write(2, "other"), write(1, &big[..500])]).await;
    assert!(matches!(refused, Err(WriteError::Busy { .. })), "{refused:?}");
    first.await.expect("writes");
    assert!(house.all(log(2)).await.ids().is_empty());
    house.close().await;
}

#[tokio::test]
async fn after_shutdown_nothing_is_taken_and_what_was_taken_is_answered() {
    let house = house().await;
    let objects = house.objects.clone();
    let write = || ObjectWrite { object: log(1), rows: sent(vec![json!({"id": "a"})]), request: None };
    let mut taken = Box::pin(objects.write(vec![write()]));
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(taken.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    let (taken, ()) = tokio::join!(taken, house.objects.shutdown());
    taken.expect("writes");
    assert!(matches!(objects.write(vec![write()]).await, Err(WriteError::Unavailable(_))));
    assert!(matches!(house.try_fetch(log(1), FetchRequest::default()).await, Err(ReadError::Unavailable(_))));
    house.cluster.shutdown().await.expect("shuts down");
}

#[tokio::test]
async fn a_write_without_rows_is_answered_and_changes_nothing() {
    let house = house().await;
    let written = house.write(log(1), Vec::new()).await;
    assert!(written.row_ids.is_empty() && house.objects.counts().started == 0);
    house.close().await;
}

#[test]
fn it_starts_without_any_runtime_and_ends_when_it_is_dropped() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cluster = runtime.block_on(house()).cluster;
    let clock = assay_node_objects::node_clock(&cluster);
    let limits = ObjectLimits { threads: 3, ..ObjectLimits::default() };
    let objects = assay_node_objects::Objects::start(cluster, limits, clock);
    let write = ObjectWrite { object: log(1), rows: sent(vec![json!({"id": "a"})]), request: None };
    runtime.block_on(objects.write(vec![write])).expect("writes");
}

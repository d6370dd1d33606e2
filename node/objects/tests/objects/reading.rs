//! Tests of fetches: pages, versions, cursors.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_node_objects::{FetchRequest, ReadError};
use assay_storage_model::Xact;
use serde_json::{Value, json};

use crate::fixture::{Fixture, fixture, log};

fn span(trace: usize, span: usize) -> Value {
    let parents = if span == 0 { Value::Null } else { json!([format!("t{trace}")]) };
    json!({"id": format!("t{trace}-s{span}"), "root_span_id": format!("t{trace}"), "span_parents": parents,
           "span_id": format!("t{trace}-{span}"), "input": "x".repeat(trace % 7)})
}

fn limit(limit: u64) -> FetchRequest {
    FetchRequest { limit: Some(limit), ..FetchRequest::default() }
}

/// Follows cursors to the end. Every page but the last has the requested number of whole traces.
async fn pages(fixture: &Fixture, first: FetchRequest) -> Vec<String> {
    let (mut found, mut request) = (Vec::new(), first);
    for _ in 0..10_000 {
        let seen = fixture.fetch(log(1), request.clone()).await;
        found.extend(seen.ids().iter().map(|id| id.to_string()));
        let traces: BTreeSet<_> = seen.events.iter().map(|event| event["root_span_id"].to_string()).collect();
        assert!(traces.len() as u64 <= request.limit.unwrap_or(u64::MAX));
        let Some(cursor) = seen.page.cursor else { return found };
        assert!(!seen.events.is_empty(), "a page with a cursor has rows");
        request.cursor = Some(cursor);
    }
    panic!("the cursors do not end");
}

#[tokio::test]
async fn paging_by_traces_sees_each_once_while_writes_go_on() {
    let fixture = fixture().await;
    const TRACES: usize = 45;
    for round in 0..3 {
        // The spans of one trace are far apart, and the middle ones are sealed.
        fixture.write(log(1), (0..TRACES).map(|trace| span(trace, round)).collect()).await;
        if round == 1 {
            fixture.seal().await;
        }
    }
    let expected: BTreeSet<String> = (0..TRACES * 3).map(|n| format!("t{}-s{}", n / 3, n % 3)).collect();
    for size in [1, 2, 7, 44, 45, 46, 1000] {
        let found = pages(&fixture, limit(size)).await;
        assert_eq!(found.len(), expected.len(), "at {size} traces a page");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "at {size} traces a page");
    }
    // Between two pages, every trace gets a new newest span. No trace may be lost or repeated.
    let first = fixture.fetch(log(1), limit(10)).await;
    fixture.write(log(1), (0..TRACES).map(|trace| span(trace, 9)).collect()).await;
    let rest = pages(&fixture, FetchRequest { cursor: first.page.cursor.clone(), ..limit(10) }).await;
    let both: Vec<String> = first.ids().into_iter().map(str::to_owned).chain(rest).collect();
    assert_eq!(both.len(), expected.len());
    assert_eq!(both.into_iter().collect::<BTreeSet<_>>(), expected);
    fixture.close().await;
}

#[tokio::test]
async fn a_limit_of_nothing_is_an_empty_page_without_a_cursor() {
    let fixture = fixture().await;
    fixture.write(log(1), vec![span(0, 0)]).await;
    let seen = fixture.fetch(log(1), limit(0)).await;
    assert_eq!((seen.events.len(), seen.page.cursor), (0, None));
    let seen = fixture.fetch(log(2), FetchRequest::default()).await;
    assert_eq!((seen.events.len(), seen.page.cursor), (0, None), "an object nobody wrote to is empty");
    fixture.close().await;
}

#[tokio::test]
async fn a_page_ends_early_when_its_rows_are_large() {
    let fixture = fixture().await;
    let row =
        |n: usize| json!({"id": format!("t{n}-s0"), "root_span_id": format!("t{n}"), "input": "x".repeat(3 << 20)});
    for n in 0..12 {
        fixture.write(log(1), vec![row(n)]).await;
    }
    let seen = fixture.all(log(1)).await;
    assert!(seen.page.cursor.is_some() && seen.events.len() < 12, "{}", seen.events.len());
    let found = pages(&fixture, FetchRequest::default()).await;
    assert_eq!(found, (0..12).rev().map(|n| format!("t{n}-s0")).collect::<Vec<_>>());
    fixture.close().await;
}

#[tokio::test]
async fn a_version_reads_the_same_while_writes_go_on() {
    let fixture = Arc::new(fixture().await);
    let first = fixture.write(log(1), (0..20).map(|trace| span(trace, 0)).collect()).await.xact;
    let at_first = FetchRequest { version: Some(first), ..FetchRequest::default() };
    let before = fixture.fetch(log(1), at_first.clone()).await.page;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (fixture, stop) = (Arc::clone(&fixture), Arc::clone(&stop));
        async move {
            let mut n: usize = 0;
            while !stop.load(Ordering::Acquire) {
                let merge = json!({"id": format!("t{}-s0", n % 20), "metadata": {"n": n}, "_is_merge": true});
                let comment = json!({"origin": {"id": "t3-s0"}, "comment": {"text": "later"}});
                let gone = json!({"id": format!("t{}-s0", (n + 7) % 20), "_object_delete": true});
                fixture.write(log(1), vec![merge, comment, gone]).await;
                n += 1;
            }
        }
    });
    for round in 0..30 {
        assert_eq!(fixture.fetch(log(1), at_first.clone()).await.page, before);
        if round % 10 == 5 {
            fixture.seal().await;
        }
    }
    stop.store(true, Ordering::Release);
    writer.await.expect("ends well");
    assert_eq!(fixture.fetch(log(1), at_first).await.page, before);
    assert_eq!(fixture.fetch(log(1), FetchRequest { version: Some(Xact::ZERO), ..limit(5) }).await.events.len(), 0);
    Arc::into_inner(fixture).expect("all ended").close().await;
}

#[tokio::test]
async fn a_version_ahead_of_the_last_write_is_final_and_one_in_the_future_is_refused() {
    let fixture = fixture().await;
    fixture.write(log(1), vec![span(0, 0)]).await;
    let now = fixture.cluster.shard(fixture.cluster.locate(&log(1))).expect("is here").last();
    let soon = Xact::new(now.seconds() + 3, 7);
    let request = FetchRequest { version: Some(soon), ..FetchRequest::default() };
    let seen = fixture.fetch(log(1), request.clone()).await;
    assert_eq!((seen.page.version, seen.events.len()), (soon, 1));
    let written = fixture.write(log(1), vec![span(1, 0)]).await;
    assert!(written.xact > soon);
    assert_eq!(fixture.fetch(log(1), request).await.page, seen.page);
    for far in [Xact::new(now.seconds() + 60, 0), Xact::MAX, Xact(u64::MAX)] {
        let refused = fixture.try_fetch(log(1), FetchRequest { version: Some(far), ..FetchRequest::default() }).await;
        assert!(matches!(refused.err(), Some(ReadError::BadRequest(_))), "{far}");
    }
    fixture.close().await;
}

#[tokio::test]
async fn the_deprecated_cursor_misses_nothing() {
    let fixture = fixture().await;
    for trace in 0..23 {
        fixture.write(log(1), vec![span(trace, 0), span(trace, 1)]).await;
    }
    // Late merges give old rows young ids.
    fixture
        .write(log(1), (0..23).map(|n| json!({"id": format!("t{n}-s0"), "output": n, "_is_merge": true})).collect())
        .await;
    for size in [1, 2, 5] {
        let (mut found, mut request) = (BTreeSet::new(), limit(size));
        for _ in 0..100 {
            let seen = fixture.fetch(log(1), request.clone()).await;
            found.extend(seen.ids().iter().map(|id| id.to_string()));
            let text = |event: &Value, name: &str| event[name].as_str().expect("text").to_owned();
            let least = seen.events.iter().map(|event| (text(event, "_xact_id"), text(event, "root_span_id"))).min();
            let Some((xact, root)) = least else { break };
            request.max_xact_id = Some(Xact::parse(&xact).expect("a version"));
            request.max_root_span_id = Some(root);
        }
        assert_eq!(found.len(), 46, "at {size} traces a page");
    }
    let alone = FetchRequest { max_root_span_id: Some("t1".into()), ..limit(1) };
    assert!(matches!(fixture.try_fetch(log(1), alone).await.err(), Some(ReadError::BadRequest(_))));
    fixture.close().await;
}

#[tokio::test]
async fn a_cursor_of_another_object_or_version_is_refused() {
    let fixture = fixture().await;
    fixture.write(log(1), vec![span(0, 0), span(1, 0)]).await;
    let cursor = fixture.fetch(log(1), limit(1)).await.page.cursor;
    let request = FetchRequest { cursor, ..limit(1) };
    assert!(matches!(fixture.try_fetch(log(2), request.clone()).await.err(), Some(ReadError::BadRequest(_))));
    let other = FetchRequest { version: Some(Xact::new(1, 1)), ..request };
    assert!(matches!(fixture.try_fetch(log(1), other).await.err(), Some(ReadError::BadRequest(_))));
    fixture.close().await;
}

//! Tests of writes.

use std::sync::Arc;
use std::time::Duration;

use assay_node_objects::{ObjectLimits, ObjectWrite, Patience, feedback, ingest};
use assay_storage_model::{ObjectKind, Xact};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{fixture, fixture_with, key, log, request, sent};

#[tokio::test]
async fn what_was_written_is_read_with_its_system_fields() {
    let fixture = fixture().await;
    let rows = vec![json!({"id": "a", "input": {"q": 1}, "created": "2026-01-02T03:04:05Z"}), json!({"output": "x"})];
    let written = fixture.write(log(7), rows).await;
    assert_eq!(written.row_ids[0], "a");
    assert!(Uuid::parse_str(&written.row_ids[1]).is_ok());
    let seen = fixture.all(log(7)).await;
    assert_eq!(seen.ids(), [written.row_ids[1].as_str(), "a"], "newest first");
    let event = seen.event("a");
    assert_eq!(event["_xact_id"], json!(written.xact.to_string()));
    assert_eq!(event["project_id"], json!(Uuid::from_u128(7)));
    assert_eq!(event["log_id"], "g");
    assert_eq!((&event["input"], &event["created"]), (&json!({"q": 1}), &json!("2026-01-02T03:04:05.000Z")));
    assert_eq!((&event["span_parents"], &event["is_root"]), (&Value::Null, &json!(true)));
    assert_eq!((&event["root_span_id"], &event["comments"]), (&json!("a"), &Value::Null));
    assert_eq!(seen.page.cursor, None);
    fixture.close().await;
}

#[tokio::test]
async fn merges_fold_in_memory_and_onto_sealed_rows() {
    let fixture = fixture().await;
    let object = log(1);
    fixture.write(object, vec![json!({"id": "a", "metadata": {"x": 1}, "tags": ["t"]})]).await;
    fixture.write(object, vec![json!({"id": "a", "metadata": {"y": 2}, "tags": ["u"], "_is_merge": true})]).await;
    fixture.seal().await;
    fixture.write(object, vec![json!({"id": "a", "metadata": {"z": 3}, "_is_merge": true})]).await;
    fixture.write(object, vec![json!({"id": "new", "output": 1, "_is_merge": true})]).await;
    let seen = fixture.all(object).await;
    assert_eq!(seen.event("a")["metadata"], json!({"x": 1, "y": 2, "z": 3}));
    assert_eq!(seen.event("a")["tags"], json!(["t", "u"]));
    assert_eq!(seen.event("new")["output"], json!(1));
    let rows = vec![json!({"id": "b", "scores": {"s": 1}}), json!({"id": "b", "scores": {"t": 0}, "_is_merge": true})];
    assert_eq!(fixture.write(object, rows).await.row_ids, ["b", "b"]);
    assert_eq!(fixture.all(object).await.event("b")["scores"], json!({"s": 1, "t": 0}));
    fixture.close().await;
}

#[tokio::test]
async fn a_deleted_row_is_gone_and_its_id_starts_anew() {
    let fixture = fixture().await;
    fixture.write(log(1), vec![json!({"id": "a", "input": 1}), json!({"id": "b"})]).await;
    fixture.seal().await;
    fixture.write(log(1), vec![json!({"id": "a", "_object_delete": true})]).await;
    assert_eq!(fixture.all(log(1)).await.ids(), ["b"]);
    fixture.write(log(1), vec![json!({"id": "a", "output": 2, "_is_merge": true})]).await;
    let seen = fixture.all(log(1)).await;
    assert_eq!((seen.event("a").get("input"), &seen.event("a")["output"]), (None, &json!(2)));
    fixture.close().await;
}

#[tokio::test]
async fn comments_hang_on_their_row_whether_they_come_before_with_or_after_it() {
    let fixture = fixture().await;
    let comment = |id: &str, text: &str| {
        json!({"id": id, "origin": {"id": "span"}, "comment": {"text": text}, "_audit_source": "app",
               "_audit_metadata": {"by": "me"}})
    };
    fixture.write(log(1), vec![comment("c1", "before")]).await;
    assert!(fixture.all(log(1)).await.ids().is_empty(), "a comment is no row");
    fixture.write(log(1), vec![json!({"id": "span"}), comment("c2", "with")]).await;
    fixture.seal().await;
    let written = fixture.write(log(1), vec![comment("c3", "after")]).await;
    assert_eq!(written.row_ids, ["c3"]);
    fixture.write(log(1), vec![comment("c1", "before, again")]).await;
    let seen = fixture.all(log(1)).await;
    assert_eq!(seen.ids(), ["span"]);
    let comments = seen.event("span")["comments"].as_array().expect("comments").clone();
    let texts: Vec<_> = comments.iter().map(|comment| comment["comment"]["text"].as_str().expect("text")).collect();
    assert_eq!(texts, ["with", "after", "before, again"]);
    assert_eq!((&comments[0]["source"], &comments[0]["metadata"]), (&json!("app"), &json!({"by": "me"})));
    fixture.close().await;
}

#[tokio::test]
async fn feedback_changes_the_row_and_leaves_a_comment_and_an_audit_record() {
    let fixture = fixture().await;
    let experiment = key(ObjectKind::Experiment, 4);
    fixture.write(experiment, vec![json!({"id": "a", "scores": {"auto": 0.5}})]).await;
    let item = json!({"id": "a", "scores": {"human": 1}, "expected": "e", "comment": "good", "metadata": {"who": 1}});
    let rows = feedback::rows(vec![item], 0).expect("rows");
    for sealed in [false, true] {
        fixture.write(experiment, rows.clone()).await;
        if sealed {
            fixture.seal().await;
        }
    }
    let seen = fixture.all(experiment).await;
    let event = seen.event("a");
    assert_eq!((&event["scores"], &event["expected"]), (&json!({"auto": 0.5, "human": 1}), &json!("e")));
    assert_eq!((event.get("metadata"), event["comments"].as_array().map(Vec::len)), (None, Some(2)));
    let audits = event["audit_data"].as_array().expect("audits");
    assert_eq!(audits.len(), 2);
    assert_eq!(audits[1]["_xact_id"], event["_xact_id"]);
    assert_eq!((&audits[0]["source"], &audits[0]["metadata"]), (&json!("external"), &json!({"who": 1})));
    assert_eq!(audits[0]["audit_data"], json!({"action": "merge"}));
    fixture.close().await;
}

#[tokio::test]
async fn one_body_of_rows_reaches_every_object_it_names() {
    let fixture = fixture().await;
    let (experiment, dataset) = (Uuid::from_u128(5), Uuid::from_u128(6));
    let rows = vec![
        json!({"experiment_id": experiment, "project_id": Uuid::from_u128(9), "id": "e"}),
        json!({"dataset_id": dataset, "id": "d", "input": 1}),
        json!({"project_id": Uuid::from_u128(9), "log_id": "g", "id": "l"}),
    ];
    let groups = ingest::group(sent(rows)).expect("groups");
    let org = log(1).org;
    let writes = groups.into_iter().map(|group| ObjectWrite {
        object: assay_storage_model::ObjectKey::new(org, group.kind, group.id),
        rows: group.rows,
        request: None,
    });
    let written = fixture.objects.write(writes.collect(), Patience::usual()).await.expect("writes");
    assert_eq!(written.iter().map(|one| one.row_ids[0].as_str()).collect::<Vec<_>>(), ["e", "d", "l"]);
    assert_eq!(fixture.all(key(ObjectKind::Experiment, 5)).await.event("e")["experiment_id"], json!(experiment));
    let dataset = fixture.all(key(ObjectKind::Dataset, 6)).await;
    assert_eq!(dataset.event("d").get("expected"), Some(&Value::Null));
    assert_eq!(fixture.all(log(9)).await.ids(), ["l"]);
    fixture.close().await;
}

#[tokio::test]
async fn a_hundred_writers_get_ids_in_the_order_of_their_answers() {
    const WRITES_EACH: usize = 5;
    let fixture = Arc::new(fixture().await);
    let writer = |n: usize| {
        let fixture = Arc::clone(&fixture);
        async move {
            let mut before = Xact::ZERO;
            for round in 0..WRITES_EACH {
                // Half of the writes are merges. They are encoded elsewhere and still submitted in their turn.
                let row = json!({"id": format!("row-{n}"), "_is_merge": n < 50, "metadata": {"round": round}});
                let shared = json!({"id": "shared", "_is_merge": true, "metadata": {n.to_string(): round}});
                let written = fixture.write(log(1), vec![row, shared]).await;
                assert!(written.xact > before, "a later write has a later id");
                before = written.xact;
            }
            before
        }
    };
    let writers: Vec<_> = (0..100).map(|n| tokio::spawn(writer(n))).collect();
    let mut last: Vec<Xact> = Vec::new();
    for writer in writers {
        last.push(writer.await.expect("ends well"));
    }
    let seen = fixture.all(log(1)).await;
    for (n, xact) in last.iter().enumerate() {
        let row = seen.event(&format!("row-{n}"));
        assert_eq!((&row["_xact_id"], &row["metadata"]["round"]), (&json!(xact.to_string()), &json!(WRITES_EACH - 1)));
    }
    let shared = seen.event("shared")["metadata"].as_object().expect("an object");
    assert!(shared.len() == 100 && shared.values().all(|round| *round == json!(WRITES_EACH - 1)));
    assert_eq!(fixture.objects.counts().writes, 100 * WRITES_EACH as u64);
    Arc::into_inner(fixture).expect("all ended").close().await;
}

#[tokio::test]
async fn writes_that_do_not_wait_for_each_other_keep_their_order() {
    let fixture = fixture().await;
    // A large write, which is encoded slowly and uses a blob, is followed by small ones and merges.
    let big = "x".repeat(1 << 20);
    let rows = (0..20).map(|n| match n {
        0 => json!({"id": "a", "input": big.clone(), "metadata": {"n": 0}}),
        n => json!({"id": "a", "metadata": {"n": n, n.to_string(): true}, "_is_merge": n % 3 != 0}),
    });
    let sent: Vec<_> = rows
        .map(|row| {
            let write = ObjectWrite { object: log(1), rows: sent(vec![row]), request: None };
            let objects = fixture.objects.clone();
            Box::pin(async move { objects.write(vec![write], Patience::usual()).await })
        })
        .collect();
    let mut xacts = Vec::new();
    let mut running = Vec::new();
    for (n, mut write) in sent.into_iter().enumerate() {
        // The write is polled until it is in the mailbox, because the preparation of a large one yields to others.
        loop {
            let poll = std::future::poll_fn(|context| std::task::Poll::Ready(write.as_mut().poll(context))).await;
            assert!(poll.is_pending());
            if n > 0 || fixture.objects.counts().started == 1 {
                break;
            }
        }
        running.push(write);
    }
    for write in running {
        xacts.push(write.await.expect("writes")[0].xact);
    }
    assert!(xacts.is_sorted() && xacts.windows(2).all(|pair| pair[0] < pair[1]), "{xacts:?}");
    let seen = fixture.all(log(1)).await;
    assert_eq!(seen.event("a")["metadata"], json!({"n": 19, "18": true, "19": true}));
    fixture.close().await;
}

#[tokio::test]
async fn a_request_sent_again_changes_nothing_and_is_answered_alike() {
    let fixture = fixture().await;
    let write = |content, text: &str| ObjectWrite {
        object: log(1),
        rows: sent(vec![json!({"input": text}), json!({"id": "given", "input": text})]),
        request: request(3, content),
    };
    let first = fixture.objects.write(vec![write(1, "a")], Patience::usual()).await.expect("writes");
    assert!(!first[0].duplicate);
    let (again, at_once) = tokio::join!(
        fixture.objects.write(vec![write(1, "a")], Patience::usual()),
        fixture.objects.write(vec![write(1, "a")], Patience::usual())
    );
    for again in [again.expect("answers"), at_once.expect("answers")] {
        assert!(again[0].duplicate);
        assert_eq!((&again[0].row_ids, again[0].xact), (&first[0].row_ids, first[0].xact));
    }
    let reused = fixture.objects.write(vec![write(2, "b")], Patience::usual()).await;
    assert_eq!(reused, Err(assay_node_objects::WriteError::KeyReused { xact: first[0].xact }));
    assert_eq!(fixture.all(log(1)).await.ids().len(), 2);
    fixture.close().await;
}

#[tokio::test]
async fn two_of_the_same_request_at_once_are_written_once_also_by_an_actor_that_is_new() {
    let fixture = fixture_with(ObjectLimits { idle: Duration::from_millis(40), ..ObjectLimits::default() }).await;
    let write = || ObjectWrite { object: log(1), rows: sent(vec![json!({"input": 1})]), request: request(9, 9) };
    let (one, two) = tokio::join!(
        fixture.objects.write(vec![write()], Patience::usual()),
        fixture.objects.write(vec![write()], Patience::usual())
    );
    let (one, two) = (one.expect("writes"), two.expect("writes"));
    assert_eq!((one[0].xact, &one[0].row_ids), (two[0].xact, &two[0].row_ids));
    assert!(one[0].duplicate != two[0].duplicate);
    for _ in 0..200 {
        if fixture.objects.counts().active == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let counts = fixture.objects.counts();
    assert_eq!((counts.active, counts.put_away, counts.waiting_writes), (0, 1, 0), "idle actors are put away");
    let later = fixture.objects.write(vec![write()], Patience::usual()).await.expect("answers");
    assert!(later[0].duplicate && later[0].xact == one[0].xact, "the shard knows");
    assert_eq!(fixture.objects.counts().started, 2);
    fixture.close().await;
}

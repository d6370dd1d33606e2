//! One example of each merge rule, by name.

use std::time::Instant;

use assay_storage_model::command::{Action, RowOp};
use assay_storage_model::event::{ARRAY_DELETES_MAX, PreparedRow};
use assay_storage_model::merge::{FOLDED_BYTES_MAX, MergeError, doc_field, doc_fields, fold, fold_batch};
use serde_json::{Value, json};

use crate::{NOW_TEXT, log_row, text};

/// Merges a client's write into a row and compares the row, except for its identity.
#[track_caller]
fn check(base: Value, sent: Value, want: Value) {
    let mut sent = sent;
    sent["id"] = json!("r");
    sent["_is_merge"] = json!(true);
    let base = log_row(base);
    let folded = fold(Some(&base.doc), &log_row(sent).as_op()).expect("folds");
    let kept = 6;
    let fields = doc_fields(&folded).expect("a document").into_iter().skip(kept);
    let fields: Vec<String> =
        fields.map(|(name, value)| format!("{}:{}", Value::from(name.as_ref()), text(value))).collect();
    assert_eq!(format!("{{{}}}", fields.join(",")), want.to_string());
}

#[test]
fn objects_merge_deeply_and_new_keys_come_last() {
    check(
        json!({"input": {"a": {"x": 1}, "b": 2}, "output": 1}),
        json!({"metadata": {"m": 1}, "input": {"c": 4, "a": {"y": 2}}}),
        json!({"input": {"a": {"x": 1, "y": 2}, "b": 2, "c": 4}, "output": 1, "metadata": {"m": 1}}),
    );
}

#[test]
fn scalars_and_arrays_replace() {
    check(
        json!({"input": {"list": [1, 2], "n": 1, "tags": ["a"]}}),
        json!({"input": {"list": [3], "n": "one", "tags": ["b"]}}),
        json!({"input": {"list": [3], "n": "one", "tags": ["b"]}}),
    );
}

#[test]
fn an_object_replaces_what_is_none_and_the_other_way_round() {
    check(
        json!({"input": 1, "output": {"a": 1}}),
        json!({"input": {"a": 1}, "output": []}),
        json!({"input": {"a": 1}, "output": []}),
    );
}

#[test]
fn null_overwrites_and_an_object_overwrites_null() {
    check(
        json!({"input": {"a": 1}, "output": null, "scores": {"s": 1}}),
        json!({"input": null, "output": {"b": 2}, "scores": {"s": null}}),
        json!({"input": null, "output": {"b": 2}, "scores": {"s": null}}),
    );
}

#[test]
fn tags_are_a_set_with_the_rows_first() {
    check(json!({"tags": ["b", "a"]}), json!({"tags": ["c", "a"]}), json!({"tags": ["b", "a", "c"]}));
    check(json!({"tags": ["b"]}), json!({"tags": null}), json!({"tags": null}));
    check(json!({"tags": null}), json!({"tags": ["b"]}), json!({"tags": ["b"]}));
}

#[test]
fn tags_that_are_a_merge_path_replace() {
    check(json!({"tags": ["b", "a"]}), json!({"tags": ["c"], "_merge_paths": [["tags"]]}), json!({"tags": ["c"]}));
}

#[test]
fn a_merge_path_replaces_whole_while_other_levels_merge_on() {
    check(
        json!({"input": {"a": {"x": 1}, "b": {"x": 1}}, "output": {"a": {"x": 1}}}),
        json!({"input": {"a": {"y": 2}, "b": {"y": 2}}, "output": {"a": {"y": 2}}, "_merge_paths": [["input", "a"], ["none", "a"]]}),
        json!({"input": {"a": {"y": 2}, "b": {"x": 1, "y": 2}}, "output": {"a": {"x": 1, "y": 2}}}),
    );
}

#[test]
fn a_merge_path_that_the_patch_does_not_have_changes_nothing() {
    check(
        json!({"input": {"a": {"x": 1}}}),
        json!({"input": {"b": 1}, "_merge_paths": [["input", "a"]]}),
        json!({"input": {"a": {"x": 1}, "b": 1}}),
    );
}

#[test]
fn array_delete_takes_values_away_last_so_what_is_added_and_deleted_is_gone() {
    check(
        json!({"tags": ["a", "b"]}),
        json!({"tags": ["c", "d"], "_array_delete": [{"path": ["tags"], "delete": ["a", "c"]}]}),
        json!({"tags": ["b", "d"]}),
    );
}

#[test]
fn array_delete_compares_as_json_and_leaves_what_is_no_list() {
    check(
        json!({"input": {"list": [1, "1", {"a": 1, "b": [2]}, null, [1], 2.50]}, "output": "a"}),
        json!({"_array_delete": [
            {"path": ["input", "list"], "delete": [1.0, {"b": [2.0], "a": 1}, null, 2.5]},
            {"path": ["output"], "delete": ["a"]},
            {"path": ["input", "nowhere", "else"], "delete": ["a"]},
        ]}),
        json!({"input": {"list": ["1", [1]]}, "output": "a"}),
    );
}

#[test]
fn what_the_first_writer_gave_stays() {
    let first = log_row(
        json!({"id": "r", "span_id": "s", "root_span_id": "t", "span_parents": ["p"], "created": "2026-01-01"}),
    );
    let merge = json!({"id": "r", "_is_merge": true, "span_id": "other", "root_span_id": "other", "span_parents": [],
        "_parent_id": "other", "is_root": true, "created": "2027-01-01", "output": 1,
        "_array_delete": [{"path": ["span_parents"], "delete": ["p"]}]});
    let folded = fold(Some(&first.doc), &log_row(merge).as_op()).expect("folds");
    let head = r#"{"id":"r","created":"2026-01-01T00:00:00.000Z","span_id":"s","root_span_id":"t","span_parents":["p"],"is_root":false"#;
    assert_eq!(text(&folded), format!(r#"{head},"output":1}}"#));
}

#[test]
fn keys_with_a_meaning_in_javascript_are_data() {
    check(
        json!({"input": {"__proto__": {"a": 1}, "constructor": 1}}),
        json!({"input": {"__proto__": {"b": 2}, "constructor": 2, "prototype": 3}}),
        json!({"input": {"__proto__": {"a": 1, "b": 2}, "constructor": 2, "prototype": 3}}),
    );
}

#[test]
fn a_merge_without_a_row_is_the_row() {
    let merge =
        log_row(json!({"id": "r", "_is_merge": true, "span_parents": ["p"], "output": {"a": 1}, "tags": ["x", "y"],
        "_merge_paths": [["output"]], "_array_delete": [{"path": ["tags"], "delete": ["x"]}]}));
    let folded = fold(None, &merge.as_op()).expect("folds");
    let want = format!(
        r#"{{"id":"r","created":"{NOW_TEXT}","span_id":"r","root_span_id":"r","span_parents":["p"],"is_root":false,"output":{{"a":1}},"tags":["y"]}}"#
    );
    assert_eq!(text(&folded), want);
    assert_eq!(text(&fold(Some(&folded), &merge.as_op()).expect("folds")), want, "sent twice");
}

#[test]
fn untouched_values_keep_their_text() {
    let op = RowOp { doc: br#"{"b":{"z":1e2}}"#, ..log_row_op() };
    let folded = fold(Some(br#"{"a": 1.00 ,"b":{"x":12345678901234567890123, "y" : [ 1 ]}}"#), &op).expect("folds");
    assert_eq!(text(&folded), r#"{"a":1.00,"b":{"x":12345678901234567890123,"y":[ 1 ],"z":1e2}}"#);
}

fn log_row_op() -> RowOp<'static> {
    RowOp {
        id: "r",
        action: Action::Merge,
        span_id: "r",
        root_span_id: "r",
        is_root: true,
        created: 0,
        doc: b"{}",
        rules: b"",
        audit: b"",
    }
}

#[test]
fn damaged_documents_and_rules_are_errors() {
    for base in ["", "[]", "{", r#"{"a":"#, r#"{"a":{"b":1}"#, r#"{"a":1}}"#, "{\"\u{1}"] {
        assert!(fold(Some(base.as_bytes()), &log_row_op()).is_err(), "{base}");
    }
    let op = RowOp { rules: b"{", ..log_row_op() };
    assert!(matches!(fold(None, &op), Err(MergeError::Rules(_))));
    let deep = |levels: usize| format!("{}{}{}", r#"{"a":"#.repeat(levels), 1, "}".repeat(levels)).into_bytes();
    let op = RowOp { doc: &deep(100_000), ..log_row_op() };
    assert_eq!(fold(Some(op.doc), &op), Err(MergeError::TooDeep));
    let delete = RowOp { action: Action::Delete, ..log_row_op() };
    assert_eq!(fold(None, &delete), Err(MergeError::NoDocument(Action::Delete)));
}

#[test]
fn thousands_of_keys_and_values_take_no_squared_time() {
    let keys = |shift: usize| (shift..shift + 20_000).map(|at| (format!("k{at}"), json!(at))).collect();
    let numbers = Value::Array((0..20_000).map(|at| json!(at)).collect());
    let base = log_row(json!({"id": "r", "metadata": Value::Object(keys(0)), "input": numbers}));
    let merge = log_row(json!({"id": "r", "_is_merge": true, "metadata": Value::Object(keys(10_000)),
        "_array_delete": [{"path": ["input"], "delete": numbers}]}));
    let folded = fold(Some(&base.doc), &merge.as_op()).expect("folds");
    assert_eq!(doc_field(&folded, "input"), Ok(Some(b"[]".as_slice())));
    let metadata = doc_field(&folded, "metadata").expect("reads").expect("is there");
    assert_eq!(doc_fields(metadata).expect("reads").len(), 30_000);
}

fn batch(rows: &[Value]) -> Vec<PreparedRow> {
    fold_batch(rows.iter().cloned().map(log_row).collect()).expect("folds")
}

#[test]
fn in_one_request_a_replace_followed_by_merges_stays_a_replace() {
    let rows = batch(&[
        json!({"id": "r", "tags": ["a"], "span_id": "s"}),
        json!({"id": "other", "_is_merge": true, "output": 1}),
        json!({"id": "r", "_is_merge": true, "tags": ["b"], "span_id": "no", "_audit_source": "app"}),
        json!({"id": "r", "_is_merge": true, "_array_delete": [{"path": ["tags"], "delete": ["a"]}]}),
    ]);
    assert_eq!(rows.len(), 2);
    let row = &rows[0];
    assert_eq!((row.action, row.rules.len(), row.span_id.as_str()), (Action::Upsert, 0, "s"));
    assert_eq!(doc_field(&row.doc, "tags"), Ok(Some(br#"["b"]"#.as_slice())));
    assert_eq!(text(&row.audit), r#"{"source":"app","metadata":null}"#);
    assert_eq!((rows[1].id.as_str(), rows[1].action), ("other", Action::Merge));
}

#[test]
fn in_one_request_the_last_replace_or_delete_wins_and_what_cannot_fold_stays() {
    let put = |id: &str| json!({"id": id, "output": 1});
    let merge = |id: &str| json!({"id": id, "_is_merge": true, "output": 1});
    let delete = |id: &str| json!({"id": id, "_object_delete": true});
    let comment = |id: &str| json!({"id": "c", "comment": {"text": "t"}, "origin": {"id": id}});
    let cases = [
        (vec![put("a"), put("a")], vec![Action::Upsert]),
        (vec![put("a"), delete("a")], vec![Action::Delete]),
        (vec![merge("a"), put("a")], vec![Action::Upsert]),
        (vec![merge("a"), merge("a")], vec![Action::Merge, Action::Merge]),
        (vec![delete("a"), put("a"), merge("a")], vec![Action::Delete, Action::Upsert]),
        (vec![delete("a"), merge("a")], vec![Action::Delete, Action::Merge]),
        (
            vec![put("a"), comment("a"), comment("a"), merge("a")],
            vec![Action::Upsert, Action::Comment, Action::Comment],
        ),
        (vec![put("a"), put("b"), merge("a")], vec![Action::Upsert, Action::Upsert]),
    ];
    for (rows, want) in cases {
        let actions: Vec<Action> = batch(&rows).iter().map(|row| row.action).collect();
        assert_eq!(actions, want, "{rows:?}");
    }
}

#[test]
fn merges_of_one_write_go_through_a_bounded_part_of_large_rows() {
    let row = log_row(json!({"id": "r", "input": "x".repeat(8 << 20)}));
    let merge = log_row(json!({"id": "r", "_is_merge": true, "output": 1}));
    let with_merges = |count: usize| {
        let merges = std::iter::repeat_n(merge.clone(), count);
        fold_batch(std::iter::once(row.clone()).chain(merges).collect())
    };
    let most = FOLDED_BYTES_MAX / row.doc.len();
    assert_eq!(with_merges(most).map(|rows| rows.len()), Ok(1));
    let refused = with_merges(most + 1).expect_err("one merge too many").to_string();
    assert!(refused.starts_with("row 3 does not merge: the merges of one write read over"), "{refused}");

    let deletes = vec![json!({"path": ["input"], "delete": [1]}); ARRAY_DELETES_MAX];
    let alone = log_row(json!({"id": "r", "_is_merge": true, "_array_delete": deletes}));
    assert!(fold(Some(&row.doc), &alone.as_op()).is_ok(), "a merge by itself is bounded by its row");
}

/// Measurement for a release build: `cargo test --release -p assay-storage-model -- --ignored --nocapture
/// microseconds`.
#[test]
#[ignore = "a measurement, on demand"]
fn a_merge_takes_microseconds() {
    const ROUNDS: u32 = 2_000;
    const BATCHES: usize = 100;
    let start = log_row(json!({"id": "0e1b3c52-7a3f-4f0e-9d1c-3f4b5a6c7d8e", "span_id": "a1b2c3d4e5f60718",
        "root_span_id": "00112233445566778899aabbccddeeff", "span_parents": ["0011223344556677"],
        "span_attributes": {"name": "chat completion", "type": "llm", "exec_counter": 7}, "tags": ["prod", "eu"],
        "input": [{"role": "system", "content": "You are helpful.\n".repeat(30)}, {"role": "user", "content": "Why? ".repeat(60)}],
        "metadata": {"model": "some-model", "temperature": 0.2, "user": "u-1", "region": "eu-1"},
        "metrics": {"start": 1_790_000_000.123}, "context": {"caller_filename": "/srv/app/main.py", "caller_lineno": 12}}));
    let end = log_row(
        json!({"id": start.id, "_is_merge": true, "output": {"role": "assistant", "content": "Because. ".repeat(70)},
        "metrics": {"end": 1_790_000_002.5, "prompt_tokens": 400, "completion_tokens": 200, "tokens": 600},
        "metadata": {"finish": "stop"}, "tags": ["done"], "scores": {"quality": 0.9}}),
    );
    let batch = |_| {
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            std::hint::black_box(fold(Some(&start.doc), &end.as_op()).expect("folds"));
        }
        begun.elapsed() / ROUNDS
    };
    let fastest = (0..BATCHES).map(batch).min().expect("some batches");
    println!("{} + {} bytes: {fastest:?} a merge", start.doc.len(), end.doc.len());
}

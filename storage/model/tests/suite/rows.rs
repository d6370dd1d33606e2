//! Tests of accepted and refused rows.

use assay_storage_model::ObjectKind;
use assay_storage_model::command::Action;
use assay_storage_model::event::{
    ARRAY_DELETES_MAX, DEPTH_MAX, ID_BYTES_MAX, KEY_BYTES_MAX, MERGE_PATHS_MAX, ROW_BYTES_MAX, TooDeep, counted_within,
    parse_created, values_within,
};
use serde_json::{Value, json};

use crate::{NOW_MICROS, NOW_TEXT, log_row, prepared, text};

/// A refusal names the row, its field, and what would be right.
#[track_caller]
fn check_refused<const N: usize>(cases: [(Value, String); N]) {
    for (row, want) in cases {
        let error = prepared(ObjectKind::ProjectLogs, row.clone()).expect_err(&row.to_string());
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn a_field_that_holds_the_wrong_thing_is_named() {
    let score = "a score is a number between 0 and 1 or null";
    let metric = r#"a metric is a number, null, or one of "NaN", "Infinity", "-Infinity""#;
    check_refused([
        (json!("x"), "row 3 is \"x\"; a row is a JSON object".to_owned()),
        (json!({"scores": {"accuracy": 1.5}}), format!("row 3: `scores.accuracy` is 1.5; {score}")),
        (json!({"scores": {"a": 1, "b": -0.1}}), format!("row 3: `scores.b` is -0.1; {score}")),
        (json!({"scores": {"a": "NaN"}}), format!("row 3: `scores.a` is \"NaN\"; {score}")),
        (json!({"scores": [1]}), "row 3: `scores` is an array; it is an object or null".to_owned()),
        (json!({"metrics": {"a": "fast"}}), format!("row 3: `metrics.a` is \"fast\"; {metric}")),
        (json!({"metrics": {"a": {"b": 1}}}), format!("row 3: `metrics.a` is an object; {metric}")),
        (json!({"metadata": "x"}), "row 3: `metadata` is \"x\"; it is an object or null".to_owned()),
        (json!({"context": 1}), "row 3: `context` is 1; it is an object or null".to_owned()),
        (json!({"tags": "x"}), "row 3: `tags` is \"x\"; tags are an array of unique strings or null".to_owned()),
        (json!({"tags": ["a", 1]}), "row 3: `tags.1` is 1; tags are an array of unique strings or null".to_owned()),
        (
            json!({"tags": ["a", "a"]}),
            "row 3: `tags.1` is \"a\"; this tag was given before; tags are unique".to_owned(),
        ),
        (json!({"span_attributes": []}), "row 3: `span_attributes` is an array; it is an object or null".to_owned()),
        (
            json!({"span_attributes": {"type": 7}}),
            "row 3: `span_attributes.type` is 7; it is a string or null".to_owned(),
        ),
        (json!({"facets": {"a": 1}}), "row 3: `facets.a` is 1; it is a string or null".to_owned()),
        (
            json!({"input": {"k".repeat(KEY_BYTES_MAX + 1): 1}}),
            "row 3: `input` has a key of 16385 bytes; a key has at most 16384".to_owned(),
        ),
    ]);
}

#[test]
fn an_origin_or_classification_that_is_none_is_named() {
    let origin = |with: Value| {
        let mut origin =
            json!({"object_type": "dataset", "object_id": "00000000-0000-0000-0000-0000000000b2", "id": "o"});
        origin.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        json!({"origin": origin})
    };
    check_refused([
        (origin(json!({"object_type": "org"})), "row 3: `origin.object_type` is \"org\"; it is one of project_logs, experiment, dataset, prompt, function, prompt_session".to_owned()),
        (origin(json!({"object_id": "b2"})), "row 3: `origin.object_id` is \"b2\"; it is a UUID".to_owned()),
        (origin(json!({"_xact_id": 7})), "row 3: `origin._xact_id` is 7; it is a string or null".to_owned()),
        (
            origin(json!({"id": null})),
            "row 3: `origin.id` is missing; an origin has `object_type`, `object_id` and `id`".to_owned(),
        ),
        (
            json!({"classifications": {"c": {}}}),
            "row 3: `classifications.c` is an object; it is an array of classifications or null".to_owned(),
        ),
        (
            json!({"classifications": {"c": [{"label": "x"}]}}),
            "row 3: `classifications.c.0.id` is null; a classification has an `id` that is a string".to_owned(),
        ),
        (
            json!({"classifications": {"c": [{"id": "x", "confidence": "high"}]}}),
            "row 3: `classifications.c.0.confidence` is \"high\"; it is a number or null".to_owned(),
        ),
    ]);
}

#[test]
fn an_id_or_a_time_that_is_none_is_named() {
    let time = "it is a time such as 2026-11-21T05:44:00.123Z, or null";
    check_refused([
        (json!({"id": ""}), "row 3: `id` is empty; an id has at least one byte".to_owned()),
        (json!({"id": 7}), "row 3: `id` is 7; an id is a string".to_owned()),
        (json!({"span_id": true}), "row 3: `span_id` is true; an id is a string".to_owned()),
        (
            json!({"root_span_id": "x".repeat(ID_BYTES_MAX + 1)}),
            "row 3: `root_span_id` has 1025 bytes; an id has at most 1024".to_owned(),
        ),
        (json!({"span_parents": "p"}), "row 3: `span_parents` is \"p\"; it is an array of span ids or null".to_owned()),
        (json!({"span_parents": ["p", null]}), "row 3: `span_parents.1` is null; an id is a string".to_owned()),
        (json!({"created": "yesterday"}), format!("row 3: `created` is \"yesterday\"; {time}")),
        (json!({"created": 1_790_000_000}), format!("row 3: `created` is 1790000000; {time}")),
    ]);
}

#[test]
fn a_control_field_or_comment_that_cannot_be_followed_is_named() {
    check_refused([
        (json!({"_is_merge": "yes"}), "row 3: `_is_merge` is \"yes\"; it is true, false or null".to_owned()),
        (json!({"_object_delete": 1}), "row 3: `_object_delete` is 1; it is true, false or null".to_owned()),
        (json!({"_object_delete": true}), "row 3: `id` is missing; a delete names its row".to_owned()),
        (
            json!({"_is_merge": true, "_merge_paths": "a"}),
            "row 3: `_merge_paths` is \"a\"; it is an array of paths, each an array of field names".to_owned(),
        ),
        (
            json!({"_is_merge": true, "_merge_paths": [["a"], ["a", 1]]}),
            "row 3: `_merge_paths.1` is no path; a path is an array of at least one field name".to_owned(),
        ),
        (
            json!({"_is_merge": true, "_merge_paths": [[]]}),
            "row 3: `_merge_paths.0` is no path; a path is an array of at least one field name".to_owned(),
        ),
        (
            json!({"_merge_paths": vec![["a"]; MERGE_PATHS_MAX + 1]}),
            "row 3: `_merge_paths` has 101 items; at most 100 fit".to_owned(),
        ),
        (
            json!({"_array_delete": vec![json!({"path": ["a"], "delete": []}); ARRAY_DELETES_MAX + 1]}),
            "row 3: `_array_delete` has 33 items; at most 32 fit".to_owned(),
        ),
        (
            json!({"_array_delete": [{"path": ["a"]}]}),
            "row 3: `_array_delete.0` lacks a member; an item is an object of `path` (field names) and `delete` (the values to take away)".to_owned(),
        ),
        (
            json!({"_array_delete": [{"path": ["a"], "delete": "x"}]}),
            "row 3: `_array_delete.0.delete` is \"x\"; it is an array of values".to_owned(),
        ),
        (
            json!({"_audit_source": 1}),
            "row 3: `_audit_source` is 1; it is a string such as \"external\", or null".to_owned(),
        ),
        (json!({"_audit_metadata": "x"}), "row 3: `_audit_metadata` is \"x\"; it is an object or null".to_owned()),
        (
            json!({"comment": "nice", "origin": {"id": "r"}}),
            "row 3: `comment` is \"nice\"; a comment is an object with `text`".to_owned(),
        ),
        (
            json!({"comment": {"text": 1}, "origin": {"id": "r"}}),
            "row 3: `comment.text` is 1; it is a string".to_owned(),
        ),
        (
            json!({"comment": {"text": "nice"}}),
            "row 3: `origin.id` is missing; a comment names the row it hangs on".to_owned(),
        ),
    ]);
}

#[test]
fn a_merge_may_send_a_part_of_an_origin_and_the_wrong_part_is_still_refused() {
    let part =
        |origin: Value| prepared(ObjectKind::ProjectLogs, json!({"id": "r", "_is_merge": true, "origin": origin}));
    assert!(part(json!({"created": "2026-01-01"})).is_ok());
    assert!(part(json!({"object_id": "b2"})).is_err());
}

/// Returns the stored document of a replacing row, without its identity.
fn stored(kind: ObjectKind, row: Value) -> String {
    let row = prepared(kind, row).expect("a good row");
    assert_eq!(row.action, Action::Upsert);
    let mut doc: Value = serde_json::from_slice(&row.doc).expect("a document");
    let fields = doc.as_object_mut().expect("an object");
    for place in ["id", "created", "span_id", "root_span_id", "span_parents", "is_root"] {
        assert!(fields.shift_remove(place).is_some(), "{place}");
    }
    doc.to_string()
}

#[test]
fn a_span_is_stored_with_every_known_field_and_without_control_fields() {
    let fields = r#"{"input":{"a":"NaN"},"output":["Infinity",null],"expected":1,"error":"e","scores":{"s":0.5,"n":null},"metadata":{"model":"m"},"tags":["b","a"],"metrics":{"start":1.5,"tokens":3,"x":"-Infinity","caller_lineno":"7"},"context":{"caller_lineno":7},"span_attributes":{"name":"n","type":"some new type","exec_counter":1},"origin":{"object_type":"dataset","object_id":"00000000-0000-0000-0000-0000000000b2","id":"o","_xact_id":null},"facets":{"f":"v","g":null},"classifications":{"c":[{"id":"x","confidence":0.5,"source":{}}],"d":null}}"#;
    let mut row: Value = serde_json::from_str(fields).expect("JSON");
    for (name, value) in [
        ("id", json!("r")),
        ("_is_merge", json!(false)),
        ("_merge_paths", json!([["input"]])),
        ("_xact_id", json!("1000192656880881099")),
        ("_pagination_key", json!("p00000000000000000001")),
        ("_async_scoring_control", json!({})),
        ("project_id", json!("p")),
        ("log_id", json!("g")),
        ("is_root", json!(false)),
        ("comment", json!(null)),
        ("query_source", json!({"any": "thing"})),
    ] {
        row[name] = value;
    }
    for kind in [ObjectKind::ProjectLogs, ObjectKind::Experiment, ObjectKind::PlaygroundLogs] {
        assert_eq!(stored(kind, row.clone()), fields);
    }
    let of_dataset: Value = serde_json::from_str(&stored(ObjectKind::Dataset, row)).expect("JSON");
    let names: Vec<&String> = of_dataset.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["input", "expected", "metadata", "tags", "origin", "facets", "classifications"]);
}

#[test]
fn a_prompt_row_has_its_own_fields() {
    let row = json!({"name": "n", "slug": "s", "description": null, "prompt_data": {"a": 1}, "function_data": null,
        "function_type": "scorer", "function_schema": {}, "tags": ["t"], "metadata": {}, "origin": {"internal": true}});
    let sent = json!({"id": "r", "input": 1, "log_id": "p"});
    let mut sent = sent.as_object().expect("an object").clone();
    sent.extend(row.as_object().expect("an object").clone());
    assert_eq!(stored(ObjectKind::ProjectPrompts, Value::Object(sent)), row.to_string());
    let error = prepared(ObjectKind::ProjectPrompts, json!({"slug": 1})).expect_err("a slug is a string");
    assert_eq!(error.to_string(), "row 3: `slug` is 1; it is a string or null");
}

#[test]
fn truth_values_become_numbers_where_numbers_are_meant() {
    let row = json!({"scores": {"a": true, "b": false, "c": 1}, "metrics": {"m": true}});
    assert_eq!(stored(ObjectKind::ProjectLogs, row), r#"{"scores":{"a":1,"b":0,"c":1},"metrics":{"m":1}}"#);
}

#[test]
fn what_a_row_does_not_say_is_filled_in() {
    let row = log_row(json!({"span_id": null, "created": null, "span_parents": []}));
    assert_eq!((row.index, row.row_id.as_str(), row.id.as_str()), (3, "new-id", "new-id"));
    assert_eq!((row.span_id.as_str(), row.root_span_id.as_str(), row.is_root), ("new-id", "new-id", true));
    assert_eq!(row.created, NOW_MICROS - 456, "whole milliseconds");
    let want = format!(
        r#"{{"id":"new-id","created":"{NOW_TEXT}","span_id":"new-id","root_span_id":"new-id","span_parents":null,"is_root":true}}"#
    );
    assert_eq!(text(&row.doc), want);
    assert_eq!((row.rules.len(), row.audit.len()), (0, 0));
}

#[test]
fn what_a_row_says_of_its_place_is_kept() {
    let row =
        log_row(json!({"id": "r", "span_id": "s", "root_span_id": "t", "span_parents": ["p", "q"], "_parent_id": "z",
        "created": "2026-01-01T00:00:00.000001+00:00"}));
    assert_eq!((row.span_id.as_str(), row.root_span_id.as_str(), row.is_root), ("s", "t", false));
    assert_eq!(Some(row.created), parse_created("2026-01-01T00:00:00.000001Z"));
    let want = r#"{"id":"r","created":"2026-01-01T00:00:00.000001Z","span_id":"s","root_span_id":"t","span_parents":["p","q"],"is_root":false}"#;
    assert_eq!(text(&row.doc), want);
}

#[test]
fn the_deprecated_parent_makes_a_child() {
    let row = log_row(json!({"id": "r", "_parent_id": "p"}));
    assert!(!row.is_root && text(&row.doc).contains(r#""span_parents":["p"],"is_root":false"#));
}

#[test]
fn a_merge_keeps_the_fields_as_sent_and_its_rules_beside_them() {
    let row = log_row(
        json!({"id": "r", "_is_merge": true, "span_id": "s", "created": "2026-01-01", "output": null, "tags": ["a"],
        "_merge_paths": [["a", "b"]], "_array_delete": [{"path": ["tags"], "delete": ["x"]}],
        "_audit_source": "external", "_audit_metadata": {"user": "u"}}),
    );
    assert_eq!((row.action, row.span_id.as_str()), (Action::Merge, "s"));
    assert_eq!(text(&row.doc), r#"{"output":null,"tags":["a"]}"#);
    let rules = r#"{"merge_paths":[["a","b"]],"array_delete":[{"path":["tags"],"delete":["x"]}]}"#;
    assert_eq!(text(&row.rules), rules, "golden: this text is on disk");
    assert_eq!(text(&row.audit), r#"{"source":"external","metadata":{"user":"u"}}"#, "golden");
}

#[test]
fn a_span_that_a_client_folded_with_its_feedback_replaces_and_carries_the_audit() {
    let row = log_row(json!({"id": "r", "scores": {"s": 1}, "tags": ["a", "b"], "_merge_paths": [["tags"]],
        "_array_delete": [{"path": ["tags"], "delete": ["a"]}], "_audit_source": "app", "_audit_metadata": null}));
    assert_eq!((row.action, row.rules.len()), (Action::Upsert, 0));
    assert!(text(&row.doc).ends_with(r#""scores":{"s":1},"tags":["b"]}"#), "{}", text(&row.doc));
    assert_eq!(text(&row.audit), r#"{"source":"app","metadata":null}"#);
}

#[test]
fn a_comment_hangs_on_its_origin_and_has_an_id_of_its_own() {
    let row = log_row(
        json!({"id": "c", "origin": {"id": "r"}, "comment": {"text": "nice"}, "project_id": "p", "log_id": "g",
        "created": "2026-01-01", "_audit_source": "external", "_audit_metadata": {"by": "u"}}),
    );
    assert_eq!((row.action, row.row_id.as_str(), row.id.as_str()), (Action::Comment, "c", "r"));
    let want = r#"{"id":"c","created":"2026-01-01T00:00:00.000Z","origin":{"id":"r"},"comment":{"text":"nice"}}"#;
    assert_eq!(text(&row.doc), want);
    assert_eq!(text(&row.audit), r#"{"source":"external","metadata":{"by":"u"}}"#);
}

#[test]
fn a_delete_needs_only_its_id() {
    let row = log_row(json!({"id": "r", "_object_delete": true, "_is_merge": true, "scores": "not looked at"}));
    assert_eq!((row.action, row.id.as_str(), text(&row.doc)), (Action::Delete, "r", "{}"));
    assert_eq!((row.span_id.as_str(), row.root_span_id.as_str()), ("", ""));
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn a_row_is_at_most_64_levels_deep_and_such_a_row_still_merges() {
    let row = |levels| json!({"id": "r", "_is_merge": true, "input": nested(levels)});
    let deepest = log_row(row(DEPTH_MAX - 1));
    let error = prepared(ObjectKind::ProjectLogs, row(DEPTH_MAX)).expect_err("65 levels");
    assert_eq!(error.to_string(), "row 3: `input` is nested too deep; a row has at most 64 levels");
    assert!(values_within(&deepest.doc, DEPTH_MAX).is_ok());

    let objects = (0..DEPTH_MAX - 1).fold(json!(1), |inner, _| json!({"a": inner}));
    let deepest = log_row(json!({"id": "r", "_is_merge": true, "input": objects}));
    let base = log_row(json!({"id": "r", "input": objects}));
    assert!(assay_storage_model::merge::fold(Some(&base.doc), &deepest.as_op()).is_ok());
}

#[test]
fn a_row_is_at_most_ten_mebibytes() {
    let error = prepared(ObjectKind::ProjectLogs, json!({"id": "r", "input": "x".repeat(ROW_BYTES_MAX)}));
    let error = error.expect_err("too large").to_string();
    assert!(error.starts_with("row 3 has 104858") && error.ends_with("a row has at most 10485760"), "{error}");
}

#[test]
fn depth_and_values_are_counted_before_parsing() {
    let cases = [
        ("", 0, Ok(1)),
        ("[[]]", 2, Ok(3)),
        ("[[]]", 1, Err(1)),
        (r#"{"a[[[":"]}\"[[["}"#, 1, Ok(2)),
        (r#"{"a":"\\"}[["#, 1, Err(11)),
        (r#"["\\\"[",[1,"x,y"]]"#, 2, Ok(5)),
        ("]]]][[", 1, Err(5)),
        ("\"[[[[", 0, Ok(1)),
        ("\"\\", 0, Ok(1)),
        ("[1,{\"a\":[{}]}]", 3, Err(9)),
        ("[1,{\"a\":[{}]}]", 4, Ok(6)),
    ];
    for (body, max, wanted) in cases {
        assert_eq!(values_within(body.as_bytes(), max), wanted.map_err(|at| TooDeep { max, at }), "{body}");
    }
    assert!(values_within("[".repeat(10_000_000).as_bytes(), DEPTH_MAX).is_err());
    let body = br#"{"events":[{"a":{}},{},[{}],1,"{"],"x":{"y":{}}}"#;
    let objects = |level| counted_within(body, 9, level).map(|counted| counted.objects);
    assert_eq!([0, 1, 2, 3, 4, 5].map(objects), [Ok(0), Ok(1), Ok(1), Ok(3), Ok(2), Ok(0)]);
}

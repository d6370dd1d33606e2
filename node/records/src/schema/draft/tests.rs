//! Tests of stored bodies, patches and responses.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::{API_KEY, DATASET, EXPERIMENT, PROJECT};

fn body(value: Value) -> Body {
    value.as_object().cloned().expect("an object")
}

#[track_caller]
fn refused(result: Result<impl std::fmt::Debug, RecordsError>, names: &str) {
    match result {
        Err(RecordsError::BadRequest(said)) => assert!(said.contains(names), "{said} does not name {names}"),
        other => panic!("{names}: {other:?}"),
    }
}

#[test]
fn a_create_keeps_what_the_kind_has_and_drops_the_rest() {
    let sent = json!({"name": "p", "org_name": "acme", "user_id": "x", "settings": 7, "description": null, "other": 1});
    assert_eq!(created(&PROJECT, body(sent)), Ok(body(json!({"name": "p"}))));
}

#[test]
fn a_create_that_breaks_a_rule_names_the_field() {
    let id = "11111111-2222-4333-8444-555555555555";
    let long = "x".repeat(1025);
    let cases = [
        (&PROJECT, json!({}), "`name` is missing"),
        (&PROJECT, json!({"name": null}), "`name` is missing"),
        (&PROJECT, json!({"name": ""}), "`name` is empty"),
        (&PROJECT, json!({"name": 5}), "`name` has to be a string"),
        (&PROJECT, json!({"name": long}), "`name` has 1025 bytes"),
        (&PROJECT, json!({"name": "p", "description": []}), "`description`"),
        (&EXPERIMENT, json!({"name": "e"}), "`project_id` is missing"),
        (&EXPERIMENT, json!({"project_id": "e"}), "`project_id` has to be a UUID"),
        (&EXPERIMENT, json!({"project_id": id, "public": "yes"}), "`public`"),
        (&EXPERIMENT, json!({"project_id": id, "tags": [1]}), "`tags[0]`"),
        (&EXPERIMENT, json!({"project_id": id, "tags": "a"}), "`tags`"),
        (&EXPERIMENT, json!({"project_id": id, "metadata": "a"}), "`metadata` has to be an object"),
        (&EXPERIMENT, json!({"project_id": id, "metadata": {"a": "x".repeat(300 << 10)}}), "`metadata` has"),
        (&EXPERIMENT, json!({"project_id": id, "repo_info": {"dirty": 1}}), "`repo_info.dirty`"),
        (&EXPERIMENT, json!({"project_id": id, "base_exp_id": "x"}), "`base_exp_id`"),
        (&EXPERIMENT, json!({"project_id": id, "dataset_id": 3}), "`dataset_id`"),
        (&DATASET, json!({"project_id": id}), "`name` is missing"),
        (&DATASET, json!({"project_id": id, "name": "d", "metadata": []}), "`metadata`"),
        (&API_KEY, json!({}), "`name` is missing"),
    ];
    for (kind, sent, names) in cases {
        refused(created(kind, body(sent)), names);
    }
}

#[test]
fn settings_are_replaced_whole_and_other_objects_are_folded_in() {
    let stored = body(json!({"name": "p", "settings": {"comparison_key": "input", "blind_reviews": true}}));
    let sent = body(json!({"settings": {"comparison_key": "id", "other": 1}}));
    let kept = json!({"name": "p", "settings": {"comparison_key": "id"}});
    assert_eq!(patched(&PROJECT, &stored, sent), Ok(Some(body(kept))));

    let stored = body(json!({"name": "e", "metadata": {"a": {"b": 1, "c": [1]}, "d": 2}, "tags": ["x"]}));
    let sent = body(json!({"metadata": {"a": {"c": [2], "e": null}}, "tags": ["y"]}));
    let kept = json!({"name": "e", "metadata": {"a": {"b": 1, "c": [2], "e": null}, "d": 2}, "tags": ["y"]});
    assert_eq!(patched(&EXPERIMENT, &stored, sent), Ok(Some(body(kept))));
}

#[test]
fn a_commit_follows_its_repository() {
    let stored = body(json!({"name": "e", "repo_info": {"commit": "1", "branch": "main"}, "commit": "1"}));
    let sent = body(json!({"repo_info": {"commit": "2"}, "commit": "9"}));
    let kept = json!({"name": "e", "repo_info": {"commit": "2", "branch": "main"}, "commit": "2"});
    assert_eq!(patched(&EXPERIMENT, &stored, sent), Ok(Some(body(kept))));
}

#[test]
fn a_patch_without_news_changes_nothing() {
    let stored = body(json!({"name": "d", "project_id": "1", "metadata": {"a": 1}}));
    for sent in [
        json!({}),
        json!({"name": null, "metadata": null, "tags": null}),
        json!({"name": "d"}),
        json!({"metadata": {"a": 1}}),
        json!({"metadata": {}}),
        json!({"project_id": "2", "url_slug": "s", "id": "x", "unknown": 1}),
    ] {
        assert_eq!(patched(&DATASET, &stored, body(sent.clone())), Ok(None), "{sent}");
    }
}

#[test]
fn a_patch_that_breaks_a_rule_names_the_field() {
    let big = "x".repeat(200 << 10);
    let stored = body(json!({"name": "e", "metadata": {"a": big}}));
    let cases = [
        (&EXPERIMENT, json!({"name": ""}), "`name` is empty"),
        (&EXPERIMENT, json!({"metadata": []}), "`metadata`"),
        (&EXPERIMENT, json!({"metadata": {"b": big}}), "`metadata` has"),
        (
            &PROJECT,
            json!({"settings": {"spanFieldOrder": [{"object_type": "x"}]}}),
            "`settings.spanFieldOrder[0].column_id`",
        ),
        (&PROJECT, json!({"settings": {"baseline_experiment_id": "x"}}), "`settings.baseline_experiment_id`"),
        (
            &PROJECT,
            json!({"settings": {"default_preprocessor": {"type": "x"}}}),
            "`settings.default_preprocessor.type`",
        ),
        (
            &PROJECT,
            json!({"settings": {"gateway_guardrails": {"rules": [{"name": "r", "action": "drop"}]}}}),
            "`settings.gateway_guardrails.rules[0].action`",
        ),
        (&PROJECT, json!({"user_id": "x"}), "`user_id`"),
    ];
    for (kind, sent, names) in cases {
        refused(patched(kind, &stored, body(sent)), names);
    }
}

#[test]
fn an_answer_has_every_field_of_its_kind() {
    let frame = Frame { id: Uuid::from_u128(1), org: Some(OrgId(Uuid::from_u128(2))), created: 0, deleted: None };
    let fields = |kind: &Kind, frame: &Frame, body: Value| -> Vec<String> {
        shown(kind, frame, self::body(body)).keys().cloned().collect()
    };
    assert_eq!(
        fields(&PROJECT, &frame, json!({})),
        ["id", "org_id", "name", "description", "user_id", "settings", "created", "deleted_at"]
    );
    assert_eq!(
        fields(&DATASET, &frame, json!({"not": "shown"})),
        ["id", "project_id", "name", "description", "user_id", "tags", "metadata", "url_slug", "created", "deleted_at"]
    );
    let key = shown(&API_KEY, &frame, body(json!({"name": "k", EVERY_ORG: true})));
    let expected = json!({"id": frame.id, "org_id": null, "name": "k", "preview_name": null, "user_id": null,
        "created": "1970-01-01T00:00:00.000Z"});
    assert_eq!(Value::Object(key), expected);
    let deleted = shown(&API_KEY, &Frame { deleted: Some(1), ..frame }, Body::new());
    assert_eq!(deleted["deleted_at"], "1970-01-01T00:00:00.000001Z");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c]", json_value(), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// Independent implementation of the merge: objects are merged, otherwise the later value wins.
fn expected(before: &Value, after: &Value) -> Value {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        return after.clone();
    };
    let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let value = |key: &String| match (old.get(key), new.get(key)) {
        (Some(old), Some(new)) => expected(old, new),
        (old, new) => new.or(old).cloned().unwrap_or_default(),
    };
    keys.into_iter().map(|key| (key.clone(), value(key))).collect()
}

proptest! {
    #[test]
    fn metadata_folds_in_as_the_rule_says_and_a_second_time_changes_nothing(before in object(), after in object()) {
        let stored = body(json!({"name": "e", "metadata": before}));
        let sent = body(json!({"metadata": after}));
        let kept = patched(&EXPERIMENT, &stored, sent.clone()).expect("fits").unwrap_or(stored);
        prop_assert_eq!(&kept["metadata"], &expected(&before, &after));
        prop_assert_eq!(patched(&EXPERIMENT, &kept, sent), Ok(None));
    }
}

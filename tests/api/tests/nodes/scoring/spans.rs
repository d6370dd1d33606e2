//! Rules over single spans: which rows they score, and that they score each input once.

use serde_json::{Value, json};

use super::fixture::{QUIET, ScoringNode, ScoringProject, online, row, scorer, trigger};

const KEY: &str = "global:scorer:ExactMatch";

#[test]
fn spans_are_scored_once_for_each_input() {
    let node = ScoringNode::start(&[]);
    a_finished_span_is_scored(&node.another("finished"));
    other_rows_are_not_scored(&node.another("others"));
    a_row_is_scored_again_only_if_what_is_read_changes(&node.another("again"));
    rules_choose_rows(&node.another("choice"));
    several_rules_share_a_run(&node.another("shared"));
}

fn a_finished_span_is_scored(project: &ScoringProject) {
    project.insert(json!([row("old", "x", "x")]));
    let rule = project.rule("Exact (online)", online(json!([scorer("ExactMatch")]), json!({})));
    project.insert(json!([
        {"id": "a", "span_id": "sa", "root_span_id": "ta", "input": {"q": 1}, "metrics": {"start": 1}},
        row("b", "x", "y"),
    ]));
    project.insert(json!([
        {"id": "a", "_is_merge": true, "output": "x", "expected": "x", "metadata": {"m": 1}, "metrics": {"end": 3}},
    ]));
    let scored = project.scored("a", "ExactMatch", 1.0);
    project.scored("b", "ExactMatch", 0.0);
    let found = trigger(&scored, KEY);
    assert!(found["completed_xact_id"].as_str() >= found["triggered_xact_id"].as_str(), "{scored}");
    assert_eq!((&found["rules"], &found["source"]), (&json!([rule]), &json!("online")));
    let spans = project.spans_below("sa");
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(span["span_attributes"], json!({"type": "score", "name": "ExactMatch", "purpose": "scorer"}));
    assert_eq!(span["input"], json!({"input": {"q": 1}, "output": "x", "expected": "x", "metadata": {"m": 1}}));
    assert_eq!((&span["scores"], &span["root_span_id"]), (&json!({"ExactMatch": 1.0}), &json!("ta")));
    assert_eq!(span["metadata"]["automation_id"], json!(rule));
    assert_eq!((&span["metadata"]["trigger"], &span["is_root"]), (&json!("online"), &json!(false)));
    assert_eq!(span["_async_scoring_state"], json!({"status": "disabled"}));
    assert!(span["metrics"]["end"].as_f64() >= span["metrics"]["start"].as_f64());
    assert!(project.row("old")["scores"].is_null(), "older rows are not scored");
}

fn other_rows_are_not_scored(project: &ScoringProject) {
    project.rule("exact", online(json!([scorer("ExactMatch")]), json!({})));
    let with = |id: &str, attributes: Value, parents: Value| {
        let mut row = row(id, "x", "x");
        row["span_attributes"] = attributes;
        row["span_parents"] = parents;
        row["root_span_id"] = "t".into();
        row
    };
    let task = |id: &str| with(id, json!({"type": "task"}), json!(null));
    let (mut skipped, mut disabled) = (task("skipped"), task("disabled"));
    skipped["_skip_async_scoring"] = true.into();
    disabled["_async_scoring_control"] = json!({"kind": "state_override", "state": {"status": "disabled"}});
    project.insert(json!([
        with("scorer", json!({"purpose": "scorer"}), json!(null)),
        with("below", json!({"type": "llm"}), json!(["scorer"])),
        with("review", json!({"type": "review"}), json!(null)),
        json!({"id": "open", "input": 1, "metrics": {"start": 1}}),
        skipped,
        disabled,
    ]));
    project.insert(json!([task("scored")]));
    project.scored("scored", "ExactMatch", 1.0);
    std::thread::sleep(QUIET);
    let rows = project.rows();
    let scored: Vec<&String> = rows.iter().filter(|(_, row)| !row["scores"].is_null()).map(|(id, _)| id).collect();
    assert_eq!(scored.len(), 2, "the row and its span: {scored:?}");
    assert!(rows.len() == 8 && rows["skipped"]["_async_scoring_state"]["status"] == "enabled", "{rows:?}");
    // a skipped or disabled row that comes again, without the mark
    project.insert(json!([task("skipped")]));
    project.scored("skipped", "ExactMatch", 1.0);
    project.insert(json!([task("disabled")]));
    project.wait("a replaced row stays disabled", |rows| {
        rows["disabled"]["_async_scoring_state"] == json!({"status": "disabled"})
    });
    std::thread::sleep(QUIET);
    assert!(project.row("disabled")["scores"].is_null());
}

fn a_row_is_scored_again_only_if_what_is_read_changes(project: &ScoringProject) {
    project.rule("exact", online(json!([scorer("ExactMatch")]), json!({})));
    project.insert(json!([row("r", "x", "x")]));
    let first = project.scored("r", "ExactMatch", 1.0);
    let span = project.spans_below("r");
    project.insert(json!([{"id": "r", "_is_merge": true, "scores": {"human": 0.5}, "tags": ["t"]}]));
    project.insert(json!([{"id": "r", "_is_merge": true, "output": "late", "metrics": {"end": 5}}]));
    std::thread::sleep(QUIET);
    let merged = project.row("r");
    assert_eq!(merged["scores"], json!({"ExactMatch": 1.0, "human": 0.5}));
    assert_eq!(trigger(&merged, KEY)["triggered_xact_id"], trigger(&first, KEY)["triggered_xact_id"]);
    assert_eq!(project.spans_below("r"), span, "the span was not written again");
    // the same row again loses its scores, and gets the known result
    project.insert(json!([row("r", "x", "x")]));
    let again = project.scored("r", "ExactMatch", 1.0);
    assert_ne!(trigger(&again, KEY)["triggered_xact_id"], trigger(&first, KEY)["triggered_xact_id"]);
    assert_eq!(project.spans_below("r").len(), 1);
    project.insert(json!([row("r", "y", "x")]));
    project.scored("r", "ExactMatch", 0.0);
    assert_eq!(project.spans_below("r").len(), 2);
}

fn rules_choose_rows(project: &ScoringProject) {
    let exact = json!([scorer("ExactMatch")]);
    project.rule("filtered", online(json!([scorer("Levenshtein")]), json!({"btql_filter": "metadata.env = 'prod'"})));
    project.rule("named", online(exact.clone(), json!({"apply_to_span_names": ["chat"], "apply_to_root_span": false})));
    project.rule("never", online(json!([scorer("ValidJSON")]), json!({"sampling_rate": 0})));
    project.rule("paused", online(json!([scorer("NumericDiff")]), json!({"status": "paused"})));
    let with = |id: &str, env: &str, name: &str| {
        let mut row = row(id, "x", "x");
        row["metadata"] = json!({"env": env});
        row["span_attributes"] = json!({"name": name});
        row
    };
    project.insert(json!([with("a", "prod", "chat"), with("b", "dev", "chat"), with("c", "prod", "other")]));
    for (id, name) in [("a", "Levenshtein"), ("a", "ExactMatch"), ("b", "ExactMatch"), ("c", "Levenshtein")] {
        project.scored(id, name, 1.0);
    }
    std::thread::sleep(QUIET);
    let names = |id: &str| project.row(id)["scores"].as_object().map(|scores| scores.len());
    assert_eq!((names("a"), names("b"), names("c")), (Some(2), Some(1), Some(1)));
}

fn several_rules_share_a_run(project: &ScoringProject) {
    let first = project.rule("first", online(json!([scorer("ExactMatch")]), json!({"skip_logging": true})));
    let second = project.rule("second", online(json!([scorer("ExactMatch")]), json!({})));
    project.insert(json!([row("r", "x", "x")]));
    let scored = project.scored("r", "ExactMatch", 1.0);
    let mut rules = trigger(&scored, KEY)["rules"].as_array().cloned().expect("rules");
    rules.sort_by_key(ToString::to_string);
    let mut expected = vec![json!(first), json!(second)];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(rules, expected);
    assert_eq!(project.spans_below("r").len(), 1);
    project.delete(&second);
    std::thread::sleep(QUIET);
    project.insert(json!([row("s", "x", "x")]));
    project.scored("s", "ExactMatch", 1.0);
    assert_eq!(project.spans_below("s").len(), 0, "the remaining rule logs no spans");
}

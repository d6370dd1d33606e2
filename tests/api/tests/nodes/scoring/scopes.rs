//! Rules over traces and groups: when they are silent, and which rows receive the scores.

use serde_json::{Value, json};

use super::fixture::{QUIET, ScoringNode, ScoringProject, online, scorer, trigger};

const KEY: &str = "global:scorer:ExactMatch";

#[test]
fn traces_and_groups_are_scored_when_they_are_silent() {
    let node = ScoringNode::start(&[]);
    a_silent_trace_is_scored_at_its_root(&node.another("traces"));
    a_group_is_scored_at_its_first_root(&node.another("first"));
    a_group_is_scored_at_each_root(&node.another("each"));
}

fn span(id: &str, trace: &str, parent: Option<&str>, output: &str) -> Value {
    json!({"id": id, "span_id": id, "root_span_id": trace, "span_parents": parent.map(|parent| [parent]),
        "input": "i", "output": output, "expected": "x", "metrics": {"start": 1, "end": 2}})
}

fn of_session(id: &str, session: &str, output: &str) -> Value {
    let mut row = span(id, id, None, output);
    row["metadata"] = json!({"session_id": session});
    row
}

fn a_silent_trace_is_scored_at_its_root(project: &ScoringProject) {
    let scope = json!({"scope": {"type": "trace", "idle_seconds": 1}});
    project.rule("traces", online(json!([scorer("ExactMatch")]), scope));
    project.insert(json!([span("root", "root", None, "x")]));
    project.insert(json!([span("child", "root", Some("root"), "y")]));
    assert!(project.row("root")["scores"].is_null(), "the trace is not silent yet");
    let scored = project.scored("root", "ExactMatch", 1.0);
    let first = trigger(&scored, KEY).clone();
    assert_eq!(first["scope"], json!({"type": "trace"}));
    assert!(project.row("child")["scores"].is_null());
    // scores of people are no activity, and a later span is
    project.insert(json!([{"id": "root", "_is_merge": true, "scores": {"human": 1}}]));
    std::thread::sleep(QUIET * 2);
    assert_eq!(trigger(&project.row("root"), KEY), &first);
    project.insert(json!([span("late", "root", Some("root"), "z")]));
    project.wait("the trace is scored again", |rows| {
        let found = trigger(&rows["root"], KEY);
        found["triggered_xact_id"].as_str() > first["triggered_xact_id"].as_str()
            && found["completed_xact_id"].as_str() >= found["triggered_xact_id"].as_str()
    });
    assert_eq!(project.spans_below("root").len(), 2, "one span for each input");
}

fn a_group_is_scored_at_its_first_root(project: &ScoringProject) {
    let scope = json!({"scope": {"type": "group", "group_by": "metadata.session_id", "placement": "first",
        "idle_seconds": 1}});
    project.rule("groups", online(json!([scorer("ExactMatch")]), scope));
    project.insert(json!([of_session("a", "s", "x"), of_session("b", "t", "x")]));
    project.insert(json!([of_session("c", "s", "y"), span("d", "c", Some("c"), "z")]));
    project.scored("a", "ExactMatch", 1.0);
    project.scored("b", "ExactMatch", 1.0);
    let rows = project.rows();
    let scope = json!({"type": "group", "key": "metadata.session_id", "value": "s"});
    assert_eq!(trigger(&rows["a"], KEY)["scope"], scope);
    assert!(rows["c"]["scores"].is_null() && rows["d"]["scores"].is_null(), "{rows:?}");
    assert_eq!(project.spans_below("a").len(), 1);
}

fn a_group_is_scored_at_each_root(project: &ScoringProject) {
    let scope = json!({"scope": {"type": "group", "group_by": "metadata.session_id", "placement": "each",
        "idle_seconds": 1, "max_traces": 2}});
    project.rule("groups", online(json!([scorer("ExactMatch")]), scope));
    project.insert(json!([of_session("a", "s", "x"), of_session("b", "s", "x"), of_session("c", "s", "x")]));
    project.scored("a", "ExactMatch", 1.0);
    project.scored("b", "ExactMatch", 1.0);
    std::thread::sleep(QUIET);
    assert!(project.row("c")["scores"].is_null(), "a run reads at most two traces");
    assert_eq!(project.spans_below("a").len() + project.spans_below("b").len(), 1);
}

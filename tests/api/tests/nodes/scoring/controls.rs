//! Controls in writes: who may send which, and their effects on the states of rows.

use std::thread;

use serde_json::{Value, json};

use super::fixture::{QUIET, ScoringNode, ScoringProject, online, row, scorer, send_to, trigger};

const KEY: &str = "global:scorer:ExactMatch";
const WRITERS: usize = 4;
const WRITES: usize = 12;

#[test]
fn controls_change_states_together_with_their_writes() {
    let node = ScoringNode::start(&[]);
    clients_may_not_send_all_controls(&node.another("refused"));
    clients_can_demand_runs(&node.another("demanded"));
    forced_controls_evaluate_rules_again(&node.another("forced"));
    concurrent_controls_lose_nothing(&node.another("concurrent"));
}

fn control(id: &str, control: Value) -> Value {
    json!({"id": id, "_is_merge": true, "_async_scoring_control": control})
}

fn demand(functions: Value) -> Value {
    json!({"kind": "trigger_functions", "triggered_functions": functions})
}

fn clients_may_not_send_all_controls(project: &ScoringProject) {
    let refused = |status: u16, control_of: Value, begin: &str| {
        let answer = project.try_insert(json!([row("other", "x", "x"), control("r", control_of.clone())]));
        assert_eq!(answer.status, status, "{control_of}: {}", answer.text());
        assert!(answer.text().contains(begin), "{control_of}: {}", answer.text());
    };
    let completes = json!({"kind": "complete_triggered_functions", "function_ids": [], "triggered_xact_id": "1"});
    for kind in [
        json!({"kind": "score_update", "token": "t"}),
        completes,
        json!({"kind": "mark_attempt_failed", "function_ids": []}),
        json!({"kind": "cancel_triggered_functions", "rules": []}),
        json!({"kind": "state_override", "state": {"status": "enabled"}}),
    ] {
        refused(403, kind, "row 1: `_async_scoring_control` is of the kind");
    }
    refused(400, json!({"kind": "unknown"}), "row 1: `_async_scoring_control.kind` is \\\"unknown\\\"");
    refused(400, json!("now"), "row 1: `_async_scoring_control` is");
    refused(
        400,
        demand(json!([{"function_id": {"type": "global", "name": "Nothing"}}])),
        "row 1: `_async_scoring_control.triggered_functions.0.function_id.name` is",
    );
    let body = json!({"rows": [
        {"project_id": project.id, "log_id": "g", "id": "a", "input": 1},
        {"project_id": project.id, "log_id": "g", "id": "b", "_async_scoring_control": {"kind": "score_update"}},
    ]});
    let answer = send_to(&project.url, "POST", "/logs3", &body);
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(
        answer.text().contains("row 1: `_async_scoring_control` is of the kind `score_update`"),
        "{}",
        answer.text()
    );
    assert!(project.rows().is_empty(), "nothing of a refused request is written");
    let mut forged = row("forged", "x", "x");
    forged["_async_scoring_state"] = json!({"status": "disabled"});
    project.insert(json!([forged]));
    project.insert(json!([{"id": "forged", "_is_merge": true, "_async_scoring_state": {"status": "disabled"}}]));
    let forged = project.row("forged");
    assert!(forged["_async_scoring_state"].is_null() && forged["_async_scoring_control"].is_null(), "{forged}");
}

fn clients_can_demand_runs(project: &ScoringProject) {
    let exact = json!({"function_id": scorer("ExactMatch"), "scope": "span", "idempotency_key": "first"});
    project.insert(json!([row("r", "x", "x")]));
    project.insert(json!([control("r", demand(json!([exact.clone()])))]));
    let scored = project.scored("r", "ExactMatch", 1.0);
    let first = trigger(&scored, KEY).clone();
    assert_eq!((&first["source"], &first["idempotency_key"]), (&json!("manual"), &json!("first")));
    let spans = project.spans_below("r");
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["metadata"], json!({"trigger": "manual"}));
    // the same key again has no effect, and another key runs the function again
    project.insert(json!([control("r", demand(json!([exact])))]));
    thread::sleep(QUIET);
    assert_eq!(trigger(&project.row("r"), KEY), &first);
    let other = json!({"function_id": scorer("ExactMatch"), "idempotency_key": "second"});
    project.insert(json!([control("r", demand(json!([other])))]));
    let again = project.wait("the second run", |rows| {
        let found = trigger(&rows["r"], KEY);
        found["idempotency_key"] == "second"
            && found["completed_xact_id"].as_str() >= found["triggered_xact_id"].as_str()
    });
    assert!(trigger(&again["r"], KEY)["triggered_xact_id"].as_str() > first["triggered_xact_id"].as_str());
    assert_eq!(project.spans_below("r").len(), 1, "an equal input has one span");
    // a row that comes with its demand
    let mut whole = row("w", "x", "y");
    whole["_async_scoring_control"] =
        demand(json!([{"function_id": scorer("ExactMatch")}, {"function_id": scorer("Levenshtein")}]));
    project.insert(json!([whole]));
    project.scored("w", "ExactMatch", 0.0);
    project.scored("w", "Levenshtein", 0.0);
}

fn forced_controls_evaluate_rules_again(project: &ScoringProject) {
    project.insert(json!([row("old", "x", "x"), row("off", "x", "x")]));
    project.rule("exact", online(json!([scorer("ExactMatch")]), json!({})));
    project.insert(json!([control("off", json!({"kind": "state_override", "state": {"status": "disabled"}}))]));
    project.insert(json!([
        control("old", json!({"kind": "state_force_reselect"})),
        control("off", json!({"kind": "state_force_reselect"})),
    ]));
    let scored = project.scored("old", "ExactMatch", 1.0);
    let before = trigger(&scored, KEY)["triggered_xact_id"].clone();
    project.insert(json!([control("old", json!({"kind": "state_enabled_force_rescore"}))]));
    project.wait("all functions ran again", |rows| {
        let found = trigger(&rows["old"], KEY);
        found["triggered_xact_id"].as_str() > before.as_str()
            && found["completed_xact_id"].as_str() >= found["triggered_xact_id"].as_str()
    });
    assert_eq!(project.spans_below("old").len(), 1);
    let off = project.row("off");
    assert_eq!((&off["_async_scoring_state"], &off["scores"]), (&json!({"status": "disabled"}), &Value::Null));
}

/// Writers merge members and demand runs on one row at the same time, and nothing of it may be lost.
fn concurrent_controls_lose_nothing(project: &ScoringProject) {
    project.insert(json!([row("r", "x", "x")]));
    let scorers = ["ExactMatch", "Levenshtein", "ValidJSON", "JSONDiff"];
    thread::scope(|scope| {
        for (writer, name) in scorers.into_iter().enumerate() {
            scope.spawn(move || {
                for write in 0..WRITES {
                    let mut merge = json!({"id": "r", "_is_merge": true});
                    merge["metadata"] = json!({format!("m{writer}-{write}"): write});
                    if write % 3 == 0 {
                        let function = json!({"function_id": scorer(name), "idempotency_key": writer.to_string()});
                        merge["_async_scoring_control"] = demand(json!([function]));
                    }
                    project.insert(json!([merge]));
                }
            });
        }
    });
    let rows =
        project.wait("all demanded scores", |rows| scorers.iter().all(|name| rows["r"]["scores"].get(name).is_some()));
    let found = &rows["r"];
    assert_eq!(found["metadata"].as_object().map(serde_json::Map::len), Some(WRITERS * WRITES), "{found}");
    let triggers = found["_async_scoring_state"]["triggered_functions"].as_object().expect("triggers");
    assert_eq!(triggers.len(), scorers.len(), "{found}");
}

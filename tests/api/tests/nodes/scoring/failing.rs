//! Runs that fail: their errors, repeated attempts, and rules that are paused or deleted meanwhile.

use std::time::{Duration, Instant};

use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

use super::fixture::{EGRESS, QUIET, ScoringNode, ScoringProject, online, row, trigger};

/// Time after which a failed attempt is repeated.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Price of a million tokens, in US dollars.
const PRICE: f64 = 1000.0;

#[test]
fn failed_runs_are_repeated_or_given_up() {
    let node = ScoringNode::start(&[&format!("egress.allow={EGRESS}"), "gateway.retry_budget_seconds=0"]);
    let provider = ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"));
    node.provider(&provider.origin(), PRICE);
    a_missing_function_is_given_up(&node.another("missing"));
    a_provider_is_asked_again(&node.another("retried"), &provider);
    paused_and_deleted_rules_lose_their_triggers(&node.another("paused"), &provider);
    costs_have_a_cap(&node.another("costs"));
}

fn judge(project: &ScoringProject) -> Value {
    project.judge("Good", "[choose good] {{output}}")
}

fn a_missing_function_is_given_up(project: &ScoringProject) {
    let missing = json!({"type": "function", "id": "00000000-0000-0000-0000-000000000001"});
    let rule = project.rule("missing", online(json!([missing]), json!({})));
    project.insert(json!([row("r", "x", "x")]));
    let status = project.wait_status(&rule, |status| status["failed"] == 1);
    assert_eq!((&status["pending"], &status["running"]), (&json!(0), &json!(0)), "{status}");
    let error = &status["last_errors"][0];
    assert_eq!((&error["row_id"], error["message"].is_string()), (&json!("r"), true), "{status}");
    let found = project.row("r");
    let key = "function_id:00000000-0000-0000-0000-000000000001";
    assert_eq!((&trigger(&found, key)["failed"], &trigger(&found, key)["attempts"]), (&json!(true), &json!(1)));
    let spans = project.spans_below("r");
    assert!(spans.len() == 1 && spans[0]["error"].is_string() && found["scores"].is_null(), "{spans:?}");
    // a forced selection is another attempt
    project.insert(json!([{"id": "r", "_is_merge": true, "_async_scoring_control": {"kind": "state_force_reselect"}}]));
    project.wait_status(&rule, |status| status["failed"] == 2);
}

fn a_provider_is_asked_again(project: &ScoringProject, provider: &ProviderServer) {
    let judge = judge(project);
    let key = format!("function_id:{}", judge["id"].as_str().expect("an id"));
    let rule = project.rule("judged", online(json!([judge]), json!({})));
    provider.inject_always(Some(Fault::Status { status: 500, retry_after: None }));
    project.insert(json!([row("r", "x", "x")]));
    let begun = Instant::now();
    let rows = project.wait("a failed attempt", |rows| trigger(&rows["r"], &key)["attempts"] == 1);
    let failed = trigger(&rows["r"], &key);
    assert!(failed["completed_xact_id"].is_null() && failed["failed"].is_null(), "{failed}");
    project.wait_status(&rule, |status| status["pending"] == 1);
    provider.inject_always(None);
    let scored = project.scored("r", "Good", 1.0);
    assert!(begun.elapsed() >= RETRY_AFTER, "{:?}", begun.elapsed());
    assert!(trigger(&scored, &key)["retry_at_ms"].is_null());
    let spans = project.spans_below("r");
    assert!(spans.len() == 1 && spans[0]["error"].is_null(), "the error is replaced: {spans:?}");
    let calls: Vec<Value> = project.spans_below(spans[0]["span_id"].as_str().expect("an id"));
    assert!(!calls.is_empty() && calls.iter().all(|call| call["span_attributes"]["type"] == "llm"), "{calls:?}");
    project.wait_status(&rule, |status| status["cost"].as_f64() > Some(0.0));
    std::thread::sleep(QUIET);
    assert!(
        project.rows().values().all(|row| row["span_attributes"]["purpose"] != "scorer"
            || row["scores"].is_null()
            || row["span_parents"] == json!(["r"])),
        "spans of scorers are not scored"
    );
}

fn paused_and_deleted_rules_lose_their_triggers(project: &ScoringProject, provider: &ProviderServer) {
    let judge = judge(project);
    let key = format!("function_id:{}", judge["id"].as_str().expect("an id"));
    provider.inject_always(Some(Fault::Status { status: 500, retry_after: None }));
    let rule = project.rule("judged", online(json!([judge.clone()]), json!({})));
    project.insert(json!([row("a", "x", "x")]));
    project.wait("a failed attempt", |rows| trigger(&rows["a"], &key)["attempts"] == 1);
    project.change(&rule, online(json!([judge.clone()]), json!({"status": "paused"})));
    project.wait("the trigger is cancelled", |rows| trigger(&rows["a"], &key).is_null());
    project.insert(json!([row("b", "x", "x")]));
    project.change(&rule, online(json!([judge.clone()]), json!({"status": "active"})));
    project.insert(json!([row("c", "x", "x")]));
    project.wait("a failed attempt", |rows| trigger(&rows["c"], &key)["attempts"] == 1);
    assert!(trigger(&project.row("b"), &key).is_null(), "rows of the pause are not scored");
    project.delete(&rule);
    project.wait("the trigger is cancelled", |rows| trigger(&rows["c"], &key).is_null());
    provider.inject_always(None);
    std::thread::sleep(RETRY_AFTER + QUIET);
    assert!(project.rows().values().all(|row| row["scores"].is_null()));
}

fn costs_have_a_cap(project: &ScoringProject) {
    let judge = judge(project);
    let rule = project.rule("capped", online(json!([judge]), json!({"max_cost_per_day": 0.000_001})));
    project.insert(json!([row("first", "x", "x")]));
    project.scored("first", "Good", 1.0);
    project.wait_status(&rule, |status| status["cost"].as_f64() > Some(0.000_001));
    project.insert(json!((0..5).map(|number| row(&format!("r{number}"), "x", "x")).collect::<Vec<_>>()));
    let status = project.wait_status(&rule, |status| status["skipped"] == 5);
    assert_eq!(status["pending"], 0, "{status}");
    assert_eq!(project.rows().values().filter(|row| !row["scores"].is_null() && row["is_root"] == true).count(), 1);
}

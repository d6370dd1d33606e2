//! Caps of rules: runs per minute, and costs per day.

use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use super::fixture::{QUIET, ScoringNode, online, row, scorer};

/// Time in which rows are scored again.
const SCORED_WITHIN: Duration = Duration::from_secs(20);

#[test]
fn a_cap_on_runs_skips_the_rest_of_the_minute() {
    let node = ScoringNode::start(&["gateway.scoring_runs_per_minute=2"]);
    let (project, other) = (&node.project, node.another("with the cap of the server"));
    // A minute must not end between the rows.
    let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 60;
    while second() > 30 {
        std::thread::sleep(Duration::from_secs(1));
    }
    let rule = project.rule("capped", online(json!([scorer("ExactMatch")]), json!({"max_runs_per_minute": 3})));
    let rows: Vec<_> = (0..10).map(|number| row(&format!("r{number}"), "x", "x")).collect();
    project.insert(json!(rows));
    let by_default = other.rule("uncapped", online(json!([scorer("ExactMatch")]), json!({})));
    other.insert(json!(rows));
    let status = project.wait_status(&rule, |status| status["skipped"] == 7);
    other.wait_status(&by_default, |status| status["skipped"] == 8);
    assert_eq!((&status["failed"], &status["last_errors"][0]["row_id"]), (&json!(0), &json!(null)), "{status}");
    let message = status["last_errors"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("has reached its cap"), "{status}");
    std::thread::sleep(QUIET);
    let scored = project.rows().into_values().filter(|row| !row["scores"].is_null() && row["is_root"] == true);
    assert_eq!(scored.count(), 3);
    // A row that replaces an equal one gets its score again, which is no run.
    project.insert(json!(rows));
    let count =
        || project.rows().into_values().filter(|row| !row["scores"].is_null() && row["is_root"] == true).count();
    let deadline = Instant::now() + SCORED_WITHIN;
    while count() != 3 || project.status(&rule)["skipped"] != 14 {
        assert!(Instant::now() < deadline, "{} scores, {}", count(), project.status(&rule));
        std::thread::sleep(QUIET / 10);
    }
    let runs = project.rows().into_values().filter(|row| row["span_attributes"]["purpose"] == "scorer");
    assert_eq!(runs.count(), 3);
}

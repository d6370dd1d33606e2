//! Online scoring on three nodes: rules and rows at any node, and leaders that are lost.

use serde_json::{Value, json};

use super::fixture::{ScoringCluster, online, row, scorer, send_to};

const ROWS: usize = 200;

#[test]
fn another_node_scores_when_the_leader_is_lost() {
    let cluster = ScoringCluster::start();
    let at: Vec<_> = cluster.nodes.urls.iter().map(|url| cluster.project.at(url)).collect();
    let rule = at[0].rule("exact", online(json!([scorer("ExactMatch")]), json!({})));
    at[1].insert(json!([row("first", "x", "x")]));
    at[2].scored("first", "ExactMatch", 1.0);
    for project in &at {
        let status = project.wait_status(&rule, |status| status["pending"] == 0 && status["running"] == 0);
        assert_eq!(status["failed"], 0, "{status}");
    }
    let answer = send_to(&at[2].url, "POST", &format!("/v1/project_score/{rule}/backfill"), &json!({"force": true}));
    assert_eq!(answer.text(), r#"{"queued":1}"#);
    let id = |number: usize| format!("r{number}");
    for number in 0..ROWS {
        at[1].insert(json!([row(&id(number), "x", if number % 2 == 0 { "x" } else { "y" })]));
        if number == ROWS / 2 {
            // Whichever node leads the log, it was one of these two with the same chance as the other.
            cluster.nodes.kill(1).expect("a killed node");
        }
    }
    let rows = at[1].wait("all rows are scored", |rows| {
        (0..ROWS).all(|number| rows.get(&id(number)).is_some_and(|row| !row["scores"]["ExactMatch"].is_null()))
    });
    for number in 0..ROWS {
        assert_eq!(rows[&id(number)]["scores"]["ExactMatch"], if number % 2 == 0 { 1.0 } else { 0.0 });
    }
    let is_span = |row: &&Value| row["span_attributes"]["purpose"] == "scorer";
    assert_eq!(rows.values().filter(is_span).count(), ROWS + 1, "one span for each row");
}

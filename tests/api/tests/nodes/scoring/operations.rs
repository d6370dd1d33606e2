//! Operations on rules: their state, backfills, and tests of a configuration, with the rights that they need.

use serde_json::{Value, json};

use super::fixture::{QUIET, ScoringNode, ScoringProject, online, row, scorer, send_to, trigger};

const KEY: &str = "global:scorer:ExactMatch";

#[test]
fn rules_can_be_tried_and_applied_to_older_rows() {
    let node = ScoringNode::start(&[]);
    rules_that_are_not_valid_are_refused(&node.another("refused"));
    older_rows_are_scored_on_demand(&node.another("backfill"));
    older_traces_are_scored_on_demand(&node.another("traces"));
    older_groups_are_scored_on_demand(&node.another("groups"));
    a_test_writes_nothing(&node.another("test"));
}

fn post(project: &ScoringProject, target: &str, body: &Value) -> (u16, Value) {
    let answer = send_to(&project.url, "POST", target, body);
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn backfill(project: &ScoringProject, rule: &str, body: &Value) -> u64 {
    let (status, answer) = post(project, &format!("/v1/project_score/{rule}/backfill"), body);
    assert_eq!(status, 200, "{answer}");
    answer["queued"].as_u64().expect("a count")
}

fn rules_that_are_not_valid_are_refused(project: &ScoringProject) {
    let exact = json!([scorer("ExactMatch")]);
    let of = |online: Value| json!({"project_id": project.id, "name": "n", "score_type": "online", "config": {"online": online}});
    let cases = [
        (of(online(json!([scorer("Nothing")]), json!({}))), "config.online.scorers.0.name"),
        (of(online(exact.clone(), json!({"btql_filter": "metadata.env ="}))), "config.online.btql_filter"),
        (of(online(exact.clone(), json!({"btql_filter": "count(1) > 2"}))), "config.online.btql_filter"),
        (of(online(exact.clone(), json!({"status": "on"}))), "config.online.status"),
        (of(online(exact.clone(), json!({"max_runs_per_minute": 0}))), "config.online.max_runs_per_minute"),
        (
            of(online(exact.clone(), json!({"scope": {"type": "group", "group_by": "name", "placement": "first"}}))),
            "config.online.scope.group_by",
        ),
        (json!({"project_id": project.id, "name": "n", "score_type": "online"}), "`config` is missing"),
        (
            json!({"project_id": project.id, "name": "n", "score_type": "slider",
                "config": {"online": online(exact, json!({}))}}),
            "`score_type` is",
        ),
    ];
    for (body, begin) in cases {
        let (status, answer) = post(project, "/v1/project_score", &body);
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["Message"].as_str().is_some_and(|text| text.contains(begin)), "{body}: {answer}");
    }
    let slider = json!({"project_id": project.id, "name": "slider", "score_type": "slider"});
    let (_, slider) = post(project, "/v1/project_score", &slider);
    let slider = slider["id"].as_str().expect("an id").to_owned();
    let (status, answer) = post(project, &format!("/v1/project_score/{slider}/backfill"), &json!({}));
    assert_eq!(status, 400, "{answer}");
    let status = send_to(&project.url, "GET", &format!("/v1/project_score/{slider}/status"), &Value::Null).status;
    assert_eq!(status, 400);
}

fn older_rows_are_scored_on_demand(project: &ScoringProject) {
    let with = |id: &str, env: &str| {
        let mut row = row(id, "x", "x");
        row["metadata"] = json!({"env": env});
        row
    };
    project.insert(json!([with("a", "prod"), with("b", "dev"), with("c", "prod"), {"id": "open", "input": 1}]));
    let rule = project.rule("exact", online(json!([scorer("ExactMatch")]), json!({"sampling_rate": 0})));
    assert_eq!(backfill(project, &rule, &json!({"filter": "metadata.env = 'prod'", "limit": 1})), 1);
    project.scored("c", "ExactMatch", 1.0);
    std::thread::sleep(QUIET);
    assert!(project.row("a")["scores"].is_null());
    assert_eq!(backfill(project, &rule, &json!({})), 2, "rows that are scored already, and open ones, do not count");
    let scored = project.scored("a", "ExactMatch", 1.0);
    project.scored("b", "ExactMatch", 1.0);
    assert_eq!(
        (&trigger(&scored, KEY)["source"], &trigger(&scored, KEY)["rules"]),
        (&json!("backfill"), &json!([rule]))
    );
    assert_eq!(project.spans_below("a")[0]["metadata"]["trigger"], "backfill");
    assert_eq!(backfill(project, &rule, &json!({"to": "2020-01-01"})), 0);
    assert_eq!(backfill(project, &rule, &json!({"force": true})), 3);
    project.wait("all ran again", |rows| {
        trigger(&rows["a"], KEY)["triggered_xact_id"].as_str() > trigger(&scored, KEY)["triggered_xact_id"].as_str()
    });
    assert!(project.row("open")["scores"].is_null());
    let status = project.wait_status(&rule, |status| status["pending"] == 0 && status["running"] == 0);
    assert_eq!(
        (&status["status"], &status["failed"], &status["last_errors"]),
        (&json!("active"), &json!(0), &json!([]))
    );
    let (status, answer) = post(project, &format!("/v1/project_score/{rule}/backfill"), &json!({"limit": 0}));
    assert_eq!(
        (status, answer["Message"].as_str()),
        (400, Some("`limit` is 0; it must be a whole number from 1 to 10000"))
    );
    project.change(&rule, online(json!([scorer("ExactMatch")]), json!({"status": "paused"})));
    let (status, answer) = post(project, &format!("/v1/project_score/{rule}/backfill"), &json!({}));
    assert_eq!(status, 400, "{answer}");
    assert_eq!(project.status(&rule)["status"], "paused");
}

fn older_traces_are_scored_on_demand(project: &ScoringProject) {
    let span = |id: &str, parent: Option<&str>, output: &str| {
        json!({"id": id, "span_id": id, "root_span_id": "root", "span_parents": parent.map(|parent| [parent]),
            "input": "i", "output": output, "expected": "x", "metrics": {"start": 1, "end": 2}})
    };
    project.insert(json!([span("root", None, "x"), span("child", Some("root"), "y")]));
    let scope = json!({"scope": {"type": "trace", "idle_seconds": 1}});
    let rule = project.rule("traces", online(json!([scorer("ExactMatch")]), scope));
    assert_eq!(backfill(project, &rule, &json!({})), 1);
    project.scored("root", "ExactMatch", 1.0);
    assert_eq!(backfill(project, &rule, &json!({})), 0);
    assert!(project.row("child")["scores"].is_null());
}

fn older_groups_are_scored_on_demand(project: &ScoringProject) {
    for (id, session) in [("a", "s"), ("b", "s"), ("c", "t")] {
        let mut row = row(id, "x", "x");
        row["metadata"] = json!({"session": session});
        project.insert(json!([row]));
    }
    let scope = json!({"scope": {"type": "group", "group_by": "metadata.session", "placement": "first"}});
    let rule = project.rule("groups", online(json!([scorer("ExactMatch")]), scope));
    assert_eq!(backfill(project, &rule, &json!({})), 2);
    project.scored("a", "ExactMatch", 1.0);
    project.scored("c", "ExactMatch", 1.0);
    assert_eq!(trigger(&project.row("a"), KEY)["scope"]["value"], "s");
    assert_eq!(backfill(project, &rule, &json!({})), 0);
    assert!(project.row("b")["scores"].is_null());
}

fn a_test_writes_nothing(project: &ScoringProject) {
    project.insert(json!([row("a", "x", "x"), row("b", "x", "y")]));
    let before = project.rows();
    let config = json!({"online": online(json!([scorer("ExactMatch"), {"type": "function",
        "id": "00000000-0000-0000-0000-000000000001"}]), json!({"sampling_rate": 0}))});
    let body = json!({"project_id": project.id, "config": config, "limit": 5});
    let (status, answer) = post(project, "/v1/project_score/test", &body);
    assert_eq!(status, 200, "{answer}");
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), 4, "{answer}");
    let of = |id: &str, name: &str| results.iter().find(|one| one["row_id"] == id && one["name"] == name);
    assert_eq!(of("a", "ExactMatch").expect("a result")["scores"], json!({"ExactMatch": 1.0}));
    assert_eq!(of("b", "ExactMatch").expect("a result")["scores"], json!({"ExactMatch": 0.0}));
    assert!(results.iter().filter(|one| one["error"].is_string()).count() == 2, "{answer}");
    std::thread::sleep(QUIET);
    assert_eq!(project.rows(), before);
    let (status, _) = post(project, "/v1/project_score/test", &json!({"config": config}));
    assert_eq!(status, 400);
}

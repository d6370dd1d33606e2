//! Jobs over queries: they change all selected rows, say how far they are, and can be cancelled.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Time between two looks at a job, and how many there are at most.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 600;

fn begin(fixture: &Fixture, body: &Value) -> Value {
    fixture.post("/console/jobs", body).ok()
}

fn ended(fixture: &Fixture, job: &Value) -> Value {
    let path = format!("/console/jobs/{}", job["id"].as_str().expect("an id"));
    for _ in 0..LOOKS_MAX {
        let seen = fixture.get(&path).ok();
        if seen["state"] != "running" {
            return seen;
        }
        sleep(LOOK);
    }
    panic!("the job goes on for ever");
}

fn count(fixture: &Fixture, project: &str, filter: &str) -> Value {
    let query = format!("measures: count(1) as n | from: project_logs('{project}') | filter: {filter}");
    fixture.post("/btql", &json!({"query": query})).ok()["data"][0]["n"].clone()
}

fn project(fixture: &Fixture, rows: usize) -> String {
    let project = fixture.project("p");
    let root = |row: usize| format!("r{}", row / 2);
    let row = |row: usize| {
        let parents: Vec<String> = if row.is_multiple_of(2) { Vec::new() } else { vec![root(row)] };
        let span = if row.is_multiple_of(2) { root(row) } else { format!("s{row}") };
        json!({
            "id": format!("row{row}"), "span_id": span, "root_span_id": root(row), "span_parents": parents,
            "input": row, "output": "out", "tags": ["old"],
        })
    };
    let rows: Vec<Value> = (0..rows).map(row).collect();
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({"events": rows})).ok();
    project
}

#[test]
fn a_job_changes_all_rows_of_its_query_and_no_other() {
    let fixture = Fixture::open();
    let project = project(&fixture, 1300);
    let of = |filter: &str, shape: &str, action: Value| json!({"object_type": "project_logs", "object_id": project, "filter": filter, "shape": shape, "action": action});
    let tag = begin(&fixture, &of("input >= 100", "spans", json!({"kind": "tag", "add": ["new"], "remove": ["old"]})));
    let tagged = ended(&fixture, &tag);
    let seen = (&tagged["state"], &tagged["matched"], &tagged["done"], &tagged["error"]);
    assert_eq!(seen, (&json!("done"), &json!(1200), &json!(1200), &Value::Null), "{tagged}");
    assert_eq!(count(&fixture, &project, "tags includes 'new'"), 1200);
    assert_eq!(count(&fixture, &project, "tags includes 'old'"), 100);

    let score = of("id = 'row4'", "traces", json!({"kind": "score", "name": "Good", "value": 1}));
    assert_eq!(ended(&fixture, &begin(&fixture, &score))["done"], 1);
    assert_eq!(count(&fixture, &project, "scores.Good = 1"), 1);
    let me = fixture.post("/api/self/me", &Value::Null).ok()["id"].clone();
    let assign = of("id = 'row4'", "spans", json!({"kind": "assign", "users": [me]}));
    assert_eq!(ended(&fixture, &begin(&fixture, &assign))["done"], 1);
    let dataset = fixture.make("dataset", &json!({"project_id": project, "name": "d"}));
    let copy = of("input < 150", "spans", json!({"kind": "add_to_dataset", "dataset_id": dataset}));
    for _ in 0..2 {
        assert_eq!(ended(&fixture, &begin(&fixture, &copy))["done"], 150);
        let rows = fixture.events("dataset", &dataset);
        assert_eq!((rows.len(), &rows[0]["expected"]), (150, &json!("out")));
    }
    let delete = of("input = 10", "traces", json!({"kind": "delete"}));
    assert_eq!(ended(&fixture, &begin(&fixture, &delete))["done"], 2);
    assert_eq!(count(&fixture, &project, "true"), 1298);
    let listed = fixture.get("/console/jobs").ok();
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(6));
}

#[test]
fn a_cancelled_job_stops_and_what_is_wrong_is_said_at_once() {
    let fixture = Fixture::open();
    let project = project(&fixture, 3000);
    let body = |filter: &str, action: Value| json!({"object_type": "project_logs", "object_id": project, "filter": filter, "action": action});
    let tag = json!({"kind": "tag", "add": ["x"]});
    let job = begin(&fixture, &body("", tag.clone()));
    let path = format!("/console/jobs/{}", job["id"].as_str().expect("an id"));
    fixture.call("DELETE", &path, &[], b"").ok();
    let seen = ended(&fixture, &job);
    let done = seen["done"].as_u64().expect("a count");
    assert!(seen["state"] == "cancelled" || done == 3000, "{seen}");
    assert_eq!(count(&fixture, &project, "tags includes 'x'"), done);

    for (wrong, says) in [
        (body("input >", tag.clone()), "filter"),
        (body("true | limit: 5", tag.clone()), "filter"),
        (body("", json!({"kind": "paint"})), "`paint`"),
        (body("", json!({"kind": "tag"})), "neither"),
        (body("", json!({"kind": "score", "name": "a", "value": 2})), "`action.value`"),
        (json!({"object_type": "house"}), "`house`"),
        (
            json!({"object_type": "dataset", "object_id": project, "shape": "traces", "action": {"kind": "delete"}}),
            "dataset",
        ),
    ] {
        let why = fixture.post("/console/jobs", &wrong).refused(400);
        assert!(why.contains(says), "{wrong}: {why}");
    }
    fixture.get(&format!("/console/jobs/{project}")).refused(404);
}

#[test]
fn operators_see_the_cluster_and_members_what_their_organization_stores() {
    let fixture = Fixture::open();
    let project = project(&fixture, 20);
    let seen = fixture.get("/console/cluster").ok();
    assert_eq!((&seen["node"], &seen["quorum"], &seen["settled"]), (&json!(1), &json!(true), &json!(true)), "{seen}");
    let node = &seen["nodes"][0];
    assert_eq!((&node["answers"], &node["state"]), (&json!(true), &json!("active")));
    assert!(node["disk_free_bytes"].as_u64() > Some(0) && node["memory_bytes"].as_u64() > Some(0), "{node}");
    assert!(node["version"].is_string() && node["started"].is_string());
    let account = fixture.service_account("robot");
    let bearer = format!("Bearer {}", account["service_token"].as_str().expect("a token"));
    let other = fixture.send(&crate::client::request("GET", "/console/cluster", &[("Authorization", &bearer)], b""));
    assert!(other.refused(403).contains("console.operators"));

    let usage = fixture.get("/console/usage").ok();
    // The audit log is stored too, and belongs to no project.
    assert!(usage["complete"] == true && usage["rows"].as_u64() > Some(20), "{usage}");
    assert_eq!((&usage["projects"][0]["id"], &usage["projects"][0]["rows"]), (&json!(project), &json!(20)));
    assert_eq!((&usage["quota"]["rows"], &usage["rates"]), (&Value::Null, &json!([])));
}

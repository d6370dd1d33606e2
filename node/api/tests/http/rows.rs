//! Rows over HTTP: written, read back, spoken of.

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// The row of this id, as shown.
#[track_caller]
fn row<'a>(events: &'a [Value], id: &str) -> &'a Value {
    events.iter().find(|event| event["id"] == id).unwrap_or_else(|| panic!("{id} in {events:?}"))
}

#[test]
fn what_was_inserted_is_read_back_by_both_ways_of_asking() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let path = format!("/v1/project_logs/{project}");
    let events = json!([{"id": "a", "input": {"x": 1}, "scores": {"good": 0.5}}, {"output": "made id"}]);
    let answer = fixture.post(&format!("{path}/insert"), &json!({"events": events, "api_version": 2})).ok();
    let row_ids = answer["row_ids"].as_array().expect("ids");
    assert_eq!((row_ids.len(), &row_ids[0]), (2, &Value::from("a")));

    let by_body = fixture.events("project_logs", &project);
    let by_query = fixture.get(&format!("{path}/fetch?limit=10&max_xact_id=&version=")).ok();
    assert_eq!(by_query["events"].as_array(), Some(&by_body));
    assert!(by_query["cursor"].is_null(), "{by_query}");
    let shown = row(&by_body, "a");
    assert_eq!(
        (&shown["input"]["x"], &shown["log_id"], &shown["project_id"]),
        (&json!(1), &json!("g"), &json!(project))
    );
    assert_eq!(shown["_xact_id"].as_str().map(str::len), Some(19));

    let empty = fixture.call("POST", &format!("{path}/fetch"), &[], b"");
    assert_eq!(empty.ok()["events"].as_array(), Some(&by_body));
    assert_eq!(empty.header("x-bt-version").map(str::len), Some(19));
    assert_eq!(fixture.get(&format!("{path}/fetch?limit=0")).ok()["events"], json!([]));
    assert_eq!(fixture.post(&format!("{path}/insert"), &json!({"events": []})).ok(), json!({"row_ids": []}));
}

#[test]
fn pages_follow_their_cursor_to_the_end() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    for n in 0..5 {
        fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({"events": [{"id": n.to_string()}]})).ok();
    }
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..5 {
        let asked = json!({"limit": 2, "cursor": cursor});
        let page = fixture.post(&format!("/v1/project_logs/{project}/fetch"), &asked).ok();
        seen.extend(page["events"].as_array().expect("events").iter().map(|event| event["id"].clone()));
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert!(cursor.is_null());
    assert_eq!(seen, ["4", "3", "2", "1", "0"]);
    let wrong = fixture.post(&format!("/v1/project_logs/{project}/fetch"), &json!({"cursor": "nonsense"}));
    wrong.refused(400);
}

#[test]
fn feedback_changes_the_row_and_hangs_comments_on_it() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let path = format!("/v1/project_logs/{project}");
    fixture.post(&format!("{path}/insert"), &json!({"events": [{"id": "a", "scores": {"x": 1}}]})).ok();
    let items = json!({"feedback": [{"id": "a", "scores": {"y": 0}, "comment": "fine", "tags": ["t"]}]});
    assert_eq!(fixture.post(&format!("{path}/feedback"), &items).ok(), json!({"status": "success"}));
    let events = fixture.events("project_logs", &project);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["scores"], json!({"x": 1, "y": 0}));
    assert_eq!(events[0]["comments"].as_array().map(Vec::len), Some(1), "{}", events[0]);
    let said = fixture.post(&format!("{path}/feedback"), &json!({"feedback": [{"id": "a", "scores": {"y": 7}}]}));
    assert!(said.refused(400).contains("scores"));
}

#[test]
fn logs3_comes_without_a_content_type_and_answers_an_object() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let dataset = fixture.make("dataset", &json!({"project_id": project, "name": "d"}));
    let rows = json!({"api_version": 2, "rows": [
        {"id": "a", "project_id": project, "log_id": "g", "span_parents": null, "_is_merge": false},
        {"id": "b", "dataset_id": dataset, "project_id": project, "input": 1},
        {"id": "c", "project_id": project, "log_id": "g"},
    ]});
    let answer = fixture.call("POST", "/logs3", &[], rows.to_string().as_bytes()).ok();
    assert_eq!(answer["row_ids"], json!(["a", "b", "c"]));
    assert_eq!(fixture.events("project_logs", &project).len(), 2);
    assert!(fixture.events("dataset", &dataset)[0].as_object().is_some_and(|row| row.contains_key("expected")));

    let bad =
        json!({"rows": [rows["rows"][0], rows["rows"][1], {"id": "z", "project_id": project, "scores": {"s": 2}}]});
    let said = fixture.post("/logs3", &bad).refused(400);
    assert!(said.starts_with("row 2"), "{said}");
    assert_eq!(fixture.post("/logs3", &json!({"rows": []})).ok(), json!({"row_ids": []}));
    fixture.post("/logs3", &json!({"rows": {"type": "logs3_overflow", "key": "k"}})).refused(400);
}

#[test]
fn a_cross_insert_answers_in_the_nesting_it_was_asked_in() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let experiment = fixture.make("experiment", &json!({"project_id": project, "name": "e"}));
    let body = json!({
        "experiment": {experiment.as_str(): {"events": [{"id": "a"}], "feedback": [{"id": "a", "scores": {"s": 1}}]}},
        "project_logs": {project.as_str(): {"events": [{"id": "b"}, {"id": "c"}]}},
        "dataset": null,
    });
    let answer = fixture.post("/v1/insert", &body).ok();
    let expected = json!({
        "experiment": {experiment.as_str(): {"row_ids": ["a"]}},
        "project_logs": {project.as_str(): {"row_ids": ["b", "c"]}},
    });
    assert_eq!(answer, expected);
    assert_eq!(fixture.events("experiment", &experiment)[0]["scores"], json!({"s": 1}));

    let bad = json!({"project_logs": {project.as_str(): {"events": [{"id": "d"}, {"id": "e", "tags": 1}]}}});
    let said = fixture.post("/v1/insert", &bad).refused(400);
    assert!(said.contains(&project) && said.contains("row 1"), "{said}");
    assert_eq!(fixture.events("project_logs", &project).len(), 2, "all or nothing");
}

#[test]
fn a_request_sent_twice_with_one_key_is_done_once() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let path = format!("/v1/project_logs/{project}/insert");
    let body = json!({"events": [{"input": 1}]}).to_string();
    let send = |body: &str| fixture.call("POST", &path, &[("Idempotency-Key", "k-1")], body.as_bytes());
    let first = send(&body).ok();
    assert_eq!(send(&body).ok(), first);
    assert_eq!(fixture.events("project_logs", &project).len(), 1);
    send(&json!({"events": [{"input": 2}]}).to_string()).refused(409);
}

#[test]
fn rows_of_what_is_not_there_are_refused() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    for id in ["00000000-0000-4000-8000-000000000001", project.as_str()] {
        fixture.post(&format!("/v1/experiment/{id}/insert"), &json!({"events": [{"id": "a"}]})).refused(404);
        fixture.get(&format!("/v1/dataset/{id}/fetch")).refused(404);
    }
    fixture.post("/v1/project_logs/p/insert", &json!({"events": []})).refused(400);
    fixture.call("DELETE", &format!("/v1/project/{project}"), &[], b"").ok();
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({"events": [{"id": "a"}]})).refused(404);
    fixture.get(&format!("/v1/project_logs/{project}/fetch")).refused(404);
}

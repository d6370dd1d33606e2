//! Reviews of rows by several people: means, blind reviews, completion.

use serde_json::{Value, json};

use crate::client::{ClientResponse, request};
use crate::fixture::Fixture;

/// A reviewer: someone who may change rows of a project and not the project.
struct Person<'f> {
    fixture: &'f Fixture,
    id: Value,
    token: String,
}

impl<'f> Person<'f> {
    fn new(fixture: &'f Fixture, project: &str, name: &str) -> Person<'f> {
        let owner = fixture.service_account(&format!("maker of {name}"));
        let owner =
            Person { fixture, id: Value::Null, token: owner["service_token"].as_str().expect("a token").into() };
        let accounts = json!([{"name": name, "token_name": name}]);
        let wanted = json!({"invite_users": {"service_accounts": accounts, "group_names": []}});
        let added = owner.call("PATCH", "/v1/organization/members", &wanted).ok()["added_users"][0].clone();
        let (id, token) = (added["id"].clone(), added["api_key"].as_str().expect("a token").to_owned());
        for (permission, kind) in [("read", Value::Null), ("update", json!("project_log"))] {
            let grant = json!({
                "object_type": "project", "object_id": project, "user_id": id, "permission": permission,
                "restrict_object_type": kind,
            });
            fixture.post("/v1/acl", &grant).ok();
        }
        Person { fixture, id, token }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> ClientResponse {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.fixture.send(&request(method, path, &headers, body.as_bytes()))
    }

    fn post(&self, path: &str, body: &Value) -> ClientResponse {
        self.call("POST", path, body)
    }

    fn query(&self, query: &str) -> Vec<Value> {
        let found = self.post("/btql", &json!({"query": query})).ok();
        found["data"].as_array().expect("rows").clone()
    }
}

/// A project with three scores, of which one is automatic, and a row that is to be reviewed.
fn project(fixture: &Fixture, settings: &Value) -> String {
    let project = fixture.make("project", &json!({"name": "p"}));
    let changed = json!({"settings": settings}).to_string();
    fixture.call("PATCH", &format!("/v1/project/{project}"), &[], changed.as_bytes()).ok();
    fixture.make("project_score", &json!({"project_id": project, "name": "Good", "score_type": "slider"}));
    let notes = json!({"project_id": project, "name": "Notes", "score_type": "free-form"});
    fixture.make("project_score", &notes);
    let row = json!({
        "id": "row", "span_id": "s", "root_span_id": "s", "input": "x", "scores": {"Good": 0.1, "Auto": 0.9},
        "span_attributes": {"type": "task", "name": "chat"},
    });
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({"events": [row]})).ok();
    project
}

#[test]
fn reviews_of_several_people_have_their_mean_in_the_row() {
    let fixture = Fixture::open();
    let project = project(&fixture, &json!({}));
    let path = format!("/v1/review/project_logs/{project}/row");
    let (ann, ben) = (Person::new(&fixture, &project, "ann"), Person::new(&fixture, &project, "ben"));
    let first = ann.call("PUT", &path, &json!({"scores": {"Good": 1}, "comment": "fine", "submitted": true})).ok();
    assert_eq!((&first["submitted"], &first["complete"]), (&json!(true), &json!(false)));
    ben.call("PUT", &path, &json!({"scores": {"Good": 0.5}})).ok();
    let shown = ben.call("GET", &path, &Value::Null).ok();
    assert_eq!((&shown["blind"], &shown["hidden"]), (&json!(false), &json!(false)));
    let reviews = shown["reviews"].as_array().expect("reviews");
    assert_eq!(reviews.len(), 2, "{shown}");
    let of_ann = reviews.iter().find(|review| review["reviewer_id"] == ann.id).expect("Ann's review");
    assert_eq!(of_ann["comment"], "fine");
    let row =
        &ann.query(&format!("select: scores, comments | from: project_logs('{project}') | filter: id = 'row'"))[0];
    assert_eq!(row["scores"], json!({"Auto": 0.9, "Good": 0.75}));
    assert!(row["comments"].to_string().contains("fine"), "{row}");

    // The same person again: one review, not two.
    ann.call("PUT", &path, &json!({"scores": {"Good": 0}})).ok();
    let all = format!("select: id | from: project_logs('{project}') | filter: span_attributes.type = 'review'");
    assert_eq!(ann.query(&all).len(), 2);
    assert!(ann.call("PUT", &path, &json!({"scores": {"Good": 7}})).refused(400).contains("`scores.Good`"));
    let id = first["id"].as_str().expect("an id");
    let of_review = format!("/v1/review/project_logs/{project}/{id}");
    assert!(ann.call("PUT", &of_review, &json!({"submitted": true})).refused(400).contains("review itself"));
    for other in ["other", "x%5C%27%20or%20id%20=%20id%20--", "x%27%20or%20id%20=%20id%20--"] {
        ann.call("GET", &format!("/v1/review/project_logs/{project}/{other}"), &Value::Null).refused(404);
    }
    ann.call("GET", &format!("/v1/review/dataset/{project}/row"), &Value::Null).refused(400);
}

#[test]
fn nobody_sees_reviews_of_others_in_a_blind_project_before_the_own_one() {
    let fixture = Fixture::open();
    let project = project(&fixture, &json!({"blind_reviews": true}));
    let path = format!("/v1/review/project_logs/{project}/row");
    let (ann, ben) = (Person::new(&fixture, &project, "ann"), Person::new(&fixture, &project, "ben"));
    ben.call("PUT", &path, &json!({"scores": {"Good": 0.25}, "comment": "secret", "submitted": true})).ok();
    let from = format!("from: project_logs('{project}')");
    let row = format!("select: scores, comments, scores.Good as good | {from} | filter: id = 'row'");
    let count = format!("measures: count(1) as n, avg(scores.Good) as mean | {from}");
    let sorted = format!("select: id, scores.Good as good | {from} | sort: scores.Good desc");
    let filtered = format!("select: id | {from} | filter: scores.Good = 0.25");
    let reviews = format!("select: id | {from} | filter: span_attributes.type = 'review'");
    let summary = format!("select: id, scores | {from} summary");
    let words = format!("select: id | {from} | filter: search('secret')");
    let pivot = format!("SELECT score, value FROM project_logs('{project}') UNPIVOT (value FOR score IN (scores))");

    let before = &ann.query(&row)[0];
    assert_eq!(
        (&before["scores"], &before["comments"], &before["good"]),
        (&json!({"Auto": 0.9}), &Value::Null, &Value::Null)
    );
    assert_eq!(ann.query(&count)[0], json!({"n": 1, "mean": null}));
    assert_eq!(ann.query(&sorted), [json!({"id": "row", "good": null})]);
    assert!(ann.query(&filtered).is_empty() && ann.query(&reviews).is_empty() && ann.query(&words).is_empty());
    assert_eq!(ann.query(&summary)[0]["scores"], json!({"Auto": 0.9}));
    assert_eq!(ann.query(&pivot), [json!({"score": "Auto", "value": 0.9})]);
    let audit = json!({"query": format!("select: * | {from} | filter: id = 'row'"), "audit_log": true});
    assert_eq!(ann.post("/btql", &audit).ok()["data"], json!([]));
    let fetched = ann.post(&format!("/v1/project_logs/{project}/fetch"), &json!({})).ok();
    assert!(!fetched.to_string().contains("0.25") && !fetched.to_string().contains("secret"), "{fetched}");
    let shown = ann.call("GET", &path, &Value::Null).ok();
    assert_eq!((&shown["hidden"], &shown["reviews"]), (&json!(true), &json!([])));
    // Whoever may change the project sees all.
    let owner = fixture.post("/btql", &json!({"query": filtered})).ok();
    assert_eq!(owner["data"].as_array().map(Vec::len), Some(2), "{owner}");

    ann.call("PUT", &path, &json!({"scores": {"Good": 0.75}})).ok();
    let own = &ann.query(&reviews);
    assert_eq!(own.len(), 1, "the own review");
    assert_eq!(
        ann.query(&format!("select: scores | {from} | filter: span_attributes.type = 'review'"))[0]["scores"],
        json!({"Good": 0.75})
    );
    assert_eq!(ann.query(&row)[0]["good"], Value::Null);
    ann.call("PUT", &path, &json!({"submitted": true})).ok();
    assert_eq!(ann.query(&row)[0]["good"], 0.5);
    assert_eq!(ann.query(&reviews).len(), 2);
    assert_eq!(ann.call("GET", &path, &Value::Null).ok()["reviews"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_review_is_complete_when_all_assignees_filled_all_their_scores() {
    let fixture = Fixture::open();
    let project = project(&fixture, &json!({"require_all_human_review_scores": true}));
    let path = format!("/v1/review/project_logs/{project}/row");
    let (ann, ben) = (Person::new(&fixture, &project, "ann"), Person::new(&fixture, &project, "ben"));
    let hidden = json!({
        "project_id": project, "name": "Only errors", "score_type": "slider",
        "config": {"condition": {"when": {"clauses": ["error is null"]}, "behavior": "hidden"}},
    });
    fixture.make("project_score", &hidden);
    let assign = json!({"events": [{
        "id": "row", "_is_merge": true, "metadata": {"~__bt_assignments": [ann.id, ben.id]},
        "_merge_paths": [["metadata", "~__bt_assignments"]],
    }]});
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &assign).ok();
    let filled = json!({"scores": {"Good": 1}, "metadata": {"Notes": "short"}, "submitted": true});
    assert_eq!(ann.call("PUT", &path, &filled).ok()["complete"], false);
    assert_eq!(ben.call("PUT", &path, &json!({"scores": {"Good": 1}, "submitted": true})).ok()["complete"], false);
    let last = ben.call("PUT", &path, &json!({"metadata": {"Notes": "long"}})).ok();
    assert_eq!((&last["complete"], &last["status"]), (&json!(true), &json!("COMPLETE")));
    let query = format!("select: metadata | from: project_logs('{project}') | filter: id = 'row'");
    let list = ann.query(&query)[0]["metadata"]["~__bt_review_lists"]["__bt_default_review_list"].clone();
    assert!(list["status"] == "COMPLETE" && list["completed_at"].is_string(), "{list}");
}

#[test]
fn the_condition_of_a_score_reads_no_other_row() {
    let fixture = Fixture::open();
    let project = project(&fixture, &json!({"require_all_human_review_scores": true}));
    let odd = json!({
        "project_id": project, "name": "Odd", "score_type": "slider",
        "config": {"condition": {"when": {"clauses": ["false) or (true"]}, "behavior": "hidden"}},
    });
    fixture.make("project_score", &odd);
    let ann = Person::new(&fixture, &project, "ann");
    let path = format!("/v1/review/project_logs/{project}/row");
    let refused = ann.call("PUT", &path, &json!({"scores": {"Good": 1}, "submitted": true})).refused(400);
    assert!(refused.contains("the condition of a score"), "{refused}");
}

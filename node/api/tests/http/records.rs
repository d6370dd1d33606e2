//! Records of the catalog over HTTP: the statuses, bodies and headers that clients branch on.

use serde_json::{Value, json};

use crate::fixture::Fixture;

#[test]
fn a_project_is_made_found_patched_and_deleted() {
    let fixture = Fixture::open();
    let made = fixture.post("/v1/project", &json!({"name": "p", "org_name": "", "project_group_name": "x"}));
    let (id, first) = (made.ok()["id"].as_str().expect("an id").to_owned(), made.header("x-bt-found-existing"));
    assert_eq!(first, None);
    let again = fixture.post("/v1/project", &json!({"name": "p"}));
    assert_eq!((again.ok()["id"].as_str(), again.header("x-bt-found-existing")), (Some(id.as_str()), Some("true")));

    let path = format!("/v1/project/{id}");
    assert_eq!(fixture.get(&path).ok()["name"], "p");
    let patched = fixture.call("PATCH", &path, &[], json!({"description": "d"}).to_string().as_bytes());
    assert_eq!(patched.ok()["description"], "d");
    assert!(fixture.call("DELETE", &path, &[], b"").ok()["deleted_at"].is_string());
    fixture.get(&path).refused(404);
    assert_eq!(fixture.get("/v1/project?project_name=p").ok(), json!({"objects": []}));
}

#[test]
fn lists_take_empty_values_aliases_repeated_ids_and_one_cursor() {
    let fixture = Fixture::open();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|name| fixture.project(name)).collect();
    let listed = |query: &str| -> Vec<Value> {
        let answer = fixture.get(&format!("/v1/project?{query}")).ok();
        answer["objects"].as_array().expect("a list").iter().map(|object| object["name"].clone()).collect()
    };
    assert_eq!(listed("org_name=&limit=&starting_after=&use_brainstore=1"), ["c", "b", "a"]);
    assert_eq!(listed("name=b&org_name=acme"), ["b"]);
    assert_eq!(listed("project_name=B"), [] as [&str; 0]);
    assert_eq!(listed(&format!("ids={}&ids={}", ids[0], ids[2])), ["c", "a"]);
    assert_eq!(listed("limit=0"), [] as [&str; 0]);
    assert_eq!(listed(&format!("starting_after={}&limit=1", ids[2])), ["b"]);
    assert_eq!(listed(&format!("ending_before={}", ids[1])), ["c"]);
    for wrong in ["limit=-1", "limit=x", "starting_after=x", "ids=x"] {
        fixture.get(&format!("/v1/project?{wrong}")).refused(400);
    }
    fixture.get(&format!("/v1/project?starting_after={}&ending_before={}", ids[0], ids[1])).refused(400);
}

#[test]
fn an_api_key_is_shown_once_works_and_ends_with_its_record() {
    let fixture = Fixture::open();
    let made = fixture.post("/v1/api_key", &json!({"name": "k"})).ok();
    let key = made["key"].as_str().expect("shown once").to_owned();
    let ping = || {
        let bearer = format!("Bearer {key}");
        fixture.send(&crate::client::request("GET", "/ping", &[("Authorization", &bearer)], b""))
    };
    ping().ok();
    let path = format!("/v1/api_key/{}", made["id"].as_str().expect("an id"));
    assert!(fixture.get(&path).ok().get("key").is_none());
    assert!(!fixture.get("/v1/api_key").text().contains(&key));
    fixture.call("PATCH", &path, &[], b"{}").refused(405);
    fixture.call("DELETE", &path, &[], b"").ok();
    ping().refused(401);
}

#[test]
fn experiments_and_datasets_are_records_of_their_project() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let experiment = fixture.make("experiment", &json!({"project_id": project, "name": "e"}));
    let found = fixture.get(&format!("/v1/experiment?experiment_name=e&project_id={project}&org_name=")).ok();
    assert_eq!(found["objects"][0]["id"], experiment.as_str());
    fixture.make("dataset", &json!({"project_id": project, "name": "d"}));
    let found = fixture.get("/v1/dataset?project_name=p&dataset_name=d").ok();
    assert_eq!(found["objects"].as_array().expect("a list").len(), 1);
    fixture.post("/v1/experiment", &json!({"project_id": "00000000-0000-4000-8000-000000000001"})).refused(404);
}

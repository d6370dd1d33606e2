//! Roles, groups, grants, members: as clients ask for them, and what the granted see.

use assay_node_auth::chain::{FIRST_HASH, verified};
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, ORG};

const AS: &str = "x-bt-impersonate-user";

/// Calls as somebody whom the owner invited.
fn by(fixture: &Fixture, who: &str, method: &str, path: &str, body: &Value) -> crate::client::ClientResponse {
    fixture.call(method, path, &[(AS, who), ("Content-Type", "application/json")], body.to_string().as_bytes())
}

fn patch(fixture: &Fixture, path: &str, body: &Value) -> Value {
    fixture.call("PATCH", path, &[], body.to_string().as_bytes()).ok()
}

fn put(fixture: &Fixture, path: &str, body: &Value) -> Value {
    fixture.call("PUT", path, &[], body.to_string().as_bytes()).ok()
}

#[test]
fn a_member_sees_what_their_groups_role_says() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let invited = json!({"invite_users": {"emails": ["ann@example.com"], "send_invite_emails": false}});
    let added = patch(&fixture, "/v1/organization/members", &invited);
    assert_eq!((&added["status"], &added["send_email_error"]), (&json!("success"), &Value::Null));
    let ann = added["added_users"][0]["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/project/{project}");
    by(&fixture, &ann, "GET", &path, &json!(null)).refused(404);
    assert_eq!(by(&fixture, &ann, "GET", "/v1/project", &json!(null)).ok()["objects"], json!([]));

    let role = fixture.post("/v1/role", &json!({"name": "reader"})).ok();
    let permission = json!({"permission": "read", "restrict_object_type": "project"});
    let role_path = format!("/v1/role/{}", role["id"].as_str().expect("an id"));
    let changed = patch(&fixture, &role_path, &json!({"add_member_permissions": [permission], "description": "reads"}));
    assert_eq!(changed["member_permissions"], json!([permission]));
    let group = fixture.post("/v1/group", &json!({"name": "readers"})).ok();
    let group_path = format!("/v1/group/{}", group["id"].as_str().expect("an id"));
    assert_eq!(patch(&fixture, &group_path, &json!({"add_member_users": [ann]}))["member_users"], json!([ann]));
    let sent = json!({"object_type": "organization", "object_id": group["org_id"], "group_id": group["id"], "role_id": role["id"]});
    let acl = fixture.post("/v1/acl", &sent).ok();
    assert_eq!(acl["_object_org_id"], group["org_id"]);
    assert_eq!(by(&fixture, "ann@example.com", "GET", &path, &json!(null)).ok()["name"], "p");
    by(&fixture, &ann, "PATCH", &path, &json!({"name": "q"})).refused(403);
    let insert = format!("/v1/project_logs/{project}/insert");
    by(&fixture, &ann, "POST", &insert, &json!({"events": [{"input": 1}]})).refused(403);

    assert_eq!(fixture.call("DELETE", "/v1/acl", &[], sent.to_string().as_bytes()).ok()["id"], acl["id"]);
    by(&fixture, &ann, "GET", &path, &json!(null)).refused(404);
    let removed = json!({"remove_users": {"emails": ["Ann@example.com"]}});
    patch(&fixture, "/v1/organization/members", &removed);
    by(&fixture, &ann, "GET", "/ping", &json!(null)).refused(403);
    assert_eq!(fixture.get(&group_path).ok()["member_users"], json!([]));
}

#[test]
fn grants_are_listed_of_their_object_or_of_all() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let me = fixture.call("POST", "/api/self/me", &[], b"").ok();
    let sent = json!({"object_type": "project", "object_id": project, "user_id": me["id"], "permission": "read"});
    let twice = json!({"add_acls": [sent, sent], "remove_acls": null});
    let updated = fixture.post("/v1/acl/batch-update", &twice).ok();
    assert_eq!(updated["added_acls"][0], updated["added_acls"][1]);
    assert!(fixture.get("/v1/acl").refused(400).contains("`object_type` is missing"));
    let listed = fixture.get(&format!("/v1/acl?object_type=project&object_id={project}")).ok();
    assert_eq!(listed["objects"].as_array().map(Vec::len), Some(1));
    let all = fixture.get("/v1/acl/list_org?limit=10").ok();
    assert_eq!(all.as_array().map(Vec::len), Some(4), "three groups have theirs from the beginning");
    let removed = fixture.post("/v1/acl/batch_update", &json!({"remove_acls": [sent, sent]})).ok();
    assert_eq!(removed["removed_acls"].as_array().map(Vec::len), Some(1));
    assert!(fixture.post("/v1/acl/batch_update", &json!({"add_acls": {}})).refused(400).contains("`add_acls`"));
}

#[test]
fn organizations_and_users_are_told_and_changed() {
    let fixture = Fixture::open();
    let orgs = fixture.get("/v1/organization").ok();
    let org = orgs["objects"][0]["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/organization/{org}");
    assert_eq!(fixture.get(&path).ok(), orgs["objects"][0]);
    let changed = patch(&fixture, &path, &json!({"api_url": "https://api.example.com", "is_universal_api": true}));
    assert_eq!((&changed["api_url"], &changed["is_universal_api"]), (&json!("https://api.example.com"), &json!(true)));
    let wrong = fixture.call("PATCH", &path, &[], br#"{"image_rendering_mode":"never"}"#).refused(400);
    assert!(wrong.contains("`image_rendering_mode` has to be one of"), "{wrong}");
    patch(
        &fixture,
        "/v1/organization/members",
        &json!({"invite_users": {"emails": ["ann@example.com", "ben@example.com"]}}),
    );
    let users = fixture.get("/v1/user?limit=2").ok();
    let last = users["objects"][1]["id"].as_str().expect("an id").to_owned();
    let rest = fixture.get(&format!("/v1/user?starting_after={last}")).ok();
    assert_eq!(
        (users["objects"].as_array().map(Vec::len), rest["objects"].as_array().map(Vec::len)),
        (Some(2), Some(1))
    );
    let named = fixture.get("/v1/user?email=ann@example.com&email=nobody@example.com").ok();
    assert_eq!(named["objects"].as_array().map(Vec::len), Some(1));
    let ann = &named["objects"][0];
    assert_eq!(fixture.get(&format!("/v1/user/{}", ann["id"].as_str().expect("an id"))).ok(), *ann);
    let seen = by(&fixture, "ann@example.com", "GET", "/v1/user", &json!(null)).ok();
    assert_eq!(seen["objects"], json!([ann]), "whoever was granted nothing sees themselves");
}

#[test]
fn a_put_takes_the_place_of_what_has_the_name() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let path = "/v1/project_tag";
    let first = put(&fixture, path, &json!({"project_id": project, "name": "t", "color": "red", "description": "d"}));
    let again = fixture.post(path, &json!({"project_id": project, "name": "t", "color": "blue"})).ok();
    assert_eq!(again, first, "made or got, unchanged");
    let replaced = put(&fixture, path, &json!({"project_id": project, "name": "t", "color": "blue"}));
    assert_eq!(
        (&replaced["id"], &replaced["color"], &replaced["description"]),
        (&first["id"], &json!("blue"), &Value::Null)
    );
    assert_eq!((&replaced["user_id"], &replaced["created"]), (&first["user_id"], &first["created"]));
    let listed = fixture.get(&format!("{path}?project_id={project}&project_tag_name=t")).ok();
    assert_eq!(listed["objects"], json!([replaced]));
    assert!(put(&fixture, "/v1/role", &json!({"name": "r"}))["id"].is_string());
}

#[test]
fn what_a_kind_does_not_take_is_refused_by_name() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let score = |more: Value| {
        let mut sent = json!({"project_id": project, "name": "s", "score_type": "slider"});
        sent.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        sent
    };
    for (path, sent, names) in [
        ("/v1/project_score", score(json!({"score_type": "best"})), "`score_type` has to be one of"),
        (
            "/v1/project_score",
            score(json!({"config": {"online": {"sampling_rate": 2, "scorers": []}}})),
            "`config.online.sampling_rate` has to be a number from 0 to 1",
        ),
        ("/v1/project_score", score(json!({"categories": [{"name": "good", "value": 7}]})), "`categories[0].value`"),
        ("/v1/span_iframe", json!({"project_id": project, "name": "i"}), "`url` is missing"),
        ("/v1/group", json!({"name": "g", "member_users": ["x"]}), "`member_users[0]` has to be a UUID"),
        (
            "/v1/role",
            json!({"name": "r", "member_permissions": [{"permission": "all"}]}),
            "`member_permissions[0].permission`",
        ),
        ("/environment", json!({"name": "e"}), "`slug` is missing"),
    ] {
        let said = fixture.post(path, &sent).refused(400);
        assert!(said.contains(names), "{path}: {said} does not name {names}");
    }
    fixture.post("/environment", &json!({"name": "e", "slug": "prod"})).ok();
    assert!(fixture.post("/environment", &json!({"name": "f", "slug": "prod"})).refused(400).contains("`slug`"));
}

#[test]
fn views_are_asked_for_with_the_object_they_are_of() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let of = |more: Value| {
        let mut sent = json!({"object_type": "project", "object_id": project});
        sent.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        sent
    };
    let made = fixture
        .post("/v1/view", &of(json!({"view_type": "logs", "name": "mine", "options": {"rowHeight": "tall"}})))
        .ok();
    let again = fixture.post("/v1/view", &of(json!({"view_type": "logs", "name": "mine"}))).ok();
    assert_eq!(made, again);
    fixture.post("/v1/view", &of(json!({"view_type": "datasets", "name": "mine"}))).ok();
    let query = format!("object_type=project&object_id={project}");
    assert_eq!(fixture.get(&format!("/v1/view?{query}")).ok()["objects"].as_array().map(Vec::len), Some(2));
    let named = fixture.get(&format!("/v1/view?{query}&view_type=logs&view_name=mine")).ok();
    assert_eq!(named["objects"], json!([made]));
    let path = format!("/v1/view/{}", made["id"].as_str().expect("an id"));
    assert!(fixture.get(&path).refused(400).contains("`object_type` is missing"));
    assert_eq!(fixture.get(&format!("{path}?{query}")).ok(), made);
    fixture.get(&format!("{path}?object_type=organization&object_id={project}")).refused(404);
    let changed = patch(&fixture, &path, &of(json!({"name": "ours", "view_data": {"search": {"match": ["x"]}}})));
    assert_eq!((&changed["name"], &changed["view_data"]["search"]["match"]), (&json!("ours"), &json!(["x"])));
    let same = fixture.post("/v1/view", &of(json!({"view_type": "logs", "name": "ours"}))).ok();
    assert_eq!(same["id"], made["id"], "it has its new name");
    let said = fixture
        .post("/v1/view", &of(json!({"view_type": "logs", "name": "x", "options": {"queryShape": "rows"}})))
        .refused(400);
    assert!(said.contains("`options.queryShape`"), "{said}");
    let gone = fixture.call("DELETE", &path, &[], of(json!({})).to_string().as_bytes()).ok();
    assert!(gone["deleted_at"].is_string());
    fixture.get(&format!("{path}?{query}")).refused(404);
}

#[test]
fn what_is_done_to_access_is_a_chain_that_can_be_asked_for() {
    let fixture = Fixture::open();
    let me = fixture.post("/api/self/me", &json!({})).ok();
    let org = me["organizations"][0]["id"].as_str().expect("an id").to_owned();
    for number in 0..5 {
        fixture.post("/v1/group", &json!({"name": format!("g {number}"), "member_users": [me["id"]]})).ok();
    }
    let ask = |query: String| fixture.post("/btql", &json!({"query": query, "fmt": "json"}));
    let rows = ask(format!("SELECT * FROM org_audit_logs('{org}') ORDER BY sequence")).ok();
    let rows: Vec<Map<String, Value>> =
        rows["data"].as_array().expect("rows").iter().map(|row| row.as_object().cloned().expect("a row")).collect();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row["org_id"] == org.as_str() && row["actor"]["user_id"] == me["id"]));
    // What was hashed is what an entry says; the rest is where it is kept.
    let entries = |rows: &[Map<String, Value>]| -> Vec<Map<String, Value>> {
        let own = |row: &Map<String, Value>| {
            let kept = row
                .iter()
                .filter(|(name, _)| !["_xact_id", "_pagination_key", "org_id", "id"].contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        rows.iter().map(own).collect()
    };
    let last = verified(&entries(&rows), 1, FIRST_HASH).expect("a whole chain");
    assert_eq!(rows[4]["hash"], last.as_str());
    let mut changed = rows.clone();
    changed[2].insert("object_name".into(), "another".into());
    assert!(verified(&entries(&changed), 1, FIRST_HASH).is_err());

    let found =
        ask(format!("SELECT object_name FROM org_audit_logs('{ORG}') WHERE action = 'create' AND sequence = 3"));
    assert_eq!(found.ok()["data"], json!([{"object_name": "g 2"}]));
    // Nobody writes there but the program, and nobody reads there who may not.
    let row = json!({"rows": [{"log_id": "g", "project_id": org, "id": "000000000001", "action": "x"}]});
    fixture.post("/logs3", &row).refused(404);
    let invited =
        patch(&fixture, "/v1/organization/members", &json!({"invite_users": {"emails": ["ann@example.com"]}}));
    let ann = invited["added_users"][0]["id"].as_str().expect("an id").to_owned();
    let query = json!({"query": format!("SELECT * FROM org_audit_logs('{org}')"), "fmt": "json"});
    by(&fixture, &ann, "POST", "/btql", &query).refused(403);
    ask("SELECT * FROM org_audit_logs('11111111-2222-4333-8444-555555555555')".into()).refused(403);
}

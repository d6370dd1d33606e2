//! Service accounts, service tokens and JWTs, as clients show them.

use assay_node_auth::{JwtKeys, JwtRules, Secret};
use assay_node_identity::Jwts;
use serde_json::{Value, json};

use crate::client::{ClientResponse, request};
use crate::fixture::{Fixture, ORG};

/// By HS256 with this secret, for the issuer and the audience of this test, until 2100: of the owner, and of nobody.
const SHARED: &str = "a-secret-of-the-tests-of-32-bytes-and-more";
const OF_OWNER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoiYXNzYXkiLCJl\
    eHAiOjQxMDI0NDQ4MDAsImVtYWlsIjoib3duZXJAZXhhbXBsZS5jb20ifQ._vXd0u9DokerPk-5oQW4J5itiNI4pVp2JQT9RxMc-a8";
const OF_NOBODY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoiYXNzYXkiLCJl\
    eHAiOjQxMDI0NDQ4MDAsImVtYWlsIjoibm9ib2R5QGV4YW1wbGUuY29tIn0.Xl9HH2FQj074FJ-2ThMNQXh5PUP4cdl0urcqeVbE6ug";

fn by(fixture: &Fixture, credential: &str, method: &str, path: &str, body: &Value) -> ClientResponse {
    let bearer = format!("Bearer {credential}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    fixture.send(&request(method, path, &headers, body.as_bytes()))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {object}"))
}

/// What the API's schema has of a token, and of one that was made.
const FIELDS: [&str; 8] = [
    "id",
    "created",
    "name",
    "preview_name",
    "service_account_id",
    "service_account_email",
    "service_account_name",
    "org_id",
];

fn is_token(object: &Value, more: &[&str]) {
    let mut named: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut wanted: Vec<&str> = FIELDS.iter().chain(more).copied().collect();
    named.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(named, wanted);
    assert!(FIELDS.iter().all(|field| object[field].is_string()), "{object}");
}

#[test]
fn a_service_token_is_made_by_another_shown_once_and_gone_at_once() {
    let fixture = Fixture::open();
    let robot = fixture.service_account("robot");
    let token = text(&robot, "service_token");
    let me = by(&fixture, token, "POST", "/api/self/me", &Value::Null).ok();
    assert_eq!(
        (&me["id"], &me["email"], &me["organizations"][0]["name"]),
        (&robot["id"], &robot["email"], &json!(ORG))
    );
    assert_eq!(by(&fixture, token, "POST", "/api/apikey/login", &Value::Null).ok()["org_info"][0]["name"], ORG);

    let path = "/v1/service_token";
    let sent = json!({"name": "ci", "service_account_id": robot["id"], "org_name": ORG});
    let refused = fixture.post(path, &sent).refused(403);
    assert!(refused.contains("only the service token of an owner") && refused.contains("assay admin"), "{refused}");
    let made = by(&fixture, token, "POST", path, &sent).ok();
    is_token(&made, &["key"]);
    let key = text(&made, "key").to_owned();
    assert!(key.starts_with("bt-st-") && made["preview_name"] != json!(key));
    let again = by(&fixture, token, "PUT", path, &sent).ok();
    assert!(again["id"] != made["id"] && again["key"] != made["key"]);

    let listed = fixture.get(&format!("{path}?service_token_name=ci&org_name={ORG}")).ok();
    let objects = listed["objects"].as_array().expect("a list");
    assert_eq!(objects.iter().map(|token| &token["id"]).collect::<Vec<_>>(), [&again["id"], &made["id"]]);
    objects.iter().for_each(|token| is_token(token, &[]));
    let one = format!("{path}/{}", text(&made, "id"));
    assert_eq!(fixture.get(&one).ok(), objects[1]);

    assert_eq!(by(&fixture, &key, "GET", "/ping", &Value::Null).ok()["id"], robot["id"]);
    let gone = fixture.call("DELETE", path, &[], json!({"id": made["id"]}).to_string().as_bytes()).ok();
    assert_eq!((&gone["id"], gone.get("key")), (&made["id"], None));
    by(&fixture, &key, "GET", "/ping", &Value::Null).refused(401);
    fixture.get(&one).refused(404);
    let by_id = format!("{path}/{}", text(&again, "id"));
    fixture.call("DELETE", &by_id, &[], b"").ok();
    by(&fixture, text(&again, "key"), "GET", "/ping", &Value::Null).refused(401);
    for wrong in [json!({}), json!({"id": 5}), json!({"id": "x"})] {
        let said = fixture.call("DELETE", path, &[], wrong.to_string().as_bytes()).refused(400);
        assert!(said.contains("`id` has to be the UUID"), "{said}");
    }
    fixture.call("PATCH", &by_id, &[], b"{}").refused(405);
    assert_eq!(by(&fixture, token, "GET", "/ping", &Value::Null).status, 200, "the first goes on");
}

#[test]
fn accounts_come_with_the_members_and_go_with_them() {
    let fixture = Fixture::open();
    let robot = fixture.service_account("robot");
    let token = text(&robot, "service_token").to_owned();
    let path = "/v1/organization/members";
    let wanted = json!({"invite_users": {
        "service_accounts": [{"name": "Nightly CI", "token_name": "nightly"}], "group_names": ["Viewers"],
    }});
    let by_key = fixture.call("PATCH", path, &[], wanted.to_string().as_bytes()).refused(403);
    assert!(by_key.contains("service token of an owner"), "{by_key}");
    let answer = by(&fixture, &token, "PATCH", path, &wanted).ok();
    assert_eq!((&answer["status"], &answer["send_email_error"]), (&json!("success"), &Value::Null));
    let added = &answer["added_users"][0];
    assert_eq!(added["token_name"], "nightly");
    assert!(text(added, "email").starts_with("nightly-ci-") && text(added, "email").ends_with(".invalid"));
    let project = fixture.project("p");
    let nightly = text(added, "api_key").to_owned();
    let project = format!("/v1/project/{project}");
    assert_eq!(by(&fixture, &nightly, "GET", &project, &Value::Null).ok()["name"], "p");
    by(&fixture, &nightly, "PATCH", &project, &json!({"name": "q"})).refused(403);
    let own = by(&fixture, &nightly, "POST", "/v1/api_key", &json!({"name": "k"})).refused(403);
    assert!(own.contains("cannot have API keys"), "{own}");
    let user = fixture.get(&format!("/v1/user/{}", text(added, "id"))).ok();
    assert_eq!(user["given_name"], "Nightly CI");

    let bare = json!({"invite_users": {"service_accounts": [{"name": "bare"}]}});
    let bare = fixture.call("PATCH", path, &[], bare.to_string().as_bytes()).ok();
    assert_eq!(bare["added_users"][0]["api_key"], Value::Null, "without a token, by a user's key");

    let removed = json!({"remove_users": {"ids": [added["id"]]}});
    fixture.call("PATCH", path, &[], removed.to_string().as_bytes()).ok();
    by(&fixture, &nightly, "GET", &project, &Value::Null).refused(401);
    let left = fixture.get("/v1/service_token").ok();
    assert_eq!(left["objects"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_jwt_of_the_issuer_opens_what_its_user_may() {
    let rules = JwtRules { issuer: "https://issuer.example".into(), audience: "assay".into() };
    let keys = JwtKeys::of_secret(&Secret::new(SHARED.into())).expect("a secret");
    let fixture = Fixture::trusting(Jwts::with_keys(rules, keys));
    let me = by(&fixture, OF_OWNER, "POST", "/api/self/me", &Value::Null).ok();
    assert_eq!(me["email"], "owner@example.com");
    assert_eq!(by(&fixture, OF_OWNER, "POST", "/v1/project", &json!({"name": "p"})).ok()["name"], "p");
    fixture.organization("beta");
    let bearer = format!("Bearer {OF_OWNER}");
    let there = [("Authorization", bearer.as_str()), ("x-bt-org-name", "beta")];
    assert_eq!(fixture.send(&request("GET", "/ping", &there, b"")).ok()["org_name"], "beta");
    let forged = format!("{}A", &OF_OWNER[..OF_OWNER.len() - 1]);
    let mut said = Vec::new();
    for wrong in [OF_NOBODY, &forged, "a.b.c", "sk-of-nobody-at-all-0123456789"] {
        let answer = by(&fixture, wrong, "GET", "/ping", &Value::Null);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        said.push(answer.refused(401));
    }
    said.dedup();
    assert_eq!(said.len(), 1, "why is for the log alone: {said:?}");
    assert_eq!(Fixture::open().send(&request("GET", "/ping", &there[..1], b"")).status, 401, "where nobody is trusted");
}

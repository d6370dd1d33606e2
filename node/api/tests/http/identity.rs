//! Login, the caller's own record, and callers that are not known.

use serde_json::Value;

use crate::client::request;
use crate::fixture::{Fixture, KEY, ORG};

#[test]
fn a_login_has_no_body_and_names_the_origin_that_was_used() {
    let fixture = Fixture::open();
    for headers in [&[][..], &[("Content-Type", "application/json")][..]] {
        let answer = fixture.call("POST", "/api/apikey/login", headers, b"").ok();
        let orgs = answer["org_info"].as_array().expect("a list");
        assert_eq!(orgs.len(), 1);
        assert_eq!((&orgs[0]["name"], &orgs[0]["git_metadata"]), (&Value::from(ORG), &Value::Null));
        assert_eq!(orgs[0]["api_url"], "http://assay-test:8000");
        assert_eq!(orgs[0]["proxy_url"], "http://assay-test:8000");
        assert!(orgs[0]["id"].is_string() && orgs[0]["is_universal_api"].is_boolean());
    }
    let chunked = format!(
        "POST /api/apikey/login HTTP/1.1\r\nHost: node-a\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\
         X-Forwarded-Proto: https\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    assert_eq!(fixture.send(chunked.as_bytes()).ok()["org_info"][0]["api_url"], "https://node-a");
}

#[test]
fn a_login_hands_out_the_configured_origin() {
    let fixture = Fixture::with(|config| config.public_url = Some("https://assay.example.com/".into()));
    let answer = fixture.call("POST", "/api/apikey/login", &[], b"").ok();
    assert_eq!(answer["org_info"][0]["api_url"], "https://assay.example.com");
}

#[test]
fn the_caller_learns_who_it_is() {
    let fixture = Fixture::open();
    let me = fixture.call("POST", "/api/self/me", &[], b"").ok();
    assert_eq!(me["organizations"][0]["name"], ORG);
    assert_eq!(fixture.get("/ping").ok()["id"], me["id"]);
    let version = fixture.get("/version").ok();
    assert!(version["version"].is_string() && version["logs3_payload_max_bytes"].as_u64().is_some_and(|most| most > 0));
    let other = fixture.call("GET", "/ping", &[("x-bt-org-name", "another")], b"");
    assert!([401, 404].contains(&other.status), "{}", other.text());
    assert_eq!(fixture.call("GET", "/ping", &[("x-bt-org-name", "")], b"").status, 200);
    fixture.call("GET", "/ping", &[("x-bt-impersonate-user", "x@example.com")], b"").refused(403);
}

/// Keys that nobody has are answered at a pace, since anyone may try them.
const WRONG_KEY_EVERY: usize = 8;

/// Paths of model clients: their errors have the form of a model API.
const OF_MODEL_CLIENTS: &str = "/v1/proxy/";
/// The only one of them whose errors have the usual form.
const CREDENTIALS: &str = "/v1/proxy/credentials";

#[test]
fn without_a_known_key_nothing_is_answered() {
    let fixture = Fixture::open();
    let id = "00000000-0000-4000-8000-000000000001";
    // All that the API has, served or not yet, and what clients ask for beside it.
    let of_the_api = include_str!("../../src/openapi/api_table.txt").lines().filter(|line| *line != "GET /v1");
    let beside = [
        "POST /api/apikey/login",
        "POST /api/self/me",
        "POST /api/ai_secret/get",
        "GET /ping",
        "GET /version",
        "POST /logs3",
        "POST /v1/api_key",
        "POST /v1/acl/batch-update",
        "POST /btql",
        "POST /btql/async",
        "GET /btql/async/{id}",
        "GET /btql/async/{id}/result",
    ];
    let mut knocked = 0;
    for line in of_the_api.chain(beside) {
        let (method, path) = line.split_once(' ').expect("method and path");
        let segments = path.split('/').map(|segment| if segment.starts_with('{') { id } else { segment });
        let path = segments.collect::<Vec<_>>().join("/");
        knocked += 1;
        let answer = fixture.knock(method, &path);
        let is_of_model_client = path.starts_with(OF_MODEL_CLIENTS) && path != CREDENTIALS;
        match is_of_model_client {
            true => assert!(answer.status == 401 && answer.json()["error"].is_object(), "{path}: {}", answer.text()),
            false => drop(answer.refused(401)),
        }
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        if knocked % WRONG_KEY_EVERY != 0 {
            continue;
        }
        let wrong = request(method, &path, &[("Authorization", "Bearer sk-of-nobody-at-all-0123456789")], b"");
        let answer = fixture.send(&wrong);
        let said = if is_of_model_client { answer.text() } else { answer.refused(401) };
        assert_eq!(answer.status, 401, "{said}");
        assert!(!said.contains("sk-of-nobody"), "{said}");
    }
    assert_eq!(knocked, 162);
}

/// A name with an accent was taken for no name: rows went to the oldest organization, and whoever should act as somebody
/// else acted as themselves.
#[test]
fn names_in_headers_are_read_as_clients_send_them() {
    let fixture = Fixture::open();
    fixture.organization("Société");
    let asked = |header: &[u8]| {
        let head =
            format!("GET /v1/project HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\n");
        fixture.send(&[head.as_bytes(), header, b"\r\n\r\n"].concat())
    };
    fixture.project("of acme");
    let made = fixture.call("POST", "/v1/project", &[("x-bt-org-name", "Société")], br#"{"name":"of the other"}"#).ok();
    for header in ["x-bt-org-name: Société".as_bytes(), b"x-bt-org-name: Soci\xe9t\xe9"] {
        assert_eq!(asked(header).ok()["objects"][0]["id"], made["id"], "{header:?}");
    }
    asked("x-bt-org-name: Société anonyme".as_bytes()).refused(404);
    assert!(asked(b"x-bt-org-name: acme\x93").refused(400).contains("`x-bt-org-name` is not valid text"));
    for header in
        ["x-bt-impersonate-user: j\u{f6}rg@example.com".as_bytes(), b"x-bt-impersonate-user: j\xf6rg@example.com"]
    {
        asked(header).refused(403);
    }
}

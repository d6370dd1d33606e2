//! The program from an operator's view: the first key, a stop, a kill, a directory in use.

use std::path::Path;

use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

fn start(options: &Options) -> Server {
    Server::start(options).unwrap_or_else(|error| panic!("{error:#}"))
}

fn call(server: &Server, key: &str, method: &str, target: &str, body: Option<Value>) -> HttpResponse {
    let request = Request {
        method: method.into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {key}"))],
        body: body.map(|body| body.to_string().into_bytes()),
        declared_length: None,
    };
    send(&server.url, &request).unwrap_or_else(|error| panic!("{error:#}"))
}

fn json_of(answer: &HttpResponse) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).expect("JSON")
}

fn options(dir: &Path) -> Options {
    Options::new(&dir.join("data"))
}

#[test]
fn a_first_start_prints_a_key_that_works_and_later_starts_print_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { key: None, ..options(dir.path()) };
    let first = start(&options);
    assert!(first.printed_key && first.key.starts_with("sk-"), "{:?}", first.printed_key);
    let key = first.key.clone();
    let me = json_of(&call(&first, &key, "POST", "/api/self/me", None));
    assert!(!first.log().contains(&key), "the key is in the log");
    assert!(first.stop().expect("stops").success());

    let second = start(&options);
    assert!(!second.printed_key && second.sign_in_link.is_none());
    assert_eq!(json_of(&call(&second, &key, "POST", "/api/self/me", None)), me);
    assert_eq!(call(&second, "sk-other", "POST", "/api/self/me", None).status, 401);
}

/// Follows a link without a credential. Returns the address that it leads to and the cookie that it sets.
fn followed(server: &Server, target: &str) -> (String, Option<String>) {
    let request =
        Request { method: "GET".into(), target: target.into(), headers: Vec::new(), body: None, declared_length: None };
    let answer = send(&server.url, &request).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(answer.status, 302, "{}", answer.text());
    let cookie = answer.header("set-cookie").and_then(|set| set.split(';').next().map(str::to_owned));
    (answer.header("location").expect("a location"), cookie)
}

#[test]
fn the_sign_in_link_of_a_first_start_opens_one_session() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = start(&Options { key: None, ..options(dir.path()) });
    let link = server.sign_in_link.clone().expect("a link beside the key");
    let target = link.strip_prefix(&server.url).expect("a link to this node").to_owned();
    let refused = "/app/sign-in?next=%2Fapp&problem=used_link";
    assert_eq!(followed(&server, "/console/login/link?code=other"), (refused.to_owned(), None));
    let (page, cookie) = followed(&server, &target);
    assert_eq!(page, "/app");
    let session = Request {
        method: "GET".into(),
        target: "/console/session".into(),
        headers: vec![("cookie".into(), cookie.expect("a session")), ("x-assay-console".into(), "1".into())],
        body: None,
        declared_length: None,
    };
    let session = json_of(&send(&server.url, &session).unwrap_or_else(|error| panic!("{error:#}")));
    assert_eq!(session["user"]["email"], "owner@localhost", "{session}");
    assert_eq!(followed(&server, &target), (refused.to_owned(), None));
    assert!(!server.log().contains(&target), "the code is in the log");
}

#[test]
fn a_key_that_is_given_is_not_printed_and_is_the_first_starts_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = start(&options(dir.path()));
    assert!(!first.printed_key && first.sign_in_link.is_none());
    let key = first.key.clone();
    assert!(!first.log().contains(&key), "the key is in the log");
    first.stop().expect("stops");
    let second =
        start(&Options { key: Some("sk-another00000000000000000000000000000000000000".into()), ..options(dir.path()) });
    assert_eq!(call(&second, &key, "POST", "/api/self/me", None).status, 200);
    assert_eq!(call(&second, &second.key, "POST", "/api/self/me", None).status, 401);
}

#[test]
fn what_was_acknowledged_outlives_a_stop_and_a_kill() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = start(&options(dir.path()));
    let key = server.key.clone();
    let project = json_of(&call(&server, &key, "POST", "/v1/project", Some(json!({"name": "kept"}))));
    let path = format!("/v1/project_logs/{}", project["id"].as_str().expect("an id"));
    let insert = |server: &Server, id: &str| {
        let rows =
            json!({"events": [{"id": id, "input": {"kept": id}}, {"id": "merged", "_is_merge": true, "tags": [id]}]});
        json_of(&call(server, &key, "POST", &format!("{path}/insert"), Some(rows)));
    };
    let fetch = |server: &Server| json_of(&call(server, &key, "POST", &format!("{path}/fetch"), Some(json!({}))));
    insert(&server, "before a stop");
    let seen = fetch(&server);
    assert!(server.stop().expect("stops").success());

    let server = start(&options(dir.path()));
    assert_eq!(fetch(&server), seen, "after a stop");
    insert(&server, "before a kill");
    let seen = fetch(&server);
    assert_eq!(seen["events"].as_array().map(Vec::len), Some(3));
    server.kill().expect("is killed");

    let server = start(&options(dir.path()));
    assert_eq!(fetch(&server), seen, "after a kill");
    let projects = json_of(&call(&server, &key, "GET", "/v1/project", None));
    assert_eq!(projects["objects"], json!([project]));
}

#[test]
fn a_directory_that_is_in_use_is_refused_with_a_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = start(&options(dir.path()));
    let beside = Options { data_dir: dir.path().join("beside"), ..options(dir.path()) };
    std::os::unix::fs::symlink(dir.path().join("data"), &beside.data_dir).expect("a link");
    let said = Server::refusal(&beside).expect("is refused");
    assert!(said.contains("beside") && (said.contains("use") || said.contains("lock")), "{said}");
    assert_eq!(call(&first, &first.key, "GET", "/v1/project", None).status, 200, "the first goes on");
}

#[test]
fn a_setting_that_is_none_is_refused_with_the_one_that_is_meant() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { settings: vec!["http.listne=127.0.0.1:1".into()], ..options(dir.path()) };
    let said = Server::refusal(&options).expect("is refused");
    assert!(said.contains("http.listen"), "{said}");
}

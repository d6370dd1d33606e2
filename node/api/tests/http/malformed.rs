//! Bodies that no client means: each a 4xx that a person can read, and none a change.

use serde_json::json;

use crate::fixture::Fixture;

#[test]
fn every_malformed_body_is_a_4xx_with_a_readable_message() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let deep = format!("{{\"events\": [{}1{}]}}", "[".repeat(10_000), "]".repeat(10_000));
    let long = format!("{{\"events\": [{{\"id\": \"{}\"}}]}}", "x".repeat(2000));
    let bodies: [(&[u8], &str); 16] = [
        (b"", "empty"),
        (b"   ", "empty"),
        (b"{", "JSON"),
        (b"null", "null"),
        (b"[]", "array"),
        (b"\"events\"", "string"),
        (b"{}", "`events` is missing"),
        (b"{\"events\": null}", "`events` is missing"),
        (b"{\"events\": {}}", "`events` is an object"),
        (b"{\"events\": [1]}", "row 0"),
        (b"{\"events\": [{\"scores\": {\"s\": 1e400}}]}", "JSON"),
        (b"{\"events\": [{\"scores\": {\"s\": 2}}]}", "scores"),
        (b"{\"events\": [{\"id\": \"\xff\xfe\"}]}", "JSON"),
        (b"{\"events\": []} {}", "JSON"),
        (deep.as_bytes(), "nested deeper"),
        (long.as_bytes(), "row 0"),
    ];
    for (body, part) in bodies {
        let said = fixture.call("POST", &format!("/v1/project_logs/{project}/insert"), &[], body).refused(400);
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(fixture.events("project_logs", &project), [] as [serde_json::Value; 0]);
}

#[test]
fn every_route_that_takes_a_body_refuses_what_is_none() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let dataset = fixture.make("dataset", &json!({"project_id": project, "name": "d"}));
    for (method, path) in [
        ("POST", "/v1/project".to_owned()),
        ("POST", "/v1/experiment".into()),
        ("POST", "/v1/dataset".into()),
        ("POST", "/v1/api_key".into()),
        ("PATCH", format!("/v1/project/{project}")),
        ("PATCH", format!("/v1/dataset/{dataset}")),
        ("POST", format!("/v1/dataset/{dataset}/insert")),
        ("POST", format!("/v1/dataset/{dataset}/feedback")),
        ("POST", format!("/v1/dataset/{dataset}/fetch")),
        ("POST", "/v1/insert".into()),
        ("POST", "/logs3".into()),
        ("POST", "/btql".into()),
        ("POST", "/btql/async".into()),
    ] {
        for body in [&b"{\"a\": tru"[..], b"[1, 2]", b"7", b"\x00\x01\x02", b"{\"a\":1}}"] {
            let said = fixture.call(method, &path, &[], body).refused(400);
            assert!(said.len() > 10, "{method} {path}: {said}");
        }
    }
}

/// Each took a kilobyte or more before they were counted, and all were held at once.
#[test]
fn a_body_of_very_many_rows_is_refused() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let body = |list: &str, row: &str, rows: usize| {
        let rows = format!("{},", row).repeat(rows - 1) + row;
        format!("{{\"{list}\": [{rows}]}}").into_bytes()
    };
    let at = |what: &str| format!("/v1/project_logs/{project}/{what}");
    let item = r#"{"id":"a","comment":"b"}"#;
    let of_project = format!(r#"{{"project_id":"{project}"}}"#);
    for (path, body, part) in [
        (
            at("insert"),
            body("events", r#"{"input":1}"#, 999_000),
            "about 999000 rows; the maximum of one request is 50000",
        ),
        (at("insert"), body("events", "{}", 10_001), "a write of 10001 rows: at most 10000 fit"),
        (at("insert"), body("events", "1", 999_000), "a write of 999000 rows: at most 10000 fit"),
        (at("feedback"), body("feedback", item, 400_000), "about 400000 rows; the maximum of one request is 50000"),
        (at("feedback"), body("feedback", item, 10_001), "a write of 10001 rows: at most 10000 fit"),
        ("/logs3".into(), body("rows", "1", 999_000), "about 999000 rows; the maximum of one request is 50000"),
        ("/logs3".into(), body("rows", &of_project, 20_001), "a write of 20001 rows: at most 10000 fit"),
    ] {
        let said = fixture.call("POST", &path, &[], &body).refused(413);
        assert!(said.contains(part), "{path}: {said}");
    }
    assert_eq!(fixture.events("project_logs", &project), [] as [serde_json::Value; 0]);
}

#[test]
fn sizes_and_encodings_that_are_not_taken_are_said_to_be_so() {
    let fixture = Fixture::with(|config| {
        config.body_bytes_max = 10_000;
        config.small_body_bytes_max = 1000;
    });
    let project = fixture.project("p");
    let path = format!("/v1/project_logs/{project}/insert");
    let body = |bytes: usize| json!({"events": [{"id": "a", "input": "x".repeat(bytes)}]}).to_string();
    fixture.call("POST", &path, &[], body(9000).as_bytes()).ok();
    fixture.call("POST", &path, &[], body(1_000_000).as_bytes()).refused(413);
    fixture.post("/v1/project", &json!({"name": "n", "description": "x".repeat(1000)})).refused(413);
    // Without a claimed length, so that only the bytes themselves tell.
    let mut chunked = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        crate::fixture::KEY
    );
    chunked.push_str(&format!("{:x}\r\n{}\r\n0\r\n\r\n", 20_000, " ".repeat(20_000)));
    fixture.send(chunked.as_bytes()).refused(413);
    fixture.call("POST", &path, &[("Content-Encoding", "gzip")], b"\x1f\x8b").refused(415);
    fixture.call("POST", &path, &[("Content-Encoding", "gzîp")], b"\x1f\x8b").refused(415);
    fixture
        .call("POST", &path, &[("Content-Encoding", "identity"), ("Content-Type", "image/png")], body(1).as_bytes())
        .ok();
}

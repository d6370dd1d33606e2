//! `/btql/async`: asked, looked after, read page by page; refused in words; and seen by nobody else.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// A debug build on a machine that does other things.
const ENDED_MAX: Duration = Duration::from_secs(60);
const PAGES_MAX: usize = 1000;

fn rows_of(fixture: &Fixture, name: &str, count: usize) -> String {
    let project = fixture.project(name);
    let row = |n: usize| json!({"id": format!("r{n:05}"), "metadata": {"n": n, "g": n % 7}, "input": "a \"text\"\nof two lines"});
    for begin in (0..count).step_by(5_000) {
        let events: Vec<Value> = (begin..count.min(begin + 5_000)).map(row).collect();
        fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({ "events": events })).ok();
    }
    project
}

#[track_caller]
fn made(fixture: &Fixture, body: &Value) -> String {
    let answer = fixture.post("/btql/async", body).ok();
    assert_eq!(answer["status"], "queued", "{answer}");
    answer["id"].as_str().expect("an id").to_owned()
}

/// The status that it came to.
#[track_caller]
fn ended(fixture: &Fixture, id: &str) -> Value {
    let deadline = Instant::now() + ENDED_MAX;
    loop {
        let status = fixture.get(&format!("/btql/async/{id}")).ok();
        if !["queued", "running"].contains(&status["status"].as_str().expect("a status")) {
            return status;
        }
        assert!(Instant::now() < deadline, "{status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All rows as a client reads them, and how many pages there were.
#[track_caller]
fn read(fixture: &Fixture, id: &str, query: &str) -> (Vec<Value>, usize) {
    let (mut rows, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    for _ in 0..PAGES_MAX {
        let page = fixture.get(&format!("/btql/async/{id}/result?cursor={}&{query}", encoded(&cursor))).ok();
        let more = page["rows"].as_array().expect("rows");
        pages += usize::from(!more.is_empty());
        rows.extend(more.iter().cloned());
        match &page["cursor"] {
            Value::Null => {
                assert_eq!(page["status"], "succeeded", "{page}");
                return (rows, pages);
            }
            next => cursor = next.as_str().expect("a cursor").to_owned(),
        }
    }
    panic!("pages without an end");
}

fn encoded(cursor: &str) -> String {
    cursor.replace('+', "%2B").replace('/', "%2F")
}

#[test]
fn what_is_answered_later_has_the_rows_of_what_is_answered_at_once() {
    let fixture = Fixture::open();
    let project = rows_of(&fixture, "p", 2_345);
    rows_of(&fixture, "q", 10);
    for query in [
        json!("select: * | from: project_logs('p') | limit: 5"),
        json!("SELECT id, metadata.n AS n, input FROM project_logs('p')"),
        json!("SELECT id FROM project_logs('p', 'q') ORDER BY metadata.n DESC, id LIMIT 50"),
        json!("SELECT metadata.g AS g, count(1) AS n FROM project_logs('p') GROUP BY g ORDER BY g"),
        json!("SELECT id FROM project_logs('p') WHERE id = 'nobody'"),
        json!({"select": [{"op": "star"}], "from": {"op": "function", "name": {"op": "ident", "name": ["project_logs"]},
            "args": [{"op": "literal", "value": project}]}, "limit": 3}),
    ] {
        let at_once = fixture.post("/btql", &json!({ "query": query })).ok()["data"].clone();
        let id = made(&fixture, &json!({"query": query, "format": "jsonl"}));
        assert_eq!(ended(&fixture, &id), json!({"status": "succeeded"}), "{query}");
        let (rows, pages) = read(&fixture, &id, "");
        assert_eq!(json!(rows), at_once, "{query}");
        assert_eq!(pages, rows.len().div_ceil(1000), "{query}");
    }
    let body = json!({"query": "SELECT id FROM project_logs('p')", "batch_size": 300, "tz_offset": 60});
    let answer = fixture.post("/btql/async", &body).ok();
    assert_eq!((answer["project_id"].as_str(), answer["object_id"].as_str()), (Some(&*project), Some(&*project)));
    let id = answer["id"].as_str().expect("an id");
    assert_eq!(read(&fixture, id, "").1, 4);
    assert_eq!(read(&fixture, id, "limit=100").1, 10);
    let both = fixture.post("/btql/async", &json!({"query": "SELECT id FROM project_logs('p', 'q')"})).ok();
    assert_eq!((&both["project_id"], &both["object_id"]), (&Value::Null, &Value::Null));
}

/// Nobody asks for the rest with a cursor, so that there is none.
#[test]
fn a_limit_beyond_a_page_and_no_limit_are_kept_to() {
    let fixture = Fixture::open();
    rows_of(&fixture, "p", 11_000);
    let ids = |rows: &[Value]| rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>();
    for body in [
        json!({"query": "SELECT id FROM project_logs('p') LIMIT 10500"}),
        json!({"query": "SELECT id FROM project_logs('p')", "disable_limit": true}),
        json!({"query": "SELECT id FROM project_logs('p') ORDER BY id LIMIT 10500"}),
    ] {
        // Read along: rows come before the last of them is there.
        let id = made(&fixture, &body);
        let (rows, _) = read(&fixture, &id, "limit=4000");
        let mut ids = ids(&rows);
        ids.sort();
        ids.dedup();
        let wanted = if body.get("disable_limit").is_some() { 11_000 } else { 10_500 };
        assert_eq!((rows.len(), ids.len()), (wanted, wanted), "{body}");
    }
    let first = fixture.post("/btql", &json!({"query": "SELECT id FROM project_logs('p') LIMIT 10"})).ok();
    let query = "SELECT id FROM project_logs('p') LIMIT 20";
    let next = fixture.post("/btql", &json!({"query": query, "cursor": first["cursor"]})).ok();
    let id = made(&fixture, &json!({"query": query, "cursor": first["cursor"]}));
    assert_eq!(json!(read(&fixture, &id, "").0), next["data"]);
}

#[test]
fn a_query_that_fails_says_why() {
    let fixture = Fixture::open();
    rows_of(&fixture, "p", 1_200);
    let query = "SELECT day(created) AS d, id, n FROM project_logs('p') GROUP BY day(created) \
                 PIVOT (count(1) AS n FOR id IN (ANY))";
    let said = fixture.post("/btql", &json!({ "query": query })).refused(400);
    let id = made(&fixture, &json!({ "query": query }));
    assert_eq!(ended(&fixture, &id), json!({"status": "failed", "error": said}));
    let page = fixture.get(&format!("/btql/async/{id}/result")).ok();
    assert_eq!(page, json!({"status": "failed", "rows": [], "cursor": null, "error": said}));
    let late = json!({"query": "SELECT id FROM project_logs('p')", "query_timeout_seconds": 0});
    let status = ended(&fixture, &made(&fixture, &late));
    assert_eq!(status["status"], "failed");
    assert!(status["error"].as_str().is_some_and(|why| why.contains("exceeded its time limit")), "{status}");
}

#[test]
fn what_is_wrong_is_said_when_it_is_asked() {
    let fixture = Fixture::open();
    rows_of(&fixture, "p", 3);
    let said = |body: Value, status: u16| fixture.post("/btql/async", &body).refused(status);
    assert!(said(json!({}), 400).contains("`query` is missing"));
    assert!(said(json!({"query": "SELECT id FRM x"}), 400).contains("line 1, column 15"));
    assert!(said(json!({"query": "SELECT id FROM project_logs('nobody')"}), 400).contains("no project has the name"));
    let stranger = "SELECT id FROM project_logs('00000000-0000-4000-8000-000000000001')";
    assert!(said(json!({ "query": stranger }), 403).contains("Missing read access"));
    let good = "SELECT id FROM project_logs('p')";
    assert!(said(json!({"query": good, "format": "csv"}), 400).contains("`format` is `csv`"));
    assert!(said(json!({"query": good, "batch_size": -1}), 400).contains("`batch_size` is -1"));
    assert!(said(json!({"query": good, "cursor": "nonsense"}), 400).contains("Invalid cursor"));
    assert!(said(json!({"query": good, "audit_log": true}), 400).contains("filter by id"));
    assert_eq!(fixture.call("POST", "/btql/async", &[], b"{").status, 400);
    assert!(fixture.get("/btql/async").refused(405).contains("POST"));
    for path in ["/btql/async/x", "/btql/async/x/result"] {
        assert!(fixture.get(path).refused(400).contains("`x` is not an id"), "{path}");
    }
    let id = made(&fixture, &json!({ "query": good }));
    let result = |query: &str| fixture.get(&format!("/btql/async/{id}/result?{query}"));
    assert!(result("limit=0").refused(400).contains("at least 1"));
    assert!(result("cursor=x").refused(400).contains("Invalid cursor"));
    assert_eq!(result("cursor=AAAAAAAAA%2Bg").ok()["rows"], json!([]), "behind the last");
}

#[test]
fn to_others_a_query_is_not_there() {
    let fixture = Fixture::open();
    let project = rows_of(&fixture, "p", 3);
    let id = made(&fixture, &json!({"query": "SELECT id FROM project_logs('p')"}));
    assert_eq!(ended(&fixture, &id)["status"], "succeeded");
    fixture.organization("other");
    let unknown = "00000000-0000-8000-8000-000000000001";
    let elsewhere = "00000000-0000-8000-8000-000000000009";
    for tail in ["", "/result"] {
        let path = format!("/btql/async/{id}{tail}");
        let of_other = fixture.call("GET", &path, &[("x-bt-org-name", "other")], b"");
        let said = of_other.refused(404);
        for other in [unknown, elsewhere, &project] {
            assert_eq!(fixture.get(&format!("/btql/async/{other}{tail}")).refused(404), said.replace(&id, other));
        }
        fixture.knock("GET", &path).refused(401);
        fixture.get(&path).ok();
    }
    fixture.call("DELETE", &format!("/v1/project/{project}"), &[], b"").ok();
    fixture.get(&format!("/btql/async/{id}")).refused(404);
    fixture.get(&format!("/btql/async/{id}/result")).refused(404);
}

#[test]
fn results_that_are_damaged_are_no_results() {
    let fixture = Fixture::open();
    rows_of(&fixture, "p", 50);
    let id = made(&fixture, &json!({"query": "SELECT id FROM project_logs('p')"}));
    assert_eq!(read(&fixture, &id, "").0.len(), 50);
    let file = fixture.dir.path().join(format!("data/queries/{id}.rows"));
    let mut lines = std::fs::read(&file).expect("rows");
    lines[9] ^= 1;
    std::fs::write(&file, lines).expect("written");
    let page = fixture.get(&format!("/btql/async/{id}/result")).ok();
    assert_eq!((&page["status"], &page["rows"], &page["cursor"]), (&json!("failed"), &json!([]), &Value::Null));
    assert!(page["error"].as_str().is_some_and(|why| why.contains("do not match their checksum")), "{page}");
    assert_eq!(ended(&fixture, &id)["error"], page["error"]);
}

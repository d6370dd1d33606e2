//! Questions over HTTP: asked in every form, answered in every format, refused in words.

use std::io::Read;

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// A project with some rows: `a` and `b` are one trace, `c` is another.
fn asked(fixture: &Fixture) -> String {
    let project = fixture.project("p");
    let events = json!([
        {"id": "a", "span_id": "a", "root_span_id": "a", "scores": {"good": 1}, "metadata": {"model": "m"}, "created": "2026-01-02T03:04:05Z"},
        {"id": "b", "span_id": "b", "root_span_id": "a", "span_parents": ["a"], "scores": {"good": 0.5}, "tags": ["x", "y"]},
        {"id": "c", "span_id": "c", "root_span_id": "c", "metadata": {"model": "m, \"n\""}, "error": "late"},
    ]);
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({ "events": events })).ok();
    project
}

fn rows(fixture: &Fixture, body: &Value) -> Value {
    fixture.post("/btql", body).ok()["data"].clone()
}

#[test]
fn every_form_is_answered_and_objects_go_by_id_or_name() {
    let fixture = Fixture::open();
    let project = asked(&fixture);
    let expected = json!([{"id": "a", "good": 1}, {"id": "b", "good": 0.5}]);
    let tree = json!({
        "select": [{"expr": {"op": "ident", "name": ["id"]}, "alias": "id"},
                   {"expr": {"op": "ident", "name": ["scores", "good"]}, "alias": "good"}],
        "from": {"op": "function", "name": {"op": "ident", "name": ["project_logs"]}, "args": [{"op": "literal", "value": project}]},
        "filter": {"op": "isnotnull", "expr": {"op": "ident", "name": ["scores", "good"]}},
        "sort": [{"expr": {"op": "ident", "name": ["id"]}, "dir": "asc"}], "cursor": null,
    });
    for query in [
        json!(format!(
            "SELECT id, scores.good FROM project_logs('{project}') WHERE scores.good IS NOT NULL ORDER BY id"
        )),
        json!("select: id, scores.good | from: project_logs('p') | filter: scores.good is not null | sort: id"),
        tree,
    ] {
        assert_eq!(rows(&fixture, &json!({ "query": query })), expected, "{query}");
    }
    let groups =
        rows(&fixture, &json!({"query": "SELECT count(*) AS n, avg(scores.good) AS mean FROM project_logs('p')"}));
    assert_eq!(groups, json!([{"n": 3, "mean": 0.75}]));
}

#[test]
fn an_answer_says_what_it_is_and_how_fresh() {
    let fixture = Fixture::open();
    asked(&fixture);
    let query = "select: id, created, tags | from: project_logs('p') | filter: root_span_id = 'a'";
    let answer = fixture.post("/btql", &json!({"query": query, "include_plan": true}));
    assert_eq!(answer.header("x-bt-freshness-state"), Some("complete"));
    assert!(answer.header("x-bt-api-duration-ms").is_some() && answer.header("x-bt-query-plan").is_some());
    let body = answer.ok();
    let columns: Vec<&String> = body["schema"]["items"]["properties"].as_object().expect("columns").keys().collect();
    assert_eq!(columns, ["id", "created", "tags"]);
    let state = &body["freshness_state"];
    assert!(state["last_processed_xact_id"].is_string());
    assert_eq!(state["last_processed_xact_id"], state["last_considered_xact_id"]);
    assert_eq!((&body["freshness"], &body["realtime_state"]["type"]), (&json!("complete"), &json!("on")));
    assert_eq!((&body["warnings"], &body["data"][1]["tags"]), (&json!([]), &Value::Null));
    assert_eq!(body["data"][1]["created"], json!("2026-01-02T03:04:05.000Z"));
    assert!(body["plan"].as_str().is_some_and(|plan| plan.contains("only 1 traces")), "{}", body["plan"]);
    assert_eq!(answer.header("x-bt-cursor"), body["cursor"].as_str());
}

#[test]
fn pages_go_on_where_they_ended_also_over_several_objects() {
    let fixture = Fixture::open();
    let (first, second) = (fixture.project("one"), fixture.project("two"));
    for (project, prefix) in [(&first, "f"), (&second, "s")] {
        let events: Vec<Value> = (0..7).map(|n| json!({"id": format!("{prefix}{n}")})).collect();
        fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({ "events": events })).ok();
    }
    for (objects, count) in [("'one'", 7), ("'one', 'two'", 14)] {
        for sort in ["", " ORDER BY _pagination_key", " ORDER BY _xact_id DESC"] {
            let (mut seen, mut cursor) = (Vec::new(), Value::Null);
            for page in 0.. {
                assert!(page < 10, "{objects}{sort}: pages without an end");
                let query = format!("SELECT id FROM project_logs({objects}){sort} LIMIT 3");
                let body = fixture.post("/btql", &json!({"query": query, "cursor": cursor})).ok();
                let rows = body["data"].as_array().expect("rows");
                seen.extend(rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()));
                assert_eq!(rows.is_empty(), body.get("cursor").is_none(), "{body}");
                cursor = body.get("cursor").cloned().unwrap_or_default();
                if cursor.is_null() {
                    break;
                }
            }
            let mut ids = seen.clone();
            ids.sort();
            ids.dedup();
            assert_eq!((seen.len(), ids.len()), (count, count), "{objects}{sort}: {seen:?}");
        }
    }
}

#[test]
fn an_answer_comes_as_lines_as_a_table_and_as_a_file() {
    let fixture = Fixture::open();
    asked(&fixture);
    let ask = |format: &str, headers: &[(&str, &str)]| {
        let query = "select: id, metadata.model as model, tags | from: project_logs('p') | sort: id";
        let body = json!({"query": query, "fmt": format}).to_string();
        fixture.call("POST", "/btql", headers, body.as_bytes())
    };
    let lines = ask("jsonl", &[("accept", "application/x-jsonlines")]);
    assert_eq!(lines.header("content-type"), Some("application/x-jsonlines"));
    let first = lines.text().lines().next().map(str::to_owned);
    assert_eq!(first.as_deref(), Some(r#"{"id":"a","model":"m","tags":null}"#));
    assert_eq!(ask("jsonl", &[]).header("content-type"), Some("application/json"));
    let table = ask("csv", &[]);
    let expected = "id,model,tags\r\na,m,\r\nb,,\"[\"\"x\"\",\"\"y\"\"]\"\r\nc,\"m, \"\"n\"\"\",\r\n";
    assert_eq!(table.text(), expected);
    let file = ask("parquet", &[]);
    assert_eq!(file.header("content-type"), Some("application/vnd.apache.parquet"));
    assert!(file.body.starts_with(b"PAR1") && file.body.ends_with(b"PAR1"));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let fixture = Fixture::open();
    let project = asked(&fixture);
    let said = |query: &str, status: u16| fixture.post("/btql", &json!({ "query": query })).refused(status);
    assert!(said("SELECT id FRM x", 400).contains("line 1, column 15"));
    assert!(said("SELECT id FROM project_logs('nobody')", 400).contains("no project has the name `nobody`"));
    assert!(
        said("SELECT id FROM project_logs('00000000-0000-4000-8000-000000000001')", 403)
            .contains("Missing read access")
    );
    assert!(said("SELECT id FROM project_logs('p') ORDER BY created OFFSET 'awMH0gAAAAo'", 400).contains("no pages"));
    assert!(said("SELECT id FROM project_logs('p') OFFSET 'nonsense'", 400).contains("Invalid cursor"));
    let audit =
        |query: &str, status: u16| fixture.post("/btql", &json!({"query": query, "audit_log": true})).refused(status);
    assert!(audit("SELECT id FROM project_logs('p')", 400).contains("filter by id"));
    assert!(audit("SELECT id FROM project_logs('p') WHERE id = 'a' OR is_root", 400).contains("filter by id"));
    assert!(
        audit("select: * | from: project_logs('p') traces | filter: id = 'a'", 400)
            .contains("which are of shape spans")
    );
    let strict = json!({"query": "SELECT id FROM project_logs('p')", "lint_mode": "strict"});
    assert!(
        fixture
            .post("/btql", &strict)
            .refused(400)
            .contains("Query blocked by strict lint mode due to 1 lint:\nmissingSegmentEliminationSpecs")
    );
    let future =
        json!({"query": format!("SELECT id FROM project_logs('{project}')"), "version": "1000999999999999999"});
    assert!(fixture.post("/btql", &future).refused(400).contains("in the future"));
}

#[test]
fn what_was_written_to_a_row_is_read_write_by_write() {
    let fixture = Fixture::open();
    let project = asked(&fixture);
    let write = |event: Value| {
        let path = format!("/v1/project_logs/{project}/insert");
        fixture.post(&path, &json!({"events": [event]})).ok();
    };
    write(
        json!({"id": "a", "_is_merge": true, "scores": {"good": 0}, "_audit_source": "app", "_audit_metadata": {"by": "me"}}),
    );
    write(json!({"id": "a", "_object_delete": true}));
    let asked = |query: &str| rows(&fixture, &json!({"query": query, "audit_log": true}));
    let found = asked("SELECT id, audit_data, scores, metadata, root_span_id FROM project_logs('p') WHERE id = 'a'");
    let merge = json!({"action": "merge", "source": "app", "metadata": {"by": "me"}});
    let expected = json!([
        {"id": "a", "audit_data": {"action": "delete"}, "scores": null, "metadata": null, "root_span_id": "a"},
        {"id": "a", "audit_data": merge, "scores": {"good": 0}, "metadata": null, "root_span_id": "a"},
        {"id": "a", "audit_data": {"action": "upsert"}, "scores": {"good": 1}, "metadata": {"model": "m"}, "root_span_id": "a"},
    ]);
    assert_eq!(found, expected);
    // What SDKs look at.
    let versions = asked("select: * | from: project_logs('p') | filter: id = 'a'");
    let versions: Vec<&str> =
        versions.as_array().expect("rows").iter().filter_map(|row| row["_xact_id"].as_str()).collect();
    assert!(versions.len() == 3 && versions.is_sorted_by(|newer, older| newer > older), "{versions:?}");
    let first = json!({"query": "SELECT audit_data.action AS did FROM project_logs('p') WHERE id = 'a'", "audit_log": true,
        "version": versions[2]});
    assert_eq!(rows(&fixture, &first), json!([{"did": "upsert"}]));
}

#[test]
fn a_version_is_read_again_as_it_was() {
    let fixture = Fixture::open();
    let project = asked(&fixture);
    let query = "SELECT id, scores.good AS good FROM project_logs('p') WHERE id = 'a'";
    let before = fixture.post("/btql", &json!({ "query": query })).ok();
    let version = before["freshness_state"]["last_processed_xact_id"].clone();
    let change = json!({"events": [{"id": "a", "scores": {"good": 0}, "_is_merge": true}]});
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &change).ok();
    assert_eq!(rows(&fixture, &json!({ "query": query })), json!([{"id": "a", "good": 0}]));
    assert_eq!(rows(&fixture, &json!({"query": query, "version": version})), before["data"]);
}

#[test]
fn who_takes_gzip_reads_the_same() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let text = "the same words again and again ".repeat(100);
    let events: Vec<Value> = (0..50).map(|n| json!({"id": format!("r{n:02}"), "input": text})).collect();
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({ "events": events })).ok();
    let ask = |body: &Value, encoding: &str| {
        let headers = [("Content-Type", "application/json"), ("Accept-Encoding", encoding)];
        fixture.call("POST", "/btql", &headers, body.to_string().as_bytes())
    };
    let query = format!("SELECT id, input FROM project_logs('{project}')");
    for fmt in ["json", "jsonl", "csv"] {
        let body = json!({"query": query, "fmt": fmt});
        let (plain, packed) = (ask(&body, "identity"), ask(&body, "gzip"));
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{body}: {}", plain.text());
        assert_eq!((packed.status, packed.header("content-encoding")), (200, Some("gzip")), "{body}");
        assert!(packed.body.len() * 5 < plain.body.len(), "{body}: {} of {}", packed.body.len(), plain.body.len());
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, plain.text(), "{body}");
    }
    let parquet = json!({"query": query, "fmt": "parquet"});
    assert_eq!(ask(&parquet, "gzip").header("content-encoding"), None);
    let short = json!({"query": format!("SELECT count(1) FROM project_logs('{project}')")});
    assert_eq!(ask(&short, "gzip").header("content-encoding"), None);
}

#[test]
fn all_that_rows_are_unpivoted_to_is_in_one_answer() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let row = |n: usize| json!({"id": format!("r{n:03}"), "tags": (0..5).map(|t| format!("t{t}")).collect::<Vec<_>>()});
    for first in (0..900).step_by(300) {
        let events: Vec<Value> = (first..first + 300).map(row).collect();
        fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({ "events": events })).ok();
    }
    let query = format!("SELECT id, tag FROM project_logs('{project}') UNPIVOT (tag FOR _ IN (tags)) LIMIT 9999");
    let answer = fixture.post("/btql", &json!({ "query": query })).ok();
    // More than are read at once.
    assert_eq!(answer["data"].as_array().map(Vec::len), Some(4_500));
    assert_eq!(answer["cursor"], Value::Null);
    let with_cursor = fixture.post("/btql", &json!({"query": query, "cursor": "aPuWzSlJAAM"}));
    assert!(with_cursor.refused(400).contains("not unpivoted"));
}

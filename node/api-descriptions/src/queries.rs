//! Description of queries: `/btql`, `/btql/async` and `/v1/query`.

use assay_node_http::responses::refusal::ErrorKind;
use assay_node_query::render::Format;
use serde_json::{Value, json};

use assay_node_http::openapi::{Operation, maybe_version, reference, some_text, text, uuid};

const QUERIES: &str = "Queries";
/// Refusals of queries beside those of every operation.
const REFUSED: [ErrorKind; 4] = [ErrorKind::Conflict, ErrorKind::Past, ErrorKind::TooLate, ErrorKind::NotImplemented];

/// Describes queries.
pub fn operations() -> Vec<Operation> {
    let maybe = json!({"type": "string", "nullable": true});
    let rows = json!({"type": "array", "items": {"type": "object"}});
    let object = json!({"type": "object"});
    let answer = json!({
        "type": "object", "required": ["data", "schema", "realtime_state", "freshness_state", "freshness", "warnings"],
        "properties": {
            // With `fmt: "columns"`, blocks of columns instead of rows.
            "data": rows, "schema": object, "realtime_state": object, "freshness_state": object,
            "freshness": {"type": "string", "enum": ["complete"]}, "warnings": rows, "cursor": text(), "plan": text(),
        },
    });
    let mut later = question();
    later["properties"]["format"] = json!({"type": "string", "nullable": true, "enum": ["jsonl", null]});
    later["properties"]["batch_size"] = json!({"type": "integer", "nullable": true, "minimum": 1, "maximum": u64::MAX});
    let status = json!({"type": "string", "enum": ["queued", "running", "succeeded", "failed"]});
    let made = json!({"type": "object", "required": ["id", "status", "project_id", "object_id"],
        "properties": {"id": uuid(), "status": status, "project_id": maybe, "object_id": maybe}});
    let seen = json!({"type": "object", "required": ["status"], "properties": {"status": status, "error": text()}});
    let page = json!({"type": "object", "required": ["status", "rows", "cursor"],
        "properties": {"status": status, "rows": rows, "cursor": maybe, "error": text()}});
    let ask = Operation::new("post", "/btql", QUERIES, "Run a query").with("Question", question());
    vec![
        ask.takes(reference("Question"))
            .answers(answer)
            .answers_as("text/csv", text())
            .answers_as("application/x-jsonlines", text())
            .answers_as("application/vnd.apache.parquet", json!({"type": "string", "format": "binary"}))
            .answers_as("application/vnd.apache.arrow.stream", json!({"type": "string", "format": "binary"}))
            .sends_header("x-bt-cursor", "Cursor of the next page, if there is one")
            .also_refuses(&REFUSED),
        Operation::new("post", "/btql/async", QUERIES, "Start an asynchronous query")
            .takes(later)
            .answers(made)
            .also_refuses(&REFUSED),
        Operation::new("get", "/btql/async/{id}", QUERIES, "Get the status of an asynchronous query")
            .of("query")
            .answers(seen),
        Operation::new("get", "/btql/async/{id}/result", QUERIES, "Get a page of the results")
            .of("query")
            .asks("limit", json!({"type": "integer", "minimum": 1}))
            .asks("cursor", text())
            .answers(page),
        Operation::new("get", "/v1/query/running", QUERIES, "List one's running queries, or all of them for an owner")
            .answers(json!({
                "type": "object", "required": ["queries", "silent_nodes"],
                "properties": {
                    "queries": {"type": "array", "items": reference("RunningQuery")},
                    "silent_nodes": {"type": "array", "items": text()},
                },
            }))
            .with("RunningQuery", running()),
        Operation::new("post", "/v1/query/{id}/cancel", QUERIES, "Cancel a running query")
            .of("query")
            .answers(reference("RunningQuery"))
            .with("RunningQuery", running()),
    ]
}

fn running() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    let required = "id user_id kind phase query objects started seconds rows_scanned memory_bytes is_cancelled";
    json!({
        "type": "object", "required": required.split(' ').collect::<Vec<_>>(),
        "properties": {
            "id": uuid(), "user_id": uuid(), "query": text(), "objects": {"type": "array", "items": text()},
            "kind": {"type": "string", "enum": ["direct", "internal", "job"]},
            "phase": {"type": "string", "enum": ["waiting", "running", "sending"]},
            "started": {"type": "string", "format": "date-time"}, "seconds": {"type": "number", "minimum": 0},
            "rows_scanned": count, "memory_bytes": count, "is_cancelled": {"type": "boolean"},
        },
    })
}

/// Describes downloads of results, and the parser of the language.
pub fn of_console() -> Vec<Operation> {
    let maybe = json!({"type": "string", "nullable": true});
    let count = json!({"type": "integer"});
    let object = json!({"type": "object"});
    let mut download = question();
    download["properties"]["filename"] = maybe.clone();
    vec![
        Operation::new("post", "/console/download", QUERIES, "Get a link to the result of a query as a file")
            .takes(download)
            .answers(json!({
                "type": "object", "required": ["url", "expires_at"],
                "properties": {"url": text(), "expires_at": {"type": "integer"}},
            }))
            .also_refuses(&REFUSED),
        Operation::new("get", "/console/download/{ticket}", QUERIES, "Download the result of a query")
            .part("ticket", some_text())
            .by_ticket()
            .answers_as("*/*", json!({"type": "string", "format": "binary"}))
            .sends_header("content-disposition", "Name of the file")
            .also_refuses(&REFUSED),
        Operation::new("post", "/console/parse", QUERIES, "Parse an expression or a query, or print an expression")
            .takes(json!({
                "type": "object",
                "properties": {"expression": maybe, "tree": {}, "query": maybe},
            }))
            .answers(json!({
                "type": "object",
                "properties": {
                    "expression": text(), "tree": object,
                    "error": {
                        "type": "object", "required": ["message"],
                        "properties": {"message": text(), "line": count, "column": count, "offset": count},
                    },
                },
            })),
    ]
}

/// Describes the comparison of experiments.
pub fn comparison() -> Operation {
    let maybe = json!({"type": "string", "nullable": true});
    let names = |names: &[&str]| {
        let names: Vec<Value> = names.iter().map(|name| Value::from(*name)).chain([Value::Null]).collect();
        json!({"type": "string", "nullable": true, "enum": names})
    };
    let list = json!({"type": "array", "items": {"type": "object"}});
    let natural = |max: u64| json!({"type": "integer", "nullable": true, "minimum": 1, "maximum": max});
    Operation::new("post", "/console/compare", QUERIES, "Compare experiments row by row")
        .takes(json!({
            "type": "object", "required": ["experiments"],
            "properties": {
                "experiments": {
                    "type": "array", "items": uuid(), "minItems": 1, "maxItems": 8, "uniqueItems": true,
                },
                "base": {"type": "string", "format": "uuid", "nullable": true},
                "filter": maybe, "group": maybe, "score": maybe, "cursor": maybe, "version": maybe_version(),
                "only": names(&["up", "down", "same", "new", "missing", "errors"]),
                "sort": names(&["delta", "score", "key"]), "order": names(&["asc", "desc"]),
                "limit": natural(1000), "preview_length": natural(1 << 20),
            },
        }))
        .answers(json!({
            "type": "object",
            "required": ["key", "base", "score", "experiments", "comparisons", "groups", "rows", "total", "cursor", "truncated"],
            "properties": {
                "key": text(), "base": maybe, "score": maybe, "experiments": list, "comparisons": list, "groups": list,
                "rows": list, "total": {"type": "integer"}, "cursor": maybe, "truncated": {"type": "boolean"},
            },
        }))
        .also_refuses(&REFUSED)
}

/// Returns the schema of a query, which `requests::query_body` reads.
fn question() -> Value {
    let formats: Vec<Value> = Format::ALL.iter().map(|format| format.name().into()).chain([Value::Null]).collect();
    let flag = json!({"type": "boolean", "nullable": true});
    let maybe = json!({"type": "string", "nullable": true});
    let natural = json!({"type": "integer", "nullable": true, "minimum": 0, "maximum": u64::MAX});
    json!({
        "type": "object", "required": ["query"],
        "properties": {
            "query": {"anyOf": [some_text(), {"type": "object", "minProperties": 1}]},
            "fmt": {"type": "string", "nullable": true, "enum": formats},
            "cursor": maybe, "version": maybe_version(), "scope_to_root_span_id": maybe,
            "tz_offset": {"type": "integer", "nullable": true, "minimum": -1440, "maximum": 1440},
            "lint_mode": {"type": "string", "nullable": true, "enum": ["default", "strict", "off", null]},
            "strict_lint_mode": flag, "audit_log": flag, "disable_limit": flag, "include_plan": flag,
            "brainstore_realtime": flag, "inference_depth": natural, "query_timeout_seconds": natural,
        },
    })
}

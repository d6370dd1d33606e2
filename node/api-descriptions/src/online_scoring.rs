//! Descriptions of the operations on rules of online scoring for the OpenAPI document.

use assay_node_http::openapi::{Operation, names, text, uuid};
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Value, json};

const TAG: &str = "ProjectScores";

fn closed(members: Value) -> Value {
    json!({"type": "object", "required": names(&members), "properties": members})
}

/// Returns the operations of rules.
pub fn operations() -> Vec<Operation> {
    let path = |name: &str| format!("/v1/project_score/{{id}}/{name}");
    vec![
        Operation::new("get", path("status"), TAG, "Get what a rule of online scoring does")
            .of("project_score")
            .answers(status()),
        Operation::new("post", path("backfill"), TAG, "Score older rows by a rule of online scoring")
            .of("project_score")
            .takes(backfill())
            .answers(closed(json!({"queued": count()})))
            .also_refuses(&[ErrorKind::NotFound, ErrorKind::Past, ErrorKind::Internal]),
        Operation::new("post", "/v1/project_score/test", TAG, "Try a rule of online scoring on recent rows")
            .takes(test())
            .answers(closed(json!({"results": {"type": "array", "items": result()}})))
            .also_refuses(&[ErrorKind::NotFound, ErrorKind::Past, ErrorKind::Internal]),
    ]
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn maybe_text() -> Value {
    json!({"type": "string", "nullable": true})
}

fn status() -> Value {
    let number = json!({"type": "number", "minimum": 0});
    let time = json!({"type": "string", "format": "date-time"});
    let error = closed(json!({"at": time, "row_id": maybe_text(), "function": maybe_text(), "message": text()}));
    closed(json!({
        "status": {"type": "string", "enum": ["active", "paused"]},
        "paused_reason": maybe_text(),
        "pending": count(), "running": count(), "failed": count(), "skipped": count(),
        "lag": number, "cost": number,
        "last_errors": {"type": "array", "items": error},
    }))
}

fn backfill() -> Value {
    json!({"type": "object", "properties": {
        "filter": maybe_text(), "from": maybe_text(), "to": maybe_text(),
        "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "nullable": true},
        "force": {"type": "boolean", "nullable": true},
    }})
}

fn test() -> Value {
    json!({"type": "object", "required": ["config", "project_id"], "properties": {
        "project_id": uuid(),
        "config": {"type": "object", "required": ["online"], "properties": {"online": {"type": "object"}}},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10, "nullable": true},
    }})
}

fn result() -> Value {
    let (any, object) = (json!({"nullable": true}), json!({"type": "object", "nullable": true}));
    let tags = json!({"type": "array", "nullable": true, "items": text()});
    closed(json!({
        "row_id": text(), "root_span_id": text(), "function": {"type": "object"}, "name": text(), "output": any,
        "error": maybe_text(), "scores": object, "classifications": object, "facets": object, "tags": tags,
    }))
}

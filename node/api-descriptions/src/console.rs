//! Descriptions of what the console asks for: sessions of browsers, facts about the server, and an overview of projects.

use assay_node_http::openapi::{Operation, text, uuid};
use serde_json::json;

pub fn operations() -> Vec<Operation> {
    let of = |method, path: &str, summary: &str| Operation::new(method, path, "Console", summary);
    let organization =
        json!({"type": "object", "required": ["id", "name"], "properties": {"id": uuid(), "name": text()}});
    let session = json!({
        "type": "object", "required": ["user", "organizations", "by", "expires_at", "idle_until"],
        "properties": {
            "user": {"type": "object", "required": ["id"], "properties": {"id": uuid(), "email": text()}},
            "organizations": {"type": "array", "items": organization},
            "by": {"type": "string", "enum": ["key", "login"]},
            "expires_at": {"type": "integer"}, "idle_until": {"type": "integer"},
        },
    });
    let flag = json!({"type": "boolean"});
    let about = json!({
        "type": "object",
        "required": ["version", "node", "cluster", "served", "sign_in", "first_key", "has_rows", "secure", "limits"],
        "properties": {
            "version": text(), "node": text(), "cluster": text(), "served": {"type": "array", "items": text()},
            "sign_in": {"type": "object", "required": ["key"], "properties": {"key": flag}},
            "first_key": {"type": "string", "nullable": true}, "has_rows": {"type": "boolean", "nullable": true},
            "secure": flag,
            "limits": {"type": "object", "required": ["body_bytes"], "properties": {"body_bytes": {"type": "integer"}}},
        },
    });
    let count = json!({"type": "integer"});
    let project = json!({
        "type": "object", "required": ["id", "name", "newest", "rows_24h", "errors_24h"],
        "properties": {
            "id": uuid(), "name": text(), "newest": {"type": "string", "nullable": true},
            "rows_24h": count, "errors_24h": count,
        },
    });
    let projects = json!({
        "type": "object", "required": ["projects", "truncated"],
        "properties": {"projects": {"type": "array", "items": project}, "truncated": flag},
    });
    vec![
        of("get", "/console/about", "Get facts about this server").public().answers(about),
        of("get", "/console/projects", "Get an overview of the projects").answers(projects),
        of("post", "/console/session", "Sign a browser in with a credential")
            .reads_header("x-assay-console", "Sent by pages of this server; other origins cannot send it")
            .answers(session.clone()),
        of("get", "/console/session", "Get the session of a browser").answers(session),
        of("delete", "/console/session", "Sign a browser out")
            .public()
            .asks("everywhere", flag)
            .answers(json!({"type": "object"})),
    ]
}

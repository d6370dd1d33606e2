//! Descriptions of what the console asks for: sessions of browsers, facts about the server, and an overview of projects.

use assay_node_auth::ObjectType;
use assay_node_http::openapi::{Operation, names, text, uuid};
use assay_node_http::requests::console_session::{CONSOLE_HEADER, CONSOLE_HEADER_VALUE};
use assay_node_http::responses::refusal::ErrorKind;
use assay_node_identity::CONSOLE_CALLBACK;
use serde_json::{Value, json};

pub fn operations() -> Vec<Operation> {
    let of = |method, path: &str, summary: &str| Operation::new(method, path, "Console", summary);
    let maybe = json!({"type": "string", "nullable": true});
    let flag = json!({"type": "boolean"});
    let interpreter = json!({"type": "object", "required": ["runtime", "version"],
        "properties": {"runtime": text(), "version": text()}});
    let code = json!({"type": "object", "nullable": true, "required": ["setting", "strength", "interpreters", "missing", "kernel_limits"],
        "properties": {"setting": text(), "strength": maybe, "kernel_limits": maybe, "interpreters": {"type": "array", "items": interpreter},
            "missing": {"type": "array", "items": text()}}});
    let about = json!({
        "type": "object",
        "required": ["version", "node", "cluster", "served", "sign_in", "first_key", "has_rows", "secure", "limits", "code"],
        "properties": {
            "version": text(), "node": text(), "cluster": text(), "served": {"type": "array", "items": text()},
            "sign_in": {
                "type": "object", "required": ["key"],
                "properties": {"key": flag, "oidc": {"type": "object", "properties": {"issuer": text()}}},
            },
            "first_key": maybe, "has_rows": {"type": "boolean", "nullable": true},
            "secure": flag,
            "limits": {"type": "object", "required": ["body_bytes"], "properties": {"body_bytes": {"type": "integer"}}},
            "code": code,
        },
    });
    let count = json!({"type": "integer"});
    let project = json!({
        "type": "object", "required": ["id", "name", "newest", "rows_24h", "errors_24h"],
        "properties": {
            "id": uuid(), "name": text(), "newest": maybe,
            "rows_24h": count, "errors_24h": count,
        },
    });
    let projects = json!({
        "type": "object", "required": ["projects", "truncated"],
        "properties": {"projects": {"type": "array", "items": project}, "truncated": flag},
    });
    let access = json!({
        "type": "object", "required": ["object_type", "object_id", "people", "truncated"],
        "properties": {
            "object_type": text(), "object_id": uuid(), "truncated": flag,
            "people": {"type": "array", "items": {
                "type": "object", "required": ["user", "permissions", "grants", "grants_truncated"],
                "properties": {
                    "user": {"type": "object"}, "permissions": {"type": "array", "items": text()},
                    "grants": {"type": "array", "items": {"type": "object"}}, "grants_truncated": flag,
                },
            }},
        },
    });
    let mut all = vec![
        of("get", "/console/about", "Get facts about this server").public().answers(about),
        of("get", "/console/access", "Explain who may do what on an object")
            .must_ask("object_type", json!({"type": "string", "enum": ObjectType::WORDS}))
            .must_ask("object_id", uuid())
            .asks("user", uuid())
            .answers(access),
        of("get", "/console/projects", "Get an overview of the projects").answers(projects),
    ];
    all.extend(readings());
    all
}

/// Describes the state of the cluster, and what an organization stores.
fn readings() -> Vec<Operation> {
    let of = |path: &str, summary: &str| Operation::new("get", path, "Console", summary);
    let (flag, count) = (json!({"type": "boolean"}), json!({"type": "integer", "minimum": 0}));
    let maybe_count = json!({"type": "integer", "minimum": 0, "nullable": true});
    let maybe = json!({"type": "string", "nullable": true});
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    let number = json!({"type": "number", "minimum": 0});
    let nodes = closed(&json!({
        "id": count, "address": maybe, "state": {"type": "string", "enum": ["active", "draining", "removed"]},
        "answers": flag, "leads": count, "version": maybe, "memory_bytes": maybe_count,
        "disk_total_bytes": maybe_count, "disk_free_bytes": maybe_count, "started": time, "certificate_ends": time,
    }));
    let replicas = closed(&json!({
        "replica": count, "node": count, "role": {"type": "string", "enum": ["voter", "learner"]}, "matched": maybe_count,
    }));
    let groups = closed(&json!({
        "group": count, "shard": maybe_count, "leader": maybe_count, "term": count,
        "replicas": {"type": "array", "items": replicas}, "applied": maybe_count, "changing": flag,
    }));
    let cluster = closed(&json!({
        "cluster": uuid(), "node": count, "replicas": maybe_count, "quorum": flag, "settled": flag,
        "unsettled": {"type": "array", "items": text()},
        "nodes": {"type": "array", "items": nodes}, "groups": {"type": "array", "items": groups},
    }));
    let project = closed(&json!({"id": uuid(), "name": text(), "rows": count, "bytes": count}));
    let rate = closed(&json!({
        "endpoint": text(), "methods": {"type": "array", "items": text()}, "per": text(), "requests": count,
        "seconds": count, "burst": number, "left": {"type": "number", "minimum": 0, "nullable": true},
    }));
    let usage = closed(&json!({
        "complete": flag, "rows": count, "bytes": count,
        "quota": closed(&json!({"rows": maybe_count, "bytes": maybe_count})),
        "projects": {"type": "array", "items": project}, "rates": {"type": "array", "items": rate},
    }));
    vec![
        of("/console/cluster", "Get the state of the cluster, for its operators").answers(cluster),
        of("/console/usage", "Get what the organization stores, its quotas and its rate limits").answers(usage),
    ]
}

/// Schema of an object that has all of these members.
fn closed(members: &Value) -> Value {
    json!({"type": "object", "required": names(members), "properties": members})
}

/// Describes how a browser signs in and out.
pub fn sessions() -> Vec<Operation> {
    let of = |method, path: &str, summary: &str| Operation::new(method, path, "Console", summary);
    let organization =
        json!({"type": "object", "required": ["id", "name"], "properties": {"id": uuid(), "name": text()}});
    let maybe = json!({"type": "string", "nullable": true});
    let session = json!({
        "type": "object", "required": ["user", "organizations", "by", "expires_at", "idle_until"],
        "properties": {
            "user": {
                "type": "object", "required": ["id"],
                "properties": {"id": uuid(), "email": text(), "given_name": maybe, "family_name": maybe},
            },
            "organizations": {"type": "array", "items": organization},
            "by": {"type": "string", "enum": ["key", "login"]},
            "expires_at": {"type": "integer"}, "idle_until": {"type": "integer"},
        },
    });
    vec![
        of("get", "/console/login", "Sign a browser in with the provider").public().asks("next", text()).redirects(),
        of("get", CONSOLE_CALLBACK, "Receive a browser that the provider has identified")
            .public()
            .asks("state", text())
            .asks("code", text())
            .asks("error", text())
            .redirects(),
        of("get", "/console/login/link", "Sign a browser in with the link that a first start printed")
            .public()
            .asks("code", text())
            .redirects(),
        of("post", "/console/session", "Sign a browser in with a credential")
            .must_send(
                CONSOLE_HEADER,
                CONSOLE_HEADER_VALUE,
                "Sent by pages of this server; other origins cannot send it",
            )
            .answers(session.clone()),
        of("get", "/console/session", "Get the session of a browser").answers(session),
        of("delete", "/console/session", "Sign a browser out")
            .public()
            .also_refuses(&[ErrorKind::BadRequest, ErrorKind::Forbidden])
            .asks("everywhere", json!({"type": "boolean"}))
            .answers(json!({"type": "object"})),
    ]
}

/// Describes streams of rows as they arrive.
pub fn tails() -> [Operation; 2] {
    let tail = |path: &str, of_what: &str, summary: &str| {
        Operation::new("get", path, "Console", summary)
            .of(of_what)
            .asks("after", text())
            .asks("filter", text())
            .answers_as("text/event-stream", text())
    };
    [
        tail("/v1/project_logs/{id}/tail", "project", "Stream the rows of a project's logs as they arrive"),
        tail("/v1/experiment/{id}/tail", "experiment", "Stream the rows of an experiment as they arrive"),
    ]
}

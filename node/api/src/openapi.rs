//! OpenAPI 3.0.3 document of the served routes, and the page that shows it.
//!
//! A test compares the document with the registered routes. [`api_table`] lists the operations of the public API,
//! including those that are not served yet. [`suggestions`] finds known paths that resemble an unknown path.

pub mod api_table;
pub mod suggestions;

use std::sync::OnceLock;

use assay_node_http::openapi::Operation;
use assay_node_http::responses::refusal::ErrorKind;
use serde_json::{Map, Value, json};

use crate::route_table::Routes;
use crate::routes::{registered, single_operations};

pub use assay_node_api_descriptions::families::{definitions, records};

/// Page of `GET /docs`, which requests only the document.
pub const PAGE: &str = include_str!("openapi/page.html");

const ABOUT: &str = "Assay stores traces of AI applications and answers queries about them. Every call needs an API \
                     key as a bearer token, unless it is marked otherwise. Unknown fields of a body are ignored, and \
                     so is null in an optional field. Lengths of strings are in bytes of UTF-8.";

/// Version of the described API, which differs from the version of the program.
const CONTRACT_VERSION: &str = "1.0.0";

/// Returns the document, which is the same for all callers and is generated once.
pub fn document() -> &'static [u8] {
    static DOCUMENT: OnceLock<Vec<u8>> = OnceLock::new();
    DOCUMENT.get_or_init(|| document_of(&operations()).to_string().into_bytes())
}

/// Returns all described operations.
fn operations() -> Vec<Operation> {
    let mut routes = Routes::default();
    registered(&mut routes);
    let mut all = single_operations();
    all.extend(routes.described);
    all
}

fn document_of(operations: &[Operation]) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for operation in operations {
        let methods = paths.entry(operation.public_path()).or_insert_with(|| json!({}));
        methods[operation.method] = operation.value();
        for (name, schema) in &operation.schemas {
            schemas.insert(name.clone(), schema.clone());
        }
    }
    schemas.insert("Error".into(), error_schema());
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations {
        if !tags.contains(&operation.tag.as_str()) {
            tags.push(&operation.tag);
        }
    }
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Assay", "version": CONTRACT_VERSION, "description": ABOUT},
        "servers": [{"url": "/"}],
        // Some operations need no credential, so the default allows it. Each operation states its own requirement.
        "security": [{"bearer": []}, {}],
        "tags": tags.iter().map(|tag| json!({ "name": tag })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "API key"}},
            "schemas": schemas,
            "responses": responses(),
        },
    })
}

/// Returns the schema of an error (client-wire.md 11.2).
fn error_schema() -> Value {
    let text = json!({"type": "string"});
    let names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
    json!({
        "type": "object",
        "required": ["Code", "Message", "InternalTraceId", "Path", "Service"],
        "properties": {
            "Code": {"type": "string", "enum": names}, "Message": text, "InternalTraceId": text, "Path": text,
            "Service": {"type": "string", "enum": ["api"]},
        },
    })
}

/// Returns the responses by the name of their error kind.
fn responses() -> Value {
    let each = ErrorKind::ALL.iter().map(|kind| {
        let mut response = json!({
            "description": kind.said(),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        });
        if kind.retry_after_seconds().is_some() {
            let about = "Seconds to wait before a retry";
            response["headers"] = json!({"Retry-After": {"description": about, "schema": {"type": "string"}}});
        }
        (kind.name().to_owned(), response)
    });
    Value::Object(each.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn parsed() -> Value {
        serde_json::from_slice(document()).expect("JSON")
    }

    #[test]
    fn what_is_served_is_described_and_nothing_else() {
        let mut routes = Routes::default();
        registered(&mut routes);
        let served: BTreeSet<_> = routes.served.into_iter().collect();
        let all = operations();
        let described: BTreeSet<_> = all.iter().map(|one| (one.method, one.path.clone())).collect();
        assert_eq!(described.len(), all.len(), "described twice");
        let missing: Vec<_> = served.difference(&described).collect();
        assert!(missing.is_empty(), "served and not described: {missing:?}");
        let unserved: Vec<_> = described.difference(&served).collect();
        assert!(unserved.is_empty(), "described and not served: {unserved:?}");
        let document = parsed();
        let paths = document["paths"].as_object().expect("paths");
        let count: usize = paths.values().map(|methods| methods.as_object().map_or(0, Map::len)).sum();
        assert_eq!(count, all.len(), "two operations have one place in the document");
    }

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                    found.insert(target.to_owned());
                }
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_schema_is_used() {
        let document = parsed();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for target in &found {
            let pointer = target.strip_prefix('#').expect("within the document");
            assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
        }
        for name in document["components"]["schemas"].as_object().expect("schemas").keys() {
            assert!(found.contains(&format!("#/components/schemas/{name}")), "nothing uses {name}");
        }
    }

    #[test]
    fn one_name_is_one_schema() {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for (name, schema) in operations().into_iter().flat_map(|operation| operation.schemas) {
            let before = known.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*before, schema, "{name} is said in two ways");
        }
    }

    #[test]
    fn operations_are_told_apart_and_name_what_their_path_has() {
        let document = parsed();
        let mut ids = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                let id = operation["operationId"].as_str().expect("an id").to_owned();
                assert!(ids.insert(id.clone()), "{id} comes twice");
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                let named: BTreeSet<_> =
                    parameters.iter().map(|one| (one["in"].to_string(), one["name"].to_string())).collect();
                assert_eq!(named.len(), parameters.len(), "{method} {path}: a parameter comes twice");
                for parameter in &parameters {
                    let within = path.contains(&format!("{{{}}}", parameter["name"].as_str().expect("a name")));
                    assert_eq!(parameter["in"] == "path", within, "{method} {path}: {parameter}");
                }
                let holes = path.matches('{').count();
                assert_eq!(parameters.iter().filter(|one| one["in"] == "path").count(), holes, "{method} {path}");
                let responses = operation["responses"].as_object().expect("responses");
                assert!(responses.contains_key("200") || responses.contains_key("302"), "{method} {path}");
                assert!(operation["summary"].as_str().is_some_and(|said| !said.is_empty()), "{method} {path}");
            }
        }
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        for word in ["http://", "https://", "@import", "<link", "src="] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert!(PAGE.len() < 16 << 10, "{} bytes", PAGE.len());
    }
}

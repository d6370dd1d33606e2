//! Handlers for prompts and functions.

use assay_node_functions::{DEFINITIONS_AT_ONCE_MAX, Definition, Inserted, Version};
use assay_node_http::openapi::{Operation, reference};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_invocations::is_invocation;
use assay_node_records::ListRequest;
use serde_json::{Value, json};

use crate::records::created;
use assay_node_invocations_http::invocations;

pub async fn create(definition: Definition, call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    if definition == Definition::Prompt {
        let (object, found) = call.edge.functions.create(&call.principal, definition, body).await?;
        return created(&object, found);
    }
    if is_invocation(&body) {
        return invocations::by_slug(call, body).await;
    }
    let inserted = call.edge.functions.create_function(&call.principal, body).await?;
    created(&inserted.function, inserted.ignored)
}

pub async fn replace(definition: Definition, call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let (object, _) = call.edge.functions.replace(&call.principal, definition, body).await?;
    json(&object)
}

pub async fn list(definition: Definition, call: Call) -> HandlerResult {
    let (version, others) = version_of(call.query()?)?;
    let request = ListRequest::from_query(others)?;
    json(&json!({"objects": call.edge.functions.list(&call.principal, definition, request, &version).await?}))
}

pub async fn get(definition: Definition, call: Call) -> HandlerResult {
    let (version, _) = version_of(call.query()?)?;
    json(&call.edge.functions.get(&call.principal, definition, call.id()?, &version).await?)
}

pub async fn patch(definition: Definition, call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?;
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.functions.patch(&call.principal, definition, id, body).await?)
}

pub async fn delete(definition: Definition, call: Call) -> HandlerResult {
    json(&call.edge.functions.delete(&call.principal, definition, call.id()?).await?)
}

/// Handles `POST /insert-functions`: inserts all functions, or none if one is invalid.
pub async fn insert(call: Call, payload: Payload) -> HandlerResult {
    let mut body = call.small_body(payload).await?.object().await?;
    let items = match body.remove("functions") {
        Some(Value::Array(items)) => items,
        _ => return Err(Refusal::bad("`functions` has to be a list of functions")),
    };
    let wrong = |place| Refusal::bad(format!("`functions[{place}]` has to be an object"));
    let bodies = items.into_iter().enumerate().map(|(place, item)| match item {
        Value::Object(body) => Ok(body),
        _ => Err(wrong(place)),
    });
    let inserted = call.edge.functions.insert(&call.principal, bodies.collect::<Result<_, _>>()?).await?;
    let ignored = inserted.iter().filter(|one| one.ignored).count();
    let functions: Vec<_> = inserted.into_iter().map(told).collect();
    json(&json!({"functions": functions, "ignored_count": ignored}))
}

/// Returns an inserted function as clients expect it.
fn told(inserted: Inserted) -> Value {
    let Inserted { mut function, found_existing, .. } = inserted;
    if let Some(members) = function.as_object_mut() {
        members.insert("found_existing".into(), found_existing.into());
    }
    function
}

type Pairs = Vec<(String, String)>;

/// Returns the version that query parameters select, and the other parameters.
fn version_of(pairs: impl IntoIterator<Item = (String, String)>) -> Result<(Version, Pairs), Refusal> {
    let (mut version, mut environment, mut others) = (None, None, Vec::new());
    for (name, value) in pairs {
        match name.as_str() {
            "version" => version = Some(value),
            "environment" => environment = Some(value),
            _ => others.push((name, value)),
        }
    }
    Ok((Version::of(version.as_deref(), environment.as_deref())?, others))
}

/// Describes `/insert-functions` for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let many = json!({"type": "array", "items": reference("CreateFunction"), "maxItems": DEFINITIONS_AT_ONCE_MAX});
    let functions = json!({"type": "object", "required": ["functions"], "properties": {"functions": many}});
    let found = json!({"type": "object", "required": ["found_existing"], "properties": {
        "found_existing": {"type": "boolean", "description": "Whether a function with this slug existed before"},
    }});
    let function = json!({"allOf": [reference("Function"), found]});
    let inserted = json!({"type": "object", "required": ["functions", "ignored_count"], "properties": {
        "functions": {"type": "array", "items": function}, "ignored_count": {"type": "integer", "minimum": 0},
    }});
    let pushed =
        Operation::new("post", "/insert-functions", "Functions", "Create several functions, or none if one is invalid");
    vec![pushed.takes(functions).answers(inserted)]
}

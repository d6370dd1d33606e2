//! Handlers for the versions of prompts and datasets that environments use.

use assay_node_http::openapi::{Operation, objects, reference, some_text, text, uuid, version};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_records::Pinned;
use serde_json::json;

fn pinned(call: &Call) -> Result<Pinned, Refusal> {
    let object = call.request.match_info().get("object_type").unwrap_or_default();
    Ok(Pinned::of(object, call.id()?)?)
}

fn slug(call: &Call) -> String {
    call.request.match_info().get("slug").unwrap_or_default().to_owned()
}

pub async fn list(call: Call) -> HandlerResult {
    json(&json!({"objects": call.edge.records.pins(&call.principal, &pinned(&call)?).await?}))
}

pub async fn get(call: Call) -> HandlerResult {
    json(&call.edge.records.pin(&call.principal, &pinned(&call)?, &slug(&call)).await?)
}

pub async fn add(call: Call, payload: Payload) -> HandlerResult {
    let of = pinned(&call)?;
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.add_pin(&call.principal, &of, body).await?)
}

pub async fn set(call: Call, payload: Payload) -> HandlerResult {
    let (of, slug) = (pinned(&call)?, slug(&call));
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.set_pin(&call.principal, &of, &slug, body).await?)
}

pub async fn remove(call: Call) -> HandlerResult {
    json(&call.edge.records.remove_pin(&call.principal, &pinned(&call)?, &slug(&call)).await?)
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let object_type = json!({"type": "string", "enum": ["dataset", "prompt"]});
    let shown = json!({
        "type": "object",
        "required": ["id", "object_type", "object_id", "object_version", "environment_slug", "created"],
        "properties": {
            "id": uuid(), "object_type": object_type, "object_id": uuid(), "object_version": text(),
            "environment_slug": text(), "created": {"type": "string", "format": "date-time"},
        },
    });
    let of = |method, path: &str, summary: &str| {
        let operation = Operation::new(method, path, "Environments", summary).part("object_type", object_type.clone());
        operation.of("object").with("EnvironmentObject", shown.clone())
    };
    let all = |method, summary: &str| of(method, "/environment-object/{object_type}/{id}", summary);
    let one = |method, summary: &str| {
        of(method, "/environment-object/{object_type}/{id}/{slug}", summary)
            .part("slug", text())
            .answers(reference("EnvironmentObject"))
    };
    let pin = json!({"type": "object", "required": ["object_version"], "properties": {"object_version": version()}});
    let mut pinned = pin.clone();
    pinned["required"] = json!(["object_version", "environment_slug"]);
    pinned["properties"]["environment_slug"] = some_text();
    vec![
        all("get", "List the versions of a prompt or dataset that environments use")
            .answers(objects(&reference("EnvironmentObject"))),
        all("post", "Assign a version to an environment").takes(pinned).answers(reference("EnvironmentObject")),
        one("get", "Get the version that an environment uses"),
        one("put", "Replace the version that an environment uses").takes(pin),
        one("delete", "Remove the version from an environment"),
    ]
}

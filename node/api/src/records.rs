//! Handlers for records of the catalog, shared by all kinds.
//!
//! The crate `assay-node-records` resolves the organization that a body or a query names.

pub mod budgets;
pub mod environments;
pub mod secrets;
pub mod simulated_users;
pub mod snapshots;
pub mod views;

use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json, json_builder};
use assay_node_http::web::Payload;
use assay_node_records::{Kind, ListRequest};
use serde_json::{Value, json};

pub(crate) const FOUND_EXISTING: &str = "x-bt-found-existing";

/// Creates a record. Returns an existing record of the same name unmodified, with a header that says so.
pub async fn create(kind: &'static Kind, call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let mut created = call.edge.records.create(&call.principal, kind, body).await?;
    if let (Some(secret), Some(object)) = (&created.secret, created.object.as_object_mut()) {
        object.insert("key".into(), secret.expose().into());
    }
    self::created(&created.object, created.found_existing)
}

/// Returns the response with a new or existing record.
pub fn created(object: &Value, found_existing: bool) -> HandlerResult {
    let mut answer = json_builder();
    if found_existing {
        answer.insert_header((FOUND_EXISTING, "true"));
    }
    Ok(answer.body(serde_json::to_vec(object).map_err(Refusal::internal)?))
}

/// Creates a record, or replaces the record of the same name.
pub async fn replace(kind: &'static Kind, call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.replace(&call.principal, kind, body).await?)
}

pub async fn list(kind: &'static Kind, call: Call) -> HandlerResult {
    let request = ListRequest::from_query(call.query()?)?;
    json(&json!({"objects": call.edge.records.list(&call.principal, kind, &request).await?}))
}

pub async fn get(kind: &'static Kind, call: Call) -> HandlerResult {
    json(&call.edge.records.get(&call.principal, kind, call.id()?).await?)
}

pub async fn patch(kind: &'static Kind, call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?;
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.patch(&call.principal, kind, id, body).await?)
}

pub async fn delete(kind: &'static Kind, call: Call) -> HandlerResult {
    json(&call.edge.records.delete(&call.principal, kind, call.id()?).await?)
}

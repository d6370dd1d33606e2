//! Handlers for snapshots of datasets, which are named versions.
//!
//! A snapshot may name the current version, and later writes could get the same version. Therefore, its dataset is
//! advanced to the version first. The snapshot then shows exactly the rows that were acknowledged before.

use assay_node_auth::Permission;
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::{HttpResponse, Payload, header};
use assay_node_objects::{FetchRequest, RowHome};
use assay_node_records::{Created, kinds};
use assay_storage_model::{ObjectKind, Xact};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::records::created;

/// Handles `GET /xact-id`: returns a version above all acknowledged writes, as text.
pub async fn current(call: Call) -> HandlerResult {
    let seconds = call.edge.queries.now().div_euclid(1_000_000);
    let xact = Xact::new(u32::try_from(seconds).map_err(Refusal::internal)?, u16::MAX);
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8")).body(xact.to_string()))
}

/// Handles `POST /v1/dataset_snapshot`.
pub async fn create(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let made = make(&call, body).await?;
    created(&made.object, made.found_existing)
}

pub(crate) async fn make(call: &Call, body: Map<String, Value>) -> Result<Created, Refusal> {
    settle(call, &body).await?;
    Ok(call.edge.records.create(&call.principal, &kinds::DATASET_SNAPSHOT, body).await?)
}

/// Handles `PUT /v1/dataset_snapshot`.
pub async fn replace(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&replaced(&call, body).await?)
}

pub(crate) async fn replaced(call: &Call, body: Map<String, Value>) -> Result<Value, Refusal> {
    settle(call, &body).await?;
    Ok(call.edge.records.replace(&call.principal, &kinds::DATASET_SNAPSHOT, body).await?)
}

/// Advances the dataset to the version of the body. The write of the record reports errors and missing permissions.
async fn settle(call: &Call, body: &Map<String, Value>) -> Result<(), Refusal> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let id = text("dataset_id").and_then(|id| Uuid::parse_str(id).ok());
    let (Some(id), Some(Ok(version))) = (id, text("xact_id").map(Xact::parse)) else {
        return Ok(());
    };
    let Ok(home) = call.edge.records.object(&call.principal, ObjectKind::Dataset, id, Permission::Update).await else {
        return Ok(());
    };
    let home = RowHome { object: home.key, org: home.org, project_id: home.project_id };
    // The fetch advances the dataset, and its page is ignored.
    let request = FetchRequest { version: Some(version), limit: Some(1), ..FetchRequest::default() };
    call.objects().fetch(&home, request).await?;
    Ok(())
}

//! Which versions of prompts and datasets environments use.

use actix_web::web::Payload;
use assay_node_records::Pinned;
use serde_json::json;

use super::{Answer, json};
use crate::requests::caller::Call;
use crate::responses::refusal::Refusal;

fn pinned(call: &Call) -> Result<Pinned, Refusal> {
    let object = call.request.match_info().get("object_type").unwrap_or_default();
    Ok(Pinned::of(object, call.id()?)?)
}

fn slug(call: &Call) -> String {
    call.request.match_info().get("slug").unwrap_or_default().to_owned()
}

pub async fn list(call: Call) -> Answer {
    json(&json!({"objects": call.edge.records.pins(&call.principal, &pinned(&call)?).await?}))
}

pub async fn get(call: Call) -> Answer {
    json(&call.edge.records.pin(&call.principal, &pinned(&call)?, &slug(&call)).await?)
}

pub async fn add(call: Call, payload: Payload) -> Answer {
    let of = pinned(&call)?;
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.add_pin(&call.principal, &of, body).await?)
}

pub async fn set(call: Call, payload: Payload) -> Answer {
    let (of, slug) = (pinned(&call)?, slug(&call));
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.set_pin(&call.principal, &of, &slug, body).await?)
}

pub async fn remove(call: Call) -> Answer {
    json(&call.edge.records.remove_pin(&call.principal, &pinned(&call)?, &slug(&call)).await?)
}

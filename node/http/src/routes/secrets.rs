//! AI secrets beyond what every kind has: one is deleted by its name too, and clients list them by an organization's id.

use actix_web::web::Payload;
use assay_node_records::kinds::AI_SECRET;

use super::{Answer, json};
use crate::requests::caller::Call;

/// The one that the body names.
pub async fn delete(call: Call, payload: Payload) -> Answer {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.delete_named(&call.principal, &AI_SECRET, &body).await?)
}

/// As clients ask after login: an array, without an object around it.
pub async fn of_organization(call: Call, payload: Payload) -> Answer {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.ai_secrets(&call.principal, &body).await?)
}

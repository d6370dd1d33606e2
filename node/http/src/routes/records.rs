//! Records of the catalog: one family of handlers for every kind. Which organization a body or a query means is for
//! the records to say.

use actix_web::web::Payload;
use assay_node_records::{Kind, ListRequest};
use serde_json::{Value, json};

use super::{Answer, json, json_builder};
use crate::requests::caller::Call;
use crate::responses::refusal::Refusal;

pub(super) const FOUND_EXISTING: &str = "x-bt-found-existing";

/// What is there under the same name is answered unmodified, and the header says so.
pub async fn create(kind: &'static Kind, call: Call, payload: Payload) -> Answer {
    let body = call.small_body(payload).await?.object().await?;
    let mut created = call.edge.records.create(&call.principal, kind, body).await?;
    if let (Some(secret), Some(object)) = (&created.secret, created.object.as_object_mut()) {
        object.insert("key".into(), secret.expose().into());
    }
    self::created(&created.object, created.found_existing)
}

/// What was made, or was there.
pub fn created(object: &Value, found_existing: bool) -> Answer {
    let mut answer = json_builder();
    if found_existing {
        answer.insert_header((FOUND_EXISTING, "true"));
    }
    Ok(answer.body(serde_json::to_vec(object).map_err(Refusal::internal)?))
}

/// Takes the place of what is there under the same name.
pub async fn replace(kind: &'static Kind, call: Call, payload: Payload) -> Answer {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.replace(&call.principal, kind, body).await?)
}

pub async fn list(kind: &'static Kind, call: Call) -> Answer {
    let request = ListRequest::from_query(call.query()?)?;
    json(&json!({"objects": call.edge.records.list(&call.principal, kind, &request).await?}))
}

pub async fn get(kind: &'static Kind, call: Call) -> Answer {
    json(&call.edge.records.get(&call.principal, kind, call.id()?).await?)
}

pub async fn patch(kind: &'static Kind, call: Call, payload: Payload) -> Answer {
    let id = call.id()?;
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.patch(&call.principal, kind, id, body).await?)
}

pub async fn delete(kind: &'static Kind, call: Call) -> Answer {
    json(&call.edge.records.delete(&call.principal, kind, call.id()?).await?)
}

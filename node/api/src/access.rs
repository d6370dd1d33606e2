//! Handlers for access: members of organizations, grants, invitations and tokens.

use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_identity::InvitationReply;
use assay_node_records::{ListRequest, kinds};
use serde_json::{Value, json};
use uuid::Uuid;

pub async fn acls(call: Call) -> HandlerResult {
    let request = ListRequest::from_query(call.query()?)?;
    json(&json!({"objects": call.edge.records.acls(&call.principal, &request).await?}))
}

/// Lists the grants of an organization as a bare array, as the API contract requires.
pub async fn acls_of_organization(call: Call) -> HandlerResult {
    let request = ListRequest::from_query(call.query()?)?;
    json(&call.edge.records.acls_of_organization(&call.principal, &request).await?)
}

/// Deletes the grant that the body describes.
pub async fn delete_acl(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.delete_acl(&call.principal, body).await?)
}

/// Deletes the service token whose id is in the body.
pub async fn delete_service_token(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let wrong = || Refusal::bad("`id` has to be the UUID of a service token");
    let id = body.get("id").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok()).ok_or_else(wrong)?;
    json(&call.edge.records.delete(&call.principal, &kinds::SERVICE_TOKEN, id).await?)
}

pub async fn update_acls(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.update_acls(&call.principal, body).await?)
}

pub async fn create_acl(call: Call, payload: Payload) -> HandlerResult {
    crate::records::create(&kinds::ACL, call, payload).await
}

pub async fn users(call: Call) -> HandlerResult {
    let request = ListRequest::from_query(call.query()?)?;
    json(&json!({"objects": call.edge.identity.users(&call.principal, &request).await?}))
}

pub async fn user(call: Call) -> HandlerResult {
    json(&call.edge.identity.user(&call.principal, call.id()?).await?)
}

pub async fn organizations(call: Call) -> HandlerResult {
    let request = ListRequest::from_query(call.query()?)?;
    json(&json!({"objects": call.edge.identity.list_organizations(&call.principal, &request).await?}))
}

pub async fn organization(call: Call) -> HandlerResult {
    json(&call.edge.identity.organization(&call.principal, call.id()?).await?)
}

pub async fn patch_organization(call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?;
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.identity.patch_organization(&call.principal, id, body).await?)
}

pub async fn change_members(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.identity.change_members(&call.principal, body).await?)
}

/// Lists the caller's pending invitations.
pub async fn invitations(call: Call) -> HandlerResult {
    json(&json!({"objects": call.edge.identity.invitations(&call.principal).await?}))
}

pub async fn accept_invitation(call: Call) -> HandlerResult {
    json(&call.edge.identity.reply_to_invitation(&call.principal, call.id()?, InvitationReply::Accept).await?)
}

pub async fn decline_invitation(call: Call) -> HandlerResult {
    json(&call.edge.identity.reply_to_invitation(&call.principal, call.id()?, InvitationReply::Decline).await?)
}

/// Lists the pending invitations of an organization, for callers who may invite.
pub async fn invitations_of_organization(call: Call) -> HandlerResult {
    let request = ListRequest::from_query(call.query()?)?;
    json(&json!({"objects": call.edge.identity.invitations_of_organization(&call.principal, &request).await?}))
}

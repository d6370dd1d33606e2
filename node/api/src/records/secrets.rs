//! Handlers for AI secrets: deletion by name, and the list by an organization's id.

use assay_node_http::openapi::{Operation, maybe_id, reference, some_text};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_records::kinds::AI_SECRET;
use serde_json::json;

use assay_node_api_descriptions::families::Family;

/// Deletes the secret that the body names.
pub async fn delete(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.delete_named(&call.principal, &AI_SECRET, &body).await?)
}

/// Lists the secrets of an organization as a bare array, for clients after login.
pub async fn of_organization(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&call.edge.records.ai_secrets(&call.principal, &body).await?)
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let family = Family::new("/v1/ai_secret", "ai_secret", AI_SECRET.describe());
    let org_name = json!({"type": "string", "nullable": true});
    let named =
        json!({"type": "object", "required": ["name"], "properties": {"name": some_text(), "org_name": org_name}});
    let of_org = json!({"type": "object", "properties": {"org_id": maybe_id()}});
    let all = Operation::new("post", "/api/ai_secret/get", "AiSecrets", "List the AI secrets of an organization");
    vec![
        family.create(),
        family.replace(),
        family.list(),
        family.get(),
        family.patch(),
        family.delete(),
        family.delete_by(named),
        all.takes(of_org).answers(json!({"type": "array", "items": reference("AiSecret")})),
    ]
}

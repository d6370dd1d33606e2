//! Handlers for the identity of the caller. They ignore the request body.

pub mod oauth;
pub mod setup;

use assay_node_http::openapi::{Operation, names, text, uuid};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::origin::origin_of;
use assay_node_http::responses::{HandlerResult, json};
use serde_json::{Value, json};

/// Tag of the operations in the OpenAPI document.
const TAG: &str = "Service";

/// Returns the organizations of a credential and their URLs.
///
/// The list is never empty and `api_url` is never null, because clients fail otherwise.
pub async fn login(call: Call) -> HandlerResult {
    let origin = origin_of(&call)?;
    let organizations = call.edge.identity.organizations(&call.principal).await?;
    let org_info: Vec<_> = organizations
        .iter()
        .map(|org| {
            json!({
                "id": org.id, "name": org.name, "api_url": origin, "proxy_url": origin, "realtime_url": null,
                "is_universal_api": true, "git_metadata": null,
            })
        })
        .collect();
    json(&json!({ "org_info": org_info }))
}

pub async fn me(call: Call) -> HandlerResult {
    let organizations = call.edge.identity.organizations(&call.principal).await?;
    let organizations: Vec<_> = organizations.iter().map(|org| json!({"id": org.id, "name": org.name})).collect();
    json(&json!({"id": call.principal.user, "email": call.principal.user_email, "organizations": organizations}))
}

pub async fn ping(call: Call) -> HandlerResult {
    let who = &call.principal;
    json(&json!({"id": who.user, "email": who.user_email, "org_id": who.org, "org_name": who.org_name}))
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let shown = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let maybe = json!({"type": "string", "nullable": true});
    let organization = shown(json!({
        "id": uuid(), "name": text(), "api_url": text(), "proxy_url": text(), "realtime_url": maybe,
        "is_universal_api": {"type": "boolean"}, "git_metadata": {"type": "object", "nullable": true},
    }));
    let login = json!({"type": "object", "required": ["org_info"],
        "properties": {"org_info": {"type": "array", "items": organization, "minItems": 1}}});
    let named = shown(json!({"id": uuid(), "name": text()}));
    let me = shown(json!({"id": uuid(), "email": text(), "organizations": {"type": "array", "items": named}}));
    let ping = shown(json!({"id": uuid(), "email": text(), "org_id": uuid(), "org_name": text()}));
    vec![
        Operation::new("get", "/ping", TAG, "Get the caller and its organization").answers(ping),
        Operation::new("post", "/api/apikey/login", TAG, "List the organizations of the credential and their URLs")
            .answers(login),
        Operation::new("post", "/api/self/me", TAG, "Get the user of the credential").answers(me),
    ]
}

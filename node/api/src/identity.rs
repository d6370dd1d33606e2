//! Handlers for the identity of the caller. They ignore the request body.

pub mod oauth;
pub mod setup;

use assay_node_http::openapi::{Operation, names, text, uuid};
use assay_node_http::requests::caller::{Call, FORWARDED_PROTO};
use assay_node_http::requests::origin;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::header;
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

pub(crate) fn origin_of(call: &Call) -> Result<String, Refusal> {
    if let Some(origin) = call.edge.config.public_origin() {
        return Ok(origin.to_owned());
    }
    let text = |name: &str| call.request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_tls = call.edge.config.tls.is_some();
    let host = text(header::HOST.as_str());
    // With TLS, the caller has verified the name against this server's certificate.
    if !is_tls && host.is_some_and(|host| !origin::is_of_this_network(host)) {
        return Err(Refusal::bad(
            "this server does not trust the domain in `Host`, so it cannot make URLs with it. Set `http.public_url` \
             to the origin that clients use, or address the server by its IP address",
        ));
    }
    let origin = origin::of_caller(host, is_tls, text(FORWARDED_PROTO));
    origin.ok_or_else(|| {
        Refusal::bad("the `Host` header has no host, so the server cannot make a URL: send a `Host` header")
    })
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

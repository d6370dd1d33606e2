//! Metadata of the protected resource (RFC 9728), by which clients find the authorization server.

use assay_node_http::requests::login::pass;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::Data;
use serde_json::json;

use crate::MCP_PATH;

/// Scope of logins of MCP clients.
pub(crate) const SCOPE: &str = "mcp";

/// Returns the metadata of `/mcp`. Without logins, there is none: clients then need a key.
pub async fn protected_resource(edge: Data<Edge>) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let origin = &passed.rules.origin;
    json(&json!({
        "resource": format!("{origin}{MCP_PATH}"),
        "resource_name": "Assay",
        "authorization_servers": [origin],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
        "resource_documentation": format!("{origin}/docs/guide/coding-agents"),
    }))
}

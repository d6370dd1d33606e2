//! Handler of `POST /mcp`.
//!
//! ```text
//! origin ─▶ credential ─▶ body of bounded size ─▶ audit entry of each call ─▶ answer
//!   403        401                413                                        200, 202, 400
//! ```

use assay_node_http::requests::body;
use assay_node_http::requests::caller::{AUTHORIZATION, Call, FORWARDED_PROTO};
use assay_node_http::requests::origin::{is_loopback, is_of_this_network, of_caller, origin_of};
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Payload, StatusCode, header};
use assay_node_mcp_server::{McpHeaders, McpReply, MessageSummary, ToolFailure, answer, parse_error, summary_of};
use assay_node_records::mechanism::entry_of;
use serde_json::{Map, Value, json};

use crate::caller_data::CallerData;
use crate::metadata::SCOPE;
use crate::{MCP_PATH, METADATA_PATH};

/// Upper bound of the body of a request.
pub const MCP_BODY_BYTES_MAX: usize = 1 << 20;
/// Upper bound of the arguments of a call in its audit entry.
const AUDITED_BYTES_MAX: usize = 2 << 10;
/// Action of the audit entry of a call.
const AUDITED_ACTION: &str = "mcp_call";

/// Handles `POST /mcp`.
pub async fn post(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    check_origin(&edge, &request)?;
    // A console session is a cookie, which a page could use for its own calls.
    if !request.headers().contains_key(AUTHORIZATION) {
        let why = "no credential was sent: send `Authorization: Bearer <API key or token>`, or log in with OAuth";
        return Err(challenged(&edge, Refusal::new(ErrorKind::Unauthorized, why), false));
    }
    let call = Call::of(request).await.map_err(|refusal| challenged(&edge, refusal, true))?;
    let headers = headers_of(&call.request);
    if !headers.accepts_json() {
        return Ok(HttpResponse::build(StatusCode::NOT_ACCEPTABLE)
            .content_type("application/json")
            .body(not_acceptable().to_string()));
    }
    let read = body::read(&edge, &call.applicant(), &call.request, payload, MCP_BODY_BYTES_MAX).await?;
    let parsed = match read.json().await {
        Ok(parsed) => parsed,
        Err(refusal) if refusal.kind == ErrorKind::BadRequest => return response(parse_error(&refusal.message)),
        Err(refusal) => return Err(refusal),
    };
    for summary in summary_of(&parsed.value) {
        audit(&call, &summary).await?;
    }
    let data = CallerData { caller: &call.caller, origin: origin_of(&call) };
    match answer(&headers, &parsed.value, &data).await {
        Ok(reply) => response(reply),
        Err(ToolFailure::Unauthorized(why) | ToolFailure::Refused(why)) => {
            Err(challenged(&edge, Refusal::new(ErrorKind::Unauthorized, why), true))
        }
    }
}

fn response(reply: McpReply) -> HandlerResult {
    let status = StatusCode::from_u16(reply.status).map_err(Refusal::internal)?;
    let mut response = HttpResponse::build(status);
    match reply.body {
        Some(body) => Ok(response.content_type("application/json").body(body.to_string())),
        None => Ok(response.finish()),
    }
}

fn not_acceptable() -> Value {
    let why = "answers are JSON: send `Accept: application/json, text/event-stream`";
    json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": why}})
}

fn headers_of(request: &HttpRequest) -> McpHeaders {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    McpHeaders {
        accept: text(header::ACCEPT.as_str()),
        version: text("mcp-protocol-version"),
        method: text("mcp-method"),
        name: text("mcp-name"),
    }
}

/// Refuses pages of other origins, whose domain may resolve to this server (DNS rebinding).
///
/// Pages of this server and of the user's own machine may call.
fn check_origin(edge: &Data<Edge>, request: &HttpRequest) -> Result<(), Refusal> {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = text(header::HOST.as_str());
    let is_tls = edge.config.tls.is_some();
    let own = match edge.config.public_origin() {
        Some(own) => Some(own.to_owned()),
        None if is_tls || host.is_some_and(is_of_this_network) => of_caller(host, is_tls, text(FORWARDED_PROTO)),
        None => None,
    };
    if own.is_some_and(|own| own.eq_ignore_ascii_case(origin)) || is_of_this_machine(origin) {
        return Ok(());
    }
    let shown: String = origin.chars().take(100).collect();
    let why = format!("pages of the origin `{shown}` may not call {MCP_PATH}: use a program, or a page of this server");
    Err(Refusal::new(ErrorKind::Forbidden, why))
}

fn is_of_this_machine(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(|host| !host.contains(['/', '@']) && is_loopback(host))
}

/// Adds the challenge that leads a client to the login, if logins are enabled.
fn challenged(edge: &Data<Edge>, mut refusal: Refusal, had_credential: bool) -> Refusal {
    if refusal.kind != ErrorKind::Unauthorized {
        return refusal;
    }
    if let (Some(_), Some(rules)) = (&edge.logins, edge.identity.login_rules()) {
        let error = if had_credential { "error=\"invalid_token\", " } else { "" };
        let metadata = format!("{}{METADATA_PATH}{MCP_PATH}", rules.origin);
        let challenge = format!("Bearer {error}resource_metadata=\"{metadata}\", scope=\"{SCOPE}\"");
        refusal.challenge = Some(challenge.into());
    }
    refusal
}

/// Writes the audit entry of a call, before the call reads anything.
async fn audit(call: &Call, summary: &MessageSummary<'_>) -> Result<(), Refusal> {
    let none = Map::new();
    let mut arguments = json!(summary.arguments.unwrap_or(&none)).to_string();
    arguments.truncate(arguments.floor_char_boundary(AUDITED_BYTES_MAX));
    let details = json!({"tool": summary.tool, "arguments": arguments});
    let org = call.principal.org;
    let entry = entry_of(&call.principal, AUDITED_ACTION, ("organization", org.0), details);
    Ok(call.edge.records.catalog().keep_entry(org, entry).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_own_machine_are_local() {
        for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:8000", "http://LOCALHOST"] {
            assert!(is_of_this_machine(origin), "{origin}");
        }
        for origin in [
            "",
            "null",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "vscode-webview://localhost",
            "file://localhost",
        ] {
            assert!(!is_of_this_machine(origin), "{origin}");
        }
    }
}

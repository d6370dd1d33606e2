//! Handlers about the server itself: greeting, version, health, metrics and the OpenAPI document.

use assay_node_http::openapi::{Operation, text};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::origin;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json, json_builder};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Version, header};
use serde_json::{Value, json};

use crate::openapi;

/// Tag of the operations in the OpenAPI document.
const TAG: &str = "Service";

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub async fn greeting() -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8")).body("Hello, World!")
}

/// Handles `GET /openapi.json`. The document is public, because it contains no data.
pub async fn document() -> HttpResponse {
    json_builder().body(openapi::document())
}

/// Handles `GET /docs`: returns the page of the document, which connects only to this server.
pub async fn docs() -> HttpResponse {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, "text/html; charset=utf-8"));
    answer.insert_header((header::CONTENT_SECURITY_POLICY, POLICY));
    answer.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    answer.body(openapi::PAGE)
}

/// Upper bound of a body that clients send directly. Some clients count characters, which have up to four bytes.
const PAYLOAD_BYTES_MAX: usize = 6 << 20;

pub async fn version(call: Call) -> HandlerResult {
    let most = PAYLOAD_BYTES_MAX.min(call.edge.config.body_bytes_max / 3);
    json(&json!({"version": env!("CARGO_PKG_VERSION"), "logs3_payload_max_bytes": most}))
}

pub async fn healthz(edge: Data<Edge>) -> HandlerResult {
    let health = edge.health();
    answered(health.live, &json!({"live": health.live}), &health.notes)
}

pub async fn readyz(edge: Data<Edge>) -> HandlerResult {
    let health = edge.health();
    let mut body = json!({"ready": health.ready});
    if !health.shortfalls.is_empty() {
        body["shortfalls"] = json!(health.shortfalls);
    }
    answered(health.ready, &body, &health.notes)
}

fn answered(well: bool, body: &Value, notes: &[String]) -> HandlerResult {
    if well { json(body) } else { Err(Refusal::new(ErrorKind::Unavailable, notes.join("; "))) }
}

/// Headers that a browser or a proxy adds. A request with one of them does not come from a local program.
const OF_BROWSERS_AND_PROXIES: [&str; 13] = [
    "origin",
    "referer",
    "sec-fetch-site",
    "sec-fetch-mode",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
    "true-client-ip",
    "cf-connecting-ip",
];

/// Returns metrics on the clients' port, only to programs on this machine.
///
/// Metrics need no credential. Therefore, pages in a browser, whose domain may resolve to this machine, and callers
/// behind a proxy are refused. Proxies without forwarding headers use HTTP/1.0 or forward the requested domain.
pub async fn metrics(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    // A function is no program of the operator, although it calls from this machine.
    let is_function = edge.code.own.get() == Some(request.app_config().local_addr());
    if edge.config.metrics_listen.is_some() || is_function || !is_program_here(&request) {
        let why = "metrics are served on their own port (`http.metrics_listen`). On this port they are only for \
                   programs on this machine that use an address such as 127.0.0.1 without a proxy";
        return Err(Refusal::new(ErrorKind::NotFound, why));
    }
    metrics_on_own_port(edge).await
}

fn is_program_here(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).or_else(|| request.uri().host());
    request.peer_addr().is_some_and(|address| address.ip().to_canonical().is_loopback())
        && host.is_some_and(origin::is_loopback)
        && request.version() > Version::HTTP_10
        && OF_BROWSERS_AND_PROXIES.iter().all(|name| !headers.contains_key(*name))
}

pub async fn metrics_on_own_port(edge: Data<Edge>) -> HandlerResult {
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, PROMETHEUS)).body(edge.metrics_text()))
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let get = |path: &str, summary: &str| Operation::new("get", path, TAG, summary);
    let well = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "boolean", "enum": [true]}}});
    let most = json!({"type": "integer", "minimum": 1});
    let version = json!({"type": "object", "required": ["version", "logs3_payload_max_bytes"],
        "properties": {"version": text(), "logs3_payload_max_bytes": most}});
    vec![
        get("/v1", "A greeting").public().answers_as("text/plain", text()),
        get("/openapi.json", "This document").public().answers(json!({"type": "object"})),
        get("/docs", "This document as a page").public().answers_as("text/html", text()),
        get("/healthz", "Liveness: whether the node works").public().answers(well("live")),
        get("/readyz", "Readiness: whether the node can serve requests").public().answers(well("ready")),
        get(
            "/metrics",
            "Metrics in the format of Prometheus, only for callers on this machine unless they have their own port",
        )
        .public()
        .answers_as("text/plain", text()),
        get("/version", "The version of the server").answers(version),
    ]
}

#[cfg(test)]
mod tests {
    use assay_node_http::web::TestRequest;

    use super::*;

    /// Pages and proxies on the same machine were shown metrics.
    #[test]
    fn only_a_program_on_this_machine_is_shown_metrics() {
        let asked = |host: &str, more: &[(&str, &str)]| {
            let mut request = TestRequest::get().uri("/metrics").insert_header((header::HOST, host));
            for (name, value) in more {
                request = request.insert_header((*name, *value));
            }
            let here = request.peer_addr(([127, 0, 0, 1], 5000).into());
            is_program_here(&here.to_http_request())
        };
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "localhost"] {
            assert!(asked(host, &[]), "{host}");
        }
        for host in ["evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1:8000", ""] {
            assert!(!asked(host, &[]), "{host}");
        }
        for name in OF_BROWSERS_AND_PROXIES {
            assert!(!asked("127.0.0.1:8000", &[(name, "https://evil.example")]), "{name}");
        }
        let request = TestRequest::get().uri("/metrics").insert_header((header::HOST, "127.0.0.1:8000"));
        let elsewhere = request.peer_addr(([10, 0, 0, 2], 5000).into()).to_http_request();
        assert!(!is_program_here(&elsewhere));
        let old = TestRequest::get().version(Version::HTTP_10).insert_header((header::HOST, "127.0.0.1:8000"));
        assert!(!is_program_here(&old.peer_addr(([127, 0, 0, 1], 5000).into()).to_http_request()));
    }
}

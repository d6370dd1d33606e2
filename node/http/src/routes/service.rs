//! About the server itself: greeting, version, health, metrics.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use super::{Answer, Shared, json, json_builder};
use crate::call::Call;
use crate::describe;
use crate::refusal::{Kind, Refusal};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub async fn greeting() -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8")).body("Hello, World!")
}

/// For everybody: it says what can be asked, and nothing of what is there.
pub async fn document() -> HttpResponse {
    json_builder().body(describe::document())
}

/// The document as a page for people. It runs only what is in it and talks only to where it came from.
pub async fn docs() -> HttpResponse {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, "text/html; charset=utf-8"));
    answer.insert_header((header::CONTENT_SECURITY_POLICY, POLICY));
    answer.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    answer.body(describe::PAGE)
}

/// Above this clients upload their rows. Some count letters in the place of bytes, of which one has up to four.
const PAYLOAD_BYTES_MAX: usize = 6 << 20;

pub async fn version(call: Call) -> Answer {
    let most = PAYLOAD_BYTES_MAX.min(call.edge.config.body_bytes_max / 3);
    json(&json!({"version": env!("CARGO_PKG_VERSION"), "logs3_payload_max_bytes": most}))
}

pub async fn healthz(edge: Shared) -> Answer {
    let health = edge.health();
    answered(health.live, &json!({"live": health.live}), &health.notes)
}

pub async fn readyz(edge: Shared) -> Answer {
    let health = edge.health();
    answered(health.ready, &json!({"ready": health.ready}), &health.notes)
}

fn answered(well: bool, body: &Value, notes: &[String]) -> Answer {
    if well { json(body) } else { Err(Refusal::new(Kind::Unavailable, notes.join("; "))) }
}

/// On the clients' port only whoever is on this machine is shown metrics, and not through a proxy: they need no
/// credential.
pub async fn metrics(edge: Shared, request: HttpRequest) -> Answer {
    let is_here = request.peer_addr().is_some_and(|address| address.ip().to_canonical().is_loopback());
    let is_forwarded = request.headers().contains_key("x-forwarded-for") || request.headers().contains_key("forwarded");
    if edge.config.metrics_listen.is_some() || !is_here || is_forwarded {
        let why = "metrics are shown on a port of their own (`metrics_listen`), or here to callers on this machine";
        return Err(Refusal::new(Kind::NotFound, why));
    }
    metrics_on_own_port(edge).await
}

pub async fn metrics_on_own_port(edge: Shared) -> Answer {
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, PROMETHEUS)).body(edge.metrics_text()))
}

//! About the server itself: greeting, version, health, metrics.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use super::{Answer, Shared, json};
use crate::call::Call;
use crate::refusal::{Kind, Refusal};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub async fn greeting() -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8")).body("Hello, World!")
}

/// Without `logs3_payload_max_bytes`: whoever is told one uses overflow uploads.
pub async fn version(_call: Call) -> Answer {
    json(&json!({"version": env!("CARGO_PKG_VERSION")}))
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

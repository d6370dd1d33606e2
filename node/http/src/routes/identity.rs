//! Who is calling: login, the caller's own record. None of these reads a body, whatever its headers promise.

use actix_web::http::header;
use serde_json::json;

use super::{Answer, json};
use crate::call::Call;
use crate::origin;
use crate::refusal::Refusal;

const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// The organizations of a credential, and where to go on from here. The list is never empty and `api_url` never null:
/// clients stop at either.
pub async fn login(call: Call) -> Answer {
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

pub async fn me(call: Call) -> Answer {
    let organizations = call.edge.identity.organizations(&call.principal).await?;
    let organizations: Vec<_> = organizations.iter().map(|org| json!({"id": org.id, "name": org.name})).collect();
    json(&json!({"id": call.principal.user, "email": call.principal.user_email, "organizations": organizations}))
}

pub async fn ping(call: Call) -> Answer {
    let who = &call.principal;
    json(&json!({"id": who.user, "email": who.user_email, "org_id": who.org, "org_name": who.org_name}))
}

pub(super) fn origin_of(call: &Call) -> Result<String, Refusal> {
    if let Some(origin) = call.edge.config.public_origin() {
        return Ok(origin.to_owned());
    }
    let text = |name: &str| call.request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_tls = call.edge.config.tls.is_some();
    let host = text(header::HOST.as_str());
    // With TLS whoever calls has checked that the name is this server's.
    if !is_tls && host.is_some_and(|host| !origin::is_of_this_network(host)) {
        return Err(Refusal::bad(
            "this server cannot tell whether the domain in `Host` is its own, so it hands out no address on it: set \
             `http.public_url` to the origin that clients reach it by, or name it by its IP address",
        ));
    }
    let origin = origin::of_caller(host, is_tls, text(FORWARDED_PROTO));
    origin.ok_or_else(|| Refusal::bad("the `Host` header names no host, so that no address can be handed out"))
}

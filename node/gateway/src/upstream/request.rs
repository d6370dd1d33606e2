//! Request of one attempt: the plan with the credentials and headers of a candidate.

use std::time::Duration;

use assay_node_auth::Secret;
use assay_node_dialects::Dialect;
use assay_node_egress::{
    EgressOptions, EgressPurpose, EgressRequest, EgressTimes, EgressUrl, HeaderMap, HeaderName, HeaderValue,
};
use assay_node_models::attempts::CallTimes;
use assay_node_models::headers::{ForwardPolicy, request_headers};
use assay_node_models::provider::{AuthPlan, HeaderVariables, auth_plan, render_additional_headers};
use assay_node_models::resolution::Candidate;

use super::plan::AttemptPlan;
use crate::call::ModelCall;
use crate::error::GatewayError;

const ANTHROPIC_VERSION: &str = "anthropic-version";
const ANTHROPIC_VERSION_DEFAULT: &str = "2023-06-01";
/// Bytes of a response that is no stream, or of a whole stream.
const RESPONSE_BYTES_MAX: u64 = 256 << 20;

/// Returns the request, and its limits.
pub(crate) fn request(
    call: &ModelCall,
    candidate: &Candidate,
    plan: &AttemptPlan,
    key: Option<&Secret>,
    policy: &ForwardPolicy,
) -> Result<(EgressRequest, EgressOptions), GatewayError> {
    let url: EgressUrl = plan.url.parse().map_err(|error| {
        let name = &candidate.provider.name;
        GatewayError::new(
            502,
            "provider_not_usable",
            format!("the address of the provider `{name}` is invalid: {error}"),
        )
    })?;
    let mut request = EgressRequest::post(url, plan.body.clone());
    request.headers = headers(call, candidate, plan, key, policy)?;
    let times = CallTimes::of(&candidate.provider.metadata, plan.server_streams);
    let mut options = EgressOptions::new(EgressPurpose::Models, call.owner.organization);
    options.times = EgressTimes {
        connect: Duration::from_millis(times.connect_ms),
        first_byte: Duration::from_millis(times.first_byte_ms),
        between_chunks: Duration::from_millis(times.chunk_ms),
        total: Duration::from_millis(times.total_ms),
    };
    options.response_bytes_max = RESPONSE_BYTES_MAX;
    Ok((request, options))
}

fn headers(
    call: &ModelCall,
    candidate: &Candidate,
    plan: &AttemptPlan,
    key: Option<&Secret>,
    policy: &ForwardPolicy,
) -> Result<HeaderMap, GatewayError> {
    let provider = &candidate.provider;
    let secret = key.map_or("", Secret::expose);
    let failed = |why: String| GatewayError::new(502, "provider_auth_error", why);
    let plan_of_auth = auth_plan(provider, secret);
    let auth = match plan_of_auth.map_err(|refusal| failed(format!("the provider `{}`: {refusal}", provider.name)))? {
        AuthPlan::Headers(headers) => headers,
        AuthPlan::Exchange(_) | AuthPlan::AwsSignature { .. } => {
            let why = "its way to authenticate is not supported by this version: use an API key or an access token";
            return Err(failed(format!("the provider `{}`: {why}", provider.name)));
        }
    };
    let email = call.owner.email.as_deref().unwrap_or_default();
    let variables = HeaderVariables { email, model: candidate.upstream_model(), api_key: secret };
    let rendered = render_additional_headers(provider, variables);
    for refusal in &rendered.refused {
        tracing::warn!(provider = %provider.id, %refusal, "a header of a provider secret is not sent");
    }
    let client = call.headers.iter().filter(|(name, _)| is_for(name, plan.server));
    let client = client.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut headers = HeaderMap::new();
    for (name, value) in request_headers(client, policy, &auth, &rendered.headers) {
        // what cannot be a header is refused above, or came as a header
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    if plan.server == Dialect::Anthropic && !headers.contains_key(ANTHROPIC_VERSION) {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static(ANTHROPIC_VERSION_DEFAULT));
    }
    let accept = if plan.server_streams { "text/event-stream" } else { "application/json" };
    headers.insert("accept", HeaderValue::from_static(accept));
    if let Ok(content_type) = HeaderValue::try_from(plan.content_type.as_str()) {
        headers.insert("content-type", content_type);
    }
    Ok(headers)
}

/// Returns whether a header of a client says something to servers of this format.
fn is_for(name: &str, server: Dialect) -> bool {
    match name {
        "anthropic-version" | "anthropic-beta" => server == Dialect::Anthropic,
        "openai-beta" => matches!(server, Dialect::Chat | Dialect::Responses),
        _ => true,
    }
}

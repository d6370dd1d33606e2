//! Requests of attempts, composed of the plan, the credentials, and the headers.

use std::time::Duration;

use assay_node_cloud_credentials::aws::{
    AwsCredentials, AwsRequest, BEDROCK_SERVICE, SigningScope, aws_region, signature_headers,
};
use assay_node_dialects::Dialect;
use assay_node_egress::{
    EgressOptions, EgressPurpose, EgressRequest, EgressTimes, EgressUrl, HeaderMap, HeaderName, HeaderValue,
};
use assay_node_models::attempts::CallTimes;
use assay_node_models::headers::{ForwardPolicy, request_headers};
use assay_node_models::provider::{HeaderVariables, Provider, render_additional_headers};
use assay_node_models::resolution::Candidate;

use super::attempts::texts;
use super::client_certificate::ProviderSecret;
use super::credentials::AttemptCredentials;
use super::plan::AttemptPlan;
use crate::call::ModelCall;
use crate::error::GatewayError;
use crate::gateway::now_ms;
use crate::translation::UpstreamFormat;

const ANTHROPIC_VERSION: &str = "anthropic-version";
const ANTHROPIC_VERSION_DEFAULT: &str = "2023-06-01";
const ANTHROPIC_BETA: &str = "anthropic-beta";
/// Upper bound of the bytes of a response, whole or streamed.
const RESPONSE_BYTES_MAX: u64 = 256 << 20;

/// Parts from which a request is composed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptParts<'a> {
    pub call: &'a ModelCall,
    pub candidate: &'a Candidate,
    pub plan: &'a AttemptPlan,
    pub secret: &'a ProviderSecret,
    pub credentials: &'a AttemptCredentials,
    /// Time until the deadline of the call.
    pub time_left: Duration,
}

/// Request of an attempt, and its limits.
#[derive(Debug)]
pub(crate) struct AttemptRequest {
    pub request: EgressRequest,
    pub options: EgressOptions,
}

/// Returns the complete and signed request.
pub(crate) fn request(parts: &AttemptParts<'_>, policy: &ForwardPolicy) -> Result<AttemptRequest, GatewayError> {
    let AttemptParts { call, candidate, plan, secret, credentials, .. } = *parts;
    let provider = &candidate.provider;
    let url: EgressUrl = plan.url.parse().map_err(|error| {
        let why = format!("the address of the provider `{}` is invalid: {error}", provider.name);
        GatewayError::new(502, "provider_not_usable", why)
    })?;
    let mut request = EgressRequest::post(url, plan.body.clone());
    request.headers = headers(parts, policy);
    if let Some(signer) = &credentials.signer {
        sign(&mut request, provider, signer)?;
    }
    let times = CallTimes::of(&provider.metadata, plan.server_streams);
    let mut options = EgressOptions::new(EgressPurpose::Models, call.owner.organization);
    options.times = EgressTimes {
        connect: Duration::from_millis(times.connect_ms),
        first_byte: Duration::from_millis(times.first_byte_ms),
        between_chunks: Duration::from_millis(times.chunk_ms),
        total: parts.time_left,
    };
    options.response_bytes_max = RESPONSE_BYTES_MAX;
    options.tls = secret.tls();
    Ok(AttemptRequest { request, options })
}

fn headers(parts: &AttemptParts<'_>, policy: &ForwardPolicy) -> HeaderMap {
    let AttemptParts { call, candidate, plan, secret, credentials, .. } = *parts;
    let provider = &candidate.provider;
    let email = call.owner.email.as_deref().unwrap_or_default();
    let variables = HeaderVariables { email, model: candidate.upstream_model(), api_key: secret.auth() };
    let rendered = render_additional_headers(provider, variables);
    for refusal in &rendered.refused {
        tracing::warn!(provider = %provider.id, %refusal, "a header of a provider secret is not sent");
    }
    let client = call.headers.iter().filter(|(name, _)| is_for(name, plan.server));
    let client = client.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut headers = HeaderMap::new();
    for (name, value) in request_headers(client, policy, &credentials.headers, &rendered.headers) {
        // Invalid headers were refused above, and headers of the client are valid.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    if plan.server == UpstreamFormat::Client(Dialect::Anthropic) && !headers.contains_key(ANTHROPIC_VERSION) {
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static(ANTHROPIC_VERSION_DEFAULT));
    }
    if let Some(beta) = credentials.beta {
        add_beta(&mut headers, beta);
    }
    let accept = if plan.server_streams { plan.server.stream_type() } else { "application/json" };
    headers.insert("accept", HeaderValue::from_static(accept));
    if let Ok(content_type) = HeaderValue::try_from(plan.content_type.as_str()) {
        headers.insert("content-type", content_type);
    }
    headers
}

/// Adds a name to the header `anthropic-beta`.
fn add_beta(headers: &mut HeaderMap, beta: &str) {
    let named = headers.get(ANTHROPIC_BETA).and_then(|value| value.to_str().ok()).filter(|names| !names.is_empty());
    let all = named.map_or_else(|| beta.to_owned(), |names| format!("{names},{beta}"));
    if let Ok(value) = HeaderValue::try_from(all) {
        headers.insert(ANTHROPIC_BETA, value);
    }
}

/// Signs the complete request. Later changes would invalidate the signature.
fn sign(request: &mut EgressRequest, provider: &Provider, signer: &AwsCredentials) -> Result<(), GatewayError> {
    let failed = |why: String| {
        let why = format!("credentials of the provider `{}`: {why}", provider.name);
        GatewayError::new(502, "provider_auth_error", why)
    };
    let region = aws_region(provider).map_err(|error| failed(error.to_string()))?;
    let headers: Vec<(String, String)> =
        texts(&request.headers).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    // The signature covers the URL as sent, which may differ in spelling from the plan.
    let url = request.url.to_text();
    let signed =
        AwsRequest { method: request.method.as_str(), url: &url, headers: &headers, body: request.body.as_ref() };
    let scope = SigningScope { region, service: BEDROCK_SERVICE };
    let now_ms = i64::try_from(now_ms()).unwrap_or(i64::MAX);
    let added = signature_headers(&signed, signer, &scope, now_ms).map_err(|error| failed(error.to_string()))?;
    for (name, value) in added {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(failed("the signature is no header".to_owned()));
        };
        request.headers.insert(name, value);
    }
    Ok(())
}

/// Returns whether a client's header is meaningful to servers of a format.
fn is_for(name: &str, server: UpstreamFormat) -> bool {
    let is_anthropic = server == UpstreamFormat::Client(Dialect::Anthropic);
    match name {
        // Clouds expect the version in the body.
        ANTHROPIC_VERSION => is_anthropic,
        ANTHROPIC_BETA => is_anthropic || server == UpstreamFormat::VertexAnthropic,
        "openai-beta" => matches!(server, UpstreamFormat::Client(Dialect::Chat | Dialect::Responses)),
        _ => true,
    }
}

//! Handler of the gateway's paths, which responds in the format of the client's API.

use std::io;
use std::sync::Arc;

use assay_node_auth::Credential;
use assay_node_gateway::{
    BodyReservation, CallBody, CallOwner, CallTarget, ClientEndpoint, GatewayError, GeminiVerb, ModelCall, ModelReply,
    ReplyBody, read_target,
};
use assay_node_http::requests::body::object;
use assay_node_http::requests::caller::{Call, ModelClientCall};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::{Bytes, HttpRequest, HttpResponse, Method, Payload, StatusCode, header};
use assay_node_models::catalog::ModelFlavor;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;
use uuid::Uuid;

use super::guards::CallGuards;
use super::models_list;
use super::providers::{CallerProviders, providers_of};
use super::span_log::{SpanTarget, log_call};
use assay_node_gateway::paths::{self, CallPath, GatewayPath, ModelsForm, ParsedPath};
use assay_node_rows_http::rows::now_micros;

const PARENT: &str = "x-bt-parent";
const PROJECT: &str = "x-bt-project-id";
const ENDPOINT_NAME: &str = "x-bt-endpoint-name";
const STREAM_FORMAT: &str = "x-bt-stream-fmt";
/// Ratio of the memory of a JSON body with long texts to its bytes: the bytes and the parsed texts.
pub(crate) const JSON_TIMES: u64 = 2;
/// Upper bound of the headers that are passed on from one request.
const HEADERS_MAX: usize = 128;
const GREETING: &str = "Hello from the AI gateway. Send requests to /v1/proxy/chat/completions, or see /docs.";

/// Handles every path of the gateway.
pub async fn handle(request: HttpRequest, payload: Payload) -> HandlerResult {
    let is_anthropic = request.headers().contains_key("anthropic-version");
    let parsed = paths::parse(request.match_info().as_str(), is_anthropic);
    let endpoint = match &parsed.path {
        GatewayPath::Call(call) => call.endpoint.clone(),
        GatewayPath::Models { form: ModelsForm::Anthropic, .. } => ClientEndpoint::Messages,
        GatewayPath::Models { form: ModelsForm::Gemini, .. } => ClientEndpoint::Gemini(GeminiVerb::Generate),
        _ => ClientEndpoint::Chat,
    };
    match served(request, payload, parsed).await {
        Ok(response) => Ok(response),
        Err(CallFailure::Refused(refusal)) => Ok(refused(&endpoint, &refusal)),
        Err(CallFailure::Gateway(error)) => Ok(failed(&endpoint, &error)),
    }
}

/// Reason why a request has no response of a model server.
enum CallFailure {
    Refused(Refusal),
    Gateway(GatewayError),
}

impl From<Refusal> for CallFailure {
    fn from(refusal: Refusal) -> CallFailure {
        CallFailure::Refused(refusal)
    }
}

impl From<GatewayError> for CallFailure {
    fn from(error: GatewayError) -> CallFailure {
        CallFailure::Gateway(error)
    }
}

async fn served(request: HttpRequest, payload: Payload, parsed: ParsedPath) -> Result<HttpResponse, CallFailure> {
    let method = request.method().clone();
    let allowed = allowed_method(&parsed.path);
    if let Some(allowed) = allowed
        && method != allowed
        && !(allowed == Method::GET && method == Method::HEAD)
    {
        let path = request.path().to_owned();
        let mut refusal = Refusal::new(
            ErrorKind::MethodNotAllowed,
            format!("{path} does not support {method}; it supports {allowed}"),
        );
        refusal.allow = Some(allowed.to_string());
        return Err(refusal.into());
    }
    if parsed.path == GatewayPath::Greeting {
        return Ok(HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"))
            .body(GREETING));
    }
    let ModelClientCall(call) = ModelClientCall::of(request, parsed.organization.as_deref()).await?;
    if !call.edge.gateway.settings().enabled {
        let why = "the AI gateway is switched off on this server (`gateway.enabled`)";
        return Err(Refusal::new(ErrorKind::NotImplemented, why).into());
    }
    match parsed.path {
        // A passthrough request needs a body.
        GatewayPath::Call(CallPath { endpoint: ClientEndpoint::Path(_), .. }) if method != Method::POST => {
            Err(unknown_path().into())
        }
        GatewayPath::Models { id: Some(_), .. } if method == Method::POST => Err(unknown_path().into()),
        GatewayPath::Call(path) => model_call(call, payload, path).await,
        GatewayPath::Auto => auto(call, payload).await,
        GatewayPath::Models { form, id } => {
            let providers = providers_of(&call, project_of(&call)?).await.map_err(Refusal::from)?;
            Ok(json(&models_list::listed(&call, &providers, form, id.as_deref())?)?)
        }
        GatewayPath::Realtime => {
            let why = "realtime sessions are part of the API, but this server does not support them yet";
            Err(Refusal::new(ErrorKind::NotImplemented, why).into())
        }
        GatewayPath::Greeting | GatewayPath::Unknown => Err(unknown_path().into()),
    }
}

fn unknown_path() -> Refusal {
    Refusal::new(ErrorKind::NotFound, "this path of the gateway does not exist; see `/docs` for those that do")
}

/// Returns the only method of a path. Returns `None` if the handler refuses other methods as an unknown path.
fn allowed_method(path: &GatewayPath) -> Option<Method> {
    match path {
        GatewayPath::Greeting | GatewayPath::Models { id: None, .. } | GatewayPath::Realtime => Some(Method::GET),
        GatewayPath::Call(CallPath { endpoint: ClientEndpoint::Path(_), .. }) => None,
        GatewayPath::Call(_) | GatewayPath::Auto => Some(Method::POST),
        GatewayPath::Models { id: Some(_), .. } | GatewayPath::Unknown => None,
    }
}

/// Calls a model through the endpoint that the catalog lists for it.
async fn auto(call: Call, payload: Payload) -> Result<HttpResponse, CallFailure> {
    let body = body_of(&call, payload).await?;
    let target = read_target(&ClientEndpoint::Chat, &body, None)?;
    let flavor = call.edge.gateway.catalog().find(&target.model).map(|spec| spec.flavor).unwrap_or_default();
    let endpoint = match flavor {
        ModelFlavor::Chat => ClientEndpoint::Chat,
        ModelFlavor::Completion => ClientEndpoint::Completions,
        ModelFlavor::Embedding => {
            let why = format!("`{}` makes embeddings: send the request to `/embeddings`", target.model);
            return Err(GatewayError::invalid(why).into());
        }
    };
    Box::pin(with_body(call, body, CallPath { endpoint, model: None })).await
}

async fn model_call(call: Call, payload: Payload, path: CallPath) -> Result<HttpResponse, CallFailure> {
    if let ClientEndpoint::Path(path) = &path.endpoint {
        let is_allowed = call.edge.gateway.settings().passes_through(path.trim_start_matches('/'));
        if !is_allowed {
            let why = format!(
                "the gateway does not pass `{path}` on: an operator may allow it in `gateway.passthrough_paths`"
            );
            return Err(Refusal::new(ErrorKind::NotFound, why).into());
        }
    }
    let body = body_of(&call, payload).await?;
    Box::pin(with_body(call, body, path)).await
}

async fn with_body(call: Call, body: CallBody, path: CallPath) -> Result<HttpResponse, CallFailure> {
    let target = read_target(&path.endpoint, &body, path.model.as_deref())?;
    if let Some(format) = header_of(&call, STREAM_FORMAT)? {
        check_stream_format(&format, target.stream)?;
    }
    if path.endpoint == ClientEndpoint::Gemini(GeminiVerb::StreamGenerate) {
        let is_sse = call.query()?.iter().any(|(name, value)| name == "alt" && value == "sse");
        if !is_sse {
            return Err(GatewayError::invalid("streams of Gemini are served as events only: add `?alt=sse`").into());
        }
    }
    let span = match parent_of(&call, &target)? {
        Some(parent) => SpanTarget::of_header(&call, &parent).await?,
        None => None,
    };
    let project = project_of(&call)?;
    let CallerProviders { providers, keys } = providers_of(&call, project).await.map_err(Refusal::from)?;
    let mut guards = CallGuards::of_projects(&call, project, span.as_ref().map(|span| span.project)).await?;
    let mut model_call = ModelCall {
        request_id: Uuid::new_v4().to_string(),
        owner: CallOwner {
            organization: call.principal.org.0,
            project,
            principal: call.principal.user,
            is_service_account: call.edge.records.is_service_account(call.principal.user),
            credential: credential_of(call.principal.credential),
            temporary: call.temporary.as_ref().map(|grant| grant.id),
            email: Some(call.principal.user_email.clone()).filter(|email| !email.is_empty()),
        },
        endpoint: path.endpoint,
        model: target.model,
        stream: target.stream,
        body,
        headers: headers_of(&call.request),
        endpoint_name: header_of(&call, ENDPOINT_NAME)?,
        providers,
        keys,
    };
    // The guardrails also apply to restored items.
    call.edge.gateway.restore_items(&mut model_call).await;
    let guarded = guards.guard(&mut model_call);
    let (observer, span_headers) = match span {
        Some(target) => {
            let headers = span_headers(&target);
            (Some(log_call(&call, target, (&model_call, guards), now_micros().unsigned_abs() / 1000)), headers)
        }
        None => (None, Vec::new()),
    };
    if let Err(error) = guarded {
        call.edge.gateway.refused(observer, &error);
        return Err(error.into());
    }
    let mut reply = call.edge.gateway.call(model_call, observer).await?;
    reply.headers.extend(span_headers);
    Ok(respond(&call, reply))
}

/// Returns the parent of the call's span from the temporary credential, or else from the header.
///
/// Refuses a temporary credential for another model.
fn parent_of(call: &Call, target: &CallTarget) -> Result<Option<String>, CallFailure> {
    let Some(grant) = &call.temporary else { return Ok(header_of(call, PARENT)?) };
    if !grant.allows(&target.model) {
        let why = format!("this temporary credential is not for the model `{}`", target.model);
        return Err(GatewayError::new(403, "permission_denied", why).into());
    }
    match &grant.terms.logging {
        Some(logging) => Ok(Some(logging.target.parent())),
        None => Ok(header_of(call, PARENT)?),
    }
}

/// Returns the API key or service token that a call counts for.
///
/// A temporary credential counts for the credential that issued it.
pub(crate) fn credential_of(credential: Credential) -> Option<Uuid> {
    match credential {
        Credential::ApiKey(id) | Credential::ServiceToken(id) => Some(id),
        Credential::Temporary { .. } => Some(credential.counted_as()),
        Credential::Jwt(_) | Credential::Login(_) => None,
    }
}

fn check_stream_format(format: &str, stream: bool) -> Result<(), Refusal> {
    match format {
        "openai" => Ok(()),
        "vercel-ai" if !stream => Err(Refusal::bad("`x-bt-stream-fmt: vercel-ai` needs a request with `stream: true`")),
        "vercel-ai" => {
            let why = "`x-bt-stream-fmt: vercel-ai` is not supported by this server; leave it out, or use `openai`";
            Err(Refusal::new(ErrorKind::NotImplemented, why))
        }
        _ => Err(Refusal::bad("`x-bt-stream-fmt` has to be `openai` or `vercel-ai`")),
    }
}

fn span_headers(target: &SpanTarget) -> Vec<(String, String)> {
    let mut headers = vec![("x-bt-span-id".to_owned(), target.identity.row_id.clone())];
    headers.extend(target.export().map(|slug| ("x-bt-span-export".to_owned(), slug)));
    headers
}

/// Reads the body as JSON, or as a multipart form that passes unmodified.
///
/// The body keeps a part of the gateway's memory until the call has ended. The budgets of other requests are released,
/// because calls may run for many minutes.
async fn body_of(call: &Call, payload: Payload) -> Result<CallBody, Refusal> {
    let (gateway, who) = (&call.edge.gateway, call.applicant());
    let bytes_max = gateway.settings().request_bytes_max;
    let text = |name| call.request.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default().to_owned();
    let is_form = content_type.to_ascii_lowercase().starts_with("multipart/");
    let claimed = text(header::CONTENT_LENGTH).and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    let claimed = bytes_max.min(claimed) as u64;
    // A call that has to wait does so before its body takes room from other requests.
    let expected = if is_form { claimed } else { claimed * JSON_TIMES };
    let mut memory = who.reserve(gateway.memory(), expected).await?;
    let body = call.packed_body_within(payload, bytes_max).await?;
    let bytes = body.bytes.clone();
    if is_form {
        who.fit(gateway.memory(), &mut memory, bytes.len() as u64).await?;
        return Ok(CallBody::Opaque { bytes, content_type, memory: BodyReservation::of(memory) });
    }
    let parsed = body.json().await?;
    who.fit(gateway.memory(), &mut memory, parsed.reserved_bytes()).await?;
    let value = Arc::new(Value::Object(object(parsed.value)?));
    Ok(CallBody::Json { value, bytes, memory: BodyReservation::of(memory) })
}

/// Returns the headers of a request whose values are texts, with names in lower case.
fn headers_of(request: &HttpRequest) -> Vec<(String, String)> {
    let texts = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_ascii_lowercase(), value.to_str().ok()?.to_owned())));
    texts.take(HEADERS_MAX).collect()
}

fn header_of(call: &Call, name: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = call.request.headers().get(name) else { return Ok(None) };
    let text = str::from_utf8(value.as_bytes()).map_err(|_| Refusal::bad(format!("`{name}` is not valid UTF-8")))?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Returns the project whose providers are used in addition to the organization's.
fn project_of(call: &Call) -> Result<Option<Uuid>, Refusal> {
    let Some(text) = header_of(call, PROJECT)? else { return Ok(None) };
    let id = Uuid::parse_str(&text);
    id.map(Some).map_err(|_| Refusal::bad("`x-bt-project-id` has to be the id of a project, which is a UUID"))
}

/// Makes the HTTP response from a reply of the gateway.
fn respond(call: &Call, reply: ModelReply) -> HttpResponse {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = HttpResponse::build(status);
    for (name, value) in reply.headers {
        response.append_header((name, value));
    }
    match reply.body {
        ReplyBody::Whole(bytes) => response.body(bytes),
        ReplyBody::Stream(reply) => {
            let parts = stream::unfold(reply, async |mut reply| {
                let part = reply.next().await.map(|bytes| bytes.map(|bytes| Part { bytes, reservation: None }));
                Some((part.map_err(io::Error::other).transpose()?, reply))
            });
            response.body(Sending::streamed(call, parts.boxed_local()))
        }
    }
}

/// Makes the response to a refused request.
fn refused(endpoint: &ClientEndpoint, refusal: &Refusal) -> HttpResponse {
    let status = refusal.kind.status().as_u16();
    let code = match refusal.kind {
        ErrorKind::Unauthorized => "invalid_api_key",
        ErrorKind::Forbidden => "permission_denied",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Busy => "rate_limit_exceeded",
        ErrorKind::NotImplemented => "not_implemented",
        ErrorKind::Internal => "internal_error",
        _ => "invalid_request",
    };
    let error = GatewayError::new(status, code, refusal.message.clone());
    with_json(refusal.bare(), &error.body(endpoint.dialect()))
}

/// Makes the response to a failed call.
fn failed(endpoint: &ClientEndpoint, error: &GatewayError) -> HttpResponse {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = HttpResponse::build(status);
    if let Some(seconds) = error.retry_after_s {
        response.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    for (name, value) in &error.limits {
        response.insert_header((*name, value.as_str()));
    }
    with_json(response.finish(), &error.body(endpoint.dialect()))
}

fn with_json(mut response: HttpResponse, body: &Value) -> HttpResponse {
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response.set_body(assay_node_http::web::BoxBody::new(Bytes::from(body.to_string())))
}

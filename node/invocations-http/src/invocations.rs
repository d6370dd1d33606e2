//! Handlers for invocations of functions, with their responses, streams and spans.
//!
//! | module | contents |
//! |---|---|
//! | [`parents`] | parent of the span, and its trace |
//! | [`playground_functions`] | functions that are rows of a playground |
//! | [`services`] | functions, attachments and traces on behalf of the caller |
//! | [`models`] | model calls through the gateway |
//! | [`code`] | code functions in their sandbox |
//! | [`function_calls`] | function calls for other handlers and background work |
//! | [`mcp`] | tools of MCP servers |
//! | [`sandboxes`] | lists of the evaluators in bundles |
//! | [`spans`] | spans of functions and tools |
//! | [`responses`] | values, streams and errors as responses |

mod code;
pub mod function_calls;
mod mcp;
mod models;
mod parents;
mod playground_functions;
mod responses;
pub mod sandboxes;
mod services;
mod spans;

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_node_api_descriptions::invocations::INVOKE_PATHS;
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::web::Payload;
use assay_node_invocations::services::{FunctionSource, InvocationServices};
use assay_node_invocations::{
    EVENTS_WAITING_MAX, EventOutput, InvokeCall, InvokeError, InvokeErrorKind, InvokeOutcome, InvokeRequest, Invoker,
};
use assay_node_scorers::DefaultModels;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

pub use self::code::execute_forwarded_calls;
use self::parents::InvokeParent;
use self::responses::InvokeStream;
use self::services::CallerServices;

/// Upper bound of the time of an invocation (F-18).
const INVOCATION_TIME_MAX: Duration = Duration::from_secs(900);
const PROJECT: &str = "x-bt-project-id";
const ENDPOINT_NAME: &str = "x-bt-endpoint-name";
const PARENT: &str = "x-bt-parent";

/// Form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerForm {
    /// Value alone.
    Bare,
    /// Object with `output` and `metadata`.
    Wrapped,
}

/// Returns whether requests to a path may take as long as model calls.
pub fn is_invocation_path(path: &str) -> bool {
    let is_by_id = || path.strip_prefix("/v1/function/").is_some_and(|rest| rest.ends_with("/invoke"));
    INVOKE_PATHS.contains(&path) || path == "/v1/function" || is_by_id()
}

/// Handles `POST /function/invoke`: invokes the function that the body names.
pub async fn by_body(call: Call, payload: Payload) -> HandlerResult {
    let body = body_of(&call, payload).await?;
    let request = InvokeRequest::read(body, None).map_err(responses::refusal_of)?;
    invoked(call, request, AnswerForm::Bare).await
}

/// Handles `POST /v1/function/{id}/invoke`.
pub async fn by_id(call: Call, payload: Payload) -> HandlerResult {
    let id = call.id()?.to_string();
    let body = body_of(&call, payload).await?;
    let request = InvokeRequest::read(body, Some(&id)).map_err(responses::refusal_of)?;
    invoked(call, request, AnswerForm::Bare).await
}

/// Handles `POST /v1/function` with the body of an invocation (F-07).
pub async fn by_slug(call: Call, body: Map<String, Value>) -> HandlerResult {
    let request = InvokeRequest::read(body, None).map_err(responses::refusal_of)?;
    invoked(call, request, AnswerForm::Wrapped).await
}

async fn body_of(call: &Call, payload: Payload) -> Result<Map<String, Value>, Refusal> {
    let bytes_max = call.edge.gateway.settings().request_bytes_max;
    let body = call.packed_body_within(payload, bytes_max).await?;
    // An invocation may need no arguments.
    if body.is_blank() { Ok(Map::new()) } else { body.object().await }
}

async fn invoked(call: Call, mut request: InvokeRequest, form: AnswerForm) -> HandlerResult {
    let began = Instant::now();
    if request.arguments.endpoint_name.is_none() {
        request.arguments.endpoint_name = header_of(&call, ENDPOINT_NAME)?;
    }
    let parent = InvokeParent::of(&call, &request.parent, header_of(&call, PARENT)?).await?;
    let project = header_of(&call, PROJECT)?.map(|id| project_id(&id)).transpose()?;
    let services = CallerServices::of_request(&call, project, parent.as_ref().map(|parent| parent.target.clone()));
    let function = services.resolve(&request.function, &request.version).await.map_err(responses::refusal_of)?;
    services.execute_in(function.project_id.as_deref());
    if parent.is_some() {
        services.guards().await.map_err(responses::refusal_of)?;
    }
    let scope = parent.as_ref().map(|parent| spans::scope_of(&parent.target).marked(&function));
    let logged = parent.as_ref().zip(scope.as_ref()).map(|(parent, scope)| spans::headers(&parent.target, scope));
    let answered = AnsweredFunction { id: function.id.clone(), version: function.version.clone(), form, began };
    let invoke = InvokeCall {
        function,
        arguments: request.arguments,
        trace: parent.as_ref().and_then(InvokeParent::trace),
        scope,
        has_span_row: false,
    };
    let services = Arc::new(services);
    let (running, receiver) = started(Arc::clone(&services), invoke, request.is_stream);
    let headers = logged.unwrap_or_default();
    match receiver {
        Some(receiver) => {
            let stream = InvokeStream::begin(running, receiver).await.map_err(responses::refusal_of)?;
            Ok(responses::streamed(&call, stream, headers.into_iter().chain(services.model_headers())))
        }
        None => {
            let outcome = running.await.map_err(responses::refusal_of)?;
            let headers = headers.into_iter().chain(services.model_headers());
            Ok(responses::whole(&answered.body(outcome), headers))
        }
    }
}

/// Returns the models of global functions that name none.
fn default_models(caller: &Caller) -> DefaultModels {
    let settings = caller.edge.gateway.settings();
    DefaultModels {
        chat: settings.scorer_model.clone(),
        embedding: settings.scorer_embedding_model.clone(),
        facet: settings.facet_model.clone(),
    }
}

/// Runs an invocation with an upper bound of its time.
async fn invoke_within(
    services: Arc<CallerServices>,
    invoke: InvokeCall,
    output: EventOutput,
    time_max: Duration,
) -> Result<InvokeOutcome, InvokeError> {
    let invoker = Invoker::new(Arc::clone(&services) as Arc<dyn InvocationServices>, default_models(services.caller()));
    let within = tokio::time::timeout(time_max, invoker.invoke(invoke, output)).await;
    within.unwrap_or_else(|_| {
        let seconds = time_max.as_secs_f64();
        Err(InvokeError::new(InvokeErrorKind::TooLate, format!("the function ran for more than {seconds} seconds")))
    })
}

type RunningInvocation = BoxFuture<'static, Result<InvokeOutcome, InvokeError>>;

/// Prepares an invocation. For a stream, also returns the receiver of its events.
fn started(
    services: Arc<CallerServices>,
    invoke: InvokeCall,
    is_stream: bool,
) -> (RunningInvocation, Option<mpsc::Receiver<assay_node_invocations::InvokeEvent>>) {
    let (output, receiver) = match is_stream {
        true => {
            let (sender, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
            (EventOutput::new(sender), Some(receiver))
        }
        false => (EventOutput::default(), None),
    };
    let running = invoke_within(services, invoke, output, INVOCATION_TIME_MAX);
    (running.boxed(), receiver)
}

/// Facts about the function for its response.
struct AnsweredFunction {
    id: Option<String>,
    version: Option<String>,
    form: AnswerForm,
    began: Instant,
}

impl AnsweredFunction {
    fn body(&self, outcome: InvokeOutcome) -> Value {
        if self.form == AnswerForm::Bare {
            return outcome.value;
        }
        let mut metadata = outcome.usage.metadata();
        let latency = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        metadata.insert("latency_ms".into(), latency.into());
        metadata.insert("function_id".into(), json!(self.id));
        metadata.insert("version".into(), json!(self.version));
        json!({"output": outcome.value, "metadata": metadata})
    }
}

fn project_id(text: &str) -> Result<Uuid, Refusal> {
    let wrong = |_| Refusal::bad("`x-bt-project-id` has to be the id of a project, which is a UUID");
    Uuid::parse_str(text).map_err(wrong)
}

/// Returns the text of a header, or `None` if it is absent or empty.
fn header_of(call: &Call, name: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = call.request.headers().get(name) else { return Ok(None) };
    let text = str::from_utf8(value.as_bytes()).map_err(|_| Refusal::bad(format!("`{name}` is not valid UTF-8")))?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invocations_may_take_long_and_other_requests_may_not() {
        for path in ["/function/invoke", "/v1/function/00000000-0000-4000-8000-000000000001/invoke", "/v1/function"] {
            assert!(is_invocation_path(path), "{path}");
        }
        for path in ["/v1/function/00000000-0000-4000-8000-000000000001", "/insert-functions", "/v1/prompt"] {
            assert!(!is_invocation_path(path), "{path}");
        }
    }
}

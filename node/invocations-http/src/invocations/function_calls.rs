//! Function calls for other handlers and background work, which write the spans of the functions themselves.

use std::sync::Arc;
use std::time::Duration;

use assay_node_http::requests::caller::Caller;
use assay_node_invocations::services::FunctionSource;
use assay_node_invocations::{
    EventOutput, FunctionReference, FunctionVersion, InvokeArguments, InvokeCall, InvokeError, InvokeOutcome,
    InvokedFunction,
};
use assay_node_prompts::TraceReference;
use uuid::Uuid;

pub use super::responses::refusal_of;
use super::services::CallerServices;
use super::{invoke_within, spans};
pub use crate::gateway::guards::CallGuards;
pub use crate::gateway::span_log::{PendingSpans, SpanTarget, mask};

/// Call of a resolved function.
#[derive(Clone, Debug)]
pub struct FunctionCallRequest {
    pub function: InvokedFunction,
    pub arguments: InvokeArguments,
    /// Trace that the function may read.
    pub trace: Option<TraceReference>,
    /// Project of execution, or `None` for the project of the function.
    pub project: Option<Uuid>,
    /// Span of the function. The sender of the request writes its row, and this module the rows below it.
    pub span: Option<SpanTarget>,
    pub time_max: Duration,
}

/// Returns a function that the caller may read.
pub async fn resolve_function(
    caller: &Caller,
    project: Option<Uuid>,
    (reference, version): (&FunctionReference, &FunctionVersion),
) -> Result<InvokedFunction, InvokeError> {
    CallerServices::new(caller.clone(), project, None).resolve(reference, version).await
}

/// Calls a function on behalf of a caller. Dropping the future cancels the call.
pub async fn call_function(
    caller: &Caller,
    request: FunctionCallRequest,
    output: EventOutput,
) -> Result<InvokeOutcome, InvokeError> {
    call_function_at_cost(caller, request, output).await.0
}

/// Calls a function, and returns its outcome with the cost of its model calls in billionths of a US dollar.
pub async fn call_function_at_cost(
    caller: &Caller,
    request: FunctionCallRequest,
    output: EventOutput,
) -> (Result<InvokeOutcome, InvokeError>, u64) {
    let FunctionCallRequest { function, arguments, trace, project, span, time_max } = request;
    let scope = span.as_ref().map(|span| spans::scope_of(span).marked(&function));
    let services = CallerServices::new(caller.clone(), project, span);
    services.execute_in(function.project_id.as_deref());
    if scope.is_some()
        // The spans below the function are masked by the guardrails.
        && let Err(error) = services.guards().await
    {
        return (Err(error), 0);
    }
    let invoke = InvokeCall { function, arguments, trace, scope, has_span_row: true };
    let services = Arc::new(services);
    let outcome = invoke_within(Arc::clone(&services), invoke, output, time_max).await;
    let cost = services.cost_nano_usd();
    (outcome, cost)
}

//! Services for invocations on behalf of their caller: functions, attachments, traces, models and tools.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_node_auth::{Decision, ObjectType, Permission, Target, decide};
use assay_node_functions::{Definition, Version};
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::requests::wait::Wait;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_invocations::services::{
    AttachmentReader, CodeCaller, CodeRequest, CodeValue, FunctionSource, ModelAnswer, ModelCaller, ModelRequest,
    OpenSpan, SpanSink, ToolServers, ToolSession, TraceSource,
};
use assay_node_invocations::{
    EventOutput, FunctionReference, FunctionVersion, InvokeError, InvokeErrorKind, InvokedFunction, LogScope,
    THREAD_MESSAGES_MAX,
};
use assay_node_prompts::{AttachmentReference, AttachmentSource, TraceReference};
use assay_node_query_http::{QueryOptions, rows_of};
use assay_node_records::{ListRequest, kinds};
use assay_node_scorers::{GlobalFunctionType, global_function};
use assay_storage_model::ObjectKind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use uuid::Uuid;

use super::{code, mcp, models, playground_functions, spans};
use crate::gateway::guards::CallGuards;
use crate::gateway::providers::{CallerProviders, providers_of};
use crate::gateway::span_log::SpanTarget;
use assay_node_rows_http::files::attachment;

/// Upper bound of the bytes of an attachment in a prompt.
const ATTACHMENT_BYTES_MAX: usize = 32 << 20;
/// Upper bound of the bytes of the rows of a trace.
const TRACE_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the time that a query waits in queues.
const QUERY_WAIT: Duration = Duration::from_secs(30);
/// Headers that control the response cache.
const CACHE_HEADERS: [&str; 3] = ["x-bt-use-cache", "x-bt-cache-ttl", "cache-control"];

/// Services for one invocation.
pub struct CallerServices {
    caller: Caller,
    cache_headers: Vec<(String, String)>,
    /// Project of execution, which is the project of the function if the caller names none.
    project: OnceLock<Option<Uuid>>,
    /// Span of the function, whose object receives all spans.
    logged: Option<SpanTarget>,
    providers: OnceCell<CallerProviders>,
    /// Guardrails of the project of execution and of the project that logs the invocation.
    guards: OnceCell<CallGuards>,
    model_headers: Mutex<Vec<(String, String)>>,
    /// Costs of the model calls so far, in billionths of a US dollar.
    cost_nano_usd: AtomicU64,
}

impl CallerServices {
    /// Returns the services of a request, whose headers control the response cache.
    pub fn of_request(call: &Call, project: Option<Uuid>, logged: Option<SpanTarget>) -> CallerServices {
        let header =
            |name: &&str| Some(((*name).to_owned(), call.request.headers().get(*name)?.to_str().ok()?.to_owned()));
        let cache_headers = CACHE_HEADERS.iter().filter_map(header).collect();
        CallerServices { cache_headers, ..CallerServices::new(call.caller.clone(), project, logged) }
    }

    pub fn new(caller: Caller, project: Option<Uuid>, logged: Option<SpanTarget>) -> CallerServices {
        let known = OnceLock::new();
        if project.is_some() {
            let _ = known.set(project);
        }
        CallerServices {
            caller,
            cache_headers: Vec::new(),
            project: known,
            logged,
            providers: OnceCell::new(),
            guards: OnceCell::new(),
            model_headers: Mutex::default(),
            cost_nano_usd: AtomicU64::default(),
        }
    }

    /// Sets the project of execution, unless the caller named one.
    pub fn execute_in(&self, project: Option<&str>) {
        let _ = self.project.set(project.and_then(|id| Uuid::parse_str(id).ok()));
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub fn project(&self) -> Option<Uuid> {
        self.project.get().copied().flatten()
    }

    pub fn logged_object(&self) -> Option<&SpanTarget> {
        self.logged.as_ref()
    }

    pub fn cache_headers(&self) -> &[(String, String)] {
        &self.cache_headers
    }

    pub fn note_model_headers(&self, headers: Vec<(String, String)>) {
        *self.model_headers.lock() = headers;
    }

    /// Adds the cost of a model call, as its header tells it in US dollars.
    pub fn note_cost(&self, usd: Option<&str>) {
        const NANOS_PER_USD: f64 = 1e9;
        let cost = usd.and_then(|usd| usd.parse::<f64>().ok()).filter(|usd| usd.is_finite() && *usd >= 0.0);
        self.cost_nano_usd.fetch_add(cost.map_or(0, |usd| (usd * NANOS_PER_USD) as u64), Ordering::Relaxed);
    }

    /// Returns the costs of the model calls so far, in billionths of a US dollar.
    pub fn cost_nano_usd(&self) -> u64 {
        self.cost_nano_usd.load(Ordering::Relaxed)
    }

    /// Returns the response headers of the latest model call.
    pub fn model_headers(&self) -> Vec<(String, String)> {
        self.model_headers.lock().clone()
    }

    /// Returns the providers of the project of execution.
    pub async fn providers(&self) -> Result<CallerProviders, InvokeError> {
        let found = self.providers.get_or_try_init(|| providers_of(&self.caller, self.project())).await;
        found.cloned().map_err(|error| error_of(Refusal::from(error)))
    }

    /// Returns the guardrails for model calls and spans.
    pub async fn guards(&self) -> Result<CallGuards, InvokeError> {
        let logged = self.logged.as_ref().map(|logged| logged.project);
        let of_projects = || CallGuards::of_projects(&self.caller, self.project(), logged);
        let found = self.guards.get_or_try_init(of_projects).await;
        found.cloned().map_err(error_of)
    }

    /// Returns the guardrails that mask spans. They are loaded before the first span opens.
    pub fn known_guards(&self) -> CallGuards {
        self.guards.get().cloned().unwrap_or_default()
    }

    async fn resolved(
        &self,
        reference: &FunctionReference,
        version: &FunctionVersion,
    ) -> Result<InvokedFunction, Refusal> {
        let pairs = |project: (&str, &str), slug: &str| {
            vec![
                (project.0.to_owned(), project.1.to_owned()),
                ("slug".to_owned(), slug.to_owned()),
                ("limit".to_owned(), "1".to_owned()),
            ]
        };
        let pairs = match reference {
            FunctionReference::Id(id) => return self.by_id(id, version).await,
            FunctionReference::Global { name, function_type } => return global(name, function_type),
            FunctionReference::Inline(inline) => {
                if has_code(&inline.function_data, &inline.prompt_data) {
                    self.check_may_define_code()?;
                }
                return Ok(InvokedFunction::inline((**inline).clone()));
            }
            FunctionReference::PromptSession { session_id, row_id } => {
                let found = playground_functions::function_of(&self.caller, (session_id, row_id), version).await?;
                if has_code(&found.function_data, &found.prompt_data) {
                    self.check_may_define_code()?;
                }
                return Ok(found);
            }
            FunctionReference::ProjectName { project_name, slug } => pairs(("project_name", project_name), slug),
            FunctionReference::ProjectId { project_id, slug } => pairs(("project_id", project_id), slug),
        };
        let version = Version::of(version.version.as_deref(), version.environment.as_deref())?;
        let (functions, who) = (&self.caller.edge.functions, &self.caller.principal);
        let request = ListRequest::from_query(pairs)?;
        let found = functions.list(who, Definition::Function, request, &version).await?;
        let found = found.into_iter().next();
        found.map(InvokedFunction::of_row).ok_or_else(|| Refusal::not_found("a function with this slug and version"))
    }

    /// Refuses code that nobody approved from a caller who may not create functions (F-12).
    pub(super) fn check_may_define_code(&self) -> Result<(), Refusal> {
        let who = &self.caller.principal;
        let target = match self.project() {
            Some(project) => Target::in_project(ObjectType::Prompt, None, project, who.org),
            None => Target::of_organization(ObjectType::Organization, who.org),
        };
        match decide(who, Permission::Create, &target) {
            Decision::Allowed => Ok(()),
            Decision::Forbidden | Decision::NotVisible => Err(Refusal::new(
                ErrorKind::Forbidden,
                "running code of a request needs the right to create prompts in the project of `x-bt-project-id`, or \
                 in the organization",
            )),
        }
    }

    async fn by_id(&self, id: &str, version: &FunctionVersion) -> Result<InvokedFunction, Refusal> {
        let id = Uuid::parse_str(id).map_err(|_| Refusal::bad("`function_id` has to be a UUID"))?;
        let version = Version::of(version.version.as_deref(), version.environment.as_deref())?;
        let (functions, who) = (&self.caller.edge.functions, &self.caller.principal);
        Ok(InvokedFunction::of_row(functions.get(who, Definition::Function, id, &version).await?))
    }

    async fn trace(&self, trace: &TraceReference) -> Result<Vec<Value>, Refusal> {
        let (_, id) = object_of(trace)?;
        let mut caller = self.caller.clone();
        caller.wait = Wait::new(Instant::now() + QUERY_WAIT);
        let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        let query = [
            "select: id, span_id, root_span_id, span_parents, input, output, error, metadata, span_attributes"
                .to_owned(),
            format!("from: {}({}) spans", trace.object_type, quoted(&id.to_string())),
            format!("filter: root_span_id = {}", quoted(&trace.root_span_id)),
            "sort: created asc, _pagination_key asc".to_owned(),
            format!("limit: {THREAD_MESSAGES_MAX}"),
        ];
        let query = query.join(" | ");
        rows_of(&caller, query, &QueryOptions::newest(TRACE_BYTES_MAX)).await
    }

    async fn preprocessor(&self, trace: &TraceReference) -> Result<Value, Refusal> {
        let (kind, id) = object_of(trace)?;
        let (records, who) = (&self.caller.edge.records, &self.caller.principal);
        let home = records.object(who, kind, id, Permission::Read).await?;
        let mut project = records.get(who, &kinds::PROJECT, home.project_id).await?;
        Ok(project["settings"]["default_preprocessor"].take())
    }

    async fn data_url_of(&self, reference: &AttachmentReference) -> Result<String, Refusal> {
        let AttachmentSource::Stored { key } = &reference.source else {
            let name = &reference.filename;
            return Err(Refusal::bad(format!(
                "the attachment `{name}` is in another store, which this server cannot read"
            )));
        };
        let content = attachment(&self.caller, key, ATTACHMENT_BYTES_MAX).await?;
        Ok(format!("data:{};base64,{}", reference.content_type, STANDARD.encode(content)))
    }
}

/// Returns whether a function that is not stored has code.
fn has_code(function_data: &Value, prompt_data: &Value) -> bool {
    function_data["type"] == "code"
        || prompt_data["preprocessor"]["type"] == "inline"
        || function_data["preprocessor"]["type"] == "inline"
}

fn global(name: &str, function_type: &str) -> Result<InvokedFunction, Refusal> {
    let known = match function_type {
        "scorer" => GlobalFunctionType::Scorer,
        "facet" => GlobalFunctionType::Facet,
        "preprocessor" => GlobalFunctionType::Preprocessor,
        _ => {
            return Err(Refusal::new(
                ErrorKind::NotFound,
                format!("there are no global functions of the type `{function_type}`"),
            ));
        }
    };
    global_function(known, name).map_err(|why| Refusal::new(ErrorKind::NotFound, why.to_string()))?;
    Ok(InvokedFunction::global(name, function_type))
}

/// Returns the object of a trace.
fn object_of(trace: &TraceReference) -> Result<(ObjectKind, Uuid), Refusal> {
    let kind = match trace.object_type.as_str() {
        "project_logs" => ObjectKind::ProjectLogs,
        "experiment" => ObjectKind::Experiment,
        "playground_logs" => ObjectKind::PlaygroundLogs,
        _ => {
            let why = "`trace_ref.object_type` has to be project_logs, experiment or playground_logs";
            return Err(Refusal::bad(why));
        }
    };
    let wrong = |_| Refusal::bad("`trace_ref.object_id` has to be a UUID");
    Ok((kind, Uuid::parse_str(&trace.object_id).map_err(wrong)?))
}

/// Returns the invocation error for a refusal.
pub(super) fn error_of(refusal: Refusal) -> InvokeError {
    let kind = match refusal.kind {
        ErrorKind::Forbidden => InvokeErrorKind::Forbidden,
        ErrorKind::NotFound | ErrorKind::Past => InvokeErrorKind::NotFound,
        ErrorKind::TooLarge => InvokeErrorKind::TooLarge,
        ErrorKind::Busy => InvokeErrorKind::RateLimited,
        ErrorKind::Unavailable | ErrorKind::NoSpace => InvokeErrorKind::Unavailable,
        ErrorKind::TooLate => InvokeErrorKind::TooLate,
        ErrorKind::Internal => InvokeErrorKind::Failed,
        ErrorKind::NotImplemented => InvokeErrorKind::NotServed,
        _ => InvokeErrorKind::Invalid,
    };
    InvokeError { retry_after_s: refusal.retry_after_seconds, ..InvokeError::new(kind, refusal.message) }
}

impl FunctionSource for CallerServices {
    fn resolve<'a>(
        &'a self,
        reference: &'a FunctionReference,
        version: &'a FunctionVersion,
    ) -> BoxFuture<'a, Result<InvokedFunction, InvokeError>> {
        self.resolved(reference, version).map(|found| found.map_err(error_of)).boxed()
    }
}

impl ModelCaller for CallerServices {
    fn call(&self, request: ModelRequest) -> BoxFuture<'_, Result<Box<dyn ModelAnswer>, InvokeError>> {
        models::call(self, request).boxed()
    }
}

impl CodeCaller for CallerServices {
    fn checked_input(&self, function: &InvokedFunction, input: Value) -> Result<Value, InvokeError> {
        code::checked_input(function, input)
    }

    fn run_code(&self, request: CodeRequest, output: EventOutput) -> BoxFuture<'_, Result<CodeValue, InvokeError>> {
        code::run(self, request, output).boxed()
    }
}

impl ToolServers for CallerServices {
    fn connect<'a>(
        &'a self,
        servers: &'a Map<String, Value>,
        mcp_auth: &'a Value,
    ) -> BoxFuture<'a, Result<Box<dyn ToolSession>, InvokeError>> {
        mcp::connect(self, servers, mcp_auth).boxed()
    }
}

impl SpanSink for CallerServices {
    fn open(&self, scope: &LogScope, row: Map<String, Value>) -> Box<dyn OpenSpan> {
        spans::open(self, scope, row)
    }

    fn now(&self) -> f64 {
        spans::now_seconds()
    }
}

impl TraceSource for CallerServices {
    fn spans<'a>(&'a self, trace: &'a TraceReference) -> BoxFuture<'a, Result<Vec<Value>, InvokeError>> {
        self.trace(trace).map(|spans| spans.map_err(error_of)).boxed()
    }

    fn default_preprocessor<'a>(&'a self, trace: &'a TraceReference) -> BoxFuture<'a, Result<Value, InvokeError>> {
        self.preprocessor(trace).map(|found| found.map_err(error_of)).boxed()
    }
}

impl AttachmentReader for CallerServices {
    fn data_url<'a>(&'a self, reference: &'a AttachmentReference) -> BoxFuture<'a, Result<String, InvokeError>> {
        self.data_url_of(reference).map(|url| url.map_err(error_of)).boxed()
    }
}

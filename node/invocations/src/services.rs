//! External services of invocations: functions, models, code, tool servers, spans, traces, and attachments.

use std::fmt;

use assay_node_prompts::{AttachmentReference, TraceReference};
use assay_node_scorers::ModelOperation;
use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::error::InvokeError;
use crate::events::EventOutput;
use crate::function::InvokedFunction;
use crate::log::LogScope;
use crate::request::{FunctionReference, FunctionVersion, TaskArguments};

/// Source of functions that the caller may read.
pub trait FunctionSource: Send + Sync {
    fn resolve<'a>(
        &'a self,
        reference: &'a FunctionReference,
        version: &'a FunctionVersion,
    ) -> BoxFuture<'a, Result<InvokedFunction, InvokeError>>;
}

/// Permission of a model call to use the response cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// Determined by the caller's request.
    AsRequested,
    Never,
}

/// Model call.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub operation: ModelOperation,
    /// Body in the format of OpenAI's API.
    pub body: Map<String, Value>,
    pub is_stream: bool,
    pub cache: CacheUse,
    /// Name of the only secret that may be used.
    pub endpoint_name: Option<String>,
    /// Span under which the call is logged.
    pub scope: Option<LogScope>,
    /// Member `prompt` of the metadata of its span.
    pub prompt: Option<Value>,
}

/// Piece of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDelta {
    Text(String),
    Reasoning(String),
}

/// Answer of a model in progress.
pub trait ModelAnswer: Send {
    /// Returns the next piece, or `None` at the end. An answer that is not streamed has no pieces.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<ModelDelta>, InvokeError>>;

    /// Returns the whole response in the format of OpenAI's API.
    fn into_response(self: Box<Self>) -> Value;
}

/// Caller of models.
pub trait ModelCaller: Send + Sync {
    fn call(&self, request: ModelRequest) -> BoxFuture<'_, Result<Box<dyn ModelAnswer>, InvokeError>>;
}

/// How the argument of a code function is made of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeForm {
    /// The input as it is.
    Function,
    /// One object with the members of a scorer.
    Scorer,
    /// A list of spans, for each of which the function runs.
    Preprocessor,
    /// The input, and the case of the evaluation as hooks.
    EvalTask,
}

/// Case of an evaluation, which a task receives through its hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskCase {
    pub expected: Value,
    pub metadata: Value,
    pub tags: Value,
    pub arguments: TaskArguments,
}

/// Call of a code function.
#[derive(Clone, Debug)]
pub struct CodeRequest {
    /// Function whose overrides are merged.
    pub function: InvokedFunction,
    pub form: CodeForm,
    pub input: Value,
    /// Case of the form [`CodeForm::EvalTask`].
    pub case: Option<TaskCase>,
    /// Trace that the function may read.
    pub trace: Option<TraceReference>,
    /// Span of the function, below which its code logs.
    pub scope: Option<LogScope>,
}

/// Value of a code function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodeValue {
    pub value: Value,
    /// What a task of the form [`CodeForm::EvalTask`] left in its hooks.
    pub notes: Option<CaseNotes>,
}

/// Metadata and tags of a case after its task changed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseNotes {
    pub metadata: Value,
    pub tags: Value,
}

/// Caller of code functions.
pub trait CodeCaller: Send + Sync {
    /// Checks an input by the schema of the function's parameters, and returns it.
    fn checked_input(&self, function: &InvokedFunction, input: Value) -> Result<Value, InvokeError>;

    /// Runs a function. Lines of its console go to `output` while it runs.
    fn run_code(&self, request: CodeRequest, output: EventOutput) -> BoxFuture<'_, Result<CodeValue, InvokeError>>;
}

/// Tool of another server, in the form for models.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteTool {
    /// Name of the tool for the model.
    pub name: String,
    pub description: Option<String>,
    pub parameters: Value,
    /// Position of its server in the session.
    pub server: usize,
    /// Name of the tool on its server.
    pub tool: String,
}

/// Connections to the tool servers of one prompt. Dropping the session closes them.
pub trait ToolSession: Send + Sync {
    fn tools(&self) -> &[RemoteTool];

    /// Calls a tool. The error is a message for the model.
    fn call<'a>(&'a self, tool: &'a RemoteTool, arguments: &'a Value) -> BoxFuture<'a, Result<Value, String>>;
}

/// Connector to tool servers.
pub trait ToolServers: Send + Sync {
    /// Connects to the servers that a prompt names.
    fn connect<'a>(
        &'a self,
        mcp: &'a Map<String, Value>,
        mcp_auth: &'a Value,
    ) -> BoxFuture<'a, Result<Box<dyn ToolSession>, InvokeError>>;
}

/// Open span. Dropping it logs that the invocation was cancelled.
pub trait OpenSpan: Send + fmt::Debug {
    /// Ends the span. The members are merged into its row.
    fn end(self: Box<Self>, row: Map<String, Value>);
}

/// Receiver of spans. Writing them never delays or fails an invocation.
pub trait SpanSink: Send + Sync {
    fn open(&self, scope: &LogScope, row: Map<String, Value>) -> Box<dyn OpenSpan>;

    /// Returns the time in seconds since 1970.
    fn now(&self) -> f64;
}

/// Source of traces that the caller may read.
pub trait TraceSource: Send + Sync {
    /// Returns the spans of a trace in order.
    fn spans<'a>(&'a self, trace: &'a TraceReference) -> BoxFuture<'a, Result<Vec<Value>, InvokeError>>;

    /// Returns the default preprocessor of a trace's project, or null without one.
    fn default_preprocessor<'a>(&'a self, trace: &'a TraceReference) -> BoxFuture<'a, Result<Value, InvokeError>>;
}

/// Source of attachments that the caller may read.
pub trait AttachmentReader: Send + Sync {
    /// Returns the content of an attachment as a `data:` URL.
    fn data_url<'a>(&'a self, reference: &'a AttachmentReference) -> BoxFuture<'a, Result<String, InvokeError>>;
}

/// All services of invocations.
pub trait InvocationServices:
    FunctionSource + ModelCaller + CodeCaller + ToolServers + SpanSink + TraceSource + AttachmentReader
{
}

impl<S: FunctionSource + ModelCaller + CodeCaller + ToolServers + SpanSink + TraceSource + AttachmentReader>
    InvocationServices for S
{
}

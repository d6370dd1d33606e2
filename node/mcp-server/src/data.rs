//! Data of the caller, which the shell of this crate provides with the caller's rights.

use std::future::Future;

use serde_json::{Map, Value};
use uuid::Uuid;

/// Failure of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolFailure {
    /// The tool failed. The message is for the agent.
    Refused(String),
    /// The credential is no longer valid, so the whole request is refused.
    Unauthorized(String),
}

impl ToolFailure {
    pub(crate) fn refused(why: impl Into<String>) -> ToolFailure {
        ToolFailure::Refused(why.into())
    }
}

/// Query that a tool runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RowQuery {
    /// Query as a text or a tree.
    pub query: Value,
    /// Upper bound of the rows.
    pub limit: u64,
    /// Whether the batch must have all rows up to the limit.
    pub is_whole: bool,
    /// Length at which input, output, expected, error and metadata are cut, if the query has none.
    pub preview: Option<u64>,
    pub cursor: Option<String>,
    /// Version at which the rows are read, or `None` for the newest version.
    pub version: Option<String>,
}

/// Rows of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowBatch {
    pub rows: Vec<Value>,
    /// Cursor of the next page.
    pub cursor: Option<String>,
    /// Version at which the rows were read.
    pub version: String,
    /// Warnings about the query.
    pub warnings: Vec<String>,
}

/// Kind of records that tools read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKindName {
    Project,
    Experiment,
    Dataset,
    Prompt,
    Function,
    Playground,
    Automation,
    OnlineRule,
}

impl RecordKindName {
    /// Kinds of objects that agents name, with their names.
    pub(crate) const OBJECTS: [(&'static str, RecordKindName); 6] = [
        ("project", RecordKindName::Project),
        ("experiment", RecordKindName::Experiment),
        ("dataset", RecordKindName::Dataset),
        ("prompt", RecordKindName::Prompt),
        ("function", RecordKindName::Function),
        ("playground", RecordKindName::Playground),
    ];
    /// Names of these kinds.
    pub(crate) const OBJECT_NAMES: &'static [&'static str] =
        &["project", "experiment", "dataset", "prompt", "function", "playground"];

    pub(crate) fn parse(name: &str) -> Option<RecordKindName> {
        RecordKindName::OBJECTS.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    /// Returns the name of the kind in texts.
    pub fn name(self) -> &'static str {
        match self {
            RecordKindName::Project => "project",
            RecordKindName::Experiment => "experiment",
            RecordKindName::Dataset => "dataset",
            RecordKindName::Prompt => "prompt",
            RecordKindName::Function => "function",
            RecordKindName::Playground => "playground",
            RecordKindName::Automation => "automation",
            RecordKindName::OnlineRule => "online scoring rule",
        }
    }
}

/// Request for records, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRequest {
    pub kind: RecordKindName,
    pub id: Option<Uuid>,
    /// Name of the records, or the slug of prompts and functions.
    pub name: Option<String>,
    /// Id or name of their project.
    pub project: Option<String>,
    pub limit: u64,
    /// Id of the last record of the previous page.
    pub after: Option<Uuid>,
}

impl RecordRequest {
    pub(crate) fn of(kind: RecordKindName, limit: u64) -> RecordRequest {
        RecordRequest { kind, id: None, name: None, project: None, limit, after: None }
    }
}

/// Data of one caller. Each method reads exactly what the caller may read by the API.
pub trait ToolData {
    /// Runs a query.
    fn rows(&self, query: &RowQuery) -> impl Future<Output = Result<RowBatch, ToolFailure>>;

    /// Returns records as the API returns them.
    fn records(&self, request: &RecordRequest) -> impl Future<Output = Result<Vec<Value>, ToolFailure>>;

    /// Returns the summary of an experiment, compared with a base.
    fn summary(&self, experiment: Uuid, base: Option<Uuid>) -> impl Future<Output = Result<Value, ToolFailure>>;

    /// Compares experiments row by row, for a request of `/console/compare`.
    fn comparison(&self, request: Map<String, Value>) -> impl Future<Output = Result<Value, ToolFailure>>;

    /// Returns a prompt or function at a version, or at the version of an environment.
    fn definition(
        &self,
        id: Uuid,
        version: Option<&str>,
        environment: Option<&str>,
    ) -> impl Future<Output = Result<Value, ToolFailure>>;

    /// Returns the messages of a trace from its spans in order.
    fn thread(&self, spans: &[Value]) -> Vec<Value>;

    /// Returns the address of the caller's organization in the web console.
    fn console(&self) -> Result<String, ToolFailure>;
}

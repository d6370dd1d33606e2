//! Data of tools, read by the functions that also serve the API, with the rights of the caller.

use assay_node_console::comparison::compared;
use assay_node_evaluations_http::experiments::encoded;
use assay_node_evaluations_http::summaries::SummarizedExperiment;
use assay_node_functions::{Definition, Version};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_invocations::thread_of_spans;
use assay_node_mcp_server::{RecordKindName, RecordRequest, RowBatch, RowQuery, ToolData, ToolFailure};
use assay_node_query_http::{QueryOptions, rows_page, whole_page};
use assay_node_records::{Kind, ListRequest, kinds};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Upper bound of the rows of one query before they are cut.
const ROWS_BYTES_MAX: usize = 16 << 20;
/// Size of a page below which a page with fewer rows than its limit is the last one.
const FULL_PAGE_BYTES: usize = 1 << 20;
/// Type of the scores that are rules of online scoring.
const ONLINE: &str = "online";

/// Data of one caller.
pub(crate) struct CallerData<'c> {
    pub caller: &'c Caller,
    /// Origin of this server for addresses, or the reason why it is unknown.
    pub origin: Result<String, Refusal>,
}

/// Converts a refusal to the message for the agent.
fn failure(refusal: Refusal) -> ToolFailure {
    let Refusal { kind, message, retry_after_seconds, .. } = refusal;
    match (kind, retry_after_seconds.or(kind.retry_after_seconds())) {
        (ErrorKind::Unauthorized, _) => ToolFailure::Unauthorized(message),
        (ErrorKind::TooLarge, _) => {
            ToolFailure::Refused(format!("{message}. Ask for less: fewer columns, a smaller `limit`, or a filter"))
        }
        (_, Some(seconds)) => ToolFailure::Refused(format!("{message}. Try again after {seconds} s")),
        _ => ToolFailure::Refused(message),
    }
}

impl CallerData<'_> {
    /// Returns the filters for the project of a list.
    fn project_filter(project: Option<&str>) -> Vec<(String, String)> {
        let filter = |project: &str| {
            let name = if Uuid::parse_str(project).is_ok() { "project_id" } else { "project_name" };
            (name.to_owned(), project.to_owned())
        };
        project.map(filter).into_iter().collect()
    }

    async fn list(&self, kind: &'static Kind, request: &RecordRequest) -> Result<Vec<Value>, Refusal> {
        let mut filters = CallerData::project_filter(request.project.as_deref());
        filters.extend(request.name.clone().map(|name| ("name".to_owned(), name)));
        if request.kind == RecordKindName::OnlineRule {
            filters.push(("score_type".to_owned(), ONLINE.to_owned()));
        }
        let list = list_request(request, filters);
        Ok(self.caller.edge.records.list(&self.caller.principal, kind, &list).await?)
    }

    async fn definitions(&self, definition: Definition, request: &RecordRequest) -> Result<Vec<Value>, Refusal> {
        let mut filters = CallerData::project_filter(request.project.as_deref());
        filters.extend(request.name.clone().map(|slug| ("slug".to_owned(), slug)));
        let list = list_request(request, filters);
        let functions = &self.caller.edge.functions;
        Ok(functions.list(&self.caller.principal, definition, list, &Version::Newest).await?)
    }
}

fn list_request(request: &RecordRequest, filters: Vec<(String, String)>) -> ListRequest {
    ListRequest {
        limit: Some(request.limit),
        starting_after: request.after,
        ids: request.id.into_iter().collect(),
        filters,
        ..ListRequest::default()
    }
}

impl ToolData for CallerData<'_> {
    async fn rows(&self, query: &RowQuery) -> Result<RowBatch, ToolFailure> {
        let options = QueryOptions {
            version: query.version.clone(),
            cursor: query.cursor.clone(),
            limit_max: Some(query.limit),
            preview_default: query.preview.map(|length| u32::try_from(length).unwrap_or(u32::MAX)),
            ..QueryOptions::newest(ROWS_BYTES_MAX)
        };
        let page = match query.is_whole {
            true => whole_page(self.caller, query.query.clone(), &options).await,
            false => rows_page(self.caller, query.query.clone(), &options).await,
        };
        let page = page.map_err(failure)?;
        let is_short = (page.rows.len() as u64) < query.limit;
        // A page may also end early because it is large. Then there is another one.
        let is_last = is_short && page.rows.iter().map(size_of_value).sum::<usize>() < FULL_PAGE_BYTES;
        let cursor = page.cursor.filter(|_| !is_last);
        Ok(RowBatch { rows: page.rows, cursor, version: page.version, warnings: page.warnings })
    }

    async fn records(&self, request: &RecordRequest) -> Result<Vec<Value>, ToolFailure> {
        let found = match request.kind {
            RecordKindName::Prompt => self.definitions(Definition::Prompt, request).await,
            RecordKindName::Function => self.definitions(Definition::Function, request).await,
            RecordKindName::Project => self.list(&kinds::PROJECT, request).await,
            RecordKindName::Experiment => self.list(&kinds::EXPERIMENT, request).await,
            RecordKindName::Dataset => self.list(&kinds::DATASET, request).await,
            RecordKindName::Playground => self.list(&kinds::PROMPT_SESSION, request).await,
            RecordKindName::Automation => self.list(&kinds::PROJECT_AUTOMATION, request).await,
            RecordKindName::OnlineRule => self.list(&kinds::PROJECT_SCORE, request).await,
        };
        found.map_err(failure)
    }

    async fn summary(&self, experiment: Uuid, base: Option<Uuid>) -> Result<Value, ToolFailure> {
        let origin = self.origin()?;
        let summary = SummarizedExperiment::of(self.caller, experiment, origin, base).await;
        summary.map(|summary| summary.json()).map_err(failure)
    }

    async fn comparison(&self, request: Map<String, Value>) -> Result<Value, ToolFailure> {
        compared(self.caller, &request).await.map_err(failure)
    }

    async fn definition(
        &self,
        id: Uuid,
        version: Option<&str>,
        environment: Option<&str>,
    ) -> Result<Value, ToolFailure> {
        let version = Version::of(version, environment).map_err(|why| failure(why.into()))?;
        let functions = &self.caller.edge.functions;
        let found = functions.get(&self.caller.principal, Definition::Function, id, &version).await;
        found.map_err(|why| failure(why.into()))
    }

    fn thread(&self, spans: &[Value]) -> Vec<Value> {
        thread_of_spans(spans)
    }

    fn console(&self) -> Result<String, ToolFailure> {
        Ok(format!("{}/app/{}", self.origin()?, encoded(&self.caller.principal.org_name)))
    }
}

impl CallerData<'_> {
    fn origin(&self) -> Result<&str, ToolFailure> {
        match &self.origin {
            Ok(origin) => Ok(origin),
            Err(refusal) => Err(ToolFailure::Refused(refusal.message.clone())),
        }
    }
}

/// Returns an estimate of the size of a row.
fn size_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_value).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + size_of_value(value)).sum(),
        _ => 8,
    }
}

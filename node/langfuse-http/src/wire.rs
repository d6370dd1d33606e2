//! Entrance of all operations: the setting, the credential, the operation, and errors in Langfuse's form.

use assay_node_auth::Secret;
use assay_node_http::requests::caller::{AUTHORIZATION, Call};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{BoxBody, Data, HttpRequest, HttpResponse, Payload, StatusCode, header};
use assay_node_langfuse::{BadField, KeyPair, WireOperation, operation_of};
use assay_node_records::kinds;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{datasets, ingestion, prompts, runs, scores, traces};

/// Path of Langfuse's public API.
pub const LANGFUSE_PATH: &str = "/api/public";
/// Version in the answer of the health check, from which SDKs conclude nothing.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Authenticated call to a project.
#[derive(Debug)]
pub(crate) struct WireCall {
    pub call: Call,
    pub project: Uuid,
}

impl std::ops::Deref for WireCall {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl WireCall {
    pub fn project_text(&self) -> String {
        self.project.to_string()
    }

    /// Reads a body that is a JSON object.
    pub async fn object(&self, payload: Payload) -> Result<Map<String, Value>, Refusal> {
        self.call.packed_body(payload).await?.object().await
    }
}

/// Converts an invalid field to a refusal.
pub(crate) fn bad(why: BadField) -> Refusal {
    Refusal::bad(why.0)
}

pub(crate) fn not_found(what: &str) -> Refusal {
    Refusal::new(ErrorKind::NotFound, format!("{what} does not exist, or is not visible to this key"))
}

/// Returns a response with another status than 200.
pub(crate) fn with_status(status: StatusCode, value: &Value) -> HandlerResult {
    Ok(HttpResponse::build(status).content_type("application/json").body(value.to_string()))
}

/// Handles all requests below [`LANGFUSE_PATH`].
pub async fn serve(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    match answered(&edge, request, payload).await {
        Ok(response) => Ok(response),
        Err(refusal) => Ok(in_wire_form(&refusal)),
    }
}

/// Returns a refusal as Langfuse's SDKs read errors.
fn in_wire_form(refusal: &Refusal) -> HttpResponse {
    let body = json!({"message": refusal.message, "error": refusal.kind.name()});
    let mut response = refusal.bare();
    let content_type = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.set_body(BoxBody::new(body.to_string()))
}

async fn answered(edge: &Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    if !edge.speaks_langfuse() {
        let why = "Langfuse's API is off on this server: an operator can turn it on with the setting `wires.langfuse`";
        return Err(Refusal::new(ErrorKind::NotFound, why));
    }
    let (method, path) = (request.method().as_str().to_owned(), request.path().to_owned());
    let below = path.strip_prefix(LANGFUSE_PATH).unwrap_or_default().trim_start_matches('/');
    let unknown = || Refusal::new(ErrorKind::NotFound, "this path is not part of Langfuse's public API");
    let operation = operation_of(&method, below).ok_or_else(unknown)?;
    if operation == WireOperation::Health {
        return json(&json!({"status": "OK", "version": VERSION}));
    }
    let authorization = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let pair = KeyPair::of_header(authorization).map_err(|why| Refusal::new(ErrorKind::Unauthorized, why))?;
    let call = Call::of_secret(request, &Secret::new(pair.secret)).await?;
    Box::pin(executed(operation, WireCall { call, project: pair.project }, payload)).await
}

async fn executed(operation: WireOperation, call: WireCall, payload: Payload) -> HandlerResult {
    match operation {
        WireOperation::Health => json(&json!({"status": "OK", "version": VERSION})),
        WireOperation::Projects => projects(&call).await,
        WireOperation::Export => ingestion::export(&call, payload).await,
        WireOperation::Ingest => ingestion::ingest(&call, payload).await,
        WireOperation::CreateScore => scores::create(&call, payload).await,
        WireOperation::DeleteScore(id) => scores::delete(&call, &id).await,
        WireOperation::Scores => scores::list(&call).await,
        WireOperation::ScoresV3 => scores::list_v3(&call).await,
        WireOperation::Score(id) => scores::get(&call, &id).await,
        WireOperation::Traces => traces::list(&call).await,
        WireOperation::Trace(id) => traces::get(&call, &id).await,
        WireOperation::DeleteTrace(id) => traces::delete(&call, &id).await,
        WireOperation::Observations => traces::observations(&call).await,
        WireOperation::ObservationsV2 => traces::observations_v2(&call).await,
        WireOperation::Observation(id) => traces::observation(&call, &id).await,
        WireOperation::Session(id) => traces::session(&call, &id).await,
        WireOperation::Prompts => prompts::list(&call).await,
        WireOperation::CreatePrompt => prompts::create(&call, payload).await,
        WireOperation::Prompt(name) => prompts::get(&call, &name).await,
        WireOperation::DeletePrompt(name) => prompts::delete(&call, &name).await,
        WireOperation::PromptLabels { name, version } => prompts::label(&call, &name, &version, payload).await,
        WireOperation::Datasets => datasets::list(&call).await,
        WireOperation::CreateDataset => datasets::create(&call, payload).await,
        WireOperation::Dataset(name) => datasets::get(&call, &name).await,
        WireOperation::DatasetItems => datasets::items(&call).await,
        WireOperation::CreateDatasetItem => datasets::create_item(&call, payload).await,
        WireOperation::DatasetItem(id) => datasets::item(&call, &id).await,
        WireOperation::DeleteDatasetItem(id) => datasets::delete_item(&call, &id).await,
        WireOperation::CreateRunItem => runs::create_item(&call, payload).await,
        WireOperation::RunItems => runs::items(&call).await,
        WireOperation::Runs(dataset) => runs::list(&call, &dataset).await,
        WireOperation::Run { dataset, run } => runs::get(&call, &dataset, &run).await,
        WireOperation::DeleteRun { dataset, run } => runs::delete(&call, &dataset, &run).await,
        WireOperation::Unsupported => Err(Refusal::new(
            ErrorKind::NotImplemented,
            "this operation of Langfuse has no equivalent on this server; the guide page \"Coming from Langfuse\" \
             lists what has one",
        )),
        WireOperation::OtherMethod => {
            Err(Refusal::new(ErrorKind::MethodNotAllowed, "this path of Langfuse's API does not support this method"))
        }
    }
}

/// Returns the project of the public key.
async fn projects(call: &WireCall) -> HandlerResult {
    let project = call.edge.records.get(&call.principal, &kinds::PROJECT, call.project).await?;
    let organization = json!({"id": call.principal.org, "name": call.principal.org_name});
    json(&json!({"data": [{
        "id": project["id"], "name": project["name"], "organization": organization, "metadata": {},
        "retentionDays": null,
    }]}))
}

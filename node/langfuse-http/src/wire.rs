//! Entrance of all operations: the setting, the credential, the operation, and errors in Langfuse's form.

use assay_node_auth::Secret;
use assay_node_http::requests::caller::{AUTHORIZATION, Call};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{BoxBody, Data, HttpRequest, HttpResponse, Payload, StatusCode, header};
use assay_node_langfuse::{BadField, KeyPair, Operation, operation_of};
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
    if operation == Operation::Health {
        return json(&json!({"status": "OK", "version": VERSION}));
    }
    let authorization = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let pair = KeyPair::of_header(authorization).map_err(|why| Refusal::new(ErrorKind::Unauthorized, why))?;
    let call = Call::of_secret(request, &Secret::new(pair.secret)).await?;
    executed(operation, WireCall { call, project: pair.project }, payload).await
}

async fn executed(operation: Operation, call: WireCall, payload: Payload) -> HandlerResult {
    match operation {
        Operation::Health => json(&json!({"status": "OK", "version": VERSION})),
        Operation::Projects => projects(&call).await,
        Operation::Export => ingestion::export(&call, payload).await,
        Operation::Ingest => ingestion::ingest(&call, payload).await,
        Operation::CreateScore => scores::create(&call, payload).await,
        Operation::DeleteScore(id) => scores::delete(&call, &id).await,
        Operation::Scores => scores::list(&call).await,
        Operation::ScoresV3 => scores::list_v3(&call).await,
        Operation::Score(id) => scores::get(&call, &id).await,
        Operation::Traces => traces::list(&call).await,
        Operation::Trace(id) => traces::get(&call, &id).await,
        Operation::DeleteTrace(id) => traces::delete(&call, &id).await,
        Operation::Observations => traces::observations(&call).await,
        Operation::ObservationsV2 => traces::observations_v2(&call).await,
        Operation::Observation(id) => traces::observation(&call, &id).await,
        Operation::Session(id) => traces::session(&call, &id).await,
        Operation::Prompts => prompts::list(&call).await,
        Operation::CreatePrompt => prompts::create(&call, payload).await,
        Operation::Prompt(name) => prompts::get(&call, &name).await,
        Operation::DeletePrompt(name) => prompts::delete(&call, &name).await,
        Operation::PromptLabels { name, version } => prompts::label(&call, &name, &version, payload).await,
        Operation::Datasets => datasets::list(&call).await,
        Operation::CreateDataset => datasets::create(&call, payload).await,
        Operation::Dataset(name) => datasets::get(&call, &name).await,
        Operation::DatasetItems => datasets::items(&call).await,
        Operation::CreateDatasetItem => datasets::create_item(&call, payload).await,
        Operation::DatasetItem(id) => datasets::item(&call, &id).await,
        Operation::DeleteDatasetItem(id) => datasets::delete_item(&call, &id).await,
        Operation::CreateRunItem => runs::create_item(&call, payload).await,
        Operation::RunItems => runs::items(&call).await,
        Operation::Runs(dataset) => runs::list(&call, &dataset).await,
        Operation::Run { dataset, run } => runs::get(&call, &dataset, &run).await,
        Operation::DeleteRun { dataset, run } => runs::delete(&call, &dataset, &run).await,
        Operation::Unsupported => Err(Refusal::new(
            ErrorKind::NotImplemented,
            "this operation of Langfuse has no equivalent on this server; the guide page \"Coming from Langfuse\" \
             lists what has one",
        )),
        Operation::OtherMethod => {
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

//! Start of an evaluation: everything is checked and resolved before anything is created.

use std::sync::Arc;

use assay_node_auth::{Asker, Secret};
use assay_node_evaluations::{EvalBase, EvalPlan, EvalRequest, EvalTarget, EvalTargetType};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::web::Bytes;
use assay_node_records::kinds;
use assay_node_rows_http::files;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::clock::now_ms;
use crate::data::{DataSource, LoadedData};
use crate::functions::EvalFunctions;
use crate::jobs::{
    EvalJobBody, EvalJobExperiment, EvalJobProgress, EvalJobPut, EvalJobRecord, EvalJobRequest, EvalJobState, EvalJobs,
};
use crate::remote::{self, RemoteEval};
use crate::service::{EVALS_PER_ORGANIZATION_MAX, EvalService, EvalSlot, FullNode};
use crate::target;

/// Upper bound of a request within its record, in bytes. Larger ones are files.
const RECORD_REQUEST_BYTES_MAX: usize = 32 << 10;
/// Name of evaluations without one.
const NAME_DEFAULT: &str = "eval";
/// Reason why an evaluation with credentials of tool servers ends with its process.
const MCP_BOUND: &str = "its request has credentials in `mcp_auth`, which are only in the memory of one node";

/// Reason why a remote evaluation ends with its process.
const REMOTE_BOUND: &str = "another server runs it with a credential that is only in the memory of one node";

/// Evaluation with its data and functions in memory.
#[derive(Debug)]
pub struct PreparedEval {
    /// Request without its data.
    pub request: EvalRequest,
    pub functions: EvalFunctions,
    pub plan: Arc<EvalPlan>,
}

/// Work of an evaluation.
#[derive(Debug)]
pub enum EvalWork {
    Here(Box<PreparedEval>),
    Remote(RemoteEval),
}

/// Evaluation whose record is written.
#[derive(Debug)]
pub struct LaunchedEval {
    pub job: EvalJobRecord,
    pub work: EvalWork,
    pub slot: EvalSlot,
    /// Whether the client requests a stream of events.
    pub is_stream: bool,
}

/// Facts about the client that starts an evaluation.
#[derive(Debug)]
pub struct EvalClient {
    /// Origin of the addresses in answers.
    pub origin: String,
    /// Credential for remote evaluations, if the client sent it in a header.
    pub authorization: Option<Secret>,
}

/// Resolved parts of a request, before anything is created.
struct ResolvedEval {
    request: EvalRequest,
    functions: EvalFunctions,
    data: LoadedData,
    /// Target that the request names. Otherwise the evaluation creates an experiment.
    parent: Option<EvalTarget>,
}

/// Starts an evaluation: writes its record with the lease of this process.
pub async fn launch(
    caller: &Caller,
    service: &Arc<EvalService>,
    client: EvalClient,
    mut body: Map<String, Value>,
) -> Result<LaunchedEval, Refusal> {
    let jobs = EvalJobs::new(caller.edge.records.catalog());
    check_organization(caller, &jobs)?;
    let id = Uuid::new_v4();
    let slot = service.enter(id).map_err(full)?;
    let inline = body.get_mut("data").map(Value::take).unwrap_or_default();
    let stored = body.clone();
    body.insert("data".to_owned(), inline.clone());
    let request = EvalRequest::read(body).map_err(|why| Refusal::bad(why.to_string()))?;
    caller.edge.records.get(&caller.principal, &kinds::PROJECT, request.project_id).await?;
    let functions = EvalFunctions::resolve(caller, &request).await?;
    let is_stream = request.is_stream;
    let (body, work, slot) = match remote::is_remote(&functions.task) {
        true => {
            let remote = RemoteEval::new(caller, &client, (&request, &functions), inline).await?;
            let body = new_body(caller, service, &request, client.origin);
            (EvalJobBody { bound_by: Some(REMOTE_BOUND.to_owned()), ..body }, EvalWork::Remote(remote), slot)
        }
        false => {
            Box::pin(create(caller, service, (id, slot, client.origin), (request, functions), (stored, inline))).await?
        }
    };
    let mut job = EvalJobRecord { id, org: caller.principal.org, revision: None, body };
    match jobs.put(&job).await? {
        EvalJobPut::Written { revision } => job.revision = Some(revision),
        EvalJobPut::Stale => return Err(Refusal::internal("the id of a new evaluation is taken")),
    }
    Ok(LaunchedEval { job, work, slot, is_stream })
}

/// Reads the data, checks the plan, and creates the experiment. Returns the body of the record.
async fn create(
    caller: &Caller,
    service: &Arc<EvalService>,
    (id, mut slot, origin): (Uuid, EvalSlot, String),
    (request, functions): (EvalRequest, EvalFunctions),
    (mut stored, inline): (Map<String, Value>, Value),
) -> Result<(EvalJobBody, EvalWork, EvalSlot), Refusal> {
    let ResolvedEval { request, functions, data, parent } = resolve(caller, (request, functions), None).await?;
    slot.hold(data.bytes).map_err(full)?;
    let bound_by = (!request.options.mcp_auth.is_empty()).then(|| MCP_BOUND.to_owned());
    // The target has its own member, and credentials must not be stored.
    for taken in ["mcp_auth", "parent"] {
        stored.remove(taken);
    }
    stored.insert("data".to_owned(), pinned_data(data.source.as_ref(), inline));
    functions.pin(&request, &mut stored);
    // The plan is checked before its experiment exists.
    let unknown = EvalTarget::experiment(Uuid::nil());
    let plan = EvalPlan::new(id, unknown, data.data, request.limits.trial_count, functions.plan.clone());
    let plan = plan.map_err(|why| Refusal::bad(why.to_string()))?;
    let stored = stored_request(caller, stored).await?;
    let (experiment, target) = match parent {
        Some(target) => (None, target),
        None => {
            let experiment = create_experiment(caller, &request, data.source.as_ref()).await?;
            let target = EvalTarget::experiment(experiment.id);
            (Some(experiment), target)
        }
    };
    let plan = plan.with_target(target.clone());
    let new = new_body(caller, service, &request, origin);
    let body = EvalJobBody {
        request: stored,
        data_version: data.source.map(|source| source.version),
        target,
        name: name_of(&request, experiment.as_ref()),
        experiment,
        bound_by,
        progress: EvalJobProgress { cases: plan.case_count().into(), ..EvalJobProgress::default() },
        ..new
    };
    let prepared = PreparedEval { request, functions, plan: Arc::new(plan) };
    Ok((body, EvalWork::Here(Box::new(prepared)), slot))
}

/// Returns the body of a record with the lease of this process, and with the logs of the project as its target.
fn new_body(caller: &Caller, service: &EvalService, request: &EvalRequest, origin: String) -> EvalJobBody {
    let target = EvalTarget {
        object_type: EvalTargetType::ProjectLogs,
        object_id: request.project_id,
        span: None,
        propagated: Map::new(),
    };
    EvalJobBody {
        asker: Asker::of(&caller.principal),
        project_id: request.project_id,
        request: EvalJobRequest::Body(Map::new()),
        data_version: None,
        target,
        name: name_of(request, None),
        experiment: None,
        origin,
        started_ms: now_ms(),
        runner: Some(service.runner),
        node: Some(caller.edge.console.node.clone()),
        epoch: 1,
        renewals: 0,
        takeovers: 0,
        state: EvalJobState::Running,
        is_cancelled: false,
        bound_by: None,
        progress: EvalJobProgress::default(),
        ended_ms: None,
        error: None,
        scores: Map::new(),
        summary: None,
    }
}

/// Reads an evaluation again, for a process that continues it.
pub async fn prepare_again(caller: &Caller, job: &EvalJobRecord, slot: &mut EvalSlot) -> Result<PreparedEval, Refusal> {
    let body = match &job.body.request {
        EvalJobRequest::Body(body) => body.clone(),
        EvalJobRequest::File(key) => {
            let bytes_max = caller.edge.config.body_bytes_max;
            let content = files::attachment(caller, key, bytes_max).await?;
            serde_json::from_slice(&content).map_err(Refusal::internal)?
        }
    };
    let request = EvalRequest::read(body).map_err(|why| Refusal::bad(why.to_string()))?;
    caller.edge.records.get(&caller.principal, &kinds::PROJECT, request.project_id).await?;
    let functions = EvalFunctions::resolve(caller, &request).await?;
    let version = job.body.data_version.clone();
    let ResolvedEval { request, functions, data, .. } = resolve(caller, (request, functions), version).await?;
    slot.hold(data.bytes).map_err(full)?;
    target::home_of(caller, &job.body.target).await?;
    let (trials, scorers) = (request.limits.trial_count, functions.plan.clone());
    let plan = EvalPlan::new(job.id, job.body.target.clone(), data.data, trials, scorers);
    let plan = Arc::new(plan.map_err(|why| Refusal::bad(why.to_string()))?);
    Ok(PreparedEval { request, functions, plan })
}

async fn resolve(
    caller: &Caller,
    (mut request, functions): (EvalRequest, EvalFunctions),
    version: Option<String>,
) -> Result<ResolvedEval, Refusal> {
    let parent = match &request.parent {
        Some(parent) => Some(target::of_parent(caller, parent).await?),
        None => None,
    };
    let data = LoadedData::load(caller, &mut request, version).await?;
    Ok(ResolvedEval { request, functions, data, parent })
}

/// Refuses an evaluation of an organization that runs too many.
fn check_organization(caller: &Caller, jobs: &EvalJobs) -> Result<(), Refusal> {
    let org = caller.principal.org;
    let running = jobs.all().into_iter().filter(|job| job.org == org && !job.body.state.is_over()).count();
    if running < EVALS_PER_ORGANIZATION_MAX {
        return Ok(());
    }
    let why = format!("the organization runs {running} evaluations already: wait for one to end, or cancel one");
    Err(Refusal::new(ErrorKind::Busy, why))
}

/// Returns the refusal for a limit of this node.
pub fn full(limit: FullNode) -> Refusal {
    let why = match limit {
        FullNode::Evals => "this node runs as many evaluations as it may: try again later, or another node",
        FullNode::Data => "the evaluations on this node use as much memory as they may: try again later",
    };
    Refusal::new(ErrorKind::Unavailable, why)
}

/// Returns the reference to the same rows at their version. The list of a request stays as it is.
fn pinned_data(source: Option<&DataSource>, sent: Value) -> Value {
    let Some(source) = source else { return sent };
    let mut pinned = Map::new();
    let id = if source.is_dataset { "dataset_id" } else { "experiment_id" };
    pinned.insert(id.to_owned(), source.id.to_string().into());
    if let Some(query) = sent.get("_internal_btql").filter(|query| !query.is_null()) {
        pinned.insert("_internal_btql".to_owned(), query.clone());
    }
    Value::Object(pinned)
}

/// Stores a request that is too large for a record as a file.
async fn stored_request(caller: &Caller, body: Map<String, Value>) -> Result<EvalJobRequest, Refusal> {
    let text = serde_json::to_vec(&body).map_err(Refusal::internal)?;
    if text.len() <= RECORD_REQUEST_BYTES_MAX {
        return Ok(EvalJobRequest::Body(body));
    }
    let named = ("evaluation.json", "application/json");
    Ok(EvalJobRequest::File(files::store(caller, named, Bytes::from(text)).await?))
}

fn name_of(request: &EvalRequest, experiment: Option<&EvalJobExperiment>) -> String {
    let experiment = experiment.map(|experiment| experiment.name.clone());
    request.name.clone().or(experiment).unwrap_or_else(|| NAME_DEFAULT.to_owned())
}

async fn create_experiment(
    caller: &Caller,
    request: &EvalRequest,
    source: Option<&DataSource>,
) -> Result<EvalJobExperiment, Refusal> {
    let wanted = &request.experiment;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    set("project_id", Some(request.project_id.to_string().into()));
    set("ensure_new", Some(true.into()));
    set("name", wanted.name.clone().map(Value::from));
    set("metadata", wanted.metadata.clone().map(Value::Object));
    set("tags", (!wanted.tags.is_empty()).then(|| json!(wanted.tags)));
    set("public", Some(wanted.is_public.into()));
    set("repo_info", wanted.repo_info.clone().map(Value::Object));
    match &wanted.base {
        Some(EvalBase::Id(id)) => set("base_exp_id", Some(id.to_string().into())),
        Some(EvalBase::Name(name)) => set("base_experiment", Some(name.as_str().into())),
        None => {}
    }
    if let Some(source) = source.filter(|source| source.is_dataset) {
        set("dataset_id", Some(source.id.to_string().into()));
        set("dataset_version", Some(source.version.as_str().into()));
    }
    let created = caller.edge.records.create(&caller.principal, &kinds::EXPERIMENT, fields).await?;
    let text = |name: &str| created.object[name].as_str().map(str::to_owned);
    match (text("id").and_then(|id| Uuid::parse_str(&id).ok()), text("name")) {
        (Some(id), Some(name)) => Ok(EvalJobExperiment { id, name }),
        _ => Err(Refusal::internal("a new experiment has no id")),
    }
}

//! Handlers of evaluations: their start, state, cancel and report.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::{Permission, Secret};
use assay_node_evaluations::EvalTaskProgress;
use assay_node_http::requests::caller::{AUTHORIZATION, Call, Caller};
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::origin::origin_of;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::{HttpResponse, Payload, header};
use assay_node_records::kinds;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::answers;
use crate::jobs::{EvalJobPut, EvalJobRecord, EvalJobs};
use crate::launch::{EvalClient, LaunchedEval, launch};
use crate::remote::RemoteServer;
use crate::run::QUEUE_WAIT;
use crate::service::{EvalService, HeldEval};
use crate::stream::EvalStream;
use crate::summaries::uuid;

/// Interval between two looks at the state of an evaluation.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time after which a request without a stream stops to wait. The evaluation goes on.
const ANSWER_WITHIN: Duration = Duration::from_secs(30 * 60);
/// Outputs of tasks that wait for the reader of a stream.
const OUTPUTS_WAITING_MAX: usize = 256;
/// Upper bound of the attempts to write a cancel.
const CANCEL_ATTEMPTS_MAX: u32 = 20;
/// Numbers of evaluations in a list.
const LIST_DEFAULT: usize = 100;
const LIST_MAX: usize = 1_000;

/// Handles `POST /v1/eval`: starts an evaluation, and waits for its end unless it is in the background.
pub async fn start(call: Call, payload: Payload) -> HandlerResult {
    let body = call.packed_body_within(payload, call.edge.config.body_bytes_max).await?.object().await?;
    let is_background = flag(&body, "background")?;
    let client = client_of(&call)?;
    let service = call.edge.state.get::<EvalService>();
    let LaunchedEval { job, work, slot, is_stream } = Box::pin(launch(&call, &service, client, body)).await?;
    let is_stream = is_stream && !is_background;
    let (outputs, receiver) = match is_stream {
        true => {
            let (sender, receiver) = mpsc::channel::<EvalTaskProgress>(OUTPUTS_WAITING_MAX);
            (Some(sender), Some(receiver))
        }
        false => (None, None),
    };
    service.submit(HeldEval { job: job.clone(), work: Some(work), slot, outputs });
    if is_background {
        let mut said = answers::job_json(&job);
        said["job_id"] = json!(job.id);
        let body = serde_json::to_vec(&said).map_err(Refusal::internal)?;
        return Ok(HttpResponse::Accepted().insert_header((header::CONTENT_TYPE, "application/json")).body(body));
    }
    let follower = EvalFollower::new(&call, &job);
    match receiver {
        Some(outputs) => EvalStream::respond(&call, follower, &job, outputs).await,
        None => json(&follower.answer().await?),
    }
}

/// Handles `GET /v1/eval`: lists the evaluations of a project, newest first.
pub async fn list(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let project = uuid(&asked, "project_id")?.ok_or_else(|| Refusal::bad("`project_id` is missing"))?;
    let limit = match asked.iter().rev().find(|(name, value)| name == "limit" && !value.is_empty()) {
        None => LIST_DEFAULT,
        Some((_, text)) => text.parse().ok().filter(|limit| (1..=LIST_MAX).contains(limit)).ok_or_else(|| {
            Refusal::bad(format!("`limit` is `{}`; it should be a whole number from 1 to {LIST_MAX}", shortened(text)))
        })?,
    };
    call.edge.records.get(&call.principal, &kinds::PROJECT, project).await?;
    let jobs = EvalJobs::new(call.edge.records.catalog());
    let mut found = jobs.all();
    found.retain(|job| job.body.project_id == project);
    found.sort_by_key(|job| Reverse((job.body.started_ms, job.id)));
    let objects: Vec<Value> = found.iter().take(limit).map(answers::job_json).collect();
    json(&json!({ "objects": objects }))
}

/// Handles `GET /v1/eval/{id}`: returns the state of an evaluation, with its summary after its end.
pub async fn get(call: Call) -> HandlerResult {
    let job = answers::visible_job(&call, call.id()?, Permission::Read).await?;
    let mut said = answers::job_json(&job);
    said["summary"] = match job.body.state.is_over() {
        true => answers::summary(&call, &job).await?,
        false => Value::Null,
    };
    json(&said)
}

/// Handles `POST /v1/eval/{id}/cancel`. An evaluation that has ended stays as it is.
pub async fn cancel(call: Call) -> HandlerResult {
    let job = answers::visible_job(&call, call.id()?, Permission::Update).await?;
    json(&answers::job_json(&cancel_job(&call, job.id).await?))
}

/// Handles `GET /v1/eval/{id}/report`: returns the report of an evaluation as Markdown.
pub async fn report(call: Call) -> HandlerResult {
    let job = answers::visible_job(&call, call.id()?, Permission::Read).await?;
    let text = answers::report(&call, &job).await?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "text/markdown; charset=utf-8"));
    Ok(response.body(text))
}

/// Handles `POST /v1/eval/remote-list`: lists the evaluations of a server that the project names.
pub async fn remote_list(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let project = body.get("project_id").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
    let project = project.ok_or_else(|| Refusal::bad("`project_id` has to be a UUID"))?;
    let url = body.get("url").and_then(Value::as_str).ok_or_else(|| Refusal::bad("`url` is missing"))?;
    let server = RemoteServer::new(&call, &client_of(&call)?, (project, url)).await?;
    json(&server.list(&call).await?)
}

fn client_of(call: &Call) -> Result<EvalClient, Refusal> {
    let authorization = call.request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorization = authorization.map(|text| Secret::new(text.to_owned()));
    Ok(EvalClient { origin: origin_of(call)?, authorization })
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(Refusal::bad(format!("`{name}` has to be true or false"))),
    }
}

/// Requests the cancel of an evaluation, which its process sees soon.
async fn cancel_job(caller: &Caller, id: Uuid) -> Result<EvalJobRecord, Refusal> {
    caller.edge.state.get::<EvalService>().cancel(id);
    let jobs = EvalJobs::new(caller.edge.records.catalog());
    for _ in 0..CANCEL_ATTEMPTS_MAX {
        let mut job = jobs.newest(id).await?.ok_or_else(|| Refusal::not_found("this evaluation"))?;
        if job.body.state.is_over() || job.body.is_cancelled {
            return Ok(job);
        }
        job.body.is_cancelled = true;
        match jobs.put(&job).await? {
            EvalJobPut::Written { revision } => return Ok(EvalJobRecord { revision: Some(revision), ..job }),
            // The process has renewed its lease.
            EvalJobPut::Stale => {}
        }
    }
    Err(Refusal::new(
        ErrorKind::Unavailable,
        "the cancel could not be written, because the evaluation changes: try again",
    ))
}

/// Client that waits for the end of an evaluation. Dropping it cancels the evaluation (F-60).
#[derive(Debug)]
pub struct EvalFollower {
    caller: Caller,
    jobs: EvalJobs,
    id: Uuid,
    service: Arc<EvalService>,
    /// Signal that an evaluation has left this node.
    left: watch::Receiver<u64>,
    began: Instant,
    /// Whether the evaluation goes on without the client.
    is_released: bool,
}

impl EvalFollower {
    fn new(caller: &Caller, job: &EvalJobRecord) -> EvalFollower {
        let service: Arc<EvalService> = caller.edge.state.get();
        EvalFollower {
            caller: caller.clone(),
            jobs: EvalJobs::new(caller.edge.records.catalog()),
            id: job.id,
            left: service.left.subscribe(),
            service,
            began: Instant::now(),
            is_released: false,
        }
    }

    /// Returns the evaluation after its end, or `None` if it still runs. The error says why no client can wait.
    pub fn look(&mut self) -> Result<Option<EvalJobRecord>, Refusal> {
        let address = format!("/v1/eval/{}", self.id);
        if self.caller.edge.is_draining() {
            self.is_released = true;
            let why = format!("this node is shutting down, and the evaluation goes on: see {address}");
            return Err(Refusal::new(ErrorKind::Unavailable, why));
        }
        match self.jobs.get(self.id) {
            Some(job) if job.body.state.is_over() => {
                self.is_released = true;
                Ok(Some(job))
            }
            // The local copy of the catalog may not have a new record yet.
            Some(_) | None => Ok(None),
        }
    }

    /// Waits for the end, and returns the answer.
    async fn answer(mut self) -> Result<Value, Refusal> {
        loop {
            if let Some(job) = self.look()? {
                return self.final_answer(&job).await;
            }
            if self.began.elapsed() > ANSWER_WITHIN {
                self.is_released = true;
                let why = format!("the evaluation runs for a long time, and goes on: see /v1/eval/{}", self.id);
                return Err(Refusal { is_final: true, ..Refusal::new(ErrorKind::TooLate, why) });
            }
            self.wait().await;
        }
    }

    /// Waits until the next look makes sense.
    pub async fn wait(&mut self) {
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            Ok(()) = self.left.changed() => {}
        }
    }

    /// Returns the answer of an evaluation that has ended.
    pub async fn final_answer(&self, job: &EvalJobRecord) -> Result<Value, Refusal> {
        let caller = self.caller.waiting_until(Instant::now() + QUEUE_WAIT);
        answers::final_answer(&caller, job).await
    }
}

impl Drop for EvalFollower {
    fn drop(&mut self) {
        if self.is_released || self.caller.edge.is_draining() {
            return;
        }
        self.service.cancel(self.id);
        let (caller, id) = (self.caller.clone(), self.id);
        self.caller.edge.gateway.spawn(async move {
            if let Err(refusal) = cancel_job(&caller, id).await {
                tracing::warn!(job = %id, why = refusal.message, "an evaluation without its client could not be cancelled");
            }
        });
    }
}

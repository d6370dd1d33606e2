//! Answers about evaluations: their state, their summary, and their report.

use assay_node_auth::Permission;
use assay_node_evaluations::{
    EvalEnd, EvalReport, EvalRowCounts, EvalScoreEntry, EvalStatistics, EvalStreamStart, EvalSummary,
};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_storage_model::event::format_micros;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::experiments::{ExperimentRecord, ProjectName};
use crate::jobs::{EvalJobRecord, EvalJobState, EvalJobs};
use crate::summaries::SummarizedExperiment;
use crate::target::kind_of;

/// Returns an evaluation whose rows the caller may access with this permission.
pub async fn visible_job(caller: &Caller, id: Uuid, permission: Permission) -> Result<EvalJobRecord, Refusal> {
    let jobs = EvalJobs::new(caller.edge.records.catalog());
    let missing = || Refusal::not_found("this evaluation");
    let job = jobs.newest(id).await?.ok_or_else(missing)?;
    let (kind, object) = (kind_of(job.body.target.object_type), job.body.target.object_id);
    let found = caller.edge.records.object(&caller.principal, kind, object, permission).await.map_err(Refusal::from);
    found.map_err(|refusal| if refusal.kind == ErrorKind::NotFound { missing() } else { refusal })?;
    Ok(job)
}

/// Returns the state of an evaluation, with the addresses of its operations.
pub fn job_json(job: &EvalJobRecord) -> Value {
    let (body, id) = (&job.body, job.id);
    let time = |ms: u64| format_micros(i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000));
    let address = format!("{}/v1/eval/{id}", body.origin);
    json!({
        "id": id, "project_id": body.project_id, "name": body.name,
        "experiment_id": body.experiment.as_ref().map(|experiment| experiment.id),
        "experiment_name": body.experiment.as_ref().map(|experiment| &experiment.name),
        "object_type": body.target.object_type, "object_id": body.target.object_id,
        "state": body.state, "is_cancelled": body.is_cancelled, "error": body.error, "progress": body.progress,
        "node": body.node, "takeovers": body.takeovers,
        "started": time(body.started_ms), "ended": body.ended_ms.map(time),
        "status_url": address, "cancel_url": format!("{address}/cancel"), "report_url": format!("{address}/report"),
    })
}

/// Returns the first event of a stream.
pub async fn stream_start(caller: &Caller, job: &EvalJobRecord) -> Result<EvalStreamStart, Refusal> {
    let project = ProjectName::of(caller, job.body.project_id).await?;
    let project_url = project.url(&job.body.origin);
    let (experiment_id, experiment_name, experiment_url) = match &job.body.experiment {
        Some(experiment) => {
            let found = ExperimentRecord::of(caller, experiment.id).await?;
            (found.id, found.name.clone(), found.url(&job.body.origin))
        }
        None => (job.body.target.object_id, job.body.name.clone(), project_url.clone()),
    };
    let project_id = job.body.project_id;
    Ok(EvalStreamStart {
        project_name: project.name,
        project_id,
        experiment_name,
        experiment_id,
        project_url,
        experiment_url,
    })
}

/// Returns the summary of an evaluation so far.
pub async fn summary(caller: &Caller, job: &EvalJobRecord) -> Result<Value, Refusal> {
    if let Some(summary) = &job.body.summary {
        return Ok(summary.clone());
    }
    if let Some(experiment) = &job.body.experiment {
        return Ok(SummarizedExperiment::of(caller, experiment.id, &job.body.origin, None).await?.json());
    }
    let project = ProjectName::of(caller, job.body.project_id).await?;
    let project_url = project.url(&job.body.origin);
    let scores = job.body.scores.iter().filter_map(|(name, mean)| {
        let entry =
            EvalScoreEntry { name: name.clone(), score: mean.as_f64()?, diff: None, improvements: 0, regressions: 0 };
        Some((name.clone(), entry))
    });
    Ok(json!(EvalSummary {
        project_name: project.name,
        experiment_name: job.body.name.clone(),
        experiment_url: project_url.clone(),
        project_url,
        comparison_experiment_name: None,
        scores: Some(scores.collect()),
        metrics: None,
    }))
}

/// Returns the answer of an evaluation that ended: its summary, or why it has none.
///
/// After a timeout, the cases that were not done have an error, and the summary is complete.
pub async fn final_answer(caller: &Caller, job: &EvalJobRecord) -> Result<Value, Refusal> {
    match job.body.state {
        EvalJobState::Completed | EvalJobState::TimedOut => summary(caller, job).await,
        EvalJobState::Cancelled => Err(Refusal::new(ErrorKind::Conflict, "the evaluation was cancelled")),
        EvalJobState::Failed | EvalJobState::Running => {
            let why = job.body.error.clone().unwrap_or_else(|| "the evaluation failed".to_owned());
            Err(Refusal { is_final: true, ..Refusal::new(ErrorKind::Internal, why) })
        }
    }
}

/// Returns the report of an evaluation that ended, as Markdown.
pub async fn report(caller: &Caller, job: &EvalJobRecord) -> Result<String, Refusal> {
    let experiment = job.body.experiment.as_ref().ok_or_else(|| {
        Refusal::bad(
            "the evaluation has no experiment, because its request named a parent: only experiments have a report",
        )
    })?;
    let end = match job.body.state {
        EvalJobState::Running => {
            let why = "the evaluation still runs: ask for its report after its end";
            return Err(Refusal::new(ErrorKind::Conflict, why));
        }
        EvalJobState::Completed => EvalEnd::Completed,
        EvalJobState::TimedOut => EvalEnd::TimedOut,
        EvalJobState::Cancelled => EvalEnd::Cancelled,
        EvalJobState::Failed => EvalEnd::WritesFailed,
    };
    let found = SummarizedExperiment::of(caller, experiment.id, &job.body.origin, None).await?;
    let statistics = &found.statistics;
    let progress = job.body.progress;
    let comparison_url = found.base.as_ref().map(|base| base.url(&job.body.origin));
    let metrics: Vec<EvalStatistics> = statistics.metrics.iter().filter(|metric| !is_zero(metric)).cloned().collect();
    let report = EvalReport {
        summary: &found.summary,
        comparison_url: comparison_url.as_deref(),
        counts: EvalRowCounts {
            rows: statistics.rows,
            errors: statistics.errors,
            scorer_errors: progress.scorer_errors,
            unwritten: progress.unwritten,
            only_here: statistics.only_here,
            only_base: statistics.only_base,
        },
        end,
        scores: &statistics.scores,
        metrics: &metrics,
    };
    Ok(report.to_markdown())
}

/// Returns whether a metric is zero in the experiment and in its base, which a report need not say.
fn is_zero(metric: &EvalStatistics) -> bool {
    metric.mean == Some(0.0) && metric.change.as_ref().is_none_or(|change| change.base_mean == 0.0)
}

//! Summaries of experiments: scores and metrics, their changes against a base, and what the changes are worth.

use assay_node_evaluations::EvalSummary;
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::origin::origin_of;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::experiments::{ExperimentRecord, base_of, sums};
use crate::statistics::ExperimentStatistics;

/// Summary of an experiment, with the base that it is compared with.
#[derive(Debug)]
pub struct SummarizedExperiment {
    pub experiment: ExperimentRecord,
    pub base: Option<ExperimentRecord>,
    pub summary: EvalSummary,
    pub statistics: ExperimentStatistics,
}

impl SummarizedExperiment {
    pub async fn of(caller: &Caller, id: Uuid, origin: &str, base: Option<Uuid>) -> Result<Self, Refusal> {
        let experiment = ExperimentRecord::of(caller, id).await?;
        let base = base_of(caller, &experiment, base).await?;
        let (scores, metrics) = sums(caller, &experiment, base.as_ref()).await?;
        let statistics = ExperimentStatistics::of(caller, &experiment, base.as_ref()).await?;
        let summary = EvalSummary {
            project_name: experiment.project.name.clone(),
            experiment_name: experiment.name.clone(),
            project_url: experiment.project.url(origin),
            experiment_url: experiment.url(origin),
            comparison_experiment_name: base.as_ref().map(|base| base.name.clone()),
            scores: Some(serde_json::from_value(scores).map_err(Refusal::internal)?),
            metrics: Some(serde_json::from_value(metrics).map_err(Refusal::internal)?),
        };
        Ok(SummarizedExperiment { experiment, base, summary, statistics })
    }

    /// Returns the summary as responses have it.
    ///
    /// Clients refuse further members of an entry, but not of the summary.
    pub fn json(&self) -> Value {
        let mut said = json!(self.summary);
        said["statistics"] = self.statistics.json();
        said
    }
}

/// Handles `GET /v1/experiment/{id}/summarize`.
pub async fn experiment(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = call.id()?;
    let named = uuid(&asked, "comparison_experiment_id")?;
    let origin = origin_of(&call)?;
    if flag(&asked, "summarize_scores")? {
        return json(&SummarizedExperiment::of(&call, id, &origin, named).await?.json());
    }
    let found = ExperimentRecord::of(&call, id).await?;
    json(&json!({
        "project_name": found.project.name, "experiment_name": found.name,
        "project_url": found.project.url(&origin), "experiment_url": found.url(&origin),
        "comparison_experiment_name": null, "scores": null, "metrics": null,
    }))
}

/// Handles `GET /experiment-comparison2`.
pub async fn comparison(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let id = uuid(&asked, "experiment_id")?.ok_or_else(|| Refusal::bad("`experiment_id` is missing"))?;
    let found = ExperimentRecord::of(&call, id).await?;
    let base = base_of(&call, &found, uuid(&asked, "base_experiment_id")?).await?;
    let (scores, metrics) = sums(&call, &found, base.as_ref()).await?;
    let mut said = json!({"scores": scores, "metrics": metrics});
    if let Some(base) = base {
        said["base_experiment_name"] = base.name.into();
    }
    json(&said)
}

/// Returns the last value of a parameter that is not empty.
fn given<'a>(asked: &'a [(String, String)], name: &str) -> Option<&'a str> {
    asked.iter().rev().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

/// Returns a parameter that is true or false. It is false by default.
pub fn flag(asked: &[(String, String)], name: &str) -> Result<bool, Refusal> {
    match given(asked, name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Refusal::bad(format!("`{name}` is `{}`; it should be true or false", shortened(other)))),
    }
}

/// Returns a parameter that is a UUID.
pub fn uuid(asked: &[(String, String)], name: &str) -> Result<Option<Uuid>, Refusal> {
    let wrong = |_| Refusal::bad(format!("`{name}` has to be a UUID"));
    given(asked, name).map(|text| Uuid::parse_str(text).map_err(wrong)).transpose()
}

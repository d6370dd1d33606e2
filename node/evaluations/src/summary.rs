//! Summary of an experiment, as answers and streams have it (`SummarizeExperimentResponse`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Summary of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalSummary {
    pub project_name: String,
    pub experiment_name: String,
    pub project_url: String,
    pub experiment_url: String,
    pub comparison_experiment_name: Option<String>,
    pub scores: Option<BTreeMap<String, EvalScoreEntry>>,
    pub metrics: Option<BTreeMap<String, EvalMetricEntry>>,
}

/// Summary of one score. Clients refuse further members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalScoreEntry {
    pub name: String,
    pub score: f64,
    /// Mean difference, if there is an experiment to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<f64>,
    pub improvements: u64,
    pub regressions: u64,
}

/// Summary of one metric. Clients refuse further members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalMetricEntry {
    pub name: String,
    pub metric: f64,
    pub unit: String,
    /// Mean difference, if there is an experiment to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<f64>,
    pub improvements: u64,
    pub regressions: u64,
}

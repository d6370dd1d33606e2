//! Plan of an eval: its cases, each a trial of a datum, with the ids of their rows.

mod ids;
#[cfg(test)]
mod tests;
mod written;

use std::collections::HashSet;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

pub use ids::{EvalCaseIds, EvalSpanIds};
pub use written::{WrittenCase, WrittenCases};

use crate::datum::{DatumKey, EvalDatum};
use crate::request::{EVAL_SCORERS_MAX, EvalTarget, TRIALS_MAX};

/// Upper bound of the cases of one eval.
pub const EVAL_CASES_MAX: u64 = 1_000_000;
/// Upper bound of the data of one eval in memory, in bytes.
pub const EVAL_DATA_BYTES_MAX: usize = 256 << 20;

/// Index of a case in its plan. The trials of a datum follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CaseIndex(pub u32);

/// Use of a scorer's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalScorerKind {
    Scorer,
    Classifier,
    Tag,
}

/// Resolved scorer, classifier or tag function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalScorer {
    /// Name of the function, which is the default name of its scores.
    pub name: String,
    pub kind: EvalScorerKind,
    /// Whether the function reads the spans of the case, which are then written before it runs.
    pub reads_trace: bool,
}

impl EvalScorerKind {
    /// Returns the use of a function of this type. Functions without a type score.
    ///
    /// Returns `None` for types whose results are neither scores nor classes nor tags.
    pub fn of_function_type(function_type: Option<&str>) -> Option<EvalScorerKind> {
        match function_type {
            None | Some("scorer" | "llm") => Some(EvalScorerKind::Scorer),
            Some("classifier") => Some(EvalScorerKind::Classifier),
            Some("tag") => Some(EvalScorerKind::Tag),
            Some(_) => None,
        }
    }

    /// Returns the type of the function's span (F-19).
    pub fn span_type(self) -> &'static str {
        match self {
            EvalScorerKind::Scorer => "score",
            EvalScorerKind::Classifier | EvalScorerKind::Tag => "classifier",
        }
    }
}

/// Error for an eval that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvalPlanError {
    #[error("the eval has {data} data with {trials} trials each; at most {EVAL_CASES_MAX} cases are allowed")]
    Cases { data: usize, trials: u32 },
    #[error("the eval has {0} trials of each datum; 1 to {TRIALS_MAX} are allowed")]
    Trials(u32),
    #[error("the eval has {0} scorers; at most {EVAL_SCORERS_MAX} are allowed")]
    Scorers(usize),
    #[error("the data of the eval take more than {EVAL_DATA_BYTES_MAX} bytes; use a filter or a smaller dataset")]
    Bytes,
    #[error("{0} occurs twice in the data; the ids of rows must be unique")]
    SameKey(DatumKey),
}

/// Plan of an eval.
#[derive(Debug)]
pub struct EvalPlan {
    job_id: Uuid,
    target: EvalTarget,
    data: Vec<Arc<EvalDatum>>,
    trial_count: u32,
    scorers: Vec<EvalScorer>,
}

impl EvalPlan {
    /// Plans the run `job_id`. The same arguments give the same ids.
    pub fn new(
        job_id: Uuid,
        target: EvalTarget,
        data: Vec<EvalDatum>,
        trial_count: u32,
        scorers: Vec<EvalScorer>,
    ) -> Result<EvalPlan, EvalPlanError> {
        if !(1..=TRIALS_MAX).contains(&trial_count) {
            return Err(EvalPlanError::Trials(trial_count));
        }
        if scorers.len() > EVAL_SCORERS_MAX {
            return Err(EvalPlanError::Scorers(scorers.len()));
        }
        if data.len() as u64 * u64::from(trial_count) > EVAL_CASES_MAX {
            return Err(EvalPlanError::Cases { data: data.len(), trials: trial_count });
        }
        let mut keys = HashSet::with_capacity(data.len());
        let mut bytes = 0;
        for datum in &data {
            bytes += datum.bytes();
            if bytes > EVAL_DATA_BYTES_MAX {
                return Err(EvalPlanError::Bytes);
            }
            if !keys.insert(&datum.key) {
                return Err(EvalPlanError::SameKey(datum.key.clone()));
            }
        }
        drop(keys);
        let data = data.into_iter().map(Arc::new).collect();
        Ok(EvalPlan { job_id, target, data, trial_count, scorers })
    }

    /// Returns the plan with another target, for an experiment that is created after the checks of the plan.
    pub fn with_target(self, target: EvalTarget) -> EvalPlan {
        EvalPlan { target, ..self }
    }

    pub fn target(&self) -> &EvalTarget {
        &self.target
    }

    pub fn scorers(&self) -> &[EvalScorer] {
        &self.scorers
    }

    pub fn case_count(&self) -> u32 {
        // A plan has at most `EVAL_CASES_MAX` cases.
        self.data.len() as u32 * self.trial_count
    }

    /// Returns the datum of a case, or `None` if the plan has no such case.
    pub fn datum(&self, case: CaseIndex) -> Option<&Arc<EvalDatum>> {
        self.data.get((case.0 / self.trial_count) as usize)
    }

    /// Returns the number of a case among the trials of its datum, from 0.
    pub fn trial(&self, case: CaseIndex) -> u32 {
        case.0 % self.trial_count
    }

    /// Returns the ids of a case, or `None` if the plan has no such case.
    pub fn ids(&self, case: CaseIndex) -> Option<EvalCaseIds> {
        let key = &self.datum(case)?.key;
        Some(EvalCaseIds::new(self.job_id, key, self.trial(case), self.scorers.len(), &self.target))
    }

    /// Returns whether some scorer reads the spans of a case.
    pub fn reads_traces(&self) -> bool {
        self.scorers.iter().any(|scorer| scorer.reads_trace)
    }
}

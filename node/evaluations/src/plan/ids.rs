//! Ids of the spans of a case, which follow from the run, the datum and the trial.

use uuid::Uuid;

use crate::datum::DatumKey;
use crate::request::EvalTarget;

/// Ids of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalSpanIds {
    pub row_id: Uuid,
    pub span_id: Uuid,
}

/// Ids of all spans of a case that the run itself creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalCaseIds {
    pub root: EvalSpanIds,
    pub task: EvalSpanIds,
    /// Span of the task's function, a child of the task span.
    pub function: EvalSpanIds,
    pub scorers: Vec<EvalSpanIds>,
    /// Trace of the case.
    pub root_span_id: String,
}

impl EvalCaseIds {
    pub(super) fn new(job: Uuid, key: &DatumKey, trial: u32, scorers: usize, target: &EvalTarget) -> EvalCaseIds {
        let ids = |role: &str| EvalSpanIds {
            row_id: derived(job, key, trial, &format!("{role}.row")),
            span_id: derived(job, key, trial, &format!("{role}.span")),
        };
        let root = ids("root");
        let parent = target.span.as_ref().map(|span| span.root_span_id.clone());
        EvalCaseIds {
            root,
            task: ids("task"),
            function: ids("function"),
            scorers: (0..scorers).map(|scorer| ids(&format!("scorer-{scorer}"))).collect(),
            root_span_id: parent.unwrap_or_else(|| root.span_id.to_string()),
        }
    }
}

/// Returns the id of the root row of a case.
pub(super) fn root_row_id(job: Uuid, key: &DatumKey, trial: u32) -> Uuid {
    derived(job, key, trial, "root.row")
}

/// Returns an id in the namespace of the run. Roles have no slash, so no two names are equal.
fn derived(job: Uuid, key: &DatumKey, trial: u32, role: &str) -> Uuid {
    let name = match key {
        DatumKey::Row(id) => format!("{role}/{trial}/row/{id}"),
        DatumKey::Position(position) => format!("{role}/{trial}/position/{position}"),
    };
    Uuid::new_v5(&job, name.as_bytes())
}

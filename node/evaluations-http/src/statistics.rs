//! Statistics of an experiment against its base: intervals of changes, and trials that disagree.

use std::collections::BTreeSet;

use assay_node_comparison::{ComparedRow, METRIC_PREFIX, Pairing};
use assay_node_evaluations::EvalStatistics;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_query_http::{QueryOptions, rows_of};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::experiments::{ExperimentRecord, comparison_key};

/// Upper bound of the rows of one experiment. Larger experiments have no statistics.
const ROWS_MAX: usize = 20_000;
/// Upper bound of the bytes of the rows of one experiment, without their contents.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the scores and of the metrics with statistics.
const NUMBERS_MAX: usize = 200;
/// Metrics that are points in time.
const MOMENTS: [&str; 2] = ["start", "end"];

/// Statistics of the scores and metrics of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentStatistics {
    pub scores: Vec<EvalStatistics>,
    pub metrics: Vec<EvalStatistics>,
    /// Rows of the experiment, each a trial.
    pub rows: u64,
    pub errors: u64,
    /// Data of which the base has no row, and data of the base without a row here.
    pub only_here: u64,
    pub only_base: u64,
    /// Whether an experiment has too many rows for statistics.
    pub is_omitted: bool,
}

impl ExperimentStatistics {
    pub async fn of(
        caller: &Caller,
        experiment: &ExperimentRecord,
        base: Option<&ExperimentRecord>,
    ) -> Result<ExperimentStatistics, Refusal> {
        let key = comparison_key(caller, experiment.project.id).await?;
        let omitted = ExperimentStatistics { is_omitted: true, ..ExperimentStatistics::default() };
        let Some(mut rows) = light_rows(caller, experiment.id, &key, 0).await? else { return Ok(omitted) };
        if let Some(base) = base {
            match light_rows(caller, base.id, &key, 1).await? {
                Some(more) => rows.extend(more),
                None => return Ok(omitted),
            }
        }
        let is_compared = base.is_some();
        // Many rows would block the other requests of this thread.
        let found = tokio::task::spawn_blocking(move || statistics_of(&rows, is_compared));
        found.await.map_err(Refusal::internal)
    }

    pub fn json(&self) -> Value {
        if self.is_omitted {
            return Value::Null;
        }
        json!({"scores": self.scores, "metrics": self.metrics, "rows": self.rows, "errors": self.errors,
            "only_here": self.only_here, "only_base": self.only_base})
    }
}

fn statistics_of(rows: &[ComparedRow], is_compared: bool) -> ExperimentStatistics {
    let own = || rows.iter().filter(|row| row.experiment == 0);
    let scores: BTreeSet<&str> = own().flat_map(|row| row.scores.keys().map(String::as_str)).collect();
    let metrics: BTreeSet<&str> = own().flat_map(|row| row.metrics.keys().map(String::as_str)).collect();
    let base = is_compared.then_some(1);
    let pairing = Pairing::of(rows, if is_compared { 2 } else { 1 });
    let one = |name: &str| EvalStatistics::new(&pairing, 0, base, name);
    let metrics = metrics.into_iter().filter(|name| !MOMENTS.contains(name)).take(NUMBERS_MAX);
    let only = |here: usize, there: usize| {
        let pairs = pairing.pairs().iter().filter(|_| is_compared);
        pairs.filter(|pair| !pair.cells[here].is_empty() && pair.cells[there].is_empty()).count() as u64
    };
    ExperimentStatistics {
        scores: scores.into_iter().take(NUMBERS_MAX).map(one).collect(),
        metrics: metrics.map(|name| one(&format!("{METRIC_PREFIX}{name}"))).collect(),
        rows: own().count() as u64,
        errors: own().filter(|row| row.has_error).count() as u64,
        only_here: only(0, 1),
        only_base: only(1, 0),
        is_omitted: false,
    }
}

/// Returns the traces of an experiment without their contents, or `None` if there are too many.
async fn light_rows(
    caller: &Caller,
    id: Uuid,
    key: &str,
    experiment: usize,
) -> Result<Option<Vec<ComparedRow>>, Refusal> {
    let column = |alias: &str, expression: &str| json!({"alias": alias, "expr": {"btql": expression}});
    let query = json!({
        "select": [column("root_span_id", "root_span_id"), column("scores", "scores"), column("metrics", "metrics"),
            column("failed", "error is not null"), column("comparison_key", "comparison_key")],
        "from": {"op": "function", "name": {"op": "ident", "name": ["experiment"]},
            "args": [{"op": "literal", "value": id}], "shape": "summary"},
        "comparison_key": {"btql": key},
        "limit": ROWS_MAX + 1,
    });
    match rows_of(caller, query, &QueryOptions::newest(ROWS_BYTES_MAX)).await {
        Ok(rows) if rows.len() > ROWS_MAX => Ok(None),
        Ok(rows) => Ok(Some(rows.iter().map(|row| ComparedRow::read(experiment, row)).collect())),
        Err(refusal) if refusal.kind == ErrorKind::TooLarge => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(experiment: usize, key: &str, score: f64) -> ComparedRow {
        let row = json!({"comparison_key": key, "root_span_id": "r", "scores": {"s": score},
            "metrics": {"duration": 1.0, "start": 5.0}});
        ComparedRow::read(experiment, &row)
    }

    #[test]
    fn numbers_of_both_experiments_are_compared() {
        let rows = [row(0, "a", 1.0), row(0, "a", 0.0), row(0, "b", 1.0), row(1, "a", 0.0), row(1, "c", 0.0)];
        let found = statistics_of(&rows, true);
        assert_eq!((found.rows, found.only_here, found.only_base, found.errors), (3, 1, 1, 0));
        let names: Vec<&str> = found.scores.iter().chain(&found.metrics).map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["s", "metrics.duration"]);
        assert_eq!(found.scores[0].disagreeing, 1);
        assert!(found.scores[0].change.is_some());
        assert_eq!(statistics_of(&rows[..3], false).scores[0].change, None);
    }
}

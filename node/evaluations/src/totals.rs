//! Totals of a run, which do not depend on the order in which its cases end.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// Upper bound of the names of scores in the totals. Scores of further names are only in the rows.
pub const TOTAL_NAMES_MAX: usize = 1_000;
/// Binary places of a sum. Whole numbers give the same sum in any order.
const PLACES: f64 = (1_u64 << 60) as f64;

/// Contribution of one case to the totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseTally {
    pub has_error: bool,
    /// Scorers and classifiers that failed.
    pub scorer_errors: u64,
    pub scores: Vec<(String, f64)>,
}

/// Sum of one score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreTotal {
    pub count: u64,
    sum: u128,
}

impl ScoreTotal {
    fn add(&mut self, score: f64) {
        self.count += 1;
        self.sum += (score.clamp(0.0, 1.0) * PLACES) as u128;
    }

    /// Returns the mean, or `None` if there is no score.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / PLACES / self.count as f64)
    }
}

impl Serialize for ScoreTotal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Map::new();
        members.insert("count".to_owned(), self.count.into());
        members.insert("mean".to_owned(), self.mean().into());
        members.serialize(serializer)
    }
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EvalTotals {
    /// Cases of the plan.
    pub cases: u64,
    pub written: u64,
    /// Written cases with an error.
    pub errors: u64,
    pub scorer_errors: u64,
    /// Cases whose rows could not be written.
    pub unwritten: u64,
    /// Spans below the tasks and scorers of this process that exceeded the limit of their case.
    pub omitted_spans: u64,
    pub scores: BTreeMap<String, ScoreTotal>,
}

impl CaseTally {
    /// Returns the contribution of a case from its root row.
    pub fn of_root(row: &Map<String, Value>) -> CaseTally {
        let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        let metadata = members(row.get("metadata"));
        let failed = ["scorer_errors", "classifier_errors"].map(|name| members(metadata.get(name)).len() as u64);
        let scores = members(row.get("scores"));
        CaseTally {
            has_error: row.get("error").is_some_and(|error| !error.is_null()),
            scorer_errors: failed.iter().sum(),
            scores: scores.into_iter().filter_map(|(name, score)| Some((name, score.as_f64()?))).collect(),
        }
    }
}

impl EvalTotals {
    pub(crate) fn add(&mut self, tally: &CaseTally) {
        self.written += 1;
        self.errors += u64::from(tally.has_error);
        self.scorer_errors += tally.scorer_errors;
        for (name, score) in &tally.scores {
            if self.scores.len() < TOTAL_NAMES_MAX || self.scores.contains_key(name) {
                self.scores.entry(name.clone()).or_default().add(*score);
            }
        }
    }

    /// Returns the cases that have ended, written or not.
    pub fn done(&self) -> u64 {
        self.written + self.unwritten
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_root_row_counts_with_its_scores_and_errors() {
        let row = json!({"error": "x", "scores": {"a": 0.5, "b": null},
            "metadata": {"scorer_errors": {"f": "1", "g": "2"}, "classifier_errors": {"h": "3"}}});
        let tally = CaseTally::of_root(row.as_object().expect("an object"));
        assert_eq!(tally, CaseTally { has_error: true, scorer_errors: 3, scores: vec![("a".into(), 0.5)] });
        let row = json!({"error": null, "scores": null, "metadata": null});
        assert_eq!(CaseTally::of_root(row.as_object().expect("an object")), CaseTally::default());
    }

    #[test]
    fn totals_have_a_bound_of_names() {
        let mut totals = EvalTotals::default();
        for name in 0..=TOTAL_NAMES_MAX {
            totals.add(&CaseTally { scores: vec![(name.to_string(), 1.0)], ..CaseTally::default() });
        }
        assert_eq!((totals.scores.len(), totals.written), (TOTAL_NAMES_MAX, TOTAL_NAMES_MAX as u64 + 1));
    }

    #[test]
    fn totals_have_the_mean_of_a_score() {
        let mut totals = EvalTotals { cases: 2, ..EvalTotals::default() };
        totals.add(&CaseTally { scores: vec![("a".into(), 1.0)], ..CaseTally::default() });
        totals.add(&CaseTally { scores: vec![("a".into(), 0.5)], ..CaseTally::default() });
        assert_eq!(json!(totals)["scores"], json!({"a": {"count": 2, "mean": 0.75}}));
    }

    fn total<'s>(scores: impl Iterator<Item = &'s f64>) -> ScoreTotal {
        let mut total = ScoreTotal::default();
        scores.for_each(|score| total.add(*score));
        total
    }

    proptest! {
        #[test]
        fn the_order_of_cases_does_not_matter(scores in prop::collection::vec(0.0..=1.0_f64, 1..50)) {
            let (forward, backward) = (total(scores.iter()), total(scores.iter().rev()));
            prop_assert_eq!(forward, backward);
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            prop_assert!((forward.mean().expect("a mean") - mean).abs() < 1e-12);
        }
    }
}

//! Summaries of experiments: as a whole, in pairs with the base, and by group.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::pairing::{Pairing, SAME_WITHIN};
use crate::row::{ComparedRow, METRIC_PREFIX};
use crate::statistics::{Interval, Sample};

/// Statistics of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreSummary {
    pub mean: Option<f64>,
    pub count: usize,
    pub deviation: Option<f64>,
}

/// Statistics of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    pub mean: Option<f64>,
    pub count: usize,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
}

/// Statistics of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentSummary {
    pub rows: usize,
    pub errors: usize,
    pub scores: BTreeMap<String, ScoreSummary>,
    pub metrics: BTreeMap<String, MetricSummary>,
    pub distributions: BTreeMap<String, [u64; 11]>,
}

/// Change of one score or metric over all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedChange {
    pub pairs: usize,
    pub up: usize,
    pub down: usize,
    pub same: usize,
    /// Mean of the differences.
    pub delta: Option<f64>,
    pub interval: Option<Interval>,
}

/// Comparison of one experiment with the base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonSummary {
    pub scores: BTreeMap<String, PairedChange>,
    pub metrics: BTreeMap<String, PairedChange>,
    pub new: usize,
    pub missing: usize,
}

/// Statistics of the rows with one group value, by experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSummary<'r> {
    /// Group value as compact JSON.
    pub value: &'r str,
    pub experiments: Vec<ExperimentSummary>,
}

/// Returns the statistics of the rows of one experiment.
pub fn summary_of<'r>(rows: impl Iterator<Item = &'r ComparedRow> + Clone) -> ExperimentSummary {
    let names = |of: fn(&ComparedRow) -> &crate::Measured| -> BTreeSet<String> {
        rows.clone().flat_map(|row| of(row).keys().cloned()).collect()
    };
    let mut summary = ExperimentSummary {
        rows: rows.clone().count(),
        errors: rows.clone().filter(|row| row.has_error).count(),
        scores: BTreeMap::new(),
        metrics: BTreeMap::new(),
        distributions: BTreeMap::new(),
    };
    for name in names(|row| &row.scores) {
        let sample: Sample = rows.clone().filter_map(|row| row.scores.get(&name).copied()).collect();
        let score = ScoreSummary { mean: sample.mean(), count: sample.count(), deviation: sample.deviation() };
        summary.distributions.insert(name.clone(), sample.distribution());
        summary.scores.insert(name, score);
    }
    for name in names(|row| &row.metrics) {
        let sample: Sample = rows.clone().filter_map(|row| row.metrics.get(&name).copied()).collect();
        let metric = MetricSummary {
            mean: sample.mean(),
            count: sample.count(),
            p50: sample.percentile(0.5),
            p95: sample.percentile(0.95),
        };
        summary.metrics.insert(name, metric);
    }
    summary
}

impl ComparisonSummary {
    /// Compares an experiment with the base, pair by pair.
    pub fn of(pairing: &Pairing<'_>, experiment: usize, base: usize) -> ComparisonSummary {
        let both = || [experiment, base].into_iter();
        let rows =
            || pairing.pairs().iter().flat_map(|pair| both().flat_map(|which| pair.cells[which].iter().copied()));
        let scores: BTreeSet<&str> = rows().flat_map(|row| row.scores.keys().map(String::as_str)).collect();
        let metrics: BTreeSet<&str> = rows().flat_map(|row| row.metrics.keys().map(String::as_str)).collect();
        let change = |name: &str| PairedChange::of(pairing, (experiment, base), name);
        let is_only_in = |here: usize, there: usize| {
            pairing.pairs().iter().filter(|pair| !pair.cells[here].is_empty() && pair.cells[there].is_empty()).count()
        };
        ComparisonSummary {
            scores: scores.into_iter().map(|name| (name.to_owned(), change(name))).collect(),
            metrics: metrics
                .into_iter()
                .map(|name| (name.to_owned(), change(&format!("{METRIC_PREFIX}{name}"))))
                .collect(),
            new: is_only_in(experiment, base),
            missing: is_only_in(base, experiment),
        }
    }
}

impl PairedChange {
    fn of(pairing: &Pairing<'_>, (experiment, base): (usize, usize), name: &str) -> PairedChange {
        let deltas = pairing.pairs().iter().filter_map(|pair| pair.delta(experiment, base, name));
        let (mut up, mut down, mut same) = (0, 0, 0);
        let sample: Sample = deltas
            .inspect(|delta| match delta {
                delta if *delta > SAME_WITHIN => up += 1,
                delta if *delta < -SAME_WITHIN => down += 1,
                _ => same += 1,
            })
            .collect();
        let (pairs, delta, interval) = (sample.count(), sample.mean(), sample.interval());
        PairedChange { pairs, up, down, same, delta, interval }
    }
}

/// Returns at most `groups_max` groups of the rows, largest first.
///
/// Groups of equal size are in the order of their values.
pub fn groups(rows: &[ComparedRow], experiments: usize, groups_max: usize) -> Vec<GroupSummary<'_>> {
    let mut by_value: BTreeMap<&str, Vec<Vec<&ComparedRow>>> = BTreeMap::new();
    for row in rows {
        by_value.entry(&row.group).or_insert_with(|| vec![Vec::new(); experiments])[row.experiment].push(row);
    }
    let size = |cells: &[Vec<&ComparedRow>]| cells.iter().map(Vec::len).sum::<usize>();
    let mut by_size: Vec<(&str, Vec<Vec<&ComparedRow>>)> = by_value.into_iter().collect();
    // The sort is stable, so equal groups stay in the order of their values.
    by_size.sort_by_key(|(_, cells)| std::cmp::Reverse(size(cells)));
    by_size
        .into_iter()
        .take(groups_max)
        .map(|(value, cells)| GroupSummary {
            value,
            experiments: cells.iter().map(|rows| summary_of(rows.iter().copied())).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(experiment: usize, key: &str, score: f64, group: &str) -> ComparedRow {
        let (scores, metrics) = ([("s".to_owned(), score)].into(), [("duration".to_owned(), score * 2.0)].into());
        ComparedRow { experiment, key: key.into(), scores, metrics, group: group.into(), ..ComparedRow::default() }
    }

    fn rows() -> Vec<ComparedRow> {
        vec![
            row(0, "a", 1.0, "1"),
            row(0, "b", 0.0, "2"),
            row(0, "c", 0.5, "1"),
            row(0, "d", 0.5, "1"),
            row(1, "a", 0.0, "1"),
            row(1, "b", 1.0, "2"),
            row(1, "c", 0.5, "1"),
        ]
    }

    #[test]
    fn an_experiment_has_its_figures() {
        let rows = rows();
        let found = summary_of(rows.iter().filter(|row| row.experiment == 0));
        assert_eq!((found.rows, found.errors, found.scores["s"].mean, found.scores["s"].count), (4, 0, Some(0.5), 4));
        assert_eq!((found.metrics["duration"].p50, found.metrics["duration"].p95), (Some(1.0), Some(2.0)));
        assert_eq!(found.distributions["s"], [1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn experiments_are_compared_pair_by_pair() {
        let rows = rows();
        let found = ComparisonSummary::of(&Pairing::of(&rows, 2), 0, 1);
        let score = &found.scores["s"];
        assert_eq!((score.pairs, score.up, score.down, score.same, score.delta), (3, 1, 1, 1, Some(0.0)));
        assert_eq!((found.new, found.missing), (1, 0));
        assert!(score.interval.is_some_and(|Interval(low, high)| low < 0.0 && high > 0.0));
        assert_eq!(found.metrics["duration"].pairs, 3);
    }

    #[test]
    fn groups_come_by_their_size() {
        let rows = rows();
        let found = groups(&rows, 2, 9);
        assert_eq!(found.iter().map(|group| group.value).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(found[0].experiments.iter().map(|of| of.rows).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(groups(&rows, 2, 1).len(), 1);
    }
}

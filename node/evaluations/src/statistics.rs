//! Statistics of one score of an experiment, against a base.
//!
//! The trials of a datum count by their mean, because they are not independent of each other. The differences of the
//! data that both experiments have are a sample, and the interval is that of its mean. It is Student's interval for
//! paired samples, which has a closed form and is adequate for few rows. A bootstrap would need randomness, and is too
//! narrow for few rows.

mod settle;
#[cfg(test)]
mod tests;

use assay_node_comparison::{Interval, METRIC_PREFIX, Pair, Pairing, Sample};
use serde::Serialize;

use settle::ObservedChange;
pub use settle::{ROWS_TO_SETTLE_MAX, RowsToSettle};

/// Difference up to which two numbers count as equal.
const SAME_WITHIN: f64 = 1e-9;
/// Data that have to change for a verdict.
///
/// Even if all of them change in one direction, fewer changes happen by chance with a probability above 5 %.
/// The sign test gives 6.25 % for five and 3.1 % for six.
pub const CHANGED_ROWS_MIN: usize = 6;
/// Upper bound of the listed data whose trials disagree.
pub const DISAGREEMENTS_MAX: usize = 20;
/// Chance of a wrong verdict that the interval allows.
const ERROR_CHANCE: f64 = 0.05;

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalVerdict {
    /// The number went up, which is better for a score.
    Up,
    /// The number went down, which is worse for a score.
    Down,
    Undecided,
}

/// Datum whose trials in the experiment have different values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialDisagreement {
    /// Comparison key of the datum.
    pub key: String,
    pub trials: usize,
    pub low: f64,
    pub high: f64,
}

/// Change of a score or metric against a base, over the data that have it in both experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalChange {
    pub rows: usize,
    pub up: usize,
    pub down: usize,
    pub same: usize,
    /// Mean of the base over these data.
    pub base_mean: f64,
    /// Mean of the differences.
    pub difference: f64,
    /// Interval of the mean difference at 95 %, or `None` if the data are too few for one.
    pub interval: Option<Interval>,
    pub verdict: EvalVerdict,
    pub rows_to_settle: RowsToSettle,
}

/// Statistics of one score or metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalStatistics {
    /// Name of a score, or of a metric with [`METRIC_PREFIX`].
    pub name: String,
    /// Data of the experiment with the number.
    pub rows: usize,
    /// Mean over the compared data, or over all data without a base.
    pub mean: Option<f64>,
    /// Data of both experiments that have the number in only one of them, so that they are not compared.
    pub incomplete: usize,
    pub change: Option<EvalChange>,
    /// Count of the data whose trials have different values. It is 0 for metrics.
    pub disagreeing: usize,
    /// Some of these data, with the largest range first.
    pub disagreements: Vec<TrialDisagreement>,
}

impl EvalStatistics {
    /// Returns the statistics of the score or metric `name` of an experiment in a pairing.
    pub fn new(pairing: &Pairing<'_>, experiment: usize, base: Option<usize>, name: &str) -> EvalStatistics {
        let mut compared = Vec::new();
        let (mut means, mut incomplete) = (Vec::new(), 0);
        let mut disagreements = Vec::new();
        let is_score = !name.starts_with(METRIC_PREFIX);
        for pair in pairing.pairs() {
            let mean = pair.mean(experiment, name);
            means.extend(mean);
            // Metrics such as durations are never the same twice.
            if is_score {
                disagreements.extend(disagreement(pair, experiment, name));
            }
            let Some(base) = base.filter(|base| !pair.cells[*base].is_empty()) else { continue };
            match (mean, pair.mean(base, name)) {
                (Some(mean), Some(before)) => compared.push((mean, before)),
                (None, None) => {}
                _ => incomplete += usize::from(!pair.cells[experiment].is_empty()),
            }
        }
        let change = EvalChange::new(&compared, is_score);
        let mean = match change {
            Some(_) => compared.iter().map(|(mean, _)| *mean).collect::<Sample>().mean(),
            None => means.iter().copied().collect::<Sample>().mean(),
        };
        let disagreeing = disagreements.len();
        // The sort is stable, so equal ranges stay in the order of their keys.
        disagreements.sort_by(|a, b| (b.high - b.low).total_cmp(&(a.high - a.low)));
        disagreements.truncate(DISAGREEMENTS_MAX);
        let rows = means.len();
        EvalStatistics { name: name.to_owned(), rows, mean, incomplete, change, disagreeing, disagreements }
    }
}

impl EvalStatistics {
    pub fn is_metric(&self) -> bool {
        self.name.starts_with(METRIC_PREFIX)
    }

    pub fn verdict(&self) -> Option<EvalVerdict> {
        self.change.as_ref().map(|change| change.verdict)
    }
}

impl EvalChange {
    /// Returns the change over pairs of a value and the base's value, or `None` if there are no pairs.
    fn new(pairs: &[(f64, f64)], is_score: bool) -> Option<EvalChange> {
        let differences: Sample = pairs.iter().map(|(value, before)| value - before).collect();
        let base: Sample = pairs.iter().map(|(_, before)| *before).collect();
        let (difference, base_mean) = (differences.mean()?, base.mean()?);
        let count = |is_in: fn(f64) -> bool| pairs.iter().filter(|(value, before)| is_in(value - before)).count();
        let (up, down) = (count(|by| by > SAME_WITHIN), count(|by| by < -SAME_WITHIN));
        let deviation = differences.deviation();
        let interval = match deviation {
            Some(deviation) if deviation > SAME_WITHIN => differences.interval().map(|found| bounded(found, is_score)),
            _ if is_score => Some(uniform_interval(difference, pairs.len())),
            // Nothing bounds the differences of metrics, so that there is no better interval.
            _ => differences.interval(),
        };
        let verdict = match interval {
            Some(Interval(low, _)) if low > SAME_WITHIN && up + down >= CHANGED_ROWS_MIN => EvalVerdict::Up,
            Some(Interval(_, high)) if high < -SAME_WITHIN && up + down >= CHANGED_ROWS_MIN => EvalVerdict::Down,
            _ => EvalVerdict::Undecided,
        };
        let rows_to_settle = match verdict {
            EvalVerdict::Undecided => {
                let observed = ObservedChange {
                    rows: pairs.len(),
                    changed: up + down,
                    difference,
                    deviation: deviation.unwrap_or_default(),
                    is_score,
                };
                RowsToSettle::new(&observed)
            }
            EvalVerdict::Up | EvalVerdict::Down => RowsToSettle::Settled,
        };
        let (rows, same) = (pairs.len(), pairs.len() - up - down);
        Some(EvalChange { rows, up, down, same, base_mean, difference, interval, verdict, rows_to_settle })
    }
}

/// Returns an interval within the possible differences of two scores.
fn bounded(interval: Interval, is_score: bool) -> Interval {
    let Interval(low, high) = interval;
    if is_score { Interval(low.max(-1.0), high.min(1.0)) } else { interval }
}

/// Returns the interval of the mean of `count` scores' differences that are all equal.
///
/// Their deviation is zero, and Student's interval would have no width. If a share of all rows differs from them, it
/// stays unseen with a chance of `(1 - share) ^ count`. At 95 %, the share is at most about `3 / count`. Such rows
/// differ by 1 at most.
fn uniform_interval(difference: f64, count: usize) -> Interval {
    let share = 1.0 - ERROR_CHANCE.powf(1.0 / count as f64);
    Interval(difference - share * (difference + 1.0), difference + share * (1.0 - difference))
}

fn disagreement(pair: &Pair<'_>, experiment: usize, name: &str) -> Option<TrialDisagreement> {
    let values = || pair.cells[experiment].iter().filter_map(|row| row.value(name));
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let found = TrialDisagreement { key: pair.key.to_owned(), trials: values().count(), low, high };
    (high - low > SAME_WITHIN).then_some(found)
}

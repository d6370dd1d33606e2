//! Tests of statistics, against values computed independently.

use assay_node_comparison::ComparedRow;

use super::*;

fn row(experiment: usize, key: impl ToString, value: Option<f64>) -> ComparedRow {
    let measured: assay_node_comparison::Measured = value.into_iter().map(|value| ("s".to_owned(), value)).collect();
    ComparedRow {
        experiment,
        key: key.to_string(),
        scores: measured.clone(),
        metrics: measured,
        ..ComparedRow::default()
    }
}

fn statistics(rows: &[ComparedRow], name: &str) -> EvalStatistics {
    EvalStatistics::new(&Pairing::of(rows, 2), 0, Some(1), name)
}

/// Returns the change of a score by these differences to a base of 0.3.
fn change(differences: &[f64]) -> EvalChange {
    let pair = |(key, by): (usize, &f64)| [row(0, key, Some(0.3 + by)), row(1, key, Some(0.3))];
    let rows: Vec<ComparedRow> = differences.iter().enumerate().flat_map(pair).collect();
    statistics(&rows, "s").change.expect("a change")
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
}

#[track_caller]
fn assert_interval(change: &EvalChange, low: f64, high: f64) {
    let Interval(found_low, found_high) = change.interval.expect("an interval");
    assert_near(found_low, low);
    assert_near(found_high, high);
}

const GAINS: [f64; 12] = [0.1, 0.2, 0.15, 0.05, 0.3, -0.05, 0.1, 0.2, 0.0, 0.25, 0.1, 0.15];

#[test]
fn a_change_whose_interval_excludes_zero_is_decided() {
    let up = change(&GAINS);
    assert_eq!((up.rows, up.up, up.down, up.same, up.verdict), (12, 10, 1, 1, EvalVerdict::Up));
    assert_near(up.difference, 0.129_166_667);
    assert_near(up.base_mean, 0.3);
    assert_interval(&up, 0.064_970_833, 0.193_362_500);
    assert_eq!(up.rows_to_settle, RowsToSettle::Settled);
    let down = change(&GAINS.map(|by| -by));
    assert_eq!(down.verdict, EvalVerdict::Down);
    assert_interval(&down, -0.193_362_500, -0.064_970_833);
}

#[test]
fn an_undecided_change_tells_how_many_rows_would_settle_it() {
    let found = change(&[1.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(found.verdict, EvalVerdict::Undecided);
    assert_interval(&found, -0.306_041_426, 0.506_041_426);
    // A total of 255 for a difference of 0.1 with a deviation of 0.568.
    assert_eq!(found.rows_to_settle, RowsToSettle::About(245));
    let found = change(&[0.1, -0.1, 0.2, -0.3, 0.25, 0.05, -0.1, 0.02]);
    assert_eq!(found.rows_to_settle, RowsToSettle::About(1109));
}

#[test]
fn sample_sizes_are_those_of_tables() {
    // Totals of a paired test with a chance of 80 %, by the difference in units of the deviation.
    for (effect, total) in [(0.2, 199), (0.5, 34), (1.0, 10)] {
        let observed = ObservedChange { rows: 5, changed: 5, difference: effect, deviation: 1.0, is_score: true };
        assert_eq!(RowsToSettle::new(&observed), RowsToSettle::About(total - 5), "{effect}");
    }
    let observed = ObservedChange { rows: 50, changed: 40, difference: -0.001, deviation: 0.5, is_score: true };
    assert_eq!(RowsToSettle::new(&observed), RowsToSettle::TooMany);
}

#[test]
fn five_changes_decide_nothing_even_in_one_direction() {
    let found = change(&[0.4, 0.3, 0.5, 0.2, 0.6, 0.0, 0.0, 0.0]);
    assert_interval(&found, 0.050_121_019, 0.449_878_981);
    assert_eq!((found.verdict, found.rows_to_settle), (EvalVerdict::Undecided, RowsToSettle::About(2)));
    let found = change(&[0.4, 0.3, 0.5, 0.2, 0.6, 0.1, 0.0, 0.0]);
    assert_eq!(found.verdict, EvalVerdict::Up);
}

#[test]
fn equal_scores_have_an_interval_of_some_width() {
    // A share of 13.9 % of other rows stays unseen in 20 rows with a chance of 5 %.
    let found = change(&[0.0; 20]);
    assert_interval(&found, -0.139_108_341, 0.139_108_341);
    assert_eq!((found.verdict, found.rows_to_settle), (EvalVerdict::Undecided, RowsToSettle::NotByMoreRows));
    // A total of 32 rows.
    assert_eq!(change(&[0.1; 20]).rows_to_settle, RowsToSettle::About(12));
    let rows: Vec<ComparedRow> = (0..6).flat_map(|key| [row(0, key, Some(1.0)), row(1, key, Some(0.0))]).collect();
    let found = statistics(&rows, "s").change.expect("a change");
    assert_interval(&found, 1.0 - 2.0 * 0.393_037_769, 1.0);
    assert_eq!(found.verdict, EvalVerdict::Up);
}

#[test]
fn differences_that_cancel_are_not_settled_by_more_rows() {
    let found = change(&[0.5, -0.5, 0.25, -0.25]);
    assert_near(found.difference, 0.0);
    assert_eq!(found.rows_to_settle, RowsToSettle::NotByMoreRows);
}

#[test]
fn one_row_decides_nothing() {
    let found = change(&[0.7]);
    assert_eq!(found.verdict, EvalVerdict::Undecided);
    assert!(found.interval.is_some_and(|Interval(low, high)| low < 0.0 && high > 0.7));
    let metric = statistics(&[row(0, "a", Some(7.0)), row(1, "a", Some(5.0))], "metrics.s").change.expect("a change");
    assert_eq!((metric.difference, metric.interval), (2.0, None));
}

#[test]
fn metrics_have_no_bound() {
    let rows: Vec<ComparedRow> =
        (0..8).flat_map(|key| [row(0, key, Some(900.0 + f64::from(key))), row(1, key, Some(1000.0))]).collect();
    let found = statistics(&rows, "metrics.s");
    assert!(found.is_metric());
    let change = found.change.expect("a change");
    assert_eq!((change.difference, change.verdict), (-96.5, EvalVerdict::Down));
}

#[test]
fn trials_count_by_their_mean() {
    let rows = [
        row(0, "a", Some(1.0)),
        row(0, "a", Some(0.0)),
        row(0, "a", Some(0.0)),
        row(0, "a", Some(0.0)),
        row(1, "a", Some(0.5)),
        row(0, "b", Some(1.0)),
        row(1, "b", Some(0.5)),
    ];
    let found = statistics(&rows, "s");
    // The mean of all five trials would be 0.4.
    assert_eq!((found.rows, found.mean), (2, Some(0.625)));
    assert_near(found.change.expect("a change").difference, 0.125);
}

#[test]
fn data_without_a_partner_or_a_score_are_not_compared() {
    let rows = [
        row(0, "both", Some(1.0)),
        row(1, "both", Some(0.0)),
        row(0, "new", Some(0.0)),
        row(1, "gone", Some(0.0)),
        row(0, "failed", None),
        row(1, "failed", Some(1.0)),
        row(0, "no score", None),
        row(1, "no score", None),
    ];
    let found = statistics(&rows, "s");
    assert_eq!((found.rows, found.mean, found.incomplete), (2, Some(1.0), 1));
    assert_eq!(found.change.map(|change| change.rows), Some(1));
    let alone = EvalStatistics::new(&Pairing::of(&rows, 2), 0, None, "s");
    assert_eq!((alone.mean, alone.change, alone.incomplete), (Some(0.5), None, 0));
    let nothing = statistics(&rows, "other");
    assert_eq!((nothing.rows, nothing.mean, nothing.change), (0, None, None));
}

#[test]
fn data_whose_trials_disagree_are_listed_with_the_largest_range_first() {
    let mut rows = vec![row(0, "same", Some(0.5)), row(0, "same", Some(0.5)), row(0, "failed", None)];
    rows.extend([row(0, "b", Some(0.0)), row(0, "b", Some(1.0)), row(0, "b", None), row(1, "b", Some(1.0))]);
    rows.extend([row(0, "a", Some(0.5)), row(0, "a", Some(0.25)), row(0, "c", Some(1.0)), row(0, "c", Some(0.0))]);
    let found = statistics(&rows, "s");
    let keys: Vec<&str> = found.disagreements.iter().map(|row| row.key.as_str()).collect();
    assert_eq!((keys, found.disagreeing), (vec!["b", "c", "a"], 3));
    let first = TrialDisagreement { key: "b".into(), trials: 2, low: 0.0, high: 1.0 };
    assert_eq!(found.disagreements[0], first);
    let metric = statistics(&rows, "metrics.s");
    assert_eq!((metric.disagreements.len(), metric.disagreeing), (0, 0), "durations always differ");
    let many = |key: usize| [row(0, key, Some(0.0)), row(0, key, Some(1.0))];
    let rows: Vec<ComparedRow> = (0..=DISAGREEMENTS_MAX).flat_map(many).collect();
    let found = statistics(&rows, "s");
    assert_eq!((found.disagreements.len(), found.disagreeing), (DISAGREEMENTS_MAX, DISAGREEMENTS_MAX + 1));
}

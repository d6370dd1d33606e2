//! Tests of reports.

use std::collections::BTreeMap;

use assay_node_comparison::{ComparedRow, Pairing};

use super::*;
use crate::summary::{EvalMetricEntry, EvalSummary};

fn summary(base: Option<&str>) -> EvalSummary {
    let metric = EvalMetricEntry {
        name: "duration".into(),
        metric: 1.5,
        unit: "s".into(),
        diff: None,
        improvements: 0,
        regressions: 0,
    };
    EvalSummary {
        project_name: "p".into(),
        experiment_name: "new|one".into(),
        project_url: "https://a/p".into(),
        experiment_url: "https://a/p/new%7Cone".into(),
        comparison_experiment_name: base.map(str::to_owned),
        scores: None,
        metrics: Some(BTreeMap::from([("duration".to_owned(), metric)])),
    }
}

fn rows() -> Vec<ComparedRow> {
    let row = |experiment, key: usize, scores: &[(&str, f64)], duration| ComparedRow {
        experiment,
        key: format!("{{\"q\":{key}}}"),
        scores: scores.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect(),
        metrics: [("duration".to_owned(), duration)].into(),
        ..ComparedRow::default()
    };
    let mut rows = Vec::new();
    for key in 0..8 {
        let noise = if key % 2 == 0 { 0.1 } else { -0.1 };
        rows.push(row(0, key, &[("Exact", 0.9 + noise / 2.0), ("Style", 0.5 + noise), ("New", 1.0)], 1.5 + noise));
        rows.push(row(1, key, &[("Exact", 0.4), ("Style", 0.49)], 1.5));
    }
    rows.push(row(0, 0, &[("Exact", 0.0)], 1.6));
    rows.push(row(0, 9, &[("Exact", 0.5)], 1.6));
    rows
}

fn report(base: Option<&str>, end: EvalEnd) -> String {
    let (rows, summary) = (rows(), summary(base));
    let pairing = Pairing::of(&rows, 2);
    let of = |name: &str| EvalStatistics::new(&pairing, 0, base.map(|_| 1), name);
    let (scores, metrics) = ([of("Exact"), of("New"), of("Style")], [of("metrics.duration")]);
    let counts = EvalRowCounts { rows: 10, errors: 1, scorer_errors: 2, only_here: 1, ..EvalRowCounts::default() };
    let comparison_url = base.map(|_| "https://a/p/old");
    EvalReport { summary: &summary, comparison_url, counts, end, scores: &scores, metrics: &metrics }.to_markdown()
}

#[test]
fn a_report_compares_scores_and_metrics() {
    let expected = "\
## Evaluation [<code>new&#124;one</code>](https://a/p/new%7Cone)

**1 better, 0 worse, 1 undecided** compared with [<code>old</code>](https://a/p/old).

| score | mean | base | difference | 95 % interval | inputs | verdict |
|---|--:|--:|--:|--:|--:|---|
| <code>Exact</code> | 0.841 | 0.400 | +0.441 | +0.310 to +0.571 | 8 | better |
| <code>New</code> | 1.000 | - | - | - | 8 | not in both |
| <code>Style</code> | 0.500 | 0.490 | +0.010 | -0.079 to +0.099 | 8 | undecided: about 891 more inputs may settle it |

| metric | mean | base | difference | 95 % interval | inputs | verdict |
|---|--:|--:|--:|--:|--:|---|
| <code>duration</code> | 1.50 s | 1.50 s | 0.00 s | -0.09 to +0.09 | 8 | undecided: not to be settled by more inputs |

10 rows, 1 error, 2 failed scorers, 1 input not in the base.

Trials of these inputs disagree:

- <code>Exact</code>: 1 input: <code>&#123;&#34;q&#34;&#58;0&#125;</code> (0.000 to 0.950 in 2 trials)

Means and differences are over the inputs that both experiments have. Trials of an input count by their mean. Without a \
real change, a number is still called changed with a chance of up to 5 %.
";
    let found = report(Some("old"), EvalEnd::Completed);
    assert_eq!(found, expected);
    assert_eq!(report(Some("old"), EvalEnd::Completed), found);
}

#[test]
fn a_report_without_a_base_has_only_means() {
    let found = report(None, EvalEnd::Completed);
    assert!(found.contains("There is no experiment to compare with."));
    assert!(
        found.contains("| score | mean | inputs |\n|---|--:|--:|\n| <code>Exact</code> | 0.803 | 9 |\n"),
        "{found}"
    );
    assert!(!found.contains("chance of up to"));
}

#[test]
fn an_eval_that_ended_early_has_a_warning() {
    for (end, words) in [
        (EvalEnd::TimedOut, "**The eval exceeded its time limit"),
        (EvalEnd::Cancelled, "**The eval was cancelled"),
        (EvalEnd::WritesFailed, "**Rows could not be written"),
    ] {
        assert!(report(None, end).contains(words));
    }
    assert!(
        !report(None, EvalEnd::Completed).contains("eval was") && !report(None, EvalEnd::Completed).contains("limit")
    );
}

#[test]
fn the_longest_report_fits_in_a_comment() {
    let name = |index: usize| format!("{}{index}", "|".repeat(80));
    let mut rows = Vec::new();
    for key in 0..20 {
        for score in [0.0, 1.0] {
            let numbers: BTreeMap<String, f64> = (0..60).map(|index| (name(index), score)).collect();
            let key = format!("{key}{}", "<".repeat(80));
            let (scores, metrics) = (numbers.clone(), numbers.clone());
            rows.push(ComparedRow { experiment: 0, key: key.clone(), scores, metrics, ..ComparedRow::default() });
            let (scores, metrics) = (numbers.clone(), numbers);
            rows.push(ComparedRow { experiment: 1, key, scores, metrics, ..ComparedRow::default() });
        }
    }
    let pairing = Pairing::of(&rows, 2);
    let of = |name: String| EvalStatistics::new(&pairing, 0, Some(1), &name);
    let scores: Vec<EvalStatistics> = (0..60).map(|index| of(name(index))).collect();
    let metrics: Vec<EvalStatistics> = (0..60).map(|index| of(format!("metrics.{}", name(index)))).collect();
    let summary = summary(Some("old"));
    let report = EvalReport {
        summary: &summary,
        comparison_url: None,
        counts: EvalRowCounts::default(),
        end: EvalEnd::Completed,
        scores: &scores,
        metrics: &metrics,
    };
    let text = report.to_markdown();
    assert!(text.contains("\n30 further scores are in the experiment.\n"));
    assert!(text.contains("- 55 further scores\n"));
    // GitHub's limit of a comment.
    assert!(text.chars().count() < 65_536, "{}", text.len());
}

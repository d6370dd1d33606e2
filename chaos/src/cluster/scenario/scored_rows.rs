//! Checks of the rows of online scoring: each selected span has one result of each rule, no rule scores the spans of
//! scorers, and no minute has more runs than the cap and the calls under way.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Scorer of the rule that selects every span.
pub const EVERY: &str = "ExactMatch";
/// Scorer of the rule that selects half of the spans.
pub const HALF: &str = "Levenshtein";
/// Scorer of the rule with a cap on its runs.
pub const CAPPED: &str = "NumericDiff";
/// Runs that the cap allows in a minute.
pub const RUNS_PER_MINUTE: u64 = 100;
/// Calls under way when a minute begins: as many as a node runs for one log.
const UNDER_WAY_MAX: u64 = 32;
/// Shares of spans that a rule for half of them may select.
const HALF_SHARES: std::ops::RangeInclusive<f64> = 0.4..=0.6;
/// Number of spans from which the share says something.
const SHARE_SPANS_MIN: usize = 500;
const SECONDS_PER_MINUTE: f64 = 60.0;
const SCORER: &str = "scorer";

/// Rows of a log by their ids.
pub type LogRows = BTreeMap<String, Value>;

/// Counts of the results of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultCounts {
    pub spans: u64,
    /// Results by their scorers.
    pub results: BTreeMap<String, u64>,
}

/// Result of the checks of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub counts: ResultCounts,
    /// Results that may still come.
    pub missing: Vec<String>,
    /// Violations that no more time heals.
    pub findings: Vec<String>,
}

fn is_of_scorer(row: &Value) -> bool {
    row["span_attributes"]["purpose"] == SCORER
}

/// Checks a log against the ids of the spans that were written.
pub fn check(written: &BTreeSet<String>, rows: &LogRows) -> Checked {
    let mut checked = Checked::default();
    let mut results: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut minutes: BTreeMap<u64, u64> = BTreeMap::new();
    for (id, row) in rows {
        if !is_of_scorer(row) {
            if !written.contains(id) {
                checked.findings.push(format!("{id}: nobody wrote this span"));
            }
            continue;
        }
        let name = row["span_attributes"]["name"].as_str().unwrap_or_default();
        let parent = row["span_parents"][0].as_str().unwrap_or_default();
        *results.entry((name, parent)).or_default() += 1;
        *checked.counts.results.entry(name.to_owned()).or_default() += 1;
        if !written.contains(parent) {
            checked.findings.push(format!("{id}: {name} scored {parent}, which is no span of a client"));
        }
        if !row["error"].is_null() {
            checked.findings.push(format!("{id}: {name} of {parent} failed: {}", row["error"]));
        }
        if name == CAPPED {
            let minute = row["metrics"]["start"].as_f64().unwrap_or_default() / SECONDS_PER_MINUTE;
            *minutes.entry(minute as u64).or_default() += 1;
        }
    }
    for ((name, parent), count) in results.iter().filter(|(_, count)| **count > 1) {
        checked.findings.push(format!("{parent}: {count} results of {name}"));
    }
    for (minute, runs) in minutes.iter().filter(|(_, runs)| **runs > RUNS_PER_MINUTE + UNDER_WAY_MAX) {
        checked.findings.push(format!("{CAPPED}: {runs} runs in minute {minute}; the cap is {RUNS_PER_MINUTE}"));
    }
    for id in written {
        checked.counts.spans += 1;
        match rows.get(id) {
            Some(row) => check_span(&mut checked, (id, row), &|name| results.contains_key(&(name, id.as_str()))),
            None => checked.findings.push(format!("{id}: the span is lost")),
        }
    }
    check_share(&mut checked);
    checked
}

/// Compares the scores of a span with the results that there are.
fn check_span(checked: &mut Checked, (id, row): (&str, &Value), has_result: &dyn Fn(&str) -> bool) {
    if !has_result(EVERY) {
        checked.missing.push(format!("{id}: no result of {EVERY}"));
    }
    for name in [EVERY, HALF, CAPPED] {
        let score = &row["scores"][name];
        if score.is_number() != has_result(name) {
            checked.findings.push(format!("{id}: the score {name} is {score}, and its result is another"));
        }
    }
    let expected = f64::from(u8::from(row["output"] == row["expected"]));
    if row["scores"][EVERY].as_f64().is_some_and(|score| score.total_cmp(&expected).is_ne()) {
        checked.findings.push(format!("{id}: the score {EVERY} is {}, not {expected}", row["scores"][EVERY]));
    }
}

fn check_share(checked: &mut Checked) {
    let results = checked.counts.results.get(HALF).copied().unwrap_or_default();
    let share = results as f64 / checked.counts.spans.max(1) as f64;
    if checked.counts.spans >= SHARE_SPANS_MIN as u64 && !HALF_SHARES.contains(&share) {
        checked.missing.push(format!("{HALF}: {results} of {} spans", checked.counts.spans));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn span(id: &str, scores: Value) -> (String, Value) {
        (id.to_owned(), json!({"id": id, "output": 1, "expected": 1, "scores": scores}))
    }

    fn result(id: &str, name: &str, parent: &str, start: f64) -> (String, Value) {
        let attributes = json!({"name": name, "purpose": "scorer"});
        let row = json!({"id": id, "span_parents": [parent], "span_attributes": attributes, "error": null,
            "metrics": {"start": start}});
        (id.to_owned(), row)
    }

    fn log() -> (BTreeSet<String>, LogRows) {
        let rows = [
            span("a", json!({"ExactMatch": 1.0, "Levenshtein": 1.0})),
            span("b", json!({"ExactMatch": 1.0})),
            result("r1", EVERY, "a", 1.0),
            result("r2", HALF, "a", 1.0),
            result("r3", EVERY, "b", 1.0),
        ];
        (["a", "b"].map(str::to_owned).into(), rows.into())
    }

    fn found(written: &BTreeSet<String>, rows: &LogRows) -> Vec<String> {
        check(written, rows).findings
    }

    #[test]
    fn a_log_with_one_result_of_each_rule_is_correct() {
        let (written, rows) = log();
        let checked = check(&written, &rows);
        assert_eq!((checked.findings, checked.missing), (Vec::<String>::new(), Vec::<String>::new()));
        assert_eq!(checked.counts.results, BTreeMap::from([(EVERY.to_owned(), 2), (HALF.to_owned(), 1)]));
    }

    #[test]
    fn a_second_result_a_scored_scorer_and_a_lost_span_are_findings() {
        let (written, rows) = log();
        let with = |row: (String, Value)| rows.clone().into_iter().chain([row]).collect::<LogRows>();
        assert_eq!(found(&written, &with(result("r4", EVERY, "a", 1.0))), ["a: 2 results of ExactMatch"]);
        let scored = found(&written, &with(result("r4", EVERY, "r1", 1.0)));
        assert_eq!(scored, ["r4: ExactMatch scored r1, which is no span of a client"]);
        let mut lost = rows.clone();
        lost.remove("b");
        assert_eq!(found(&written, &lost).last().map(String::as_str), Some("b: the span is lost"));
        assert_eq!(found(&written, &with(span("c", json!({})))), ["c: nobody wrote this span"]);
    }

    #[test]
    fn scores_and_results_belong_together() {
        let (written, mut rows) = log();
        rows.remove("r2");
        assert_eq!(found(&written, &rows), ["a: the score Levenshtein is 1.0, and its result is another"]);
        let (written, mut rows) = log();
        rows.extend([span("b", json!({"ExactMatch": 0.0}))]);
        assert_eq!(found(&written, &rows), ["b: the score ExactMatch is 0.0, not 1"]);
        let (written, mut rows) = log();
        rows.extend([span("b", json!({}))]);
        rows.remove("r3");
        assert_eq!(check(&written, &rows).missing, ["b: no result of ExactMatch"]);
    }

    #[test]
    fn a_minute_above_the_cap_is_a_finding() {
        let runs = |count: u64| -> (BTreeSet<String>, LogRows) {
            let ids = || (0..count).map(|number| format!("s{number:04}"));
            let spans = ids().map(|id| span(&id, json!({"NumericDiff": 1.0})));
            let results = ids().map(|id| result(&format!("r{id}"), CAPPED, &id, 61.0));
            (ids().collect(), spans.chain(results).collect())
        };
        let (written, rows) = runs(RUNS_PER_MINUTE + UNDER_WAY_MAX);
        assert_eq!(found(&written, &rows), Vec::<String>::new());
        let (written, rows) = runs(RUNS_PER_MINUTE + UNDER_WAY_MAX + 1);
        assert_eq!(found(&written, &rows), ["NumericDiff: 133 runs in minute 1; the cap is 100"]);
    }
}

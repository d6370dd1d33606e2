//! Random cases of every scorer without a model: ours score as autoevals does. No server takes part.

use std::process::Command;

use assay_node_scorers::{AutoevalsPackage, ScorerArguments, native_score};
use assay_test_clients::kept::checked;
use assay_test_clients::python::{autoevals, folder};
use assay_test_clients::suite::covered;
use serde_json::{Map, Value};

/// Cases of each scorer.
const CASES: usize = 2_000;
const SEED: u32 = 20_261_127;
const TOLERANCE: f64 = 1e-9;
/// Differences that are printed.
const PRINTED_MAX: usize = 20;

#[test]
fn scores_are_those_of_autoevals() {
    let Some(python) = covered("scores of autoevals", autoevals()) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("cases.json");
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(folder().join("native_scorers.py")).arg(&file);
    checked(command.args([CASES.to_string(), SEED.to_string()])).unwrap_or_else(|error| panic!("{error:#}"));
    let text = std::fs::read_to_string(&file).expect("the cases");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("an array of cases");
    assert_eq!(cases.len() % CASES, 0);
    let different: Vec<_> = cases.iter().filter_map(difference).collect();
    let printed = different[..different.len().min(PRINTED_MAX)].join("\n");
    assert!(different.is_empty(), "{} of {} cases:\n{printed}", different.len(), cases.len());
}

/// Returns what differs between our score of a case and that of autoevals.
fn difference(case: &Value) -> Option<String> {
    let config = Map::new();
    let input = case["input"].as_object().expect("arguments");
    let arguments = ScorerArguments::new(input, &config).expect("shallow arguments");
    let found = native_score(case["scorer"].as_str().expect("a name"), &arguments, AutoevalsPackage::Python);
    let is_same = match (&found, case["score"].as_f64()) {
        (Ok(found), Some(score)) => found.score.is_some_and(|found| (found - score).abs() <= TOLERANCE),
        (Err(_), None) => case["error"].is_string(),
        _ => false,
    };
    (!is_same).then(|| format!("{case}: {found:?}"))
}

//! Cases that Python's autoevals 0.4.1 scored: `golden/native_scorers.json`, which `tests/clients` writes.

use serde_json::{Map, Value};

use crate::{AutoevalsPackage, ScorerArguments, native_score};

const CASES: &str = include_str!("golden/native_scorers.json");
const TOLERANCE: f64 = 1e-9;

#[test]
fn scores_are_those_of_python() {
    let text = std::env::var("CASES").map(|f| std::fs::read_to_string(f).unwrap()).unwrap_or(CASES.to_owned());
    let cases: Vec<Value> = serde_json::from_str(&text).expect("an array of cases");
    let config = Map::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let input = case["input"].as_object().expect("arguments");
        let arguments = ScorerArguments::new(input, &config).expect("shallow arguments");
        let found = native_score(case["scorer"].as_str().expect("a name"), &arguments, AutoevalsPackage::Python);
        let is_same = match (&found, case["score"].as_f64()) {
            (Ok(found), Some(score)) => found.score.is_some_and(|found| (found - score).abs() <= TOLERANCE),
            (Err(_), None) => case["error"].is_string(),
            _ => false,
        };
        if !is_same {
            wrong.push(format!("{case}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong[..wrong.len().min(30)].join("\n"));
}

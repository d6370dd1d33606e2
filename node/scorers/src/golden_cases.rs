//! Cases that the autoevals packages scored: 0.4.1 for Python, all kinds of cases, written by the script in
//! `tests/clients`; 0.0.132 for TypeScript, those where the two differ and the contract decides nothing else.

use serde_json::{Map, Value};

use crate::{AutoevalsPackage, ScorerArguments, native_score};

const TOLERANCE: f64 = 1e-9;

fn check(cases: &str, package: AutoevalsPackage) {
    let cases: Vec<Value> = serde_json::from_str(cases).expect("an array of cases");
    let config = Map::new();
    for case in &cases {
        let input = case["input"].as_object().expect("arguments");
        let arguments = ScorerArguments::new(input, &config).expect("shallow arguments");
        let found = native_score(case["scorer"].as_str().expect("a name"), &arguments, package);
        let is_same = match (&found, case["score"].as_f64()) {
            (Ok(found), Some(score)) => found.score.is_some_and(|found| (found - score).abs() <= TOLERANCE),
            (Err(_), None) => case["error"].is_string(),
            _ => false,
        };
        assert!(is_same, "{case}: {found:?}");
    }
}

#[test]
fn scores_are_those_of_the_python_package() {
    check(include_str!("golden/python_scorers.json"), AutoevalsPackage::Python);
}

#[test]
fn scores_are_those_of_the_typescript_package() {
    check(include_str!("golden/typescript_scorers.json"), AutoevalsPackage::TypeScript);
}

//! Properties of the scorers without a model, over arbitrary JSON.

use assay_node_scorers::{AutoevalsPackage, EDIT_PAIRS_MAX, LIST_ITEMS_MAX, ScorerArguments, native_score};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const PACKAGES: [AutoevalsPackage; 2] = [AutoevalsPackage::TypeScript, AutoevalsPackage::Python];
const NAMES: [&str; 6] = ["Levenshtein", "ExactMatch", "NumericDiff", "JSONDiff", "ValidJSON", "ListContains"];

fn score(name: &str, input: Value, package: AutoevalsPackage) -> Result<f64, String> {
    let (input, config) = (input.as_object().expect("an object").clone(), Map::new());
    let arguments = ScorerArguments::new(&input, &config).map_err(|error| error.to_string())?;
    let found = native_score(name, &arguments, package).map_err(|error| error.to_string())?;
    assert_eq!(found.name, name);
    Ok(found.score.expect("a number"))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\\[\\]{}\":, a1]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn scores_are_from_0_to_1(output in value(), expected in value()) {
        for (name, package) in NAMES.iter().flat_map(|name| PACKAGES.map(|package| (name, package))) {
            if let Ok(found) = score(name, json!({"output": output, "expected": expected}), package) {
                prop_assert!((0.0..=1.0).contains(&found), "{} {}", name, found);
            }
        }
    }

    #[test]
    fn a_value_fully_matches_itself(value in value()) {
        for package in PACKAGES {
            let both = json!({"output": value, "expected": value});
            prop_assert_eq!(score("ExactMatch", both.clone(), package), Ok(1.0));
            let diff = score("JSONDiff", both, package).expect("shallow");
            prop_assert!((diff - 1.0).abs() < 1e-9, "{}", diff);
        }
    }

    #[test]
    fn differences_are_the_same_both_ways(left in value(), right in value()) {
        for package in PACKAGES {
            let one = score("JSONDiff", json!({"output": left, "expected": right}), package).expect("shallow");
            let other = score("JSONDiff", json!({"output": right, "expected": left}), package).expect("shallow");
            prop_assert!((one - other).abs() < 1e-9, "{} {}", one, other);
        }
    }
}

#[test]
fn work_is_bounded() {
    let many = vec![json!("a"); LIST_ITEMS_MAX + 1];
    let text = score("ListContains", json!({"output": many, "expected": ["a"]}), AutoevalsPackage::Python);
    assert_eq!(text, Err("ListContains: the number of items exceeds the limit of 500".to_owned()));
    let most: Vec<_> = (0..LIST_ITEMS_MAX).map(|index| json!(format!("entity {index}"))).collect();
    let reversed: Vec<_> = most.iter().rev().cloned().collect();
    let found = score("ListContains", json!({"output": most, "expected": reversed}), AutoevalsPackage::Python);
    assert_eq!(found, Ok(1.0));
    let long = |length: u64, text: &str| json!(text.repeat(usize::try_from(length).expect("short")));
    let input = json!({"output": [long(EDIT_PAIRS_MAX / 4_096, "a")], "expected": [long(8_192, "b")]});
    let text = score("JSONDiff", input, AutoevalsPackage::Python);
    assert_eq!(text, Err("JSONDiff: compared text exceeds the limit of 4294967296".to_owned()));
}

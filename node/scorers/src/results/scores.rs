//! Results of scorers (functions.md 7.1 and 7.2).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{ResultError, below, entries, valid_name};
use crate::score::Score;

const VALID: &str = "a number from 0 to 1, a boolean, null, an object with `score`, or an array of these objects";
const VALID_SCORE: &str = "a number from 0 to 1, a boolean or null";
const VALID_NAME: &str = "a text of 1 to 1024 bytes";

/// Scores of one run of a scorer.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorerResult {
    pub scores: Vec<Score>,
    /// Whether the scorer returned a list, which names each score.
    pub is_list: bool,
}

/// Returns the scores of a result, or why it is not valid.
pub fn scorer_result(function: &str, value: &Value) -> Result<ScorerResult, ResultError> {
    let single = |score: Score| ScorerResult { scores: vec![score], is_list: false };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let score = number(function, "", value)?;
            Ok(single(Score { name: function.to_owned(), score, metadata: None }))
        }
        Value::Object(members) => named_score(function, "", members, Some(function)).map(single),
        Value::Array(listed) => {
            let (mut scores, mut names) = (Vec::new(), HashSet::new());
            for (index, entry) in entries(function, value, listed)?.iter().enumerate() {
                let path = index.to_string();
                let members = entry.as_object();
                let expected = "an object with `name` and `score`";
                let members = members.ok_or_else(|| ResultError::new(function, &path, entry, expected))?;
                let score = named_score(function, &path, members, None)?;
                if !names.insert(score.name.clone()) {
                    let name = &members["name"];
                    return Err(ResultError::new(function, &below(&path, "name"), name, "a name that is used once"));
                }
                scores.push(score);
            }
            Ok(ScorerResult { scores, is_list: true })
        }
        Value::String(_) => Err(ResultError::new(function, "", value, VALID)),
    }
}

fn named_score(
    function: &str,
    path: &str,
    members: &Map<String, Value>,
    default_name: Option<&str>,
) -> Result<Score, ResultError> {
    let name = match (members.get("name").unwrap_or(&Value::Null), default_name) {
        (Value::Null, Some(default)) => default,
        (Value::String(name), Some(default)) if name.is_empty() => default,
        (name, _) => {
            valid_name(name).ok_or_else(|| ResultError::new(function, &below(path, "name"), name, VALID_NAME))?
        }
    };
    let Some(score) = members.get("score") else {
        let found = Value::Object(members.clone());
        return Err(ResultError::new(function, path, &found, "an object with `score`"));
    };
    let metadata = match members.get("metadata").unwrap_or(&Value::Null) {
        Value::Null => None,
        Value::Object(metadata) => Some(metadata.clone()),
        other => return Err(ResultError::new(function, &below(path, "metadata"), other, "an object or null")),
    };
    Ok(Score { name: name.to_owned(), score: number(function, &below(path, "score"), score)?, metadata })
}

fn number(function: &str, path: &str, value: &Value) -> Result<Option<f64>, ResultError> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(truth) => Ok(Some(f64::from(*truth))),
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| (0.0..=1.0).contains(number));
            number.map(Some).ok_or_else(|| ResultError::new(function, path, value, VALID_SCORE))
        }
        other => Err(ResultError::new(function, path, other, VALID_SCORE)),
    }
}

/// Checks the answer of a scorer to a direct call, which clients get as it is: only a number out of range fails (F-55).
pub fn check_direct_answer(function: &str, value: &Value) -> Result<(), ResultError> {
    if value.is_number() { number(function, "", value).map(|_| ()) } else { Ok(()) }
}

impl ScorerResult {
    /// Returns `scores` of the scorer's own span; skipped ones are null (F-68).
    pub fn span_scores(&self) -> Map<String, Value> {
        self.scores.iter().map(|score| (score.name.clone(), json!(score.score))).collect()
    }

    /// Returns `scores` for the row that is scored; skipped ones are left out.
    pub fn row_scores(&self) -> Map<String, Value> {
        self.scores.iter().filter_map(|score| Some((score.name.clone(), json!(score.score?)))).collect()
    }

    /// Returns `metadata` for the scorer's own span: that of the score, or of each score of a list by its name.
    pub fn span_metadata(&self) -> Option<Map<String, Value>> {
        if !self.is_list {
            return self.scores.first().and_then(|score| score.metadata.clone());
        }
        let named = self.scores.iter().filter_map(|score| Some((score.name.clone(), json!(score.metadata.as_ref()?))));
        let named: Map<_, _> = named.collect();
        (!named.is_empty()).then_some(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_the_contract_become_scores() {
        let cases = [
            (json!(0.5), json!({"f": 0.5})),
            (json!(true), json!({"f": 1.0})),
            (json!(false), json!({"f": 0.0})),
            (json!(null), json!({"f": null})),
            (json!({"score": 1}), json!({"f": 1.0})),
            (json!({"name": "g", "score": false, "metadata": null}), json!({"g": 0.0})),
            (json!({"name": "", "score": null}), json!({"f": null})),
            (json!([]), json!({})),
            (json!([{"name": "a", "score": 0}, {"name": "b", "score": null}]), json!({"a": 0.0, "b": null})),
        ];
        for (value, scores) in cases {
            let found = scorer_result("f", &value).unwrap_or_else(|error| panic!("{value}: {error}"));
            assert_eq!(json!(found.span_scores()), scores, "{value}");
            let kept: Map<_, _> = found.span_scores().into_iter().filter(|(_, score)| !score.is_null()).collect();
            assert_eq!(found.row_scores(), kept, "{value}");
        }
    }

    #[test]
    fn other_results_are_refused_with_their_path() {
        let cases = [
            (json!("0.45"), "a string at the top"),
            (json!(1.5), "1.5 at the top"),
            (json!(-1), "-1 at the top"),
            (json!({}), "an empty object at the top"),
            (json!({"score": "1"}), "a string at `score`"),
            (json!({"score": 2}), "2 at `score`"),
            (json!({"score": 1, "name": 3}), "3 at `name`"),
            (json!({"score": 1, "metadata": []}), "an array at `metadata`"),
            (json!([1]), "1 at `0`"),
            (json!([{"score": 1}]), "null at `0.name`"),
            (json!([{"name": "a", "score": 1}, {"name": "a", "score": 1}]), "a string at `1.name`"),
        ];
        for (value, found) in cases {
            let error = scorer_result("f", &value).expect_err("not valid").to_string();
            assert!(error.starts_with(&format!("the result of `f` has {found}; it must be ")), "{value}: {error}");
        }
    }

    #[test]
    fn metadata_of_several_scores_is_by_name() {
        let one = scorer_result("f", &json!({"score": 1, "metadata": {"a": 1}})).expect("valid");
        assert_eq!(json!(one.span_metadata()), json!({"a": 1}));
        let listed = json!([{"name": "x", "score": 1, "metadata": {"a": 1}}, {"name": "y", "score": 0}]);
        let several = scorer_result("f", &listed).expect("valid");
        assert_eq!(json!(several.span_metadata()), json!({"x": {"a": 1}}));
    }

    #[test]
    fn a_direct_call_fails_only_for_a_number_out_of_range() {
        assert!(check_direct_answer("f", &json!("0.45")).is_ok());
        assert!(check_direct_answer("f", &json!({"anything": 7})).is_ok());
        assert!(check_direct_answer("f", &json!(1)).is_ok());
        assert!(check_direct_answer("f", &json!(1.01)).is_err());
    }
}

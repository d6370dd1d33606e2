//! ListContains: how well the items of two lists match, one to one.

use serde_json::{Map, Value, json};

use super::PairScorer;
use super::assignment::best_assignment;
use crate::arguments::ScorerArguments;
use crate::edit_distance::EditBudget;
use crate::error::ScorerError;
use crate::score::Score;
use crate::texts::AutoevalsPackage;

/// Items of each list.
pub const LIST_ITEMS_MAX: usize = 500;

const NAME: &str = "ListContains";

pub(super) fn list_contains(arguments: &ScorerArguments<'_>, package: AutoevalsPackage) -> Result<Score, ScorerError> {
    let expected = list("expected", arguments.required(NAME, "expected")?)?;
    let output = list("output", arguments.or_null("output"))?;
    let allows_extra = arguments.boolean(NAME, "allow_extra_entities", false)?;
    let scorer = PairScorer::named(NAME, arguments, "pairwise_scorer", PairScorer::Levenshtein)?;
    let mut budget = EditBudget::new(NAME);
    let mut gains = Vec::with_capacity(output.len());
    for item in output {
        let row: Result<Vec<f64>, _> = expected
            .iter()
            .enumerate()
            .map(|(index, other)| match other {
                Value::Null if scorer != PairScorer::ExactMatch => {
                    let path = format!("expected.{index}");
                    Err(ScorerError::invalid(NAME, &path, other, "a value for the pairwise scorer"))
                }
                _ => scorer.score(item, other, package, &mut budget),
            })
            .collect();
        gains.push(row?);
    }
    Ok(contained(NAME, output, expected, &gains, allows_extra))
}

fn list<'a>(path: &str, value: &'a Value) -> Result<&'a [Value], ScorerError> {
    let items = value.as_array().ok_or_else(|| ScorerError::invalid(NAME, path, value, "an array"))?;
    if items.len() > LIST_ITEMS_MAX {
        let max = LIST_ITEMS_MAX as u64;
        return Err(ScorerError::LimitExceeded { scorer: NAME, subject: "the number of items", max });
    }
    Ok(items)
}

/// Returns the score of the best pairs, whose similarities are given: `gains[output][expected]`.
pub(crate) fn contained(
    name: &str,
    output: &[Value],
    expected: &[Value],
    gains: &[Vec<f64>],
    allows_extra: bool,
) -> Score {
    if output.is_empty() || expected.is_empty() {
        return Score::of_number(name, f64::from(output.is_empty() && expected.is_empty()));
    }
    let assigned = best_assignment(gains).into_iter().enumerate();
    let pairs: Vec<_> = assigned.filter_map(|(row, column)| column.map(|column| (row, column))).collect();
    let sum: f64 = pairs.iter().map(|(row, column)| gains[*row][*column]).sum();
    let count = if allows_extra { expected.len() } else { output.len().max(expected.len()) };
    let pairs = pairs
        .into_iter()
        .map(|(row, column)| json!({"output": output[row], "expected": expected[column], "score": gains[row][column]}));
    let mut metadata = Map::new();
    metadata.insert("pairs".to_owned(), pairs.collect());
    Score::with_metadata(name, (sum / count as f64).clamp(0.0, 1.0), metadata)
}

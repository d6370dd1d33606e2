//! Scorers that need no model (functions.md 6.2).

mod assignment;
mod exact_match;
mod json_diff;
mod list_contains;
mod schema_cost;
mod valid_json;

use serde_json::Value;

use crate::arguments::ScorerArguments;
use crate::edit_distance::{EditBudget, similarity};
use crate::error::ScorerError;
use crate::score::Score;
use crate::texts::{AutoevalsPackage, plain_text};

pub use json_diff::DIFF_DEPTH_MAX;
pub use list_contains::LIST_ITEMS_MAX;
pub(crate) use list_contains::contained;
pub use schema_cost::{SCHEMA_DEPTH_MAX, SCHEMA_STEPS_MAX};
pub use valid_json::{SCHEMA_PATTERN_STEPS_MAX, schema_complaint};

/// Names of the scorers that an option may name.
const PAIR_SCORERS: &str = "`Levenshtein`, `ExactMatch` or `NumericDiff`";

/// Returns the score of a scorer without a model.
pub fn native_score(
    name: &str,
    arguments: &ScorerArguments<'_>,
    package: AutoevalsPackage,
) -> Result<Score, ScorerError> {
    match name {
        "Levenshtein" | "LevenshteinScorer" => levenshtein(arguments, package),
        "ExactMatch" => {
            let (output, expected) = (arguments.or_null("output"), arguments.or_null("expected"));
            exact_match::equality(output, expected, package).map(|score| Score::of_number("ExactMatch", score))
        }
        "NumericDiff" => {
            let expected = arguments.required("NumericDiff", "expected")?;
            let score = numeric_similarity(arguments.or_null("output"), expected, package)?;
            Ok(Score::of_number("NumericDiff", score))
        }
        "JSONDiff" => json_diff::json_diff(arguments, package),
        "ValidJSON" => valid_json::valid_json(arguments, package),
        "ListContains" => list_contains::list_contains(arguments, package),
        other => Err(ScorerError::NotComputed { name: other.to_owned() }),
    }
}

fn levenshtein(arguments: &ScorerArguments<'_>, package: AutoevalsPackage) -> Result<Score, ScorerError> {
    const NAME: &str = "Levenshtein";
    let expected = plain_text(arguments.required(NAME, "expected")?, package);
    let output = plain_text(arguments.or_null("output"), package);
    let score = similarity(&output, &expected, package, &mut EditBudget::new(NAME))?;
    Ok(Score::of_number(NAME, score))
}

/// Returns one less the difference of two numbers in proportion to their sizes.
pub(crate) fn numeric_similarity(
    output: &Value,
    expected: &Value,
    package: AutoevalsPackage,
) -> Result<f64, ScorerError> {
    let number = |path: &str, value: &Value| match (value, package) {
        (Value::Number(number), _) => Ok(number.as_f64().unwrap_or_default()),
        (Value::Bool(truth), AutoevalsPackage::Python) => Ok(f64::from(*truth)),
        _ => Err(ScorerError::invalid("NumericDiff", path, value, "a number")),
    };
    let (output, expected) = (number("output", output)?, number("expected", expected)?);
    if output == 0.0 && expected == 0.0 {
        return Ok(1.0);
    }
    let (difference, sum) = ((expected - output).abs(), expected.abs() + output.abs());
    // the sum of the two largest floats is infinite, that of their halves is not
    let ratio = if sum.is_finite() {
        difference / sum
    } else {
        (expected / 2.0 - output / 2.0).abs() / (expected.abs() / 2.0 + output.abs() / 2.0)
    };
    Ok(1.0 - ratio)
}

/// Scorer that compares two values within a list or a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairScorer {
    Levenshtein,
    ExactMatch,
    NumericDiff,
}

impl PairScorer {
    /// Takes the name of a scorer from an option.
    fn named(
        scorer: &'static str,
        arguments: &ScorerArguments<'_>,
        option: &str,
        default: PairScorer,
    ) -> Result<PairScorer, ScorerError> {
        let Some(value) = arguments.get(option) else { return Ok(default) };
        match value.as_str() {
            Some("Levenshtein" | "LevenshteinScorer") => Ok(PairScorer::Levenshtein),
            Some("ExactMatch") => Ok(PairScorer::ExactMatch),
            Some("NumericDiff") => Ok(PairScorer::NumericDiff),
            other => Err(ScorerError::InvalidArgument {
                scorer,
                path: option.to_owned(),
                found: other.map_or_else(|| crate::error::kind(value).to_owned(), |name| format!("`{name}`")),
                expected: PAIR_SCORERS,
            }),
        }
    }

    fn score(
        self,
        output: &Value,
        expected: &Value,
        package: AutoevalsPackage,
        budget: &mut EditBudget,
    ) -> Result<f64, ScorerError> {
        match self {
            PairScorer::Levenshtein => {
                similarity(&plain_text(output, package), &plain_text(expected, package), package, budget)
            }
            PairScorer::ExactMatch => exact_match::equality(output, expected, package),
            PairScorer::NumericDiff => numeric_similarity(output, expected, package),
        }
    }
}

//! JSONDiff: similarity of two JSON values, member by member.

use serde_json::{Map, Value};

use super::{PairScorer, numeric_similarity};
use crate::arguments::ScorerArguments;
use crate::edit_distance::{EditBudget, similarity};
use crate::error::ScorerError;
use crate::score::Score;
use crate::texts::{AutoevalsPackage, MemberOrder, json_text};

/// Levels of two values that are compared, with those of JSON texts within them.
pub const DIFF_DEPTH_MAX: usize = 256;

const NAME: &str = "JSONDiff";

pub(super) fn json_diff(arguments: &ScorerArguments<'_>, package: AutoevalsPackage) -> Result<Score, ScorerError> {
    let mut diff = JsonDiff {
        package,
        preserves_strings: arguments.boolean(NAME, "preserve_strings", false)?,
        string_scorer: PairScorer::named(NAME, arguments, "string_scorer", PairScorer::Levenshtein)?,
        number_scorer: PairScorer::named(NAME, arguments, "number_scorer", PairScorer::NumericDiff)?,
        budget: EditBudget::new(NAME),
    };
    let score = diff.compare(arguments.or_null("output"), arguments.or_null("expected"), 1)?;
    Ok(Score::of_number(NAME, score))
}

/// Comparison of two JSON values under the options of one call.
#[derive(Debug)]
struct JsonDiff {
    package: AutoevalsPackage,
    preserves_strings: bool,
    string_scorer: PairScorer,
    number_scorer: PairScorer,
    budget: EditBudget,
}

impl JsonDiff {
    fn compare(&mut self, output: &Value, expected: &Value, depth: usize) -> Result<f64, ScorerError> {
        if depth > DIFF_DEPTH_MAX {
            let max = DIFF_DEPTH_MAX as u64;
            return Err(ScorerError::LimitExceeded { scorer: NAME, subject: "nesting of the values", max });
        }
        let parsed = (self.parsed(output), self.parsed(expected));
        let (output, expected) = (parsed.0.as_ref().unwrap_or(output), parsed.1.as_ref().unwrap_or(expected));
        match (output, expected) {
            (Value::Object(output), Value::Object(expected)) => self.compare_objects(output, expected, depth),
            (Value::Array(output), Value::Array(expected)) => self.compare_arrays(output, expected, depth),
            (Value::String(_), Value::String(_)) => {
                self.string_scorer.score(output, expected, self.package, &mut self.budget)
            }
            (Value::Null, Value::Null) => Ok(1.0),
            (Value::Null, _) | (_, Value::Null) => Ok(0.0),
            _ if self.is_number(output) && self.is_number(expected) => self.compare_numbers(output, expected),
            _ => self.compare_texts(output, expected),
        }
    }

    /// Returns the object or array that a string holds.
    fn parsed(&self, value: &Value) -> Option<Value> {
        let text = value.as_str().filter(|_| !self.preserves_strings)?;
        serde_json::from_str::<Value>(text).ok().filter(|parsed| parsed.is_object() || parsed.is_array())
    }

    fn compare_objects(
        &mut self,
        output: &Map<String, Value>,
        expected: &Map<String, Value>,
        depth: usize,
    ) -> Result<f64, ScorerError> {
        let added = expected.keys().filter(|name| !output.contains_key(*name));
        let (mut sum, mut count) = (0.0, 0_usize);
        for name in output.keys().chain(added) {
            let (output, expected) = (output.get(name), expected.get(name));
            sum += self.compare(output.unwrap_or(&Value::Null), expected.unwrap_or(&Value::Null), depth + 1)?;
            count += 1;
        }
        Ok(if count == 0 { 1.0 } else { sum / count as f64 })
    }

    fn compare_arrays(&mut self, output: &[Value], expected: &[Value], depth: usize) -> Result<f64, ScorerError> {
        let length_max = output.len().max(expected.len());
        if length_max == 0 {
            return Ok(1.0);
        }
        let mut sum = 0.0;
        for (output, expected) in output.iter().zip(expected) {
            sum += self.compare(output, expected, depth + 1)?;
        }
        Ok(sum / length_max as f64)
    }

    /// Returns whether the package compares a value as a number. In Python booleans are numbers.
    fn is_number(&self, value: &Value) -> bool {
        value.is_number() || (self.package == AutoevalsPackage::Python && value.is_boolean())
    }

    fn compare_numbers(&mut self, output: &Value, expected: &Value) -> Result<f64, ScorerError> {
        match self.number_scorer {
            PairScorer::NumericDiff => numeric_similarity(output, expected, self.package),
            other => other.score(output, expected, self.package, &mut self.budget),
        }
    }

    fn compare_texts(&mut self, output: &Value, expected: &Value) -> Result<f64, ScorerError> {
        let text = |value| json_text(value, MemberOrder::Sorted, self.package);
        let (output, expected) = (text(output), text(expected));
        match self.string_scorer {
            PairScorer::Levenshtein => similarity(&output, &expected, self.package, &mut self.budget),
            other => other.score(&Value::String(output), &Value::String(expected), self.package, &mut self.budget),
        }
    }
}

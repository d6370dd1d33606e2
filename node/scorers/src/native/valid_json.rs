//! ValidJSON: whether a value is JSON that fits a schema.

use jsonschema::{Draft, PatternOptions};
use serde_json::{Map, Value};

use super::schema_cost;
use crate::arguments::ScorerArguments;
use crate::error::ScorerError;
use crate::score::Score;
use crate::texts::AutoevalsPackage;

/// Steps back that one match of a pattern of a schema may take.
pub const SCHEMA_PATTERN_STEPS_MAX: usize = 100_000;

const NAME: &str = "ValidJSON";

pub(super) fn valid_json(arguments: &ScorerArguments<'_>, package: AutoevalsPackage) -> Result<Score, ScorerError> {
    let schema = arguments.get("schema");
    let output = arguments.or_null("output");
    let parsed = output.as_str().map(serde_json::from_str::<Value>);
    let is_valid = match (&parsed, schema) {
        (Some(Err(_)), _) => false,
        (Some(Ok(value)), Some(schema)) => fits(value, schema, package)?,
        (None, Some(schema)) => fits(output, schema, package)?,
        (Some(Ok(value)), None) => value.is_object() || value.is_array(),
        (None, None) => output.is_object() || output.is_array(),
    };
    let mut metadata = Map::new();
    metadata.insert("schema".to_owned(), arguments.or_null("schema").clone());
    Ok(Score::with_metadata(NAME, f64::from(is_valid), metadata))
}

/// Returns whether a value fits a schema. A schema without `$schema` is of the draft that the package assumes.
fn fits(value: &Value, schema: &Value, package: AutoevalsPackage) -> Result<bool, ScorerError> {
    let invalid = |reason: String| ScorerError::InvalidSchema { scorer: NAME, reason };
    if !schema.is_object() && !schema.is_boolean() {
        return Err(ScorerError::invalid(NAME, "schema", schema, "an object"));
    }
    schema_cost::check(NAME, schema, value)?;
    let patterns = PatternOptions::fancy_regex().backtrack_limit(SCHEMA_PATTERN_STEPS_MAX);
    let mut options = jsonschema::options().should_validate_formats(false).with_pattern_options(patterns);
    if schema.get("$schema").is_none() {
        options = options.with_draft(match package {
            AutoevalsPackage::TypeScript => Draft::Draft7,
            AutoevalsPackage::Python => Draft::Draft202012,
        });
    }
    let validator = options.build(schema).map_err(|error| invalid(error.to_string()))?;
    Ok(validator.is_valid(value))
}

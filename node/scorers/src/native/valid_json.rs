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
/// Characters of the reason why a schema is not valid, which may quote it.
const REASON_CHARACTERS_MAX: usize = 500;

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
    if let Some(schema) = schema {
        metadata.insert("schema".to_owned(), schema.clone());
    }
    Ok(Score::with_metadata(NAME, f64::from(is_valid), metadata))
}

/// Returns whether a value fits a schema. A schema without `$schema` is of the draft that the package assumes.
fn fits(value: &Value, schema: &Value, package: AutoevalsPackage) -> Result<bool, ScorerError> {
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
    let validator = options.build(schema).map_err(|error| {
        let reason = error.to_string().chars().take(REASON_CHARACTERS_MAX).collect();
        ScorerError::InvalidSchema { scorer: NAME, reason }
    })?;
    Ok(validator.is_valid(value))
}

/// Checks a value by a JSON Schema. The error names the first place that does not fit.
///
/// # Errors
/// The text tells which member is wrong, or why the schema itself is not valid.
pub fn schema_complaint(value: &Value, schema: &Value) -> Result<(), String> {
    schema_cost::check(NAME, schema, value).map_err(|why| why.to_string())?;
    let patterns = PatternOptions::fancy_regex().backtrack_limit(SCHEMA_PATTERN_STEPS_MAX);
    let options = jsonschema::options().should_validate_formats(false).with_pattern_options(patterns);
    let validator = options.build(schema).map_err(|error| {
        let reason: String = error.to_string().chars().take(REASON_CHARACTERS_MAX).collect();
        format!("the schema is not valid: {reason}")
    })?;
    validator.validate(value).map_err(|error| {
        let reason: String = error.to_string().chars().take(REASON_CHARACTERS_MAX).collect();
        let place = error.instance_path().to_string();
        if place.is_empty() { reason } else { format!("`{place}`: {reason}") }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn score(schema: Value, output: Value, package: AutoevalsPackage) -> Result<f64, String> {
        let input = json!({"output": output, "schema": schema}).as_object().expect("an object").clone();
        let config = Map::new();
        let arguments = ScorerArguments::new(&input, &config).map_err(|error| error.to_string())?;
        let found = valid_json(&arguments, package).map_err(|error| error.to_string())?;
        Ok(found.score.expect("a number"))
    }

    #[test]
    fn a_schema_without_a_draft_is_of_the_draft_of_the_package() {
        let schema = json!({"prefixItems": [{"type": "string"}]});
        assert_eq!(score(schema.clone(), json!([1]), AutoevalsPackage::TypeScript), Ok(1.0));
        assert_eq!(score(schema.clone(), json!([1]), AutoevalsPackage::Python), Ok(0.0));
        let mut named = schema;
        named["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        assert_eq!(score(named, json!([1]), AutoevalsPackage::TypeScript), Ok(0.0));
    }

    #[test]
    fn a_schema_that_is_none_is_an_error() {
        let text = score(json!({"type": "nothing"}), json!({}), AutoevalsPackage::Python).expect_err("no type");
        assert!(text.starts_with("ValidJSON: `schema` is no valid JSON Schema: "), "{text}");
        let text = score(json!("object"), json!({}), AutoevalsPackage::Python).expect_err("a string");
        assert_eq!(text, "ValidJSON: `schema` is a string; it must be an object");
    }

    #[test]
    fn values_as_deep_as_arguments_may_be_are_checked() {
        let schema = json!({"$ref": "#/definitions/list", "definitions": {"list": {"items": {"$ref": "#"}}}});
        let mut value = json!([]);
        for _ in 0..80 {
            value = json!([value]);
        }
        assert_eq!(score(schema, value, AutoevalsPackage::TypeScript), Ok(1.0));
    }

    #[test]
    fn patterns_that_take_too_many_steps_do_not_match() {
        let schema = json!({"pattern": "^(a|aa|b(?=c))+$"});
        let started = std::time::Instant::now();
        let text = "a".repeat(200) + "!";
        assert_eq!(score(schema, json!(json!(text).to_string()), AutoevalsPackage::Python), Ok(0.0));
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
    }
}

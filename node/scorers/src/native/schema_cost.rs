//! Bound on the work of checking a value by a schema: subschemas that may apply are counted before any is checked.

use serde_json::{Map, Value};

use crate::error::ScorerError;

/// Applications of a subschema to a part of a value. References may multiply them, exponentially at worst.
pub const SCHEMA_STEPS_MAX: u64 = 1_000_000;
/// Subschemas that may apply within one another, by references too. Checks recurse as deep.
pub const SCHEMA_DEPTH_MAX: usize = 256;

/// Keywords whose schemas apply to the same value: a list of schemas, one schema, or one under each name.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SINGLES: [&str; 4] = ["not", "if", "then", "else"];
const BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schema applies to each member or item that no keyword names.
const OTHER_MEMBERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const OTHER_ITEMS: [&str; 2] = ["additionalItems", "unevaluatedItems"];

/// Returns an error where a check may take too long, or where a reference leads out of the schema.
pub(super) fn check(scorer: &'static str, schema: &Value, value: &Value) -> Result<(), ScorerError> {
    let mut count = StepCount { scorer, root: schema, steps: 0 };
    count.apply(schema, value, 1)
}

/// Count of the applications of subschemas so far.
#[derive(Debug)]
struct StepCount<'a> {
    scorer: &'static str,
    root: &'a Value,
    steps: u64,
}

impl StepCount<'_> {
    /// Counts what applies to one part of the value. Recursion ends at the depth's limit.
    fn apply(&mut self, schema: &Value, value: &Value, depth: usize) -> Result<(), ScorerError> {
        self.steps += 1;
        if self.steps > SCHEMA_STEPS_MAX {
            let subject = "the number of subschemas to check";
            return Err(ScorerError::LimitExceeded { scorer: self.scorer, subject, max: SCHEMA_STEPS_MAX });
        }
        if depth > SCHEMA_DEPTH_MAX {
            let (subject, max) = ("the depth of subschemas within one another", SCHEMA_DEPTH_MAX as u64);
            return Err(ScorerError::LimitExceeded { scorer: self.scorer, subject, max });
        }
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        self.follow(keywords, value, depth)?;
        for schema in LISTS.iter().filter_map(|keyword| keywords.get(*keyword)?.as_array()).flatten() {
            self.apply(schema, value, depth + 1)?;
        }
        for schema in SINGLES.iter().filter_map(|keyword| keywords.get(*keyword)) {
            self.apply(schema, value, depth + 1)?;
        }
        for schema in BY_NAME.iter().filter_map(|keyword| keywords.get(*keyword)?.as_object()).flat_map(Map::values) {
            self.apply(schema, value, depth + 1)?;
        }
        match value {
            Value::Object(members) => self.apply_to_members(keywords, members, depth),
            Value::Array(items) => self.apply_to_items(keywords, items, depth),
            _ => Ok(()),
        }
    }

    fn apply_to_members(
        &mut self,
        keywords: &Map<String, Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), ScorerError> {
        let named = keywords.get("properties").and_then(Value::as_object);
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        for (name, member) in members {
            if let Some(schema) = keywords.get("propertyNames") {
                self.apply(schema, &Value::String(name.clone()), depth + 1)?;
            }
            for schema in patterns.into_iter().flat_map(Map::values) {
                self.apply(schema, member, depth + 1)?;
            }
            match named.and_then(|named| named.get(name)) {
                Some(schema) => self.apply(schema, member, depth + 1)?,
                None => self.apply_others(&OTHER_MEMBERS, keywords, member, depth)?,
            }
        }
        Ok(())
    }

    fn apply_to_items(
        &mut self,
        keywords: &Map<String, Value>,
        items: &[Value],
        depth: usize,
    ) -> Result<(), ScorerError> {
        let items_keyword = keywords.get("items");
        let by_position = [items_keyword, keywords.get("prefixItems")].into_iter().flatten().find_map(Value::as_array);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = keywords.get("contains") {
                self.apply(schema, item, depth + 1)?;
            }
            match by_position.and_then(|schemas| schemas.get(index)) {
                Some(schema) => self.apply(schema, item, depth + 1)?,
                None => {
                    items_keyword
                        .filter(|found| !found.is_array())
                        .map_or(Ok(()), |one| self.apply(one, item, depth + 1))?;
                    self.apply_others(&OTHER_ITEMS, keywords, item, depth)?;
                }
            }
        }
        Ok(())
    }

    fn apply_others(
        &mut self,
        others: &[&str],
        keywords: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<(), ScorerError> {
        others.iter().filter_map(|keyword| keywords.get(*keyword)).try_for_each(|one| self.apply(one, value, depth + 1))
    }

    fn follow(&mut self, keywords: &Map<String, Value>, value: &Value, depth: usize) -> Result<(), ScorerError> {
        let found = ["$ref", "$dynamicRef", "$recursiveRef"].iter().filter_map(|keyword| keywords.get(*keyword));
        for reference in found.filter_map(Value::as_str) {
            let root = self.root;
            let pointer = reference.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let target = pointer.and_then(|pointer| root.pointer(pointer));
            let Some(target) = target else {
                let reason = format!("`{reference}` is no reference within it of the form `#/definitions/name`");
                return Err(ScorerError::InvalidSchema { scorer: self.scorer, reason });
            };
            self.apply(target, value, depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(schema: &Value, value: &Value) -> String {
        check("ValidJSON", schema, value).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_schema_of_usual_size_is_within_the_limits() {
        let tree = json!({
            "$ref": "#/definitions/node",
            "definitions": {"node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/node"}}},
                "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            }},
        });
        let mut value = json!({"name": "leaf"});
        for _ in 0..8 {
            value = json!({"name": "node", "size": 3, "children": [value.clone(), value]});
        }
        assert_eq!(error(&tree, &value), "");
    }

    #[test]
    fn references_that_multiply_are_refused() {
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/definitions/{}", level + 1)});
            definitions.insert(level.to_string(), json!({"anyOf": [next, next]}));
        }
        definitions.insert("40".to_owned(), json!({"type": "null"}));
        let schema = json!({"$ref": "#/definitions/0", "definitions": definitions});
        let text = error(&schema, &json!(1));
        assert_eq!(text, "ValidJSON: the number of subschemas to check exceeds the limit of 1000000");
    }

    #[test]
    fn references_without_end_and_references_to_elsewhere_are_refused() {
        let text = error(&json!({"$ref": "#"}), &json!(1));
        assert!(text.contains("the depth of subschemas within one another"), "{text}");
        let text = error(&json!({"$ref": "http://example.com/schema.json"}), &json!(1));
        assert!(text.contains("is no reference within it"), "{text}");
    }
}

//! Datum of an eval: the input and the expected output of one case, before its trials.

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::request::{TAGS, kind, tags};

/// Members of an earlier run's metadata, which say nothing about a new run.
const EARLIER_ERRORS: [&str; 2] = ["scorer_errors", "classifier_errors"];
/// Estimated memory of a value besides its texts.
const VALUE_BYTES: usize = 72;

/// Key of a datum, from which the ids of its rows follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DatumKey {
    /// Id of a row of a dataset or an experiment.
    Row(String),
    /// Position in the list of a request.
    Position(u64),
}

impl fmt::Display for DatumKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatumKey::Row(id) => write!(f, "row `{id}`"),
            DatumKey::Position(position) => write!(f, "item {position} of `data`"),
        }
    }
}

/// Input of a case, with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalDatum {
    pub key: DatumKey,
    /// Id of the row, or the id that an inline item has.
    pub id: Option<String>,
    pub input: Value,
    /// Null if nothing is expected.
    pub expected: Value,
    pub metadata: Map<String, Value>,
    pub tags: Vec<String>,
    /// Reference to the row that the datum is from.
    pub origin: Option<Map<String, Value>>,
}

/// Error for a datum with a member that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: `{member}` is {found}; it must be {valid}")]
pub struct EvalDatumError {
    pub key: DatumKey,
    pub member: &'static str,
    pub found: &'static str,
    pub valid: &'static str,
}

impl EvalDatum {
    /// Reads an item of a request's list. An item without `input` is the input itself (F-58).
    pub fn of_inline(position: u64, item: Value) -> Result<EvalDatum, EvalDatumError> {
        let key = DatumKey::Position(position);
        match item {
            Value::Object(mut members) if members.contains_key("input") => {
                let id = text_id(&key, members.get("id"))?;
                let input = members.remove("input").unwrap_or_default();
                EvalDatum::new(key, id, input, members, None)
            }
            input => EvalDatum::new(key, None, input, Map::new(), None),
        }
    }

    /// Reads a row of a dataset.
    pub fn of_dataset_row(dataset_id: &str, mut row: Map<String, Value>) -> Result<EvalDatum, EvalDatumError> {
        let id = row_id(&row)?;
        let origin = origin("dataset", dataset_id, &id, &row);
        let input = row.remove("input").unwrap_or_default();
        EvalDatum::new(DatumKey::Row(id.clone()), Some(id), input, row, Some(origin))
    }

    /// Reads a root row of an experiment, whose output is expected if nothing else is.
    pub fn of_experiment_row(experiment_id: &str, mut row: Map<String, Value>) -> Result<EvalDatum, EvalDatumError> {
        let id = row_id(&row)?;
        let origin = origin("experiment", experiment_id, &id, &row);
        let input = row.remove("input").unwrap_or_default();
        if row.get("expected").is_none_or(Value::is_null)
            && let Some(output) = row.remove("output")
        {
            row.insert("expected".to_owned(), output);
        }
        EvalDatum::new(DatumKey::Row(id.clone()), Some(id), input, row, Some(origin))
    }

    fn new(
        key: DatumKey,
        id: Option<String>,
        input: Value,
        mut members: Map<String, Value>,
        origin: Option<Map<String, Value>>,
    ) -> Result<EvalDatum, EvalDatumError> {
        let metadata = match members.remove("metadata").unwrap_or_default() {
            Value::Null => Map::new(),
            Value::Object(mut metadata) => {
                metadata.retain(|name, _| !EARLIER_ERRORS.contains(&name.as_str()));
                metadata
            }
            other => {
                let found = kind(&other);
                return Err(EvalDatumError { key, member: "metadata", found, valid: "an object or null" });
            }
        };
        let listed = members.get("tags");
        let Some(tags) = tags(listed) else {
            let found = listed.map_or("missing", kind);
            return Err(EvalDatumError { key, member: "tags", found, valid: TAGS });
        };
        let expected = members.remove("expected").unwrap_or_default();
        Ok(EvalDatum { key, id, input, expected, metadata, tags, origin })
    }

    /// Returns the estimated memory of the datum.
    pub fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        let tags: usize = self.tags.iter().map(|tag| tag.len() + VALUE_BYTES).sum();
        let members = [Some(&self.metadata), self.origin.as_ref()].into_iter().flatten();
        let members: usize = members.map(map_bytes).sum();
        // The key holds the id once more.
        size_of::<EvalDatum>() + 2 * id + tags + members + value_bytes(&self.input) + value_bytes(&self.expected)
    }
}

fn value_bytes(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_bytes).sum(),
            Value::Object(members) => map_bytes(members),
        }
}

fn map_bytes(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + VALUE_BYTES + value_bytes(value)).sum()
}

fn row_id(row: &Map<String, Value>) -> Result<String, EvalDatumError> {
    let key = DatumKey::Row(String::new());
    text_id(&key, row.get("id"))?.ok_or(EvalDatumError { key, member: "id", found: "missing", valid: "a string" })
}

fn text_id(key: &DatumKey, value: Option<&Value>) -> Result<Option<String>, EvalDatumError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id.clone()).filter(|id| !id.is_empty())),
        Some(other) => {
            Err(EvalDatumError { key: key.clone(), member: "id", found: kind(other), valid: "a string or null" })
        }
    }
}

/// Returns the reference to a row, with the members that are known.
fn origin(object_type: &str, object_id: &str, id: &str, row: &Map<String, Value>) -> Map<String, Value> {
    let mut origin = Map::new();
    for (name, value) in [("object_type", object_type), ("object_id", object_id), ("id", id)] {
        origin.insert(name.to_owned(), value.into());
    }
    for name in ["_xact_id", "created"] {
        if let Some(value) = row.get(name).filter(|value| value.is_string()) {
            origin.insert(name.to_owned(), value.clone());
        }
    }
    origin
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(members) = value else { panic!("an object") };
        members
    }

    #[test]
    fn an_item_without_an_input_is_the_input() {
        for item in [json!("text"), json!(null), json!([1]), json!({"question": 1, "expected": 2})] {
            let datum = EvalDatum::of_inline(3, item.clone()).expect("a datum");
            assert_eq!((datum.key, datum.input, datum.expected), (DatumKey::Position(3), item, Value::Null));
        }
        let item =
            json!({"input": null, "expected": 4, "metadata": {"a": 1}, "tags": ["x", "x"], "id": "i", "other": 1});
        let datum = EvalDatum::of_inline(0, item).expect("a datum");
        assert_eq!((datum.input, datum.expected, datum.id.as_deref()), (Value::Null, json!(4), Some("i")));
        assert_eq!((json!(datum.metadata), datum.tags), (json!({"a": 1}), vec!["x".to_owned()]));
        assert_eq!(datum.key, DatumKey::Position(0));
    }

    #[test]
    fn a_row_of_a_dataset_is_the_origin_of_its_case() {
        let row = json!({"id": "r", "_xact_id": "7", "created": "c", "input": 1, "expected": 2, "metadata": null,
            "tags": null, "span_id": "s"});
        let datum = EvalDatum::of_dataset_row("d", object(row)).expect("a datum");
        let origin = json!({"object_type": "dataset", "object_id": "d", "id": "r", "_xact_id": "7", "created": "c"});
        assert_eq!((datum.key, json!(datum.origin)), (DatumKey::Row("r".into()), origin));
        assert_eq!((datum.input, datum.expected), (json!(1), json!(2)));
    }

    #[test]
    fn the_output_of_an_experiment_is_expected_if_nothing_else_is() {
        let expected = |row: Value| EvalDatum::of_experiment_row("e", object(row)).expect("a datum").expected;
        assert_eq!(expected(json!({"id": "r", "input": 1, "output": 2})), json!(2));
        assert_eq!(expected(json!({"id": "r", "input": 1, "output": 2, "expected": null})), json!(2));
        assert_eq!(expected(json!({"id": "r", "input": 1, "output": 2, "expected": 3})), json!(3));
        assert_eq!(expected(json!({"id": "r", "input": 1})), Value::Null);
    }

    #[test]
    fn errors_of_the_earlier_run_are_not_taken_over() {
        let row = json!({"id": "r", "input": 1, "metadata": {"a": 1, "scorer_errors": {"f": "x"}}});
        let datum = EvalDatum::of_experiment_row("e", object(row)).expect("a datum");
        assert_eq!(json!(datum.metadata), json!({"a": 1}));
    }

    #[test]
    fn a_datum_that_is_not_valid_is_named() {
        let error = |item: Value| EvalDatum::of_inline(2, item).expect_err("not valid").to_string();
        assert_eq!(
            error(json!({"input": 1, "metadata": []})),
            "item 2 of `data`: `metadata` is an array; it must be an object or null"
        );
        assert!(error(json!({"input": 1, "tags": [1]})).starts_with("item 2 of `data`: `tags` is an array"));
        assert!(error(json!({"input": 1, "id": 5})).starts_with("item 2 of `data`: `id` is a number"));
        assert!(EvalDatum::of_dataset_row("d", object(json!({"input": 1}))).is_err());
    }

    #[test]
    fn a_datum_takes_the_memory_of_its_texts() {
        let bytes = |input: Value| EvalDatum::of_inline(0, json!({"input": input})).expect("a datum").bytes();
        assert_eq!(bytes(json!("x".repeat(1000))), bytes(json!("")) + 1000);
        assert_eq!(bytes(json!({"abc": [1]})), bytes(json!({"abc": []})) + VALUE_BYTES);
    }
}

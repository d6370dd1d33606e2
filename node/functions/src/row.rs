//! The row of a prompt or function, in its stored form and in that of responses. Pure.

use assay_node_records::Definition;
use assay_storage_model::Xact;
use assay_storage_model::command::RequestId;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Fields of a response. Missing ones are null, since clients require all of them.
const PROMPT: [&str; 13] = [
    "id",
    "_xact_id",
    "project_id",
    "log_id",
    "org_id",
    "name",
    "slug",
    "description",
    "created",
    "prompt_data",
    "tags",
    "metadata",
    "function_type",
];
const FUNCTION_TOO: [&str; 3] = ["function_data", "origin", "function_schema"];

/// Returns the fields that a patch replaces whole. A variant of several forms cannot be merged by member, and a change of tags has
/// all of them, as in other records.
pub(crate) fn merge_paths() -> Value {
    json!([["tags"], ["function_data"], ["prompt_data", "prompt"], ["prompt_data", "parser"]])
}

/// Returns whether the row is a prompt and has no code.
pub(crate) fn is_prompt(row: &Value) -> bool {
    match row.get("function_data") {
        None | Some(Value::Null) => true,
        Some(data) => data.get("type").and_then(Value::as_str) == Some("prompt"),
    }
}

/// Returns whether the row is of the requested definition. A prompt is a function, too.
pub(crate) fn is_one(definition: Definition, row: &Value) -> bool {
    definition == Definition::Function || is_prompt(row)
}

pub(crate) fn shown(definition: Definition, row: Value) -> Value {
    let Value::Object(mut row) = row else { return row };
    let more: &[&str] = if definition == Definition::Function { &FUNCTION_TOO } else { &[] };
    let fields = PROMPT.iter().chain(more).map(|name| {
        let value = row.remove(*name).unwrap_or(Value::Null);
        let value = if *name == "function_data" && value.is_null() { json!({"type": "prompt"}) } else { value };
        ((*name).to_owned(), value)
    });
    Value::Object(fields.collect())
}

/// The row of a new one, and of one that takes another's place.
pub(crate) fn written(id: Uuid, mut fields: Map<String, Value>) -> Map<String, Value> {
    fields.remove("project_id");
    fields.insert("id".into(), id.to_string().into());
    fields.entry("function_data").or_insert_with(|| json!({"type": "prompt"}));
    fields
}

/// Returns the idempotency key of the first write at a revision of the record. It does not depend on the content: the
/// first write counts.
pub(crate) fn first_write(id: Uuid, revision: u64) -> RequestId {
    let mut content = *b"assay first row\0";
    for (place, byte) in revision.to_be_bytes().into_iter().enumerate() {
        content[place] ^= byte;
    }
    let key = Uuid::from_u128(id.as_u128().rotate_left(1) ^ u128::from(revision));
    RequestId { key: key.into_bytes(), content }
}

/// Returns the idempotency key of the write that follows a version, so that only one of several counts.
pub(crate) fn next_write(id: Uuid, seen: Xact) -> RequestId {
    let key = Uuid::from_u128(id.as_u128().rotate_left(2) ^ u128::from(seen.0));
    RequestId { key: key.into_bytes(), content: *b"assay next row\0\0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_fields_that_are_described() {
        for definition in [Definition::Prompt, Definition::Function] {
            let said = definition.describe().answer;
            let mut said: Vec<&String> = said["properties"].as_object().expect("an object").keys().collect();
            let answer = shown(definition, json!({}));
            let mut found: Vec<&String> = answer.as_object().expect("an object").keys().collect();
            said.sort();
            found.sort();
            assert_eq!(said, found, "{definition:?}");
        }
    }

    #[test]
    fn an_answer_has_every_field() {
        let row =
            json!({"id": "i", "_xact_id": "7", "name": "n", "slug": "s", "comments": null, "prompt_data": {"a": 1}});
        let prompt = shown(Definition::Prompt, row.clone());
        assert_eq!(prompt.as_object().map(Map::len), Some(PROMPT.len()));
        assert_eq!(
            (&prompt["slug"], &prompt["tags"], &prompt["prompt_data"]),
            (&json!("s"), &Value::Null, &json!({"a": 1}))
        );
        let function = shown(Definition::Function, row);
        assert_eq!(function["function_data"], json!({"type": "prompt"}));
        assert_eq!(function.as_object().map(Map::len), Some(PROMPT.len() + FUNCTION_TOO.len()));
    }

    #[test]
    fn a_prompt_is_what_has_no_code() {
        for (data, is) in [
            (Value::Null, true),
            (json!({"type": "prompt"}), true),
            (json!({"type": "code"}), false),
            (json!({"type": "parameters"}), false),
        ] {
            let row = json!({ "function_data": data });
            assert_eq!((is_one(Definition::Prompt, &row), is_one(Definition::Function, &row)), (is, true));
        }
        assert!(is_prompt(&json!({})));
    }

    #[test]
    fn one_write_follows_each_version() {
        let id = Uuid::from_u128(7 << 64);
        assert_eq!(next_write(id, Xact(3)), next_write(id, Xact(3)));
        assert_ne!(next_write(id, Xact(3)).key, next_write(id, Xact(4)).key);
        assert_ne!(next_write(id, Xact(3)).key, first_write(id, 3).key);
    }

    #[test]
    fn a_first_write_is_the_same_for_all_and_another_at_each_revision() {
        let (a, b) = (Uuid::from_u128(7 << 64), Uuid::from_u128(8 << 64));
        assert_eq!(first_write(a, 3), first_write(a, 3));
        assert_ne!(first_write(a, 3).key, first_write(a, 4).key);
        assert_ne!(first_write(a, 3).key, first_write(b, 3).key);
    }
}

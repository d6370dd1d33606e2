//! Scorers of retrieval-augmented generation (functions.md 6.5): each asks a model to call one tool.

pub(crate) mod answer_correctness;
pub(crate) mod answer_relevancy;
pub(crate) mod context_entity_recall;
pub(crate) mod context_scorers;
pub(crate) mod faithfulness;

pub use answer_relevancy::STRICTNESS_MAX;
use serde_json::{Value, json};

use crate::arguments::ScorerArguments;
use crate::error::ScorerError;
use crate::texts::{AutoevalsPackage, plain_text};

/// Returns an argument that a scorer needs, as text.
fn text(scorer: &'static str, arguments: &ScorerArguments<'_>, name: &'static str) -> Result<String, ScorerError> {
    Ok(plain_text(arguments.required(scorer, name)?, AutoevalsPackage::TypeScript))
}

/// Returns the context that was retrieved: a text, or the lines of a list.
fn context(scorer: &'static str, arguments: &ScorerArguments<'_>) -> Result<String, ScorerError> {
    match arguments.required(scorer, "context")? {
        Value::Array(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| plain_text(part, AutoevalsPackage::TypeScript)).collect();
            Ok(parts.join("\n"))
        }
        other => Ok(plain_text(other, AutoevalsPackage::TypeScript)),
    }
}

/// Returns the JSON Schema of an object that has all of these members.
fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<_> = members.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<_, _> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": names})
}

fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// Returns the JSON Schema of a verdict: 0 or 1.
fn zero_or_one(description: &str) -> Value {
    json!({"type": "integer", "enum": [0, 1], "description": description})
}

//! Score as scorers return it.

use serde_json::{Map, Value, json};

/// Score under a name; without a number where the scorer skipped the case.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    pub name: String,
    pub score: Option<f64>,
    pub metadata: Option<Map<String, Value>>,
}

impl Score {
    pub(crate) fn of_number(name: &str, score: f64) -> Score {
        Score { name: name.to_owned(), score: Some(score), metadata: None }
    }

    pub(crate) fn with_metadata(name: &str, score: f64, metadata: Map<String, Value>) -> Score {
        Score { name: name.to_owned(), score: Some(score), metadata: Some(metadata) }
    }

    /// Returns the answer to clients: `name`, `score`, and `metadata` where there is any (functions.md 6.1).
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("name".to_owned(), json!(self.name));
        members.insert("score".to_owned(), json!(self.score));
        if let Some(metadata) = &self.metadata {
            members.insert("metadata".to_owned(), Value::Object(metadata.clone()));
        }
        Value::Object(members)
    }
}

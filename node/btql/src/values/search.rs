//! MATCH: whole words, all of them, wherever they stand (D-61).

use std::collections::BTreeSet;

use assay_storage_model::tokens::{words_of_json, words_of_text};

use super::Value;

/// What is searched for: several queries, one of which must be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<BTreeSet<String>>);

impl Words {
    /// Of a text, or of an array of them.
    pub fn of(query: &Value<'_>) -> Words {
        let words = |text: &str| {
            let mut words = BTreeSet::new();
            words_of_text(text, |word| {
                words.insert(word.to_owned());
            });
            words
        };
        match query {
            Value::Array(json) => {
                let texts: Vec<serde_json::Value> = serde_json::from_slice(json).unwrap_or_default();
                Words(texts.iter().filter_map(|text| text.as_str().map(words)).collect())
            }
            other => Words(other.to_text().map(|text| words(&text)).into_iter().collect()),
        }
    }

    /// Each of the queries, as the words that must all be there.
    pub fn queries(&self) -> &[BTreeSet<String>] {
        &self.0
    }

    /// Whether one of the queries is found whole; an empty one never is.
    pub fn found_in(&self, value: &Value<'_>) -> bool {
        let mut missing = self.0.clone();
        let mut see = |word: &str| {
            for query in &mut missing {
                query.remove(word);
            }
        };
        match value {
            Value::Array(json) | Value::Object(json) => words_of_json(json, &mut see),
            other => {
                if let Some(text) = other.to_text() {
                    words_of_text(&text, &mut see);
                }
            }
        }
        self.0.iter().zip(&missing).any(|(query, missing)| !query.is_empty() && missing.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_of_a_query_must_be_there() {
        for (value, query, expected) in [
            (r#"{"query":"password reset"}"#, "\"password\"", true),
            (r#"{"query":"password reset"}"#, "\"pass\"", false),
            (r#"{"query":"password reset"}"#, "\"RESET, password!\"", true),
            (r#"{"query":"password reset"}"#, "\"query\"", true),
            (r#"{"query":"password reset"}"#, r#"["nothing","reset"]"#, true),
            ("\"value-added\"", "\"value\"", true),
            ("\"anything\"", "\"\"", false),
            ("\"anything\"", "\" - \"", false),
            ("12.5", "\"12\"", true),
            ("null", "\"null\"", false),
        ] {
            let words = Words::of(&Value::read(query.as_bytes()));
            assert_eq!(words.found_in(&Value::read(value.as_bytes())), expected, "{value} match {query}");
        }
    }
}

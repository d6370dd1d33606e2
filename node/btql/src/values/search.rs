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
        match &*query.opened() {
            Value::List(of) => {
                let texts = of.iter().filter_map(|one| match one {
                    Value::Text(text) => Some(words(text)),
                    _ => None,
                });
                Words(texts.collect())
            }
            _ => Words(query.to_text().map(|text| words(&text)).into_iter().collect()),
        }
    }

    /// Each of the queries, as the words that must all be there.
    pub fn queries(&self) -> &[BTreeSet<String>] {
        &self.0
    }

    /// Whether one of the queries is found whole; an empty one never is.
    pub fn found_in(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Text(text) => self.found(|see| words_of_text(text, see)),
            Value::Array(json) | Value::Object(json) => self.found(|see| words_of_json(json.as_bytes(), see)),
            Value::List(_) | Value::Members(_) => {
                let json = value.to_json();
                self.found(|see| words_of_json(json.as_bytes(), see))
            }
            other => other.to_text().is_some_and(|text| self.found(|see| words_of_text(&text, see))),
        }
    }

    fn found(&self, words: impl FnOnce(&mut dyn FnMut(&str))) -> bool {
        // A place for each word of each query, in their order.
        let mut seen = vec![false; self.0.iter().map(BTreeSet::len).sum()];
        words(&mut |word: &str| {
            for (place, wanted) in self.0.iter().flatten().enumerate() {
                if wanted == word {
                    seen[place] = true;
                }
            }
        });
        let mut seen = seen.into_iter();
        self.0.iter().any(|query| {
            let missing = seen.by_ref().take(query.len()).filter(|seen| !seen).count();
            !query.is_empty() && missing == 0
        })
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
            let words = Words::of(&Value::read(query));
            assert_eq!(words.found_in(&Value::read(value)), expected, "{value} match {query}");
        }
    }
}

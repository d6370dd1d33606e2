//! Digests of what functions read of rows, traces and groups.
//!
//! The digest of a row covers `input`, `output`, `expected`, `error`, and `metadata` without the members of reviews and
//! of scoring. It leaves out what scoring and people add to a row: `scores`, `tags`, `classifications`, `facets`,
//! comments and metrics. So a score merge never changes a digest.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Number, Value};
use xxhash_rust::xxh3::Xxh3;

use crate::candidates::{scored_rows_of_trace, span_id_of};

/// Fields of a row that functions read, besides `metadata`.
pub const DIGESTED_FIELDS: [&str; 4] = ["input", "output", "expected", "error"];
/// Members of `metadata` that failed scorers and classifiers add.
const SCORING_METADATA: [&str; 2] = ["scorer_errors", "classifier_errors"];
/// Prefix of members of `metadata` that reviews add.
const REVIEW_PREFIX: &str = "~__";
/// Beginning of each digest, so that a later algorithm gives others.
const ALGORITHM: &[u8] = b"assay online input 1";
const DIGITS: usize = 32;

/// Digest of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputDigest(u128);

impl InputDigest {
    /// Returns the digest of a row for functions of scope `span`.
    pub fn of_row(row: &Map<String, Value>) -> InputDigest {
        let mut hash = InputHash::new();
        for name in DIGESTED_FIELDS {
            hash.value(row.get(name).unwrap_or(&Value::Null));
        }
        let metadata = row.get("metadata").and_then(Value::as_object);
        let is_read = |name: &str| !name.starts_with(REVIEW_PREFIX) && !SCORING_METADATA.contains(&name);
        hash.members(metadata.into_iter().flatten().filter(|(name, _)| is_read(name)));
        hash.digest()
    }

    /// Returns the digest of a trace from its rows in any order. Rows of scoring do not count.
    pub fn of_trace(rows: &[&Map<String, Value>]) -> InputDigest {
        let rows = scored_rows_of_trace(rows);
        InputDigest::of_parts(rows.iter().map(|row| (span_id_of(row).unwrap_or_default(), InputDigest::of_row(row))))
    }

    /// Returns the digest of a group from its traces, each with its `root_span_id`, in any order.
    pub fn of_group<'a>(traces: impl IntoIterator<Item = (&'a str, InputDigest)>) -> InputDigest {
        InputDigest::of_parts(traces)
    }

    fn of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, InputDigest)>) -> InputDigest {
        let mut hash = InputHash::new();
        for (id, digest) in parts.into_iter().collect::<BTreeSet<_>>() {
            hash.text(id);
            hash.bytes(&digest.0.to_le_bytes());
        }
        hash.digest()
    }

    /// Parses the 32 hexadecimal digits of a digest.
    pub fn parse(text: &str) -> Option<InputDigest> {
        let is_hex = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(InputDigest)).flatten()
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Hash over values, in which the order of members and the notation of numbers do not count.
struct InputHash(Xxh3);

impl InputHash {
    fn new() -> InputHash {
        let mut hash = InputHash(Xxh3::new());
        hash.bytes(ALGORITHM);
        hash
    }

    fn digest(&self) -> InputDigest {
        InputDigest(self.0.digest128())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    /// Adds a value behind a letter of its type. Storage limits the depth of rows.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(flag) => self.bytes(if *flag { b"t" } else { b"f" }),
            Value::Number(number) => {
                self.bytes(b"d");
                self.text(&number_text(number));
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
            Value::Array(list) => {
                self.bytes(b"a");
                self.bytes(&(list.len() as u64).to_le_bytes());
                list.iter().for_each(|value| self.value(value));
            }
            Value::Object(members) => self.members(members),
        }
    }

    fn members<'a>(&mut self, members: impl IntoIterator<Item = (&'a String, &'a Value)>) {
        let mut sorted: Vec<_> = members.into_iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        self.bytes(b"o");
        self.bytes(&(sorted.len() as u64).to_le_bytes());
        for (name, value) in sorted {
            self.text(name);
            self.value(value);
        }
    }
}

fn number_text(number: &Number) -> String {
    /// Bound below which each float is one whole number.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT_MAX => (float as i64).to_string(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    fn digest(value: Value) -> InputDigest {
        InputDigest::of_row(&row(value))
    }

    #[test]
    fn what_scoring_and_people_add_does_not_change_a_digest() {
        let read = json!({"input": {"a": 1, "b": [2.5]}, "output": "o", "metadata": {"m": 1}});
        let before = digest(read.clone());
        let added = [
            ("scores", json!({"x": 1})),
            ("tags", json!(["t"])),
            ("classifications", json!({"c": []})),
            ("facets", json!({"f": "v"})),
            ("comments", json!([1])),
            ("metrics", json!({"end": 3})),
            ("_async_scoring_state", json!({"status": "enabled"})),
            ("_xact_id", json!("1")),
            ("metadata", json!({"m": 1.0, "~__bt_assignments": [], "scorer_errors": {"a": "b"}})),
            ("input", json!({"b": [2.5], "a": 1.0})),
            ("error", json!(null)),
        ];
        for (name, value) in added {
            let mut after = read.clone();
            after[name] = value;
            assert_eq!(digest(after), before, "{name}");
        }
    }

    #[test]
    fn what_functions_read_changes_a_digest() {
        let read = json!({"input": {"a": 1}, "output": "o", "metadata": {"m": 1}});
        let changes = [
            ("input", json!({"a": "1"})),
            ("input", json!([["a", 1]])),
            ("output", json!("p")),
            ("output", json!(["o"])),
            ("expected", json!("o")),
            ("error", json!("e")),
            ("metadata", json!({"m": 1.5})),
            ("metadata", json!({})),
        ];
        let mut digests = vec![digest(read.clone())];
        for (name, value) in changes {
            let mut after = read.clone();
            after[name] = value;
            digests.push(digest(after));
        }
        let distinct: BTreeSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
    }

    #[test]
    fn a_digest_does_not_change_between_versions_of_the_program() {
        let found = digest(json!({"input": {"a": [1, 2.5, true, null]}, "output": "é", "metadata": {"m": "x"}}));
        assert_eq!(found.to_string(), "d5d2003740414eb8b2a7798ee157e423");
        assert_eq!(InputDigest::parse(&found.to_string()), Some(found));
        for text in ["", "+0000000000000000000000000000001", "0", "g0000000000000000000000000000000"] {
            assert_eq!(InputDigest::parse(text), None);
        }
    }

    #[test]
    fn the_digest_of_a_trace_ignores_order_and_spans_of_scorers() {
        let span = |id: &str, output: i32| row(json!({"span_id": id, "root_span_id": "a", "output": output}));
        let score = row(json!({"span_id": "s", "root_span_id": "a", "span_attributes": {"purpose": "scorer"}}));
        let below = row(json!({"span_id": "u", "root_span_id": "a", "span_parents": ["s"], "output": 9}));
        let (a, b, c) = (span("a", 1), span("b", 2), span("b", 3));
        let trace = InputDigest::of_trace(&[&a, &b]);
        assert_eq!(InputDigest::of_trace(&[&below, &b, &score, &a]), trace);
        assert_ne!(InputDigest::of_trace(&[&a, &c]), trace);
        assert_ne!(InputDigest::of_trace(&[&a]), trace);
        let group = InputDigest::of_group([("t", trace), ("u", InputDigest::of_row(&a))]);
        assert_eq!(InputDigest::of_group([("u", InputDigest::of_row(&a)), ("t", trace)]), group);
        assert_ne!(InputDigest::of_group([("u", trace), ("t", InputDigest::of_row(&a))]), group);
    }

    proptest! {
        #[test]
        fn lists_and_texts_cannot_be_exchanged_with_others(
            left in prop::collection::vec("[ab]{0,2}", 0..4), right in prop::collection::vec("[ab]{0,2}", 0..4),
        ) {
            let is_same = digest(json!({"input": left})) == digest(json!({"input": right}));
            prop_assert_eq!(is_same, left == right);
        }
    }
}

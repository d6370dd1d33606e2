//! Ids that follow from the source, and checksums of rows.

use serde_json::{Map, Value};

use crate::item::ItemHome;

/// Dollars are compared as whole billionths, so that their sum does not depend on the order.
const COST_UNITS: f64 = 1e9;

/// Returns the first 16 hexadecimal digits of a hash of texts, each with its length.
pub(crate) fn digits(texts: &[&str]) -> String {
    hash_of(texts).to_hex()[..32].to_owned()
}

fn hash_of(texts: &[&str]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize()
}

/// Returns a hash of texts that fits a set of integers.
pub(crate) fn short_hash(texts: &[&str]) -> u64 {
    let hash = hash_of(texts);
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Returns the name of a home in hashes.
pub(crate) fn home_text(home: &ItemHome) -> (&'static str, &str) {
    match home {
        ItemHome::Logs => ("logs", ""),
        ItemHome::Experiment(name) => ("experiment", name),
        ItemHome::Dataset(name) => ("dataset", name),
    }
}

/// Returns the hash that stands for a row in the set of known rows.
pub fn row_hash(home: &ItemHome, id: &str) -> u64 {
    let (kind, name) = home_text(home);
    short_hash(&["row", kind, name, id])
}

/// Returns a checksum of the place and name of a row. Sums of checksums do not depend on the order of rows.
pub(crate) fn place_checksum(row: &Map<String, Value>) -> u64 {
    let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let parents = row.get("span_parents").and_then(Value::as_array);
    let parents: Vec<&str> = parents.into_iter().flatten().filter_map(Value::as_str).collect();
    let name = row.get("span_attributes").and_then(|about| about.get("name")).and_then(Value::as_str);
    short_hash(&[&text("id"), &text("root_span_id"), &text("span_id"), &parents.join("\n"), name.unwrap_or_default()])
}

/// Returns a checksum of a score of a row.
pub(crate) fn score_checksum(row: &str, name: &str, value: f64) -> u64 {
    short_hash(&[row, name, &value.to_bits().to_string()])
}

/// Returns the cost of a row in billionths of a dollar.
pub(crate) fn cost_units(row: &Map<String, Value>) -> i64 {
    let cost = row.get("metrics").and_then(|metrics| metrics.get("estimated_cost")).and_then(Value::as_f64);
    (cost.unwrap_or_default() * COST_UNITS).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_lengths_have_another_hash() {
        assert_ne!(short_hash(&["ab", "c"]), short_hash(&["a", "bc"]));
        assert_ne!(row_hash(&ItemHome::Logs, "a"), row_hash(&ItemHome::Dataset("".into()), "a"));
        assert_eq!(digits(&["a"]).len(), 32);
    }
}

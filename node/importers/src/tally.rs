//! Counts and checksums of an import, from its source and as read back from the target.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{cost_units, place_checksum, score_checksum};

/// Counts and checksums of the rows of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectTally {
    /// Spans, or rows of a dataset.
    pub rows: u64,
    /// Rows without a parent.
    pub roots: u64,
    pub scores: u64,
    /// Sum of costs in billionths of a dollar.
    pub cost_units: i64,
    /// Sum of checksums of the ids, parents and names of rows: equal sums mean equal trees.
    pub places: u64,
    /// Sum of checksums of scores.
    pub score_values: u64,
}

impl ObjectTally {
    /// Adds a row of spans with its scores.
    pub fn add_span(&mut self, row: &Map<String, Value>) {
        self.add_row(row);
        let is_root = row.get("span_parents").and_then(Value::as_array).is_none_or(Vec::is_empty);
        self.roots += u64::from(is_root);
        self.cost_units += cost_units(row);
        let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
        for (name, score) in row.get("scores").and_then(Value::as_object).into_iter().flatten() {
            if let Some(score) = score.as_f64() {
                self.add_score(id, name, score);
            }
        }
    }

    /// Adds a row of a dataset.
    pub fn add_row(&mut self, row: &Map<String, Value>) {
        self.rows += 1;
        self.places = self.places.wrapping_add(place_checksum(row));
    }

    pub fn add_score(&mut self, row: &str, name: &str, value: f64) {
        self.scores += 1;
        self.score_values = self.score_values.wrapping_add(score_checksum(row, name, value));
    }

    pub fn cost(&self) -> f64 {
        self.cost_units as f64 / 1e9
    }

    fn plus(self, other: &ObjectTally) -> ObjectTally {
        ObjectTally {
            rows: self.rows + other.rows,
            roots: self.roots + other.roots,
            scores: self.scores + other.scores,
            cost_units: self.cost_units + other.cost_units,
            places: self.places.wrapping_add(other.places),
            score_values: self.score_values.wrapping_add(other.score_values),
        }
    }
}

/// Counts of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub logs: ObjectTally,
    pub experiments: BTreeMap<String, ObjectTally>,
    pub datasets: BTreeMap<String, ObjectTally>,
    /// Traces in the logs.
    pub traces: u64,
    pub prompt_versions: u64,
    /// Scores that are no number from 0 to 1. They are in the metadata of their rows.
    pub scores_in_metadata: u64,
    /// Rows that the source sent more than once.
    pub duplicates: u64,
}

impl Tally {
    /// Returns the sum over all experiments or datasets.
    pub fn sum(tallies: &BTreeMap<String, ObjectTally>) -> ObjectTally {
        tallies.values().fold(ObjectTally::default(), ObjectTally::plus)
    }
}

/// Returns a sentence for each difference between the source and the target.
pub fn differences(object: &str, source: &ObjectTally, target: &ObjectTally) -> Vec<String> {
    let mut found = Vec::new();
    let counts = [
        ("rows", source.rows, target.rows),
        ("root rows", source.roots, target.roots),
        ("scores", source.scores, target.scores),
    ];
    for (what, there, here) in counts {
        if there != here {
            found.push(format!("{object}: {there} {what} in the source, {here} in Assay"));
        }
    }
    if source.cost_units != target.cost_units {
        found.push(format!(
            "{object}: the sum of costs is {} in the source, {} in Assay",
            source.cost(),
            target.cost()
        ));
    }
    if source.places != target.places {
        found.push(format!("{object}: the checksums of trees differ"));
    }
    if source.score_values != target.score_values {
        found.push(format!("{object}: the checksums of scores differ"));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tally(rows: &[Value]) -> ObjectTally {
        let mut tally = ObjectTally::default();
        rows.iter().for_each(|row| tally.add_span(row.as_object().unwrap()));
        tally
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_any_change_is_named() {
        let root = json!({"id": "a", "root_span_id": "t", "span_id": "1", "scores": {"good": 0.5}});
        let child = json!({"id": "b", "root_span_id": "t", "span_id": "2", "span_parents": ["1"],
            "metrics": {"estimated_cost": 0.1}});
        let whole = tally(&[root.clone(), child.clone()]);
        assert_eq!(whole, tally(&[child.clone(), root.clone()]));
        assert_eq!((whole.rows, whole.roots, whole.scores, whole.cost_units), (2, 1, 1, 100_000_000));
        assert!(differences("logs", &whole, &whole).is_empty());
        let mut moved = child.clone();
        moved["span_parents"] = json!(["3"]);
        assert_eq!(
            differences("logs", &whole, &tally(&[root.clone(), moved])),
            ["logs: the checksums of trees differ"]
        );
        let mut scored = root;
        scored["scores"] = json!({"good": 0.4});
        assert_eq!(differences("logs", &whole, &tally(&[scored, child])), ["logs: the checksums of scores differ"]);
    }
}

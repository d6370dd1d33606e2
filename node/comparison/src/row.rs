//! Rows of experiments, as a query returns them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Prefix of a metric's name in fields that accept both scores and metrics.
pub const METRIC_PREFIX: &str = "metrics.";

/// Estimated memory of a number besides its name.
const NUMBER_BYTES: usize = 64;

/// Numbers by name.
pub type Measured = BTreeMap<String, f64>;

/// Trial: the trace of one input in one experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedRow {
    /// Index of the experiment in the request.
    pub experiment: usize,
    /// Comparison key as compact JSON.
    pub key: String,
    pub root_span_id: String,
    pub has_error: bool,
    pub scores: Measured,
    pub metrics: Measured,
    /// Value of the group as compact JSON.
    pub group: String,
}

impl ComparedRow {
    /// Reads a row of a query result. Scores and metrics that are not numbers are omitted.
    pub fn read(experiment: usize, row: &Value) -> ComparedRow {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        ComparedRow {
            experiment,
            key: match &row["comparison_key"] {
                Value::String(key) => key.clone(),
                other => other.to_string(),
            },
            root_span_id: text("root_span_id"),
            has_error: row["failed"].as_bool().unwrap_or(false),
            scores: numbers(row["scores"].as_object()),
            metrics: numbers(row["metrics"].as_object()),
            group: row["grouped"].to_string(),
        }
    }

    /// Returns the estimated memory of the row.
    pub fn bytes(&self) -> usize {
        let numbers = self.scores.keys().chain(self.metrics.keys());
        let numbers: usize = numbers.map(|name| name.len() + NUMBER_BYTES).sum();
        size_of::<ComparedRow>() + self.key.len() + self.root_span_id.len() + self.group.len() + numbers
    }

    /// Returns the score with this name, or the metric if the name starts with [`METRIC_PREFIX`].
    pub fn value(&self, name: &str) -> Option<f64> {
        match name.strip_prefix(METRIC_PREFIX) {
            Some(metric) => self.metrics.get(metric).copied(),
            None => self.scores.get(name).copied(),
        }
    }
}

fn numbers(members: Option<&Map<String, Value>>) -> Measured {
    let members = members.into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_its_numbers() {
        let row = ComparedRow::read(
            1,
            &json!({
                "comparison_key": "{\"q\":1}", "root_span_id": "t1", "failed": true, "grouped": "de",
                "scores": {"Exact": 1, "Odd": null, "Text": "x"}, "metrics": {"duration": 1.5},
            }),
        );
        assert_eq!((row.key.as_str(), row.group.as_str(), row.has_error), ("{\"q\":1}", "\"de\"", true));
        assert_eq!((row.value("Exact"), row.value("metrics.duration"), row.value("Odd")), (Some(1.0), Some(1.5), None));
    }

    #[test]
    fn a_row_takes_the_memory_of_its_texts_and_numbers() {
        let bytes = |row: Value| ComparedRow::read(0, &row).bytes();
        let (bare, key) = (bytes(json!({"comparison_key": ""})), "k".repeat(1000));
        assert_eq!(bytes(json!({"comparison_key": key})), bare + 1000);
        assert_eq!(bytes(json!({"comparison_key": "", "scores": {"abc": 1}})), bare + 3 + NUMBER_BYTES);
    }

    #[test]
    fn a_row_without_a_key_has_the_key_null() {
        assert_eq!(ComparedRow::read(0, &json!({})).key, "null");
    }
}

//! Report of a command: a table for people on stdout, the same as JSON for comparisons of runs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};

/// Threshold of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Threshold>,
}

#[derive(Debug)]
pub struct Report {
    command: &'static str,
    figures: Vec<Figure>,
    details: serde_json::Map<String, Value>,
}

impl Report {
    pub fn new(command: &'static str) -> Report {
        Report { command, figures: Vec::new(), details: serde_json::Map::new() }
    }

    pub fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { name: name.into(), value, unit, wanted: None });
    }

    pub fn promised(&mut self, name: impl Into<String>, value: f64, unit: &'static str, wanted: Threshold) {
        self.figures.push(Figure { name: name.into(), value, unit, wanted: Some(wanted) });
    }

    /// Everything behind the figures, for the JSON file only.
    pub fn detail(&mut self, name: &str, value: impl Serialize) -> anyhow::Result<()> {
        self.details.insert(name.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    pub fn table(&self) -> String {
        let width = self.figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
        let mut table = format!("{}\n", self.command);
        for figure in &self.figures {
            let pad = width - figure.name.chars().count();
            let verdict = figure.wanted.map(|wanted| wanted.verdict(figure.value)).unwrap_or_default();
            let line =
                format!("  {}{:pad$}  {:>12} {:<9} {verdict}", figure.name, "", rounded(figure.value), figure.unit);
            let _ = writeln!(table, "{}", line.trim_end());
        }
        table
    }

    /// Prints the table and writes the JSON file if one was requested.
    pub fn finish(self, json_file: Option<&Path>) -> anyhow::Result<()> {
        print!("{}", self.table());
        let Some(path) = json_file else { return Ok(()) };
        let whole = json!({ "command": self.command, "figures": self.figures, "details": self.details });
        std::fs::write(path, serde_json::to_vec_pretty(&whole)?)
            .with_context(|| format!("writing the figures to {}", path.display()))
    }
}

impl Threshold {
    fn verdict(self, value: f64) -> String {
        let (kept, words) = match self {
            Threshold::AtLeast(bound) => (value >= bound, format!("at least {}", rounded(bound))),
            Threshold::AtMost(bound) => (value <= bound, format!("at most {}", rounded(bound))),
        };
        format!("{} ({words})", if kept { "ok" } else { "MISSED" })
    }
}

fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Latencies of one measurement in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
}

impl Latency {
    pub fn of(ms: &[f64]) -> Latency {
        Latency { p50: percentile(ms.iter().copied(), 0.5), p99: percentile(ms.iter().copied(), 0.99) }
    }
}

/// The middle of what was measured; of an even number, the lower one of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    percentile(values, 0.5)
}

/// The smallest value that at least `share` of the values do not exceed; 0 if there are none.
pub fn percentile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The slope of the straight line that fits `(x, y)` best; 0 for fewer than two points.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_is_said_in_the_table() {
        let mut report = Report::new("store");
        report.promised("ratio", 0.59, "", Threshold::AtLeast(0.6));
        report.promised("write_bytes per byte", 2.5, "", Threshold::AtMost(3.0));
        let table = report.table();
        assert!(table.contains("0.590") && table.contains("MISSED (at least 0.600)"), "{table}");
        assert!(table.contains("ok (at most 3.000)"), "{table}");
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(percentile((1..=100).map(f64::from), 0.99), 99.0);
        assert_eq!(percentile([], 0.5), 0.0);
    }

    #[test]
    fn the_slope_of_a_line_is_its_slope() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0);
        assert_eq!(slope(&[(1.0, 1.0)]), 0.0);
    }
}

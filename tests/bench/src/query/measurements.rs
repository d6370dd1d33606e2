//! Measurements of one engine, and the number of runs of each query.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::query_result::QueryResult;
use crate::process::Memory;
use crate::report::median;

/// Number of warm runs of a query: enough for a meaningful median, within a time limit.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    pub least: usize,
    pub most: usize,
    pub seconds: f64,
}

impl Runs {
    pub const USUAL: Runs = Runs { least: 7, most: 101, seconds: 3.0 };
    /// Runs of a question that writes a file as large as all rows.
    pub const EXPORT: Runs = Runs { least: 3, most: 3, seconds: 0.0 };

    /// Returns whether this many runs are enough.
    pub fn are_over(&self, done: usize, began: Instant) -> bool {
        done >= self.most || done >= self.least && began.elapsed() > Duration::from_secs_f64(self.seconds)
    }
}

/// Milliseconds of each run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Times(pub Vec<f64>);

impl Times {
    pub fn p50(&self) -> f64 {
        median(self.0.iter().copied())
    }
}

/// One engine: times by question, the answer to each text of it, and what it takes.
#[derive(Debug, Default, Serialize)]
pub struct EngineMeasurement {
    pub engine: String,
    pub version: String,
    pub rows: u64,
    pub load_seconds: f64,
    pub times: BTreeMap<&'static str, Times>,
    #[serde(skip)]
    pub answers: BTreeMap<&'static str, Vec<QueryResult>>,
    /// Bytes that grow with the rows.
    pub disk_bytes: u64,
    /// Bytes of fixed size: a log up to its budget, a file that reserves space.
    pub fixed_bytes: u64,
    /// JSON text of all rows that were loaded.
    pub json_bytes: u64,
    pub loaded: Memory,
    pub asked: Memory,
    pub beside: Option<InsertTimes>,
}

/// The questions again while rows came in.
#[derive(Debug, Default, Serialize)]
pub struct InsertTimes {
    /// Bytes of rows a second that were offered, and those that were taken.
    pub wanted: f64,
    pub taken: f64,
    pub times: BTreeMap<&'static str, Times>,
}

impl EngineMeasurement {
    pub fn p50(&self, question: &str) -> Option<f64> {
        self.times.get(question).map(Times::p50)
    }
}

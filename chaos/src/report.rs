//! Report of a run: a verdict, in JSON for the record and in a few lines for people.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::capabilities;
use crate::single_node::store_checks::Coverage;

/// Findings printed; the report file has all.
const SHOWN_MAX: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Valid,
    Invalid,
    /// Something kept the run from saying either; it is not a pass.
    Unknown,
    /// This machine lacks a requirement of the run or of a part of it, and it was not required: the rest held.
    NotCovered,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub command: String,
    pub version: &'static str,
    pub seed: u64,
    pub replay: String,
    /// Violations: each makes the run invalid.
    pub findings: Vec<String>,
    /// Problems that kept the harness from its work.
    pub troubles: Vec<String>,
    /// Missing capabilities of this machine.
    pub not_covered: Vec<String>,
    pub coverage: Coverage,
    pub runs: Vec<Value>,
    /// Further results of a test, each under its own name.
    #[serde(flatten)]
    pub details: Map<String, Value>,
    /// The same in lines for people.
    #[serde(skip)]
    pub notes: Vec<String>,
    #[serde(skip)]
    start: Instant,
}

impl Report {
    pub fn new(command: &str, seed: u64, size: &str) -> Report {
        Report {
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            seed,
            replay: format!("cargo run -p assay-chaos -- {command} {size} --seed {seed}"),
            findings: Vec::new(),
            troubles: Vec::new(),
            not_covered: Vec::new(),
            coverage: Coverage::default(),
            runs: Vec::new(),
            details: Map::new(),
            notes: Vec::new(),
            start: Instant::now(),
        }
    }

    pub fn verdict(&self) -> Verdict {
        let lacking = !self.not_covered.is_empty();
        if !self.findings.is_empty() {
            return Verdict::Invalid;
        }
        if !self.troubles.is_empty()
            || !self.coverage.gaps().is_empty()
            || (lacking && capabilities::everything_required())
        {
            return Verdict::Unknown;
        }
        if lacking { Verdict::NotCovered } else { Verdict::Valid }
    }

    /// Writes and prints the report; `kept` are the directories of what failed.
    pub fn finish(self, file: Option<&Path>, kept: &[PathBuf]) -> anyhow::Result<Verdict> {
        let verdict = self.verdict();
        let seconds = self.start.elapsed().as_secs_f64();
        if let Some(file) = file {
            let mut value = serde_json::to_value(&self)?;
            value["verdict"] = serde_json::to_value(verdict)?;
            value["seconds"] = seconds.into();
            let text = serde_json::to_string_pretty(&value)? + "\n";
            std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
        }
        println!("{}: {} in {seconds:.1} s, seed {}", self.command, name(verdict), self.seed);
        let counts: Vec<String> = self.coverage.counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
        println!("  {}", counts.join(", "));
        self.notes.iter().for_each(|note| println!("  {note}"));
        for (label, lines) in
            [("not covered", &self.not_covered), ("found", &self.findings), ("trouble", &self.troubles)]
        {
            for line in lines.iter().take(SHOWN_MAX) {
                println!("  {label}: {line}");
            }
            if lines.len() > SHOWN_MAX {
                println!("  {label}: and {} more", lines.len() - SHOWN_MAX);
            }
        }
        for gap in self.coverage.gaps() {
            println!("  too little of {gap}");
        }
        for dir in kept {
            println!("  kept: {}", dir.display());
        }
        if matches!(verdict, Verdict::Invalid | Verdict::Unknown) {
            println!("  again: {}", self.replay);
        }
        Ok(verdict)
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "valid",
        Verdict::Invalid => "invalid",
        Verdict::Unknown => "unknown",
        Verdict::NotCovered => "not covered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_without_findings_troubles_and_gaps_is_valid() {
        let fresh = || Report::new("crash", 1, "--runs 1");
        assert_eq!(fresh().verdict(), Verdict::Valid);
        let mut report = fresh();
        report.coverage.want("kills", 1);
        assert_eq!(report.verdict(), Verdict::Unknown);
        report.not_covered.push("a part".into());
        assert_eq!(report.verdict(), Verdict::Unknown, "the rest was not tried");
        report.troubles.push("no child".into());
        assert_eq!(report.verdict(), Verdict::Unknown);
        report.not_covered.push("root".into());
        assert_eq!(report.verdict(), Verdict::Unknown, "trouble is not excused");
        report.findings.push("a row is gone".into());
        assert_eq!(report.verdict(), Verdict::Invalid);
    }
}

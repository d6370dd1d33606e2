//! Findings of the doctor: one line for each, with severity, location, problem and remedy.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub const EXIT_DAMAGED: u8 = 1;
pub const EXIT_NOT_CHECKED: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Ok,
    /// A write was interrupted by a crash. It was not acknowledged.
    AmbiguousTail,
    NotChecked,
    Damaged,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub place: String,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub data_dir: PathBuf,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn new(dir: &Path) -> Report {
        Report { data_dir: dir.to_path_buf(), findings: Vec::new() }
    }

    pub fn ok(&mut self, place: &str, found: impl Into<String>) {
        self.push(Severity::Ok, place, found.into(), None);
    }

    pub fn ambiguous(&mut self, place: &str, found: &str) {
        let to_do = "nothing: the next start truncates it, and its sender got no acknowledgement";
        self.push(Severity::AmbiguousTail, place, found.to_owned(), Some(to_do));
    }

    pub fn damaged(&mut self, place: &str, found: impl Into<String>, to_do: &str) {
        self.push(Severity::Damaged, place, found.into(), Some(to_do));
    }

    pub fn not_checked(&mut self, place: &str, why: impl Into<String>) {
        self.push(Severity::NotChecked, place, why.into(), None);
    }

    fn push(&mut self, severity: Severity, place: &str, found: String, to_do: Option<&str>) {
        self.findings.push(Finding { severity, place: place.to_owned(), found, to_do: to_do.map(str::to_owned) });
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    pub fn exit_code(&self) -> u8 {
        match self.findings.iter().map(|finding| finding.severity).max() {
            None | Some(Severity::NotChecked) => EXIT_NOT_CHECKED,
            Some(Severity::Damaged) => EXIT_DAMAGED,
            Some(Severity::Ok | Severity::AmbiguousTail) => 0,
        }
    }

    pub fn summary(&self) -> String {
        let dir = self.data_dir.display();
        match (self.exit_code(), self.count(Severity::AmbiguousTail), self.count(Severity::NotChecked)) {
            (0, 0, _) => format!("{dir}: no problems found"),
            (0, ..) => {
                format!("{dir}: no problems found; the last write before the stop is torn, and was never acknowledged")
            }
            (EXIT_DAMAGED, _, 0) => {
                format!("{dir}: damaged in {} places; make a copy before anything else", self.count(Severity::Damaged))
            }
            (EXIT_DAMAGED, _, unchecked) => {
                let damaged = self.count(Severity::Damaged);
                format!(
                    "{dir}: damaged in {damaged} places, and {unchecked} could not be checked; make a copy before \
                     anything else"
                )
            }
            (_, _, unchecked) => format!("{dir}: {unchecked} places could not be checked"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::AmbiguousTail => "ambiguous tail",
            Severity::NotChecked => "not checked",
            Severity::Damaged => "damaged",
        };
        write!(f, "{severity:14}  {}: {}", self.place, self.found.replace('\n', " "))?;
        match &self.to_do {
            Some(to_do) => write!(f, " -> {to_do}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_outranks_what_could_not_be_checked() {
        let mut report = Report::new(Path::new("data"));
        assert_eq!(report.exit_code(), EXIT_NOT_CHECKED, "an empty report says nothing good");
        report.ok("log", "fine");
        report.ambiguous("log", "torn");
        assert_eq!(report.exit_code(), 0);
        report.not_checked("blobs", "no right to read");
        assert_eq!(report.exit_code(), EXIT_NOT_CHECKED);
        report.damaged("catalog", "gone", "restore it");
        assert_eq!(report.exit_code(), EXIT_DAMAGED);
        assert_eq!(report.findings[3].to_string(), "damaged         catalog: gone -> restore it");
    }
}

//! Report of an import, for people (Markdown) and programs (JSON).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::state::ImportState;
use crate::tally::{ObjectTally, Tally};

/// Result of an import.
#[derive(Clone, Debug, Serialize)]
pub struct ImportReport {
    pub source: String,
    pub identity: String,
    pub target: String,
    pub project: String,
    pub until: String,
    pub pages: u64,
    pub counts: Value,
    /// What has no equivalent in Assay, with the number of times.
    pub without_equivalent: BTreeMap<String, u64>,
    /// Differences between the source and what was read back. Empty means equal.
    pub differences: Vec<String>,
    /// Notes of the run itself.
    pub notes: Vec<String>,
    pub is_equal: bool,
}

impl ImportReport {
    pub fn new(state: &ImportState, differences: Vec<String>, notes: Vec<String>) -> ImportReport {
        let header = &state.header;
        ImportReport {
            source: header.source.clone(),
            identity: header.identity.clone(),
            target: header.target.clone(),
            project: header.project.clone(),
            until: header.window.until.clone(),
            pages: state.pages,
            counts: counts(&state.tally),
            without_equivalent: state.unmapped.clone(),
            is_equal: differences.is_empty(),
            differences,
            notes,
        }
    }
}

fn counts(tally: &Tally) -> Value {
    let (experiments, datasets) = (Tally::sum(&tally.experiments), Tally::sum(&tally.datasets));
    json!({
        "spans": tally.logs.rows,
        "traces": tally.traces,
        "scores": tally.logs.scores,
        "estimated_cost": tally.logs.cost(),
        "experiments": tally.experiments.len(),
        "experiment_spans": experiments.rows,
        "experiment_scores": experiments.scores,
        "experiment_cost": experiments.cost(),
        "datasets": tally.datasets.len(),
        "dataset_rows": datasets.rows,
        "prompt_versions": tally.prompt_versions,
        "scores_in_metadata": tally.scores_in_metadata,
        "duplicates": tally.duplicates,
    })
}

/// Returns the report as a page of Markdown.
pub fn markdown(report: &ImportReport, tally: &Tally) -> String {
    let mut page = String::new();
    let mut line = |text: &str| {
        page.push_str(text);
        page.push('\n');
    };
    line(&format!("# Import from {}", report.source));
    line("");
    line(&format!(
        "From {} up to {}, into the project {} at {}.",
        report.identity, report.until, report.project, report.target
    ));
    line("");
    line(if report.is_equal {
        "Counts, trees, scores and costs were read back and are equal."
    } else {
        "What was read back differs from the source. The differences are below."
    });
    line("");
    line("| object | rows | roots | scores | cost in dollars |");
    line("|---|---|---|---|---|");
    let row = |name: &str, of: &ObjectTally| {
        format!("| {} | {} | {} | {} | {} |", name.replace('|', "\\|"), of.rows, of.roots, of.scores, of.cost())
    };
    line(&row("logs", &tally.logs));
    for (name, of) in &tally.experiments {
        line(&row(&format!("experiment {name}"), of));
    }
    for (name, of) in &tally.datasets {
        line(&row(&format!("dataset {name}"), of));
    }
    line("");
    line(&format!("Traces: {}. Prompt versions: {}.", tally.traces, tally.prompt_versions));
    if tally.duplicates > 0 {
        line(&format!("Rows that the source sent again, which are stored once: {}.", tally.duplicates));
    }
    for (heading, list) in [("Differences", &report.differences), ("Notes", &report.notes)] {
        if !list.is_empty() {
            line("");
            line(&format!("## {heading}"));
            line("");
            list.iter().for_each(|entry| line(&format!("- {entry}")));
        }
    }
    line("");
    line("## Without an equivalent");
    line("");
    if report.without_equivalent.is_empty() {
        line("Everything has an equivalent.");
    }
    report.without_equivalent.iter().for_each(|(what, count)| line(&format!("- {count} x {what}")));
    page
}

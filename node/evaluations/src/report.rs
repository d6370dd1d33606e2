//! Report of an eval as Markdown, for comments on pull requests.

mod markdown;
#[cfg(test)]
mod tests;

use assay_node_comparison::{Interval, METRIC_PREFIX};

use crate::run::EvalEnd;
use crate::statistics::{EvalStatistics, EvalVerdict, ROWS_TO_SETTLE_MAX, RowsToSettle};
use crate::summary::EvalSummary;
use markdown::{code, counted, link, number};

/// Upper bound of the lines of one table.
pub const REPORT_LINES_MAX: usize = 30;
/// Upper bound of the scores whose disagreeing trials are listed.
const DISAGREEING_SCORES_MAX: usize = 5;
/// Upper bound of the listed rows of one score.
const DISAGREEING_ROWS_MAX: usize = 5;
const SCORE_PLACES: usize = 3;

/// Numbers of the rows of an eval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvalRowCounts {
    /// Rows of the experiment. Each trial is one.
    pub rows: u64,
    pub errors: u64,
    /// Scorers and classifiers that failed.
    pub scorer_errors: u64,
    /// Rows that could not be written.
    pub unwritten: u64,
    /// Data of which the base has no row.
    pub only_here: u64,
    /// Data of the base without a row here.
    pub only_base: u64,
}

/// Report of an eval.
#[derive(Clone, Copy, Debug)]
pub struct EvalReport<'r> {
    pub summary: &'r EvalSummary,
    /// Address of the experiment to compare with.
    pub comparison_url: Option<&'r str>,
    pub counts: EvalRowCounts,
    pub end: EvalEnd,
    pub scores: &'r [EvalStatistics],
    pub metrics: &'r [EvalStatistics],
}

impl EvalReport<'_> {
    /// Returns the report. Equal arguments give an equal text.
    pub fn to_markdown(&self) -> String {
        let name = link(&self.summary.experiment_name, Some(&self.summary.experiment_url));
        let mut text = format!("## Evaluation {name}\n\n{}\n", self.headline());
        if let Some(warning) = end_warning(self.end) {
            text.push_str(&format!("\n**{warning}**\n"));
        }
        self.push_table(&mut text, "score", self.scores);
        self.push_table(&mut text, "metric", self.metrics);
        text.push_str(&format!("\n{}\n", self.count_line()));
        self.push_disagreements(&mut text);
        if self.scores.iter().chain(self.metrics).any(|found| found.change.is_some()) {
            text.push_str(
                "\nMeans and differences are over the inputs that both experiments have. Trials of an input count by \
                 their mean. Without a real change, a number is still called changed with a chance of up to 5 %.\n",
            );
        }
        text
    }

    /// Returns the verdicts in one sentence.
    fn headline(&self) -> String {
        let Some(base) = &self.summary.comparison_experiment_name else {
            return "There is no experiment to compare with.".to_owned();
        };
        let count = |verdict| self.scores.iter().filter(|found| found.verdict() == Some(verdict)).count();
        let (up, down) = (count(EvalVerdict::Up), count(EvalVerdict::Down));
        let undecided = count(EvalVerdict::Undecided);
        let base = link(base, self.comparison_url);
        format!("**{up} better, {down} worse, {undecided} undecided** compared with {base}.")
    }

    fn push_table(&self, text: &mut String, title: &str, found: &[EvalStatistics]) {
        if found.is_empty() {
            return;
        }
        let is_compared = self.summary.comparison_experiment_name.is_some();
        text.push_str(&match is_compared {
            true => format!(
                "\n| {title} | mean | base | difference | 95 % interval | inputs | verdict |\n|---|--:|--:|--:|--:|--:|---|\n"
            ),
            false => format!("\n| {title} | mean | inputs |\n|---|--:|--:|\n"),
        });
        for statistics in found.iter().take(REPORT_LINES_MAX) {
            text.push_str(&self.line(statistics, is_compared));
        }
        let further = found.len().saturating_sub(REPORT_LINES_MAX) as u64;
        if further > 0 {
            let several = format!("further {title}s are");
            text.push_str(&format!(
                "\n{} in the experiment.\n",
                counted(further, &format!("further {title} is"), &several)
            ));
        }
    }

    fn line(&self, found: &EvalStatistics, is_compared: bool) -> String {
        let name = found.name.strip_prefix(METRIC_PREFIX).unwrap_or(&found.name);
        let unit = match found.is_metric() {
            true => self.summary.metrics.as_ref().and_then(|metrics| Some(metrics.get(name)?.unit.as_str())),
            false => None,
        };
        let format = NumberFormat::new(found, unit.unwrap_or_default());
        let mean = found.mean.map_or_else(|| "-".to_owned(), |mean| format.plain(mean));
        let Some(change) = &found.change else {
            let missing = if is_compared { " - | - | - |" } else { "" };
            let end = if is_compared { " not in both |" } else { "" };
            return format!("| {} | {mean} |{missing} {} |{end}\n", code(name), found.rows);
        };
        let interval = change.interval.map_or_else(|| "-".to_owned(), |interval| format.interval(interval));
        format!(
            "| {} | {mean} | {} | {} | {interval} | {} | {} |\n",
            code(name),
            format.plain(change.base_mean),
            format.signed(change.difference),
            change.rows,
            verdict(found.is_metric(), change.verdict, change.rows_to_settle),
        )
    }

    fn count_line(&self) -> String {
        let EvalRowCounts { rows, errors, scorer_errors, unwritten, only_here, only_base } = self.counts;
        let mut parts = vec![format!("{}, {}", counted(rows, "row", "rows"), counted(errors, "error", "errors"))];
        let more = [
            (scorer_errors, "failed scorer", "failed scorers"),
            (unwritten, "row not written", "rows not written"),
            (only_here, "input not in the base", "inputs not in the base"),
            (only_base, "input only in the base", "inputs only in the base"),
        ];
        let more = more.into_iter().filter(|(count, ..)| *count > 0);
        parts.extend(more.map(|(count, one, several)| counted(count, one, several)));
        // A score without a change is not in both experiments, which the table says.
        let compared = self.scores.iter().filter(|found| found.change.is_some());
        let incomplete: usize = compared.map(|found| found.incomplete).sum();
        if incomplete > 0 {
            let several = "scores missing in one of the experiments";
            parts.push(counted(incomplete as u64, "score missing in one of the experiments", several));
        }
        format!("{}.", parts.join(", "))
    }

    fn push_disagreements(&self, text: &mut String) {
        let found: Vec<&EvalStatistics> = self.scores.iter().filter(|found| found.disagreeing > 0).collect();
        if found.is_empty() {
            return;
        }
        text.push_str("\nTrials of these inputs disagree:\n\n");
        for statistics in found.iter().take(DISAGREEING_SCORES_MAX) {
            let listed = statistics.disagreements.iter().take(DISAGREEING_ROWS_MAX).map(|row| {
                let (low, high) = (number(row.low, SCORE_PLACES, false), number(row.high, SCORE_PLACES, false));
                format!("{} ({low} to {high} in {} trials)", code(&row.key), row.trials)
            });
            let listed: Vec<String> = listed.collect();
            let inputs = counted(statistics.disagreeing as u64, "input", "inputs");
            let further = if statistics.disagreeing > listed.len() { ", ..." } else { "" };
            text.push_str(&format!("- {}: {inputs}: {}{further}\n", code(&statistics.name), listed.join(", ")));
        }
        let further = found.len().saturating_sub(DISAGREEING_SCORES_MAX) as u64;
        if further > 0 {
            text.push_str(&format!("- {}\n", counted(further, "further score", "further scores")));
        }
    }
}

/// Format of the numbers of one line.
#[derive(Clone, Copy, Debug)]
struct NumberFormat<'u> {
    places: usize,
    unit: &'u str,
}

impl<'u> NumberFormat<'u> {
    /// Returns the format for a score, or for a metric by the size of its mean.
    fn new(found: &EvalStatistics, unit: &'u str) -> NumberFormat<'u> {
        let places = match found.mean.map(f64::abs) {
            _ if !found.is_metric() => SCORE_PLACES,
            Some(mean) if mean >= 100.0 => 0,
            Some(mean) if mean >= 1.0 => 2,
            _ => 4,
        };
        NumberFormat { places, unit }
    }

    fn plain(&self, value: f64) -> String {
        self.with_unit(number(value, self.places, false))
    }

    fn signed(&self, value: f64) -> String {
        self.with_unit(number(value, self.places, true))
    }

    fn interval(&self, Interval(low, high): Interval) -> String {
        format!("{} to {}", number(low, self.places, true), number(high, self.places, true))
    }

    fn with_unit(&self, number: String) -> String {
        match self.unit {
            "" => number,
            unit if unit.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'$') => format!("{number} {unit}"),
            unit => format!("{number} {}", code(unit)),
        }
    }
}

fn verdict(is_metric: bool, verdict: EvalVerdict, rows: RowsToSettle) -> String {
    let word = match (verdict, is_metric) {
        (EvalVerdict::Up, false) => "better",
        (EvalVerdict::Down, false) => "worse",
        (EvalVerdict::Up, true) => "higher",
        (EvalVerdict::Down, true) => "lower",
        (EvalVerdict::Undecided, _) => "undecided",
    };
    let hint = match rows {
        RowsToSettle::Settled => return word.to_owned(),
        RowsToSettle::About(1) => "about 1 more input may settle it".to_owned(),
        RowsToSettle::About(rows) => format!("about {rows} more inputs may settle it"),
        RowsToSettle::TooMany => format!("more than {ROWS_TO_SETTLE_MAX} further inputs may settle it"),
        RowsToSettle::NotByMoreRows => "not to be settled by more inputs".to_owned(),
    };
    format!("{word}: {hint}")
}

fn end_warning(end: EvalEnd) -> Option<&'static str> {
    match end {
        EvalEnd::Completed => None,
        EvalEnd::TimedOut => Some("The eval exceeded its time limit, so that some rows have an error."),
        EvalEnd::Cancelled => Some("The eval was cancelled, so that rows are missing."),
        EvalEnd::WritesFailed => Some("Rows could not be written, so that the eval ended early."),
    }
}

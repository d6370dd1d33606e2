//! Report of a run: a line for each attempt, the neighbour's times, and what is wrong.

use crate::run::{Outcome, RunReport};
use crate::verdict::Verdict;

/// Wanted upper bound of the neighbour's p99 beside the attempts, as a multiple of that without them.
pub const SLOWDOWN_WANTED: f64 = 2.0;

/// Returns what is wrong with an outcome, if anything is.
fn fault(outcome: &Outcome, is_reduced: bool) -> Option<&'static str> {
    let is_gap = is_reduced && outcome.attempt.gap.is_some();
    match &outcome.verdict {
        Verdict::Escaped(_) if is_gap => None,
        Verdict::Escaped(_) => Some("ESCAPED"),
        Verdict::Held(_) | Verdict::Unnamed(_) if is_gap => Some("HELD, but the guide says that it is not"),
        Verdict::Held(_) => None,
        Verdict::Unnamed(_) => Some("NOT NAMED"),
    }
}

fn line(outcome: &Outcome, is_reduced: bool) -> String {
    let words = match &outcome.verdict {
        Verdict::Held(words) | Verdict::Unnamed(words) | Verdict::Escaped(words) => words,
    };
    let mark = fault(outcome, is_reduced).unwrap_or(match &outcome.verdict {
        Verdict::Escaped(_) => "gap",
        Verdict::Held(_) | Verdict::Unnamed(_) => "held",
    });
    let seconds = outcome.took.as_secs_f64();
    format!("{mark:<5} {:<70} {seconds:>5.1} s  {words}", outcome.attempt.name)
}

/// Prints a report. Returns the number of faults.
pub fn print(report: &RunReport) -> usize {
    let is_reduced = report.setup.is_reduced;
    println!("\n== {}: {} attempts in {:.0} s", report.setup.name(), report.outcomes.len(), report.took.as_secs_f64());
    for outcome in &report.outcomes {
        println!("{}", line(outcome, is_reduced));
    }
    for complaint in &report.complaints {
        println!("FAULT {complaint}");
    }
    println!("neighbour without attempts: {}", report.alone.line());
    println!("neighbour beside them:      {}", report.beside.line());
    let (beside, alone) = (&report.beside.warm, &report.alone.warm);
    let (half, most) = (beside.quantile(0.5) / alone.quantile(0.5), beside.typical_p99() / alone.typical_p99());
    println!("its slowdown: p50 {half:.2}, typical p99 {most:.2} (wanted: at most {SLOWDOWN_WANTED})");
    report.outcomes.iter().filter(|outcome| fault(outcome, is_reduced).is_some()).count() + report.complaints.len()
}

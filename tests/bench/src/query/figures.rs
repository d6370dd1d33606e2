//! Figures from the times: each query against the fastest other engine, and the growth of ours.

use std::fmt::Write as _;

use super::measurements::{EngineMeasurement, Times};
use super::queries::{Growth, Question};
use super::{ASSAY, questions};
use crate::report::{Report, Threshold};

const MEAN_RATIO_MAX: f64 = 1.0;
const DISK_PER_JSON_MAX: f64 = 0.25;
const LOOKUP_GROWTH_MAX: f64 = 1.5;
/// Upper bound of the growth of scans over ten times the rows.
const SCAN_GROWTH_MAX: f64 = 11.0;
/// Lower bound of the rate of inserts during the queries, as a share of the wanted rate.
const PACE_MIN: f64 = 0.95;
const BESIDE_RATIO_MAX: f64 = 1.5;
const MIB: f64 = 1_048_576.0;

/// Ours by the faster of the others.
fn ratio(measured: &[EngineMeasurement], question: &Question) -> Option<f64> {
    let ours = of(measured, ASSAY)?.p50(question.name)?;
    let others = measured.iter().filter(|one| one.engine != ASSAY).filter_map(|one| one.p50(question.name));
    others.min_by(f64::total_cmp).map(|fastest| ours / fastest)
}

fn of<'a>(measured: &'a [EngineMeasurement], engine: &str) -> Option<&'a EngineMeasurement> {
    measured.iter().find(|one| one.engine == engine)
}

pub fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

pub fn add(report: &mut Report, measured: &[EngineMeasurement], grown: Option<&EngineMeasurement>) {
    for one in measured.iter().chain(grown) {
        let name = format!("{}, {} spans", one.engine, one.rows);
        report.figure(format!("{name}: loaded in"), one.load_seconds, "s");
        report.figure(format!("{name}: resident, peak while loading"), one.loaded.peak_bytes as f64 / MIB, "MiB");
        report.figure(format!("{name}: resident, after the questions"), one.asked.resident_bytes as f64 / MIB, "MiB");
        report.figure(format!("{name}: resident, peak"), one.asked.peak_bytes as f64 / MIB, "MiB");
        let (disk, share) = (format!("{name}: on disk / JSON"), one.disk_bytes as f64 / one.json_bytes as f64);
        match one.engine == ASSAY {
            true => report.promised(disk, share, "", Threshold::AtMost(DISK_PER_JSON_MAX)),
            false => report.figure(disk, share, ""),
        }
        if one.fixed_bytes > 0 {
            report.figure(format!("{name}: log and reserve, of fixed size"), one.fixed_bytes as f64 / MIB, "MiB");
        }
    }
    let ours = of(measured, ASSAY);
    for (question, most) in questions().filter_map(|question| Some((question, question.ms_max?))) {
        if let Some(ms) = ours.and_then(|ours| ours.p50(question.name)) {
            report.promised(format!("{ASSAY}: {}, p50", question.name), ms, "ms", Threshold::AtMost(most));
        }
    }
    let ratios: Vec<(&str, f64)> =
        questions().filter_map(|question| Some((question.name, ratio(measured, question)?))).collect();
    if let Some((name, worst)) = ratios.iter().max_by(|one, other| one.1.total_cmp(&other.1)) {
        let all: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
        let mean = "ours / the faster of the others, geometric mean of all questions";
        report.promised(mean, geometric_mean(&all), "", Threshold::AtMost(MEAN_RATIO_MAX));
        report.figure(format!("the worst of them: {name}"), *worst, "");
    }
    if let (Some(ours), Some(grown)) = (ours, grown) {
        growth(report, ours, grown);
    }
    if let Some(ours) = ours {
        beside(report, ours);
    }
}

fn beside(report: &mut Report, ours: &EngineMeasurement) {
    let Some(beside) = &ours.beside else { return };
    report.figure("beside the questions: rows that came in, of the pace of loading alone", beside.taken / 1e6, "MB/s");
    report.promised(
        "taken / offered, half of that pace",
        beside.taken / beside.wanted,
        "",
        Threshold::AtLeast(PACE_MIN),
    );
    let slower = |(name, times): (&&'static str, &Times)| Some((*name, times.p50() / ours.p50(name)?));
    let slower: Vec<(&str, f64)> = beside.times.iter().filter_map(slower).collect();
    let all: Vec<f64> = slower.iter().map(|(_, ratio)| *ratio).collect();
    report.figure("beside inserts / alone, geometric mean of all questions", geometric_mean(&all), "");
    if let Some((name, worst)) = slower.iter().max_by(|one, other| one.1.total_cmp(&other.1)) {
        report.promised(format!("the most of them: {name}"), *worst, "", Threshold::AtMost(BESIDE_RATIO_MAX));
    }
}

fn growth(report: &mut Report, ours: &EngineMeasurement, grown: &EngineMeasurement) {
    let times = grown.rows as f64 / ours.rows as f64;
    for (kind, most, name) in
        [(Growth::Lookup, LOOKUP_GROWTH_MAX, "lookups"), (Growth::Scan, SCAN_GROWTH_MAX * times / 10.0, "scans")]
    {
        // Documents do not become more.
        let all = super::TRACES.iter().filter(|question| question.growth == kind);
        let all =
            all.filter_map(|question| Some((question.name, grown.p50(question.name)? / ours.p50(question.name)?)));
        if let Some((worst, grew)) = all.max_by(|one, other| one.1.total_cmp(&other.1)) {
            let name = format!("{times} times the spans: {name} take longer, most ({worst})");
            report.promised(name, grew, "times", Threshold::AtMost(most));
        }
    }
}

/// A line for each question, to be put on a page: p50 in milliseconds.
pub fn table(measured: &[EngineMeasurement], grown: Option<&EngineMeasurement>) -> String {
    let mut header = vec!["question".to_owned()];
    header.extend(measured.iter().map(|one| format!("{} {}, ms", one.engine, one.version).replace(" ,", ",")));
    header.push("ours / faster".into());
    header.extend(grown.map(|grown| format!("{ASSAY} ms, {} spans", grown.rows)));
    let mut text = format!("\n| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for question in questions() {
        let shown = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.2}"));
        let mut line = vec![question.name.to_owned()];
        line.extend(measured.iter().map(|one| shown(one.p50(question.name))));
        line.push(shown(ratio(measured, question)));
        line.extend(grown.map(|grown| shown(grown.p50(question.name))));
        let _ = writeln!(text, "| {} |", line.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::measurements::InsertTimes;
    use super::super::queries::TRACES;
    use super::*;

    fn one(engine: &str, ms: f64) -> EngineMeasurement {
        let times = [(TRACES[0].name, Times(vec![ms, ms, 100.0 * ms]))].into();
        EngineMeasurement { engine: engine.into(), rows: 10, json_bytes: 1, times, ..EngineMeasurement::default() }
    }

    #[test]
    fn a_question_is_held_against_the_faster_of_the_others() {
        let measured = [one(ASSAY, 3.0), one("duckdb", 6.0), one("chdb", 2.0)];
        assert_eq!(ratio(&measured, &TRACES[0]), Some(1.5));
        assert_eq!(ratio(&measured[..1], &TRACES[0]), None);
        assert!(table(&measured, None).contains("| trace by id | 3.00 | 6.00 | 2.00 | 1.50 |"));
    }

    #[test]
    fn what_grows_too_much_is_said() {
        let (small, large) = (one(ASSAY, 1.0), EngineMeasurement { rows: 100, ..one(ASSAY, 2.0) });
        let mut report = Report::new("query");
        add(&mut report, &[small], Some(&large));
        let table = report.table();
        assert!(
            table.contains("lookups take longer, most (trace by id)") && table.contains("MISSED (at most 1.500)"),
            "{table}"
        );
    }

    #[test]
    fn what_inserts_slow_down_too_much_is_said() {
        let times = [(TRACES[0].name, Times(vec![3.0]))].into();
        let ours =
            EngineMeasurement { beside: Some(InsertTimes { wanted: 2e6, taken: 1e6, times }), ..one(ASSAY, 1.0) };
        let mut report = Report::new("query");
        add(&mut report, &[ours], None);
        let table = report.table();
        assert!(table.contains("MISSED (at most 1.500)") && table.contains("MISSED (at least 0.950)"), "{table}");
    }

    #[test]
    fn the_geometric_mean_of_a_half_and_two_is_one() {
        assert!((geometric_mean(&[0.5, 2.0]) - 1.0).abs() < 1e-12);
    }
}

//! The storm on trial: nine deliberate faults of the product, each of which a short run has to see. Without the fault
//! the same run is valid, or it proves nothing.
//!
//! Every run is this program again, in a process of its own, with the fault named in its environment; what it starts
//! inherits that. A run counts only where one of the checkers speaks that the fault is for: that a cluster breaks is
//! easily seen, that it broke a promise is what has to be seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use assay_storage_model::sabotage::{ALL, BUILT, Sabotage, VARIABLE};
use serde_json::{Value, json};

use crate::child::{self, Child, Next, myself};
use crate::probe;
use crate::report::Report;

/// A run that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(200);
/// What was interrupted takes down what it made.
const TEAR_DOWN_MAX: Duration = Duration::from_secs(60);
const PROGRAM_WAIT: Duration = Duration::from_secs(10);
/// Of a finding, in the table.
const SHOWN_CHARS: usize = 90;

/// A fault, and the run that sees it.
#[derive(Debug)]
struct Trial {
    fault: Sabotage,
    run: &'static str,
    /// What a finding says that is about this fault.
    seen_by: &'static [&'static str],
}

const fn trial(fault: Sabotage, run: &'static str, seen_by: &'static [&'static str]) -> Trial {
    Trial { fault, run, seen_by }
}

// Kills of one process: several lives, the third of which seals and compacts.
const CRASH: &str = "crash --runs 4 --seed 1";
const POWER_CUT: &str = "power-cut --runs 2 --seed 1";
const BIT_FLIP: &str = "bit-flip --flips 40 --after-kill --seed 1";
const OLD_LEADER: &str = "old-leader --seed 1";
// Over HTTP an answer also waits for the catalog, which a leader that is cut off does not reach: what a replica alone
// acknowledges is seen only where nothing stands around it.
const SIMULATED: &str = "sim --seeds 24 --seed 1";

// Few of these seeds put a machine back, so it takes more of them.
const OLD_COPIES: &str = "sim --seeds 80 --seed 1";

const TRIALS: [Trial; 9] = [
    trial(Sabotage::AckBeforeQuorum, SIMULATED, &["no loss"]),
    trial(Sabotage::SkipFsync, POWER_CUT, &["no loss", "were durable and are not there", "its log ends at"]),
    trial(Sabotage::AckOnLeaderOnly, OLD_LEADER, &["C1 no loss"]),
    trial(Sabotage::StaleRead, OLD_LEADER, &["C6 session"]),
    trial(Sabotage::ForgetRequests, CRASH, &["exactly once"]),
    trial(Sabotage::SnapshotOffByOne, CRASH, &["no loss", "its log ends at"]),
    trial(Sabotage::MergeTwice, CRASH, &["exactly once"]),
    trial(Sabotage::TruncateAtBadChecksum, BIT_FLIP, &["no loss", "the doctor says that all is well"]),
    trial(
        Sabotage::BelieveOldCopies,
        OLD_COPIES,
        &["no loss", "was applied before", "is durable on", "and durable on"],
    ),
];

/// What one run said.
#[derive(Clone, Debug, Default)]
struct Said {
    verdict: String,
    findings: Vec<String>,
    troubles: Vec<String>,
    not_covered: Vec<String>,
    seconds: f64,
}

/// What a run says of the storm.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    Seen(String),
    Missed(String),
    NotCovered(String),
}

/// Tries the faults of these names, all if there are none. What is to be looked at afterwards.
pub fn run(only: &[String], report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    ensure!(
        BUILT,
        "this program cannot be told to do wrong: build it and assay once more, into a directory of their own, with\n    \
         CARGO_BUILD_BUILD_DIR=target CARGO_TARGET_DIR=target/sabotage cargo build -p assay -p assay-chaos --features sabotage"
    );
    let trials = wanted(only)?;
    let work = tempfile::Builder::new().prefix("assay-chaos-").tempdir().context("making a directory")?;
    program_is_sabotaged(work.path())?;
    let mut controls: BTreeMap<&str, Said> = BTreeMap::new();
    let mut kept = false;
    for trial in trials {
        if !controls.contains_key(trial.run) {
            let said = one(trial.run, None, &work.path().join(format!("control-{}", controls.len())))?;
            let sight = of_control(&said);
            tell("no fault", trial.run, &said, &sight, report);
            kept |= matches!(sight, Sight::Missed(_));
            controls.insert(trial.run, said);
        }
        let name = name(trial.fault);
        if !controls[trial.run].not_covered.is_empty() {
            continue; // told with the run itself
        }
        let said = one(trial.run, Some(name), &work.path().join(name))?;
        let sight = of_fault(trial, &said);
        tell(name, trial.run, &said, &sight, report);
        report.coverage.add("faults tried", 1);
        kept |= matches!(sight, Sight::Missed(_));
    }
    Ok(if kept { vec![work.keep()] } else { Vec::new() })
}

fn name(fault: Sabotage) -> &'static str {
    ALL[fault as usize].1
}

fn wanted(only: &[String]) -> anyhow::Result<Vec<&'static Trial>> {
    let names = ALL.map(|(_, name)| name).join(", ");
    for one in only {
        ensure!(ALL.iter().any(|(_, name)| name == one), "there is no fault `{one}`; there are {names}");
    }
    Ok(TRIALS.iter().filter(|trial| only.is_empty() || only.iter().any(|one| one == name(trial.fault))).collect())
}

/// The nodes of a cluster are that program.
fn program_is_sabotaged(work: &Path) -> anyhow::Result<()> {
    let program = probe::program()?;
    let mut command = std::process::Command::new(&program);
    command.arg("--version");
    let said = child::output(command, &work.join("version.stderr"), PROGRAM_WAIT)?;
    ensure!(said.contains("SABOTAGED BUILD"), "{} cannot be told to do wrong: {}", program.display(), said.trim());
    Ok(())
}

/// One run to its end, in a directory of its own.
fn one(words: &str, fault: Option<&str>, place: &Path) -> anyhow::Result<Said> {
    eprintln!("sabotage: {} in {words} ...", fault.unwrap_or("no fault"));
    std::fs::create_dir_all(place).context("making a directory")?;
    let file = place.join("report.json");
    let mut command = myself()?;
    command.args(words.split(' ')).arg("--report").arg(&file).env("TMPDIR", place).env_remove(VARIABLE);
    if let Some(fault) = fault {
        command.env(VARIABLE, fault);
    }
    let began = Instant::now();
    let mut process = Child::start(command, &place.join("stderr"))?;
    let mut said = String::new();
    loop {
        match process.next(began + RUN_MAX) {
            Next::Line(line) => said += &(line + "\n"),
            Next::Ended => break,
            Next::Late => {
                process.signal("INT")?;
                process.wait(Instant::now() + TEAR_DOWN_MAX)?;
                return Ok(Said { troubles: vec![format!("it did not end within {RUN_MAX:?}")], ..Said::default() });
            }
        }
    }
    process.wait(began + RUN_MAX)?;
    std::fs::write(place.join("stdout"), said)?;
    let seconds = began.elapsed().as_secs_f64();
    let Ok(text) = std::fs::read(&file) else {
        return Ok(Said { troubles: vec![process.last_words()], seconds, ..Said::default() });
    };
    let report: Value = serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))?;
    Ok(said_in(&report, seconds))
}

fn said_in(report: &Value, seconds: f64) -> Said {
    let lines = |name: &str| {
        let lines = report[name].as_array().into_iter().flatten();
        lines.filter_map(|line| line.as_str().map(str::to_owned)).collect::<Vec<String>>()
    };
    Said {
        verdict: report["verdict"].as_str().unwrap_or("none").to_owned(),
        findings: lines("findings"),
        troubles: lines("troubles"),
        not_covered: lines("not_covered"),
        seconds,
    }
}

/// Nothing is wrong, so nothing may be found.
fn of_control(said: &Said) -> Sight {
    match said.verdict.as_str() {
        _ if !said.not_covered.is_empty() => Sight::NotCovered(said.not_covered.join(", ")),
        "valid" => Sight::Seen("valid".into()),
        _ => Sight::Missed(told_instead(said)),
    }
}

fn of_fault(trial: &Trial, said: &Said) -> Sight {
    let found = |by: &&str| said.findings.iter().find(|finding| finding.contains(by));
    match trial.seen_by.iter().find_map(found) {
        Some(finding) if said.verdict == "invalid" => Sight::Seen(finding.clone()),
        _ => Sight::Missed(told_instead(said)),
    }
}

fn told_instead(said: &Said) -> String {
    let first = said.findings.iter().chain(&said.troubles).next().map_or("", String::as_str);
    format!("{}: {first}", if said.verdict.is_empty() { "no verdict" } else { &said.verdict })
}

/// One line of the table, and of the report.
fn tell(name: &str, run: &str, said: &Said, sight: &Sight, report: &mut Report) {
    let (word, words) = match sight {
        Sight::Seen(words) => ("seen", words),
        Sight::Missed(words) => ("MISSED", words),
        Sight::NotCovered(words) => ("not covered", words),
    };
    let shown: String = words.chars().take(SHOWN_CHARS).collect();
    report.notes.push(format!("{name:<25} {run:<45} {:>5.1} s  {word}: {shown}", said.seconds));
    report.runs.push(json!({
        "fault": name, "run": run, "seconds": said.seconds, "sight": word, "words": words, "verdict": said.verdict,
    }));
    match sight {
        Sight::Seen(_) => {}
        Sight::Missed(words) => report.findings.push(format!("{name} in {run}: {words}")),
        Sight::NotCovered(words) => report.not_covered.push(format!("{run}: {words}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(verdict: &str, findings: &[&str]) -> Said {
        let findings = findings.iter().map(|finding| (*finding).to_owned()).collect();
        Said { verdict: verdict.into(), findings, ..Said::default() }
    }

    #[test]
    fn every_fault_has_its_trial_at_its_place() {
        for (place, trial) in TRIALS.iter().enumerate() {
            assert_eq!(trial.fault as usize, place, "{}", name(trial.fault));
        }
        assert_eq!(wanted(&[]).expect("all").len(), ALL.len());
        assert!(wanted(&["skip".into()]).is_err_and(|why| why.to_string().contains("skip-fsync")));
    }

    #[test]
    fn only_a_finding_of_the_right_checker_counts() {
        let trial = trial(Sabotage::MergeTwice, CRASH, &["exactly once"]);
        let right = of_fault(&trial, &said("invalid", &["run 1: fold: a", "run 1: exactly once: b"]));
        assert_eq!(right, Sight::Seen("run 1: exactly once: b".into()));
        for wrong in [said("invalid", &["run 1: fold: a"]), said("valid", &[]), said("unknown", &[])] {
            assert!(matches!(of_fault(&trial, &wrong), Sight::Missed(_)), "{wrong:?}");
        }
    }

    #[test]
    fn a_control_that_is_not_valid_proves_nothing() {
        assert_eq!(of_control(&said("valid", &[])), Sight::Seen("valid".into()));
        assert!(matches!(of_control(&said("invalid", &["x"])), Sight::Missed(_)));
        assert!(matches!(of_control(&said("", &[])), Sight::Missed(_)));
        let lacking = Said { not_covered: vec!["root".into()], ..said("not_covered", &[]) };
        assert_eq!(of_control(&lacking), Sight::NotCovered("root".into()));
    }

    #[test]
    fn a_report_is_read_as_it_is_written() {
        let mut report = Report::new("crash", 1, "--runs 1");
        report.findings.push("no loss: 1 is gone".into());
        let mut value = serde_json::to_value(&report).expect("a report");
        value["verdict"] = serde_json::to_value(report.verdict()).expect("a verdict");
        let said = said_in(&value, 1.0);
        assert_eq!((said.verdict.as_str(), said.findings.len()), ("invalid", 1));
    }
}

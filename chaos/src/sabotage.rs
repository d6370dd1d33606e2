//! Trial of the chaos tests: fifteen deliberate faults of the product, each of which a short run has to detect. Without
//! the fault the same run, or a longer one that contains it, has to be valid; otherwise the run proves nothing.
//!
//! Every run is this program again, in a process of its own, with the fault named in its environment, which its
//! children inherit. A run counts only if a checker for that fault reports it: a broken cluster is easily noticed, a
//! broken guarantee has to be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use assay_storage_model::sabotage::{ALL, BUILT, Sabotage, VARIABLE};
use serde_json::{Value, json};

use crate::capabilities;
use crate::child_process::{self, Child, Next, myself};
use crate::report::Report;

/// A run that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(400);
/// Time for an interrupted run to remove what it made.
const TEAR_DOWN_MAX: Duration = Duration::from_secs(60);
const PROGRAM_WAIT: Duration = Duration::from_secs(10);
/// Upper bound of the characters of a finding in the table.
const SHOWN_CHARS: usize = 90;
/// Runs at the same time: mostly they wait.
const RUNS_AT_ONCE: usize = 2;

/// A fault, and the run that sees it.
#[derive(Debug)]
struct Trial {
    fault: Sabotage,
    run: &'static str,
    /// The run that is valid without the fault.
    control: &'static str,
    /// Texts of findings that are about this fault.
    seen_by: &'static [&'static str],
}

const fn trial(fault: Sabotage, run: &'static str, seen_by: &'static [&'static str]) -> Trial {
    Trial { fault, run, control: run, seen_by }
}

/// Trial by a storm of one kind. A single storm of all these kinds is the control.
const fn in_storm(fault: Sabotage, run: &'static str, seen_by: &'static [&'static str]) -> Trial {
    Trial { fault, run, control: STORM, seen_by }
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

// Long enough for one fault of each kind, which the report counts. With this seed segments are damaged after one fault of
// every other kind, so no other first fault needs the replicas that are rebuilt then.
const STORM: &str = "run --seconds 169 --nodes 3 \
                     --faults empty-directory,files,ring,moved-address,flipped-segment,slow-disk --seed 3";
// With this seed the fault meets the node that leads most, or cuts it off: a node without leads has none to keep.
const EMPTY_DIRECTORY: &str = "run --seconds 42 --nodes 3 --faults empty-directory --seed 3";
const FILES: &str = "run --seconds 46 --nodes 3 --faults files --seed 3";
const RING: &str = "run --seconds 66 --nodes 3 --faults ring --seed 3";
const MOVED_ADDRESS: &str = "run --seconds 45 --nodes 3 --faults moved-address --seed 3";
const FLIPPED_SEGMENT: &str = "run --seconds 60 --nodes 3 --faults flipped-segment --seed 3";
const SLOW_DISK: &str = "run --seconds 55 --nodes 3 --faults slow-disk --seed 3";

const TRIALS: [Trial; 15] = [
    trial(Sabotage::AckBeforeQuorum, SIMULATED, &["no loss"]),
    trial(Sabotage::SkipFsync, POWER_CUT, &["no loss", "were durable and are missing", "its log ends at"]),
    trial(Sabotage::AckOnLeaderOnly, OLD_LEADER, &["C1 no loss"]),
    trial(Sabotage::StaleRead, OLD_LEADER, &["C6 session"]),
    trial(Sabotage::ForgetRequests, CRASH, &["exactly once"]),
    trial(Sabotage::SnapshotOffByOne, CRASH, &["no loss", "its log ends at"]),
    trial(Sabotage::MergeTwice, CRASH, &["exactly once"]),
    trial(Sabotage::TruncateAtBadChecksum, BIT_FLIP, &["no loss", "the doctor found no problems"]),
    trial(
        Sabotage::BelieveOldCopies,
        OLD_COPIES,
        &["no loss", "was applied before", "is durable on", "and durable on"],
    ),
    in_storm(Sabotage::EmptyDirectoryFounds, EMPTY_DIRECTORY, &["was started on an empty directory, and it is ready"]),
    in_storm(Sabotage::FilesRunOutIsFatal, FILES, &["ended because it may open no more files"]),
    in_storm(Sabotage::NoRelay, RING, &["is not ready: 503"]),
    in_storm(Sabotage::NoIntroduction, MOVED_ADDRESS, &["no other node knows it there"]),
    in_storm(Sabotage::RotInCompactionIsFatal, FLIPPED_SEGMENT, &["ended because one of its segments is damaged"]),
    in_storm(Sabotage::KeepLeadsOnSlowDisk, SLOW_DISK, &["is slow; after"]),
];

/// Result of one run.
#[derive(Clone, Debug, Default)]
struct RunReport {
    verdict: String,
    findings: Vec<String>,
    troubles: Vec<String>,
    not_covered: Vec<String>,
    seconds: f64,
}

/// Result of a run, as evidence about the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Detection {
    Seen(String),
    Missed(String),
    NotCovered(String),
}

/// Tries the faults of these names, all if there are none. What is to be looked at afterwards.
pub fn run(only: &[String], report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    ensure!(
        BUILT,
        "a release build has no deliberate faults: use debug builds of assay and assay-chaos, from `cargo build --workspace`"
    );
    let trials = wanted(only)?;
    let work = tempfile::Builder::new().prefix("assay-chaos-").tempdir().context("making a directory")?;
    program_is_sabotaged(work.path())?;
    let controls = controls(&trials, work.path())?;
    // What is not covered is told with the control.
    let covered = |trial: &&Trial| controls[trial.control].not_covered.is_empty();
    let tried: Vec<&Trial> = trials.iter().copied().filter(covered).collect();
    let said = side_by_side(&tried, |_, trial| {
        let name = name(trial.fault);
        one(trial.run, Some(name), &work.path().join(name))
    });
    let mut tried = tried.into_iter().zip(said).peekable();
    let (mut told, mut kept) = (BTreeSet::new(), false);
    for trial in trials {
        let control = &controls[trial.control];
        if told.insert(trial.control) {
            kept |= tell("no fault", trial.control, control, &of_control(control), report);
        }
        if let Some((_, said)) = tried.next_if(|(tried, _)| tried.fault == trial.fault) {
            let said = said?;
            kept |= tell(name(trial.fault), trial.run, &said, &of_fault(trial, &said), report);
            report.coverage.add("faults tried", 1);
        }
    }
    Ok(if kept { vec![work.keep()] } else { Vec::new() })
}

/// Runs the controls of these trials; returns the result of each.
fn controls(trials: &[&Trial], work: &Path) -> anyhow::Result<BTreeMap<&'static str, RunReport>> {
    let mut runs: Vec<&'static str> = Vec::new();
    for trial in trials {
        if !runs.contains(&trial.control) {
            runs.push(trial.control);
        }
    }
    let said = side_by_side(&runs, |place, run| one(run, None, &work.join(format!("control-{place}"))));
    runs.into_iter().zip(said).map(|(run, said)| Ok((run, said?))).collect()
}

/// Does these jobs, a few at the same time, and returns what came of each, in their order. The last begins first: it is
/// the longest. `work` is given the place of a job as well.
fn side_by_side<J: Sync, T: Send>(jobs: &[J], work: impl Fn(usize, &J) -> T + Sync) -> Vec<T> {
    let waiting: Mutex<Vec<(usize, &J)>> = Mutex::new(jobs.iter().enumerate().collect());
    let done: Mutex<BTreeMap<usize, T>> = Mutex::default();
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    std::thread::scope(|scope| {
        for _ in 0..RUNS_AT_ONCE {
            scope.spawn(|| {
                while let Some((place, job)) = next() {
                    let outcome = work(place, job);
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(place, outcome);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
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
    let program = capabilities::program()?;
    let mut command = std::process::Command::new(&program);
    command.arg("--version").env(VARIABLE, name(Sabotage::SkipFsync));
    let said = child_process::output(command, &work.join("version.stderr"), PROGRAM_WAIT)?;
    ensure!(said.contains("SABOTAGED"), "{} is a release build, without faults: {}", program.display(), said.trim());
    Ok(())
}

/// One run to its end, in a directory of its own.
fn one(words: &str, fault: Option<&str>, place: &Path) -> anyhow::Result<RunReport> {
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
                return Ok(RunReport {
                    troubles: vec![format!("it did not end within {RUN_MAX:?}")],
                    ..RunReport::default()
                });
            }
        }
    }
    process.wait(began + RUN_MAX)?;
    std::fs::write(place.join("stdout"), said)?;
    let seconds = began.elapsed().as_secs_f64();
    let Ok(text) = std::fs::read(&file) else {
        return Ok(RunReport { troubles: vec![process.last_words()], seconds, ..RunReport::default() });
    };
    let report: Value = serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))?;
    Ok(said_in(&report, seconds))
}

fn said_in(report: &Value, seconds: f64) -> RunReport {
    let lines = |name: &str| {
        let lines = report[name].as_array().into_iter().flatten();
        lines.filter_map(|line| line.as_str().map(str::to_owned)).collect::<Vec<String>>()
    };
    RunReport {
        verdict: report["verdict"].as_str().unwrap_or("none").to_owned(),
        findings: lines("findings"),
        troubles: lines("troubles"),
        not_covered: lines("not_covered"),
        seconds,
    }
}

/// Nothing is wrong, so nothing may be found.
fn of_control(said: &RunReport) -> Detection {
    match said.verdict.as_str() {
        _ if !said.not_covered.is_empty() => Detection::NotCovered(said.not_covered.join(", ")),
        "valid" => Detection::Seen("valid".into()),
        _ => Detection::Missed(told_instead(said)),
    }
}

fn of_fault(trial: &Trial, said: &RunReport) -> Detection {
    let found = |by: &&str| said.findings.iter().find(|finding| finding.contains(by));
    match trial.seen_by.iter().find_map(found) {
        Some(finding) if said.verdict == "invalid" => Detection::Seen(finding.clone()),
        _ => Detection::Missed(told_instead(said)),
    }
}

fn told_instead(said: &RunReport) -> String {
    let first = said.findings.iter().chain(&said.troubles).next().map_or("", String::as_str);
    format!("{}: {first}", if said.verdict.is_empty() { "no verdict" } else { &said.verdict })
}

/// One line of the table, and of the report. Whether the run is to be looked at afterwards.
fn tell(name: &str, run: &str, said: &RunReport, sight: &Detection, report: &mut Report) -> bool {
    let (word, words) = match sight {
        Detection::Seen(words) => ("seen", words),
        Detection::Missed(words) => ("MISSED", words),
        Detection::NotCovered(words) => ("not covered", words),
    };
    let shown: String = words.chars().take(SHOWN_CHARS).collect();
    report.notes.push(format!("{name:<27} {run:<65} {:>5.1} s  {word}: {shown}", said.seconds));
    report.runs.push(json!({
        "fault": name, "run": run, "seconds": said.seconds, "sight": word, "words": words, "verdict": said.verdict,
    }));
    match sight {
        Detection::Seen(_) => {}
        Detection::Missed(words) => report.findings.push(format!("{name} in {run}: {words}")),
        Detection::NotCovered(words) => report.not_covered.push(format!("{run}: {words}")),
    }
    matches!(sight, Detection::Missed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(verdict: &str, findings: &[&str]) -> RunReport {
        let findings = findings.iter().map(|finding| (*finding).to_owned()).collect();
        RunReport { verdict: verdict.into(), findings, ..RunReport::default() }
    }

    #[test]
    fn every_fault_has_its_trial_at_its_place() {
        for (place, trial) in TRIALS.iter().enumerate() {
            assert_eq!(trial.fault as usize, place, "{}", name(trial.fault));
        }
        assert_eq!(wanted(&[]).expect("all").len(), ALL.len());
        assert!(wanted(&["skip".into()]).is_err_and(|why| why.to_string().contains("skip-fsync")));
    }

    /// A control of other faults, or of other nodes, proves nothing.
    #[test]
    fn a_control_contains_the_run_of_its_trial() {
        let words = |run: &str| -> Vec<String> { run.split(' ').map(str::to_owned).collect() };
        for trial in TRIALS.iter().filter(|trial| trial.control != trial.run) {
            let (run, control) = (words(trial.run), words(trial.control));
            assert_eq!(run.len(), control.len(), "{}", trial.run);
            for (place, word) in run.iter().enumerate() {
                let is_in = match run.get(place.saturating_sub(1)).map(String::as_str) {
                    Some("--faults") => control[place].split(',').any(|kind| kind == word),
                    Some("--seconds") => control[place].parse::<u64>().ok() >= word.parse().ok(),
                    _ => control[place] == *word,
                };
                assert!(is_in, "{word} of {}", trial.run);
            }
        }
    }

    #[test]
    fn jobs_are_done_side_by_side_and_told_in_order() {
        let both = std::sync::Barrier::new(RUNS_AT_ONCE);
        let told = side_by_side(&['a', 'b', 'c', 'd'], |place, job| {
            both.wait();
            format!("{place}{job}")
        });
        assert_eq!(told, ["0a", "1b", "2c", "3d"]);
        assert_eq!(side_by_side(&[' '; 0], |place, _| place), Vec::<usize>::new());
    }

    #[test]
    fn only_a_finding_of_the_right_checker_counts() {
        let trial = trial(Sabotage::MergeTwice, CRASH, &["exactly once"]);
        let right = of_fault(&trial, &said("invalid", &["run 1: fold: a", "run 1: exactly once: b"]));
        assert_eq!(right, Detection::Seen("run 1: exactly once: b".into()));
        for wrong in [said("invalid", &["run 1: fold: a"]), said("valid", &[]), said("unknown", &[])] {
            assert!(matches!(of_fault(&trial, &wrong), Detection::Missed(_)), "{wrong:?}");
        }
    }

    #[test]
    fn a_control_that_is_not_valid_proves_nothing() {
        assert_eq!(of_control(&said("valid", &[])), Detection::Seen("valid".into()));
        assert!(matches!(of_control(&said("invalid", &["x"])), Detection::Missed(_)));
        assert!(matches!(of_control(&said("", &[])), Detection::Missed(_)));
        let lacking = RunReport { not_covered: vec!["root".into()], ..said("not_covered", &[]) };
        assert_eq!(of_control(&lacking), Detection::NotCovered("root".into()));
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

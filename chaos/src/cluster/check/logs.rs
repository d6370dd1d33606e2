//! No node panicked, stopped or ended without a reason that the faults give, and no client was answered what no request
//! may be answered.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;

use super::Evidence;
use crate::cluster::said::Said;

/// What must not stand in a log.
const ALARMS: [&str; 4] = ["panicked at", "stops:", "assertion", " ERROR "];
/// Alarms that mean nothing, with what they come from.
const HARMLESS: [(&str, &str); 1] = [(
    "failure sending external command to RaftCore",
    "a seal that is asked for while consensus stops; openraft says it so",
)];
/// Alarms that a fault explains, with its kinds. Nothing checks that they are there.
const EXPECTED: [(&str, &[&str]); 4] = [
    ("is refused: it runs on an older copy", &["old-copy", "hot-old-copy"]),
    ("lacks what it had acknowledged and is refused", &["old-copy", "hot-old-copy"]),
    ("Error accepting connection: Too many open files", &["files"]),
    ("the files in tls/ cannot be used; the certificate in use stays", &["files"]),
];
/// Faults under which a request may be answered 500: what it reads is gone.
const DISK_FAULTS: [&str; 3] = ["power-cut", "power-cut-all", "disk-full"];
/// Alarms kept of one log; the first say most.
const ALARMS_MAX: usize = 20;
const LINE_CHARS_MAX: usize = 300;

/// What is alarming in one life of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub file: String,
    /// Why it may stop, if something was done to it.
    pub excuse: Option<String>,
    pub alarms: Vec<String>,
    /// Lines that speak of a snapshot that was installed.
    pub snapshots: usize,
}

pub fn load(dir: &Path) -> anyhow::Result<Vec<Log>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !file.contains("-life-") || !file.ends_with(".stderr") {
            continue;
        }
        let excuse = std::fs::read_to_string(path.with_extension("excuse")).ok();
        let lines = BufReader::new(File::open(&path)?).lines().map_while(Result::ok);
        let mut log = Log { file, excuse, alarms: Vec::new(), snapshots: 0 };
        for line in lines {
            log.snapshots += usize::from(installs_snapshot(&line));
            if log.alarms.len() < ALARMS_MAX && is_alarm(&line) {
                log.alarms.push(line.chars().take(LINE_CHARS_MAX).collect());
            }
        }
        logs.push(log);
    }
    logs.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(logs)
}

fn is_alarm(line: &str) -> bool {
    ALARMS.iter().any(|alarm| line.contains(alarm)) && !HARMLESS.iter().any(|(harmless, _)| line.contains(harmless))
}

fn installs_snapshot(line: &str) -> bool {
    line.contains("snapshot") && line.contains("installed")
}

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = broken_promises(evidence);
    for (t, said) in &evidence.history.others {
        let at = *t as f64 / 1e6;
        match said {
            Said::Exit { node, explained: None, why } => {
                findings.push(format!("node {node} ended at {at:.1} s: {why}"))
            }
            Said::Odd { status: 500, .. } if disk_was_dying(evidence, *t) => {}
            Said::Odd { op, status, why } => {
                findings.push(format!("operation {op} was answered {status} at {at:.1} s: {why}"));
            }
            _ => {}
        }
    }
    let kinds: BTreeSet<&str> = evidence.history.faults.iter().map(|fault| fault.kind.as_str()).collect();
    for log in evidence.logs.iter().filter(|log| log.excuse.is_none()) {
        let alarms = log.alarms.iter().filter(|alarm| !follows_from(alarm, &kinds));
        findings.extend(alarms.map(|alarm| format!("{}: {alarm}", log.file)));
    }
    findings
}

/// What was promised of a fault and did not come true. Comes first: odd answers may follow from it by the hundred.
fn broken_promises(evidence: &Evidence) -> Vec<String> {
    let broken = evidence.history.others.iter().filter_map(|(t, said)| match said {
        Said::Broken { fault, why } => Some(format!("{fault} at {:.1} s: {why}", *t as f64 / 1e6)),
        _ => None,
    });
    broken.collect()
}

/// Whether a fault of these kinds explains an alarm.
fn follows_from(alarm: &str, kinds: &BTreeSet<&str>) -> bool {
    EXPECTED.iter().any(|(expected, faults)| alarm.contains(expected) && faults.iter().any(|kind| kinds.contains(kind)))
}

fn disk_was_dying(evidence: &Evidence, t: u64) -> bool {
    let faults = evidence.history.faults.iter().filter(|fault| DISK_FAULTS.contains(&fault.kind.as_str()));
    faults.filter_map(|fault| fault.begun.zip(fault.healed)).any(|(begun, healed)| (begun..=healed).contains(&t))
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{STEP, evidence, evidence_of, found, good, good_rows};
    use super::*;
    use crate::cluster::history::FaultRecord;
    use crate::cluster::said::Outcome;

    #[test]
    fn an_alarm_is_owed_only_under_its_own_fault() {
        let alarm = "ERROR a node is refused: it runs on an older copy of its data directory";
        assert!(follows_from(alarm, &["kill", "old-copy"].into()));
        assert!(!follows_from(alarm, &["kill", "files"].into()));
        assert!(!follows_from("ERROR this node stops: Too many open files", &["files"].into()));
    }

    #[test]
    fn an_end_without_a_reason_and_an_odd_answer_are_named() {
        let mut said = good();
        let exit = |explained: Option<&str>| Said::Exit {
            node: 2,
            explained: explained.map(str::to_owned),
            why: "signal 6".into(),
        };
        said.extend([exit(Some("its disk was full")), exit(None)]);
        said.push(Said::Odd { op: 4, status: 500, why: "inside".into() });
        let mut evidence = evidence_of(&said, &good_rows());
        let findings = found("C11", &evidence);
        assert!(findings.len() == 2 && findings[0].contains("node 2 ended"), "{findings:?}");
        assert!(findings[1].contains("operation 4 was answered 500"), "{findings:?}");
        evidence.history.faults.push(FaultRecord {
            number: 1,
            kind: "power-cut".into(),
            what: String::new(),
            majority: false,
            outcome: Outcome::Installed,
            begun: Some(10 * STEP),
            healed: Some(20 * STEP),
        });
        assert_eq!(found("C11", &evidence).len(), 1, "its disk was dying");
    }

    #[test]
    fn a_broken_promise_is_told_before_what_follows_from_it() {
        let mut said = good();
        said.extend((0..10).map(|_| Said::Odd { op: 4, status: 401, why: "another key".into() }));
        said.push(Said::Broken { fault: "empty-directory".into(), why: "node 2 is ready".into() });
        let findings = found("C11", &evidence_of(&said, &good_rows()));
        let place = said.len() - 1;
        assert_eq!(findings[0], format!("empty-directory at {place}.0 s: node 2 is ready"));
        assert_eq!(findings.len(), 11);
    }

    #[test]
    fn alarms_are_found_in_logs_unless_their_life_is_excused() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("writes");
        let lines = "fine\nfoo ERROR failure sending external command to RaftCore\nthread 'x' panicked at src/a.rs:1\n2024 ERROR a: b\na snapshot of 3 was installed\n";
        write("node-1-life-1.stderr", lines);
        write("node-2-life-1.stderr", "assay stops: EIO\n");
        write("node-2-life-1.excuse", "its disk lost power");
        write("node-1-command.stderr", "assertion\n");
        let mut evidence = evidence();
        evidence.logs = load(dir.path()).expect("reads");
        assert_eq!((evidence.logs.len(), evidence.logs[0].snapshots), (2, 1));
        let findings = found("C11", &evidence);
        assert!(findings.len() == 2 && findings.iter().all(|one| one.starts_with("node-1-life-1")), "{findings:?}");
    }
}

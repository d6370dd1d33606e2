//! Log checker: no node panicked, stopped or ended without a reason explained by the faults, and no client got a
//! response that is never allowed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use anyhow::Context;

use super::Evidence;
use crate::cluster::recording::events::RunEvent;

/// Texts that must not occur in a log.
const ALARMS: [&str; 4] = ["panicked at", "stops:", "assertion", " ERROR "];
/// Alarms that mean nothing, with what they come from.
const HARMLESS: [(&str, &str); 1] = [(
    "failure sending external command to RaftCore",
    "a seal that is asked for while consensus stops; openraft says it so",
)];
/// Alarms that a fault explains, with its kinds. Nothing checks that they are there.
const EXPECTED: [(&str, &[&str]); 4] = [
    ("is refused: it runs on an older copy", &["old-copy", "hot-old-copy"]),
    ("lacks acknowledged entries and is refused", &["old-copy", "hot-old-copy"]),
    ("Error accepting connection: Too many open files", &["files"]),
    ("the files in tls/ cannot be used; the certificate in use stays", &["files"]),
];
/// Alarm of a replica that is rebuilt, which follows from damage in one of its files.
const GIVEN_UP: &str = "this replica was discarded";
/// Faults under which a request may be answered 500: what it reads is gone.
const DISK_FAULTS: [&str; 3] = ["power-cut", "power-cut-all", "disk-full"];
/// Alarms kept of one log; the first ones are the most useful.
const ALARMS_MAX: usize = 20;
const LINE_CHARS_MAX: usize = 300;

/// Alarms in the log of one life of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub file: String,
    /// Why it may stop, if something was done to it.
    pub excuse: Option<String>,
    pub alarms: Vec<String>,
    /// Lines about an installed snapshot.
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
        let damage = Damage::load(dir, &file)?;
        let lines = BufReader::new(File::open(&path)?).lines().map_while(Result::ok);
        let mut log = Log { file, excuse, alarms: Vec::new(), snapshots: 0 };
        for line in lines {
            log.snapshots += usize::from(installs_snapshot(&line));
            if log.alarms.len() < ALARMS_MAX && is_alarm(&line) && !damage.explains(&line) {
                log.alarms.push(line.chars().take(LINE_CHARS_MAX).collect());
            }
        }
        logs.push(log);
    }
    logs.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(logs)
}

/// Files of one node that faults damaged, relative to its data directory.
struct Damage(Vec<String>);

impl Damage {
    /// Reads what was damaged of the node whose log this is.
    fn load(dir: &Path, log: &str) -> anyhow::Result<Damage> {
        let node = log.split_once("-life-").map_or(log, |(node, _)| node);
        match std::fs::read_to_string(dir.join(format!("{node}.damaged"))) {
            Ok(files) => Ok(Damage(files.lines().map(str::to_owned).collect())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Damage(Vec::new())),
            Err(error) => Err(error).with_context(|| format!("reading the damaged files of {node}")),
        }
    }

    /// Returns whether an alarm names a damaged file, or reports that its replica is rebuilt.
    fn explains(&self, alarm: &str) -> bool {
        let given_up = alarm.contains(GIVEN_UP);
        self.0
            .iter()
            .any(|file| alarm.contains(file) || given_up && replica_of(file).is_some_and(|it| alarm.ends_with(&it)))
    }
}

/// The end of a log line about the replica that has this file, which lies below `shards/SHARD-rREPLICA`.
fn replica_of(file: &str) -> Option<String> {
    let (_, replica) = Path::new(file).iter().nth(1)?.to_str()?.split_once("-r")?;
    Some(format!(" replica={replica}"))
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
            RunEvent::Exit { node, explained: None, why } => {
                findings.push(format!("node {node} ended at {at:.1} s: {why}"))
            }
            RunEvent::Odd { status: 500, .. } if disk_was_dying(evidence, *t) => {}
            RunEvent::Odd { op, status, why } => {
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

/// Returns violated guarantees of faults. Listed first, since hundreds of other findings may follow from one.
fn broken_promises(evidence: &Evidence) -> Vec<String> {
    let broken = evidence.history.others.iter().filter_map(|(t, said)| match said {
        RunEvent::Broken { fault, why } => Some(format!("{fault} at {:.1} s: {why}", *t as f64 / 1e6)),
        _ => None,
    });
    broken.collect()
}

/// Returns whether a fault of these kinds explains an alarm.
fn follows_from(alarm: &str, kinds: &BTreeSet<&str>) -> bool {
    EXPECTED.iter().any(|(expected, faults)| alarm.contains(expected) && faults.iter().any(|kind| kinds.contains(kind)))
}

fn disk_was_dying(evidence: &Evidence, t: u64) -> bool {
    let faults = evidence.history.faults.iter().filter(|fault| DISK_FAULTS.contains(&fault.kind.as_str()));
    faults.filter_map(|fault| fault.begun.zip(fault.healed)).any(|(begun, healed)| (begun..=healed).contains(&t))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::hand_made::{STEP, evidence, evidence_of, found, good, good_rows};
    use super::*;
    use crate::cluster::recording::events::Outcome;
    use crate::cluster::recording::indexed_history::FaultRecord;

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
        let exit = |explained: Option<&str>| RunEvent::Exit {
            node: 2,
            explained: explained.map(str::to_owned),
            why: "signal 6".into(),
        };
        said.extend([exit(Some("its disk was full")), exit(None)]);
        said.push(RunEvent::Odd { op: 4, status: 500, why: "inside".into() });
        let mut evidence = evidence_of(&said, &good_rows());
        let findings = found("C11", &evidence);
        assert!(findings.len() == 2 && findings[0].contains("node 2 ended"), "{findings:?}");
        assert!(findings[1].contains("operation 4 was answered 500"), "{findings:?}");
        evidence.history.faults.push(FaultRecord {
            number: 1,
            kind: "power-cut".into(),
            what: String::new(),
            majority: false,
            deaf: None,
            outcome: Outcome::Installed,
            begun: Some(10 * STEP),
            healed: Some(20 * STEP),
        });
        assert_eq!(found("C11", &evidence).len(), 1, "its disk was dying");
    }

    #[test]
    fn a_broken_promise_is_told_before_what_follows_from_it() {
        let mut said = good();
        said.extend((0..10).map(|_| RunEvent::Odd { op: 4, status: 401, why: "another key".into() }));
        said.push(RunEvent::Broken { fault: "empty-directory".into(), why: "node 2 is ready".into() });
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

    #[test]
    fn damage_explains_alarms_of_its_own_file_and_replica_in_every_life() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("writes");
        write("node-2.damaged", "shards/002-r12/g0002/segments/00000024.parquet\n");
        let owed = "1 ERROR a: compaction met damage shard=2 error=a segment: /d/data/shards/002-r12/g0002/segments/00000024.parquet is damaged\n\
                    2 ERROR a: this replica was discarded; it is rebuilt from the others group=18 replica=12\n";
        let other = "3 ERROR a: compaction met damage shard=2 error=a segment: /d/data/shards/002-r12/g0002/segments/00000025.parquet is damaged\n\
                     4 ERROR a: this replica was discarded; it is rebuilt from the others group=18 replica=112\n";
        write("node-2-life-1.stderr", owed);
        write("node-2-life-6.stderr", &format!("{owed}{other}"));
        write("node-1-life-1.stderr", owed);
        let mut found = BTreeMap::new();
        for log in load(dir.path()).expect("reads") {
            let numbers: String = log.alarms.iter().map(|line| &line[..1]).collect();
            found.insert(log.file, numbers);
        }
        let expected = [("node-1-life-1.stderr", "12"), ("node-2-life-1.stderr", ""), ("node-2-life-6.stderr", "34")];
        assert_eq!(found, expected.map(|(file, numbers)| (file.to_owned(), numbers.to_owned())).into());
    }
}

//! Checkers: each compares the history with the final reads, and reports contradictions.

pub mod availability;
mod convergence;
mod exactly_once;
pub(super) mod expected_rows;
mod fold;
pub mod linear;
mod liveness;
mod logs;
mod names;
mod no_loss;
mod no_phantom;
mod order;
mod session;
mod settings;
mod stability;
mod sums;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use super::recording::event_log::{Bodies, HISTORY};
use super::recording::events::RunEvent;
use super::recording::indexed_history::RunHistory;
use super::workload::rows::{Rows, write_of};
use crate::single_node::worker_history::{Event, load};
use logs::Log;

/// Findings reported of one checker; the rest are counted.
pub const TOLD_MAX: usize = 8;

/// State of an object on a node after the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectPicture {
    pub version: u64,
    pub raw: String,
    pub rows: Rows,
}

/// Everything a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub history: RunHistory,
    pub pictures: BTreeMap<(String, u8), ObjectPicture>,
    /// Under which ids each write was ever seen; one if all is well.
    pub xacts: BTreeMap<u64, BTreeSet<u64>>,
    pub logs: Vec<Log>,
    bodies: Option<Bodies>,
}

impl Evidence {
    /// Loads the evidence of a run that ended from its directory.
    pub fn load(dir: &Path) -> anyhow::Result<Evidence> {
        let events: Vec<Event<RunEvent>> = load(&dir.join(HISTORY)).context("reading the history")?;
        let history = RunHistory::of(&events);
        drop(events);
        let bodies = Bodies::of(dir);
        let looks: BTreeSet<u64> = history.looks.values().copied().collect();
        let mut rows = bodies.load(&looks)?;
        let mut pictures = BTreeMap::new();
        for read in history.reads.iter().filter(|read| looks.contains(&read.op)) {
            let rows = rows.remove(&read.op).with_context(|| format!("the rows of the last look {}", read.op))?;
            let picture = ObjectPicture { version: read.version, raw: read.raw.clone(), rows };
            pictures.insert((read.object.clone(), read.node), picture);
        }
        let mut evidence = Evidence::of(history, pictures);
        evidence.bodies = Some(bodies);
        evidence.logs = logs::load(&dir.join("logs"))?;
        Ok(evidence)
    }

    pub fn of(history: RunHistory, pictures: BTreeMap<(String, u8), ObjectPicture>) -> Evidence {
        let mut xacts: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let own = pictures.values().flat_map(|picture| &picture.rows);
        for (write, xact) in own.filter_map(|(id, row)| Some((write_of(id)?, row.xact))) {
            xacts.entry(write).or_default().insert(xact);
        }
        for (write, xact) in history.reads.iter().flat_map(|read| &read.seen) {
            xacts.entry(*write).or_default().insert(*xact);
        }
        Evidence { history, pictures, xacts, ..Evidence::default() }
    }

    /// Returns the one id of an applied write. Several ids are reported by another checker.
    fn xact(&self, write: u64) -> Option<u64> {
        self.xacts.get(&write)?.first().copied()
    }

    /// Returns the states of the object on the nodes, the first first.
    fn pictures_of(&self, object: &str) -> impl Iterator<Item = (u8, &ObjectPicture)> {
        let from = (object.to_owned(), u8::MIN)..=(object.to_owned(), u8::MAX);
        self.pictures.range(from).map(|((_, node), picture)| (*node, picture))
    }
}

type ClusterChecker = fn(&Evidence) -> Vec<String>;

pub const CHECKERS: [(&str, ClusterChecker); 14] = [
    ("C1 no loss", no_loss::check),
    ("C2 no phantom", no_phantom::check),
    ("C3 order", order::check),
    ("C4 exactly once", exactly_once::check),
    ("C5 model", fold::check),
    ("C6 session", session::check),
    ("C7 stability", stability::check),
    ("C8 convergence", convergence::check),
    ("C9 sums", sums::check),
    ("C10 liveness", liveness::check),
    ("C10 availability", availability::check),
    ("C11 logs and statuses", logs::check),
    ("C12 settings are a register", settings::check),
    ("C12 names and what is under them", names::check),
];

/// Findings of one checker.
#[derive(Clone, Debug)]
pub struct Findings {
    pub checker: &'static str,
    pub findings: Vec<String>,
    /// Number of findings; not all are reported.
    pub found: usize,
}

pub fn all(evidence: &Evidence) -> Vec<Findings> {
    let run = |(checker, check): &(&'static str, ClusterChecker)| {
        let mut findings = check(evidence);
        let found = findings.len();
        findings.truncate(TOLD_MAX);
        Findings { checker, findings, found }
    };
    CHECKERS.iter().map(run).collect()
}

/// Returns the reasons why checkers could not decide.
pub fn unsure(evidence: &Evidence) -> Vec<String> {
    let parts = [settings::unsure(evidence), names::unsure(evidence), liveness::unsure(evidence)];
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
pub mod hand_made {
    //! A small correct history, of which checkers get corrupted copies.

    use std::collections::BTreeMap;

    use super::{CHECKERS, Evidence, ObjectPicture};
    use crate::cluster::check::expected_rows::Model;
    use crate::cluster::recording::events::{Ask, ControlReply, Phase, Row, RunEvent, Workload};
    use crate::cluster::recording::indexed_history::RunHistory;
    use crate::cluster::workload::rows::{Fold, Rows, merge, own, total};
    use crate::single_node::worker_history::Event;

    /// One second of storm between any two events.
    pub const STEP: u64 = 1_000_000;

    pub fn write(op: u64, write: u64, key: Option<u64>, rows: &[Row]) -> RunEvent {
        RunEvent::Write { op, client: 1, node: 1, object: "set-0-0".into(), write, key, rows: rows.to_vec() }
    }

    pub fn info(op: u64) -> RunEvent {
        RunEvent::Info { op, status: Some(503), why: "who knows".into() }
    }

    pub fn refused(op: u64, status: u16) -> RunEvent {
        RunEvent::Fail { op, status: Some(status), why: "no".into() }
    }

    /// A read of what these writes make, by a client that sees all of them for the first time.
    pub fn read(op: u64, asked: Option<u64>, version: u64, writes: &[(u64, &[Row])]) -> [RunEvent; 2] {
        let mut model = Model::default();
        writes.iter().for_each(|(xact, rows)| model.write(*xact, rows));
        let seen = writes.iter().map(|(xact, rows)| (own_of(rows), *xact)).collect();
        let found = RunEvent::Found {
            op,
            version,
            raw: format!("raw {version}"),
            fold: model.fold(),
            rows: model.rows.len(),
            total: total(&model.rows),
            seen,
        };
        [RunEvent::Read { op, client: 2, node: 1, object: "set-0-0".into(), version: asked }, found]
    }

    fn own_of(rows: &[Row]) -> u64 {
        rows.iter().find_map(|row| super::write_of(&row.id)).expect("an own row")
    }

    pub fn ask(op: u64, key: &str, ask: Ask) -> RunEvent {
        RunEvent::Ask { op, client: 3, node: 1, key: key.into(), ask }
    }

    pub fn told(op: u64, told: ControlReply) -> RunEvent {
        RunEvent::Told { op, told }
    }

    pub fn one() -> Vec<Row> {
        vec![own(10, 0), merge("set-0", "k10", 1)]
    }

    pub fn two() -> Vec<Row> {
        vec![own(20, 0), own(20, 1), merge("set-0", "k20", 1)]
    }

    /// Two writes acknowledged, one of them sent twice; one refused; one unknown that is not there; two reads.
    pub fn good() -> Vec<RunEvent> {
        let (one, two, other) = (one(), two(), vec![own(30, 0)]);
        let mut said = vec![
            RunEvent::Phase { phase: Phase::Storm },
            RunEvent::Object { object: "set-0-0".into(), workload: Workload::Set, path: "/".into() },
            write(1, 10, Some(10), &one),
            RunEvent::Ok { op: 1 },
            write(2, 20, None, &two),
            RunEvent::Ok { op: 2 },
            write(3, 10, Some(10), &one),
            RunEvent::Ok { op: 3 },
            write(4, 30, None, &other),
            refused(4, 429),
            write(5, 40, None, &[own(40, 0)]),
            info(5),
        ];
        said.extend(read(6, None, 103, &[(101, &one), (102, &two)]));
        said.extend(read(7, Some(101), 101, &[(101, &one)]));
        said
    }

    pub fn history(said: &[RunEvent]) -> RunHistory {
        let events: Vec<Event<RunEvent>> =
            (0..).zip(said).map(|(place, said)| Event { t: place * STEP, said: said.clone() }).collect();
        RunHistory::of(&events)
    }

    /// Returns the rows of every node after these writes.
    pub fn rows(writes: &[(u64, &[Row])]) -> Rows {
        let mut model = Model::default();
        writes.iter().for_each(|(xact, rows)| model.write(*xact, rows));
        model.rows
    }

    /// Evidence of one object that two nodes have alike.
    pub fn evidence_of(said: &[RunEvent], rows: &Rows) -> Evidence {
        let picture = ObjectPicture { version: 105, raw: Fold::of(rows).text(), rows: rows.clone() };
        let pictures = [1, 2].map(|node| (("set-0-0".to_owned(), node), picture.clone()));
        Evidence::of(history(said), BTreeMap::from(pictures))
    }

    pub fn good_rows() -> Rows {
        rows(&[(101, &one()), (102, &two())])
    }

    pub fn evidence() -> Evidence {
        evidence_of(&good(), &good_rows())
    }

    /// Returns the findings of one checker, selected by the beginning of its name.
    pub fn found(name: &str, evidence: &Evidence) -> Vec<String> {
        let (_, check) = CHECKERS.iter().find(|(checker, _)| checker.starts_with(name)).expect("a checker");
        check(evidence)
    }

    #[test]
    fn a_good_history_is_found_good_by_all() {
        for one in super::all(&evidence()) {
            assert_eq!(one.findings, Vec::<String>::new(), "{}", one.checker);
        }
    }
}

//! History of a run, indexed for the checkers.

use std::collections::BTreeMap;

use super::events::{Ask, ControlReply, Outcome, Phase, Row, RunEvent, Workload};
use crate::single_node::worker_history::Event;

/// One content that clients sent, under its key as often as they liked.
#[derive(Clone, Debug, Default)]
pub struct WriteRecord {
    pub object: String,
    pub key: Option<u64>,
    pub rows: Vec<Row>,
    pub sends: Vec<SendAttempt>,
}

#[derive(Clone, Debug)]
pub struct SendAttempt {
    pub op: u64,
    pub node: u8,
    /// Its place in the history.
    pub invoked: usize,
    pub ended: Option<(usize, End)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Ok,
    Fail { status: Option<u16> },
    Info,
}

impl WriteRecord {
    pub fn invoked(&self) -> usize {
        self.sends.first().map_or(0, |sent| sent.invoked)
    }

    /// The place of the first acknowledgement.
    pub fn acked(&self) -> Option<usize> {
        let acks = self.sends.iter().filter_map(|sent| sent.ended.filter(|(_, end)| *end == End::Ok));
        acks.map(|(at, _)| at).min()
    }

    /// Every send was refused: it must never be there.
    pub fn refused(&self) -> bool {
        self.sends.iter().all(|sent| matches!(sent.ended, Some((_, End::Fail { .. }))))
    }
}

#[derive(Clone, Debug)]
pub struct ReadRecord {
    pub op: u64,
    pub client: u32,
    pub node: u8,
    pub object: String,
    pub asked: Option<u64>,
    pub began: usize,
    pub at: usize,
    pub version: u64,
    pub raw: String,
    pub fold: String,
    pub rows: usize,
    pub total: i64,
    pub seen: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub struct AskRecord {
    pub op: u64,
    pub key: String,
    pub ask: Ask,
    pub began: usize,
    pub ended: Option<(usize, Answered)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    Told(ControlReply),
    Fail,
    Info,
}

/// Any operation, for counts and times.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The object or key it is about.
    pub about: String,
    pub kind: &'static str,
    pub node: u8,
    pub phase: Phase,
    pub began: u64,
    /// When it ended, and whether as expected.
    pub ended: Option<(u64, Went)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Went {
    Well,
    Refused,
    Unknown,
}

#[derive(Clone, Debug)]
pub struct FaultRecord {
    pub number: u32,
    pub kind: String,
    pub what: String,
    pub majority: bool,
    /// Node that may leave its own clients without an answer meanwhile.
    pub deaf: Option<u8>,
    pub outcome: Outcome,
    pub begun: Option<u64>,
    pub healed: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct RunHistory {
    pub nodes: u8,
    pub objects: BTreeMap<String, Workload>,
    pub writes: BTreeMap<u64, WriteRecord>,
    pub reads: Vec<ReadRecord>,
    pub asks: Vec<AskRecord>,
    pub operations: BTreeMap<u64, Operation>,
    pub faults: Vec<FaultRecord>,
    /// Start of each phase.
    pub phases: BTreeMap<Phase, u64>,
    /// `(object, node) -> the read that shows it`, and the nodes that showed nothing.
    pub looks: BTreeMap<(String, u8), u64>,
    pub blind: Vec<(String, u8)>,
    /// Everything that is about the cluster and not about an operation.
    pub others: Vec<(u64, RunEvent)>,
    /// Contradictions in the history itself: errors of the harness.
    pub broken: Vec<String>,
}

impl RunHistory {
    pub fn of(events: &[Event<RunEvent>]) -> RunHistory {
        let mut reader = Reader { history: RunHistory::default(), open: BTreeMap::new(), phase: Phase::Setup };
        for (at, event) in events.iter().enumerate() {
            reader.take(at, event.t, &event.said);
        }
        reader.history
    }

    /// The time of a phase's begin.
    pub fn began(&self, phase: Phase) -> Option<u64> {
        self.phases.get(&phase).copied()
    }
}

/// Kind of an operation in progress.
#[derive(Clone, Copy, Debug)]
enum OpenOperation {
    Write { write: u64, place: usize },
    Read,
    Ask { place: usize },
}

struct Reader {
    history: RunHistory,
    open: BTreeMap<u64, (OpenOperation, usize, RunEvent)>,
    phase: Phase,
}

impl Reader {
    fn take(&mut self, at: usize, t: u64, said: &RunEvent) {
        let history = &mut self.history;
        match said {
            RunEvent::Run { nodes, .. } => history.nodes = *nodes,
            RunEvent::Phase { phase } => {
                self.phase = *phase;
                history.phases.entry(*phase).or_insert(t);
            }
            RunEvent::Object { object, workload, .. } => drop(history.objects.insert(object.clone(), *workload)),
            RunEvent::Write { op, node, object, write, key, rows, .. } => {
                let fresh = WriteRecord { object: object.clone(), key: *key, rows: rows.clone(), sends: Vec::new() };
                let record = history.writes.entry(*write).or_insert(fresh);
                record.sends.push(SendAttempt { op: *op, node: *node, invoked: at, ended: None });
                let open = OpenOperation::Write { write: *write, place: record.sends.len() - 1 };
                self.begin(*op, (object, "write", *node), (at, t), open, said);
            }
            RunEvent::Read { op, object, node, version, .. } => {
                let kind = if version.is_some() { "read at a version" } else { "read" };
                self.begin(*op, (object, kind, *node), (at, t), OpenOperation::Read, said);
            }
            RunEvent::Ask { op, key, ask, node, .. } => {
                history.asks.push(AskRecord { op: *op, key: key.clone(), ask: ask.clone(), began: at, ended: None });
                let place = history.asks.len() - 1;
                self.begin(*op, (key, "ask", *node), (at, t), OpenOperation::Ask { place }, said);
            }
            RunEvent::Ok { op } => self.end(*op, at, t, Went::Well, said),
            RunEvent::Found { op, .. } | RunEvent::Told { op, .. } => self.end(*op, at, t, Went::Well, said),
            RunEvent::Fail { op, .. } => self.end(*op, at, t, Went::Refused, said),
            RunEvent::Info { op, .. } => self.end(*op, at, t, Went::Unknown, said),
            RunEvent::Looked { object, node, op } => drop(history.looks.insert((object.clone(), *node), *op)),
            RunEvent::Blind { object, node } => history.blind.push((object.clone(), *node)),
            RunEvent::Fault { .. } => history.fault(t, said),
            RunEvent::Odd { .. }
            | RunEvent::Exit { .. }
            | RunEvent::Broken { .. }
            | RunEvent::Status { .. }
            | RunEvent::Gauges { .. } => {
                history.others.push((t, said.clone()));
            }
        }
    }

    fn begin(
        &mut self,
        op: u64,
        (about, kind, node): (&str, &'static str, u8),
        (at, t): (usize, u64),
        open: OpenOperation,
        said: &RunEvent,
    ) {
        let operation = Operation { about: about.to_owned(), kind, node, phase: self.phase, began: t, ended: None };
        if self.history.operations.insert(op, operation).is_some() {
            self.history.broken.push(format!("line {at}: the operation {op} began twice"));
        }
        self.open.insert(op, (open, at, said.clone()));
    }

    fn end(&mut self, op: u64, at: usize, t: u64, went: Went, said: &RunEvent) {
        let history = &mut self.history;
        let Some((open, began, invoked)) = self.open.remove(&op) else {
            history.broken.push(format!("line {at}: an end of the operation {op}, which is not under way"));
            return;
        };
        let mut went = went;
        match open {
            OpenOperation::Write { write, place } => {
                let end = match said {
                    RunEvent::Ok { .. } => End::Ok,
                    RunEvent::Fail { status, .. } => End::Fail { status: *status },
                    _ => End::Info,
                };
                let sent = history.writes.get_mut(&write).and_then(|record| record.sends.get_mut(place));
                sent.into_iter().for_each(|sent| sent.ended = Some((at, end)));
                // What comes under the key of another is to be refused so.
                let other = matches!(invoked, RunEvent::Write { key: Some(key), write, .. } if key != write);
                if other && end == (End::Fail { status: Some(409) }) {
                    went = Went::Well;
                }
            }
            OpenOperation::Read => history.reads.extend(read_record(&invoked, began, said, at)),
            OpenOperation::Ask { place } => {
                let answered = match said {
                    RunEvent::Told { told, .. } => Answered::Told(told.clone()),
                    RunEvent::Fail { .. } => Answered::Fail,
                    _ => Answered::Info,
                };
                history.asks.get_mut(place).into_iter().for_each(|ask| ask.ended = Some((at, answered.clone())));
            }
        }
        let operation = history.operations.get_mut(&op);
        operation.into_iter().for_each(|operation| operation.ended = Some((t, went)));
    }
}

fn read_record(invoked: &RunEvent, began: usize, said: &RunEvent, at: usize) -> Option<ReadRecord> {
    let RunEvent::Read { op, client, node, object, version: asked } = invoked else { return None };
    let RunEvent::Found { version, raw, fold, rows, total, seen, .. } = said else { return None };
    Some(ReadRecord {
        op: *op,
        client: *client,
        node: *node,
        object: object.clone(),
        asked: *asked,
        began,
        at,
        version: *version,
        raw: raw.clone(),
        fold: fold.clone(),
        rows: *rows,
        total: *total,
        seen: seen.clone(),
    })
}

impl RunHistory {
    fn fault(&mut self, t: u64, said: &RunEvent) {
        let RunEvent::Fault { number, kind, what, majority, deaf, outcome } = said else { return };
        let (number, majority, outcome) = (*number, *majority, *outcome);
        let place = self.faults.iter().position(|fault| fault.number == number);
        let place = place.unwrap_or_else(|| {
            let (kind, what) = (kind.clone(), String::new());
            self.faults.push(FaultRecord {
                number,
                kind,
                what,
                majority,
                deaf: None,
                outcome,
                begun: None,
                healed: None,
            });
            self.faults.len() - 1
        });
        let fault = &mut self.faults[place];
        match outcome {
            Outcome::Begun => fault.begun = Some(t),
            Outcome::Healed => fault.healed = Some(t),
            Outcome::Installed | Outcome::Skipped | Outcome::Indeterminate => {
                fault.outcome = outcome;
                fault.deaf = *deaf;
                what.clone_into(&mut fault.what);
                // As it is with the nodes that belong to it by then.
                fault.majority = majority;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(said: Vec<RunEvent>) -> RunHistory {
        let events: Vec<_> = (0..).zip(said).map(|(t, said)| Event { t, said }).collect();
        RunHistory::of(&events)
    }

    fn write(op: u64, write: u64, key: Option<u64>) -> RunEvent {
        RunEvent::Write { op, client: 1, node: 1, object: "o".into(), write, key, rows: Vec::new() }
    }

    #[test]
    fn sends_of_one_content_are_one_write() {
        let said = vec![
            write(1, 9, Some(9)),
            write(2, 9, Some(9)),
            RunEvent::Info { op: 1, status: None, why: String::new() },
            RunEvent::Ok { op: 2 },
            write(3, 10, Some(9)),
            RunEvent::Fail { op: 3, status: Some(409), why: String::new() },
        ];
        let history = history(said);
        let record = &history.writes[&9];
        assert_eq!((record.sends.len(), record.acked(), record.refused()), (2, Some(3), false));
        assert!(history.writes[&10].refused());
        assert_eq!(history.operations[&3].ended, Some((5, Went::Well)), "it has to be refused");
        assert_eq!(history.broken, Vec::<String>::new());
    }

    #[test]
    fn what_does_not_fit_together_is_the_harness_at_fault() {
        let history = history(vec![RunEvent::Ok { op: 1 }, write(2, 9, None), write(2, 9, None)]);
        assert_eq!(history.broken.len(), 2);
    }
}

//! Outcomes of clients' requests: failures, whether they were expected, and whether one retry was enough.
//!
//! A client sends one request after the other, and after a failure the next one is the retry. So two failures of a client
//! in a row are a request that needed more than one retry. Questions to the control plane are not sent again as they
//! were: there the client's next question counts.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::check::TOLD_MAX;
use crate::cluster::recording::event_log::HISTORY;
use crate::cluster::recording::events::{Outcome, Phase, RunEvent};
use crate::cluster::workload::client::NO_ANSWER;
use crate::single_node::worker_history::{Event, load};

const CONFLICT: u16 = 409;
const UNAVAILABLE: u16 = 503;

/// The time in which a node was being restarted; times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    pub node: u8,
    pub from: u64,
    pub to: u64,
}

/// One try of a request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Time of its end, in microseconds.
    pub t: u64,
    pub client: u32,
    pub node: u8,
    pub kind: &'static str,
    /// None if there was no answer.
    pub status: Option<u16>,
    pub why: String,
    /// Whether a client has to expect it: a 503, or no connection to a node that was being restarted.
    pub expected: bool,
    /// Whether the previous try failed too.
    pub again: bool,
}

impl Failure {
    pub fn words(&self) -> String {
        let Failure { client, node, kind, why, .. } = self;
        let status = self.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        format!("{kind} of client {client} at node {node}, {:.1} s: {status}: {why}", self.t as f64 / 1e6)
    }
}

/// All requests of the storm and the calm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub answered: u64,
    /// Requests that were answered at the second try.
    pub retried_once: u64,
    /// Requests of which the retry failed too.
    pub retried_more: u64,
    /// Failed tries, in order of time.
    pub failures: Vec<Failure>,
}

/// A try that has not ended.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    client: u32,
    node: u8,
    kind: &'static str,
    began: u64,
}

impl Requests {
    pub fn of(events: &[Event<RunEvent>], away: &[Away]) -> Requests {
        let mut requests = Requests::default();
        let mut open: BTreeMap<u64, OpenRequest> = BTreeMap::new();
        // Failures in a row, of each client.
        let mut in_a_row: BTreeMap<u32, u32> = BTreeMap::new();
        let mut phase = Phase::Setup;
        for Event { t, said } in events {
            match said {
                RunEvent::Phase { phase: next } => phase = *next,
                RunEvent::Write { op, client, node, .. }
                | RunEvent::Read { op, client, node, .. }
                | RunEvent::Ask { op, client, node, .. } => {
                    if matches!(phase, Phase::Storm | Phase::Calm) {
                        open.insert(*op, OpenRequest { client: *client, node: *node, kind: kind(said), began: *t });
                    }
                }
                _ => {
                    if let Some(one) = said.ended().and_then(|op| open.remove(&op)) {
                        let failure = failure(one, *t, said, away);
                        requests.end(in_a_row.entry(one.client).or_default(), failure);
                    }
                }
            }
        }
        requests
    }

    /// Takes the end of one try.
    fn end(&mut self, in_a_row: &mut u32, failure: Option<Failure>) {
        let before = *in_a_row;
        match failure {
            None => {
                self.answered += 1;
                self.retried_once += u64::from(before == 1);
                *in_a_row = 0;
            }
            Some(failure) => {
                self.retried_more += u64::from(before == 1);
                self.failures.push(Failure { again: before > 0, ..failure });
                *in_a_row += 1;
            }
        }
    }

    /// Counts of failed tries by what the client got.
    pub fn figures(&self) -> Value {
        let mut tries: BTreeMap<String, u64> = BTreeMap::new();
        for failure in &self.failures {
            let status = failure.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            *tries.entry(status).or_default() += 1;
        }
        json!({
            "answered": self.answered,
            "retried once": self.retried_once,
            "retried more than once": self.retried_more,
            "failed tries": tries,
        })
    }
}

/// Returns the findings about these failures; `what` describes the violation in a few words.
pub fn findings<'a>(what: &str, failures: impl Iterator<Item = &'a Failure>) -> Vec<String> {
    let failures: Vec<&Failure> = failures.collect();
    let mut findings: Vec<String> =
        failures.iter().take(TOLD_MAX).map(|failure| format!("{what}: {}", failure.words())).collect();
    if failures.len() > TOLD_MAX {
        findings.push(format!("{what}: and {} more", failures.len() - TOLD_MAX));
    }
    findings
}

/// Reads the history of a run that ended.
pub fn events(dir: &Path) -> anyhow::Result<Vec<Event<RunEvent>>> {
    load(&dir.join(HISTORY))
}

/// The restarts of a run: faults of this kind, each with the number of its node.
pub fn restarts(events: &[Event<RunEvent>], of_kind: &str) -> Vec<Away> {
    let mut away: BTreeMap<u8, Away> = BTreeMap::new();
    for Event { t, said } in events {
        let RunEvent::Fault { number, kind, outcome, .. } = said else { continue };
        let Some(node) = u8::try_from(*number).ok().filter(|_| kind == of_kind) else { continue };
        let one = away.entry(node).or_insert(Away { node, from: *t, to: u64::MAX });
        if *outcome == Outcome::Healed {
            one.to = *t;
        }
    }
    away.into_values().collect()
}

fn kind(said: &RunEvent) -> &'static str {
    match said {
        RunEvent::Write { .. } => "write",
        RunEvent::Read { .. } => "read",
        _ => "ask",
    }
}

/// Returns the failure of a try with this outcome, if it is one.
fn failure(one: OpenRequest, t: u64, said: &RunEvent, away: &[Away]) -> Option<Failure> {
    let (RunEvent::Fail { status, why, .. } | RunEvent::Info { status, why, .. }) = said else { return None };
    let OpenRequest { client, node, kind, began } = one;
    // Another content under a key that is taken is answered so.
    if kind == "write" && *status == Some(CONFLICT) {
        return None;
    }
    let restarted = || away.iter().any(|away| away.node == node && began <= away.to && t >= away.from);
    let expected = match status {
        Some(status) => *status == UNAVAILABLE,
        None => !why.starts_with(NO_ANSWER) && restarted(),
    };
    Some(Failure { t, client, node, kind, status: *status, why: why.clone(), expected, again: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Events a second apart, in the storm.
    fn history(said: Vec<RunEvent>) -> Vec<Event<RunEvent>> {
        let storm = std::iter::once(RunEvent::Phase { phase: Phase::Storm });
        (0..).zip(storm.chain(said)).map(|(place, said)| Event { t: place * SECOND, said }).collect()
    }

    fn read(op: u64, client: u32, node: u8) -> RunEvent {
        RunEvent::Read { op, client, node, object: "o".into(), version: None }
    }

    fn info(op: u64, status: Option<u16>, why: &str) -> RunEvent {
        RunEvent::Info { op, status, why: why.into() }
    }

    fn fault(node: u32, outcome: Outcome) -> RunEvent {
        RunEvent::Fault {
            number: node,
            kind: "upgrade".into(),
            what: String::new(),
            majority: true,
            deaf: None,
            outcome,
        }
    }

    fn of(said: Vec<RunEvent>) -> Requests {
        let events = history(said);
        Requests::of(&events, &restarts(&events, "upgrade"))
    }

    #[test]
    fn one_retry_is_counted_and_the_second_is_too_many() {
        let once = vec![read(1, 1, 1), info(1, Some(503), ""), read(2, 1, 2), RunEvent::Ok { op: 2 }];
        let requests = of(once.clone());
        assert_eq!((requests.answered, requests.retried_once, requests.retried_more), (1, 1, 0));
        let mut more = once;
        more.splice(2..2, [read(3, 1, 2), info(3, Some(503), "")]);
        let requests = of(more.clone());
        assert_eq!((requests.answered, requests.retried_once, requests.retried_more), (1, 0, 1));
        assert_eq!(requests.failures.iter().map(|one| one.again).collect::<Vec<_>>(), [false, true]);
        more.splice(4..4, [read(4, 1, 2), info(4, Some(503), "")]);
        assert_eq!(of(more).retried_more, 1, "it is one request");
    }

    #[test]
    fn clients_are_counted_apart() {
        let requests = of(vec![
            read(1, 1, 1),
            read(2, 2, 1),
            info(1, Some(503), ""),
            info(2, Some(503), ""),
            read(3, 1, 2),
            read(4, 2, 2),
            RunEvent::Ok { op: 3 },
            RunEvent::Ok { op: 4 },
        ]);
        assert_eq!((requests.retried_once, requests.retried_more), (2, 0));
    }

    #[test]
    fn only_a_node_that_is_restarted_may_break_a_connection() {
        let expected = |node, why: &str| {
            let said = vec![read(1, 1, node), fault(2, Outcome::Begun), info(1, None, why), fault(2, Outcome::Healed)];
            of(said).failures[0].expected
        };
        assert!(expected(2, "connection refused"));
        assert!(!expected(1, "connection refused"), "another node");
        assert!(!expected(2, &format!("{NO_ANSWER} 30s")), "it hung");
        let late = vec![
            fault(2, Outcome::Begun),
            fault(2, Outcome::Healed),
            read(1, 1, 2),
            info(1, None, "connection refused"),
        ];
        assert!(!of(late).failures[0].expected, "it was back");
    }

    #[test]
    fn no_other_answer_than_503_is_expected() {
        for (status, expected) in [(503, true), (429, false), (500, false), (507, false)] {
            let requests = of(vec![read(1, 1, 1), info(1, Some(status), "")]);
            assert_eq!(requests.failures[0].expected, expected, "{status}");
        }
        let write =
            RunEvent::Write { op: 1, client: 1, node: 1, object: "o".into(), write: 9, key: Some(8), rows: Vec::new() };
        let conflict = RunEvent::Fail { op: 1, status: Some(CONFLICT), why: String::new() };
        assert_eq!(of(vec![write, conflict]).answered, 1, "that is an answer");
    }

    #[test]
    fn what_is_outside_of_the_load_does_not_count() {
        let mut events = history(vec![RunEvent::Phase { phase: Phase::Look }, read(1, 1, 1), info(1, Some(500), "")]);
        assert_eq!(Requests::of(&events, &[]), Requests::default());
        events[1].said = RunEvent::Phase { phase: Phase::Calm };
        assert_eq!(Requests::of(&events, &[]).failures.len(), 1);
    }

    #[test]
    fn findings_are_cut_off_and_say_so() {
        let said = (0..10).flat_map(|op| [read(op, 1, 3), info(op, Some(500), "why")]).collect();
        let requests = of(said);
        let findings = findings("a request failed", requests.failures.iter());
        assert_eq!(findings.len(), TOLD_MAX + 1);
        assert_eq!(findings[0], "a request failed: read of client 1 at node 3, 2.0 s: 500: why");
        assert_eq!(findings[TOLD_MAX], "a request failed: and 2 more");
        assert_eq!(requests.figures()["failed tries"], json!({"500": 10}));
    }
}

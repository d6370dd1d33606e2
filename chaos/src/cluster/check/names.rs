//! Checker of names: at most one experiment has a name; a dropped one is gone for everyone; an experiment has exactly
//! the rows written to it.

use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use super::linear::{Call, Order, SequentialMachine, order};
use crate::cluster::recording::events::{Ask, ControlReply};
use crate::cluster::recording::indexed_history::{Answered, AskRecord};

/// Experiment that has the name. Ids are those of the history.
#[derive(Clone, Debug)]
struct NameMachine {
    /// Experiments that some client found, and whose maker never learned of them.
    unclaimed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NameOp {
    Made {
        id: String,
        found: bool,
    },
    /// The outcome is unknown: one may have been made.
    Making,
    Dropped(String),
    Dropping(String),
    Alive(String),
    Dead(String),
}

impl SequentialMachine for NameMachine {
    type State = Option<String>;
    type Op = NameOp;

    fn start(&self) -> Option<String> {
        None
    }

    fn step(&self, state: &Option<String>, op: &NameOp) -> Vec<Option<String>> {
        let is = |id: &String| state.as_ref() == Some(id);
        match op {
            NameOp::Made { id, found } if *found == is(id) && (*found || state.is_none()) => vec![Some(id.clone())],
            NameOp::Making if state.is_none() => self.unclaimed.iter().cloned().map(Some).collect(),
            NameOp::Dropped(id) if is(id) => vec![None],
            NameOp::Dropping(id) if is(id) => vec![None],
            NameOp::Alive(id) if is(id) => vec![state.clone()],
            NameOp::Dead(id) if !is(id) => vec![state.clone()],
            _ => Vec::new(),
        }
    }
}

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, asks) in by_name(evidence) {
        let (machine, calls) = calls(&asks);
        if let Order::None { at } = order(&machine, &calls) {
            findings.push(format!("{name}: no order explains {:?} on line {:?}", calls[at].op, calls[at].end));
        }
        rows(name, &asks, &mut findings);
    }
    findings
}

pub fn unsure(evidence: &Evidence) -> Vec<String> {
    let names = by_name(evidence).into_iter();
    let unknown = |asks: &[&AskRecord]| {
        let (machine, calls) = calls(asks);
        matches!(order(&machine, &calls), Order::Unknown { .. })
    };
    names
        .filter(|(_, asks)| unknown(asks))
        .map(|(name, _)| format!("{name}: too many orders to look through"))
        .collect()
}

fn by_name(evidence: &Evidence) -> BTreeMap<&str, Vec<&AskRecord>> {
    let mut names: BTreeMap<&str, Vec<&AskRecord>> = BTreeMap::new();
    let asks = evidence.history.asks.iter().filter(|ask| !matches!(ask.ask, Ask::Set { .. } | Ask::Get));
    asks.for_each(|ask| names.entry(&ask.key).or_default().push(ask));
    names
}

fn calls(asks: &[&AskRecord]) -> (NameMachine, Vec<Call<NameOp>>) {
    let made = |wanted: bool| {
        let ids = asks.iter().filter_map(move |ask| match &ask.ended {
            Some((_, Answered::Told(ControlReply::Made { id, found }))) if *found == wanted => Some(id.clone()),
            _ => None,
        });
        ids.collect::<BTreeSet<String>>()
    };
    let unclaimed: Vec<String> = made(true).difference(&made(false)).cloned().collect();
    let call = |ask: &&AskRecord| {
        let told = match &ask.ended {
            Some((at, Answered::Told(told))) => Some((*at, told)),
            Some((_, Answered::Fail)) => return None,
            _ => None,
        };
        let (end, op) = match (&ask.ask, told) {
            (Ask::Make, Some((at, ControlReply::Made { id, found }))) => {
                (Some(at), NameOp::Made { id: id.clone(), found: *found })
            }
            // Where every experiment has a maker, nobody ever saw what this one made.
            (Ask::Make, None) if !unclaimed.is_empty() => (None, NameOp::Making),
            (Ask::Drop { id }, Some((at, ControlReply::Alive))) => (Some(at), NameOp::Dropped(id.clone())),
            (Ask::Drop { id }, None) => (None, NameOp::Dropping(id.clone())),
            (
                Ask::Drop { id } | Ask::Look { id } | Ask::Put { id } | Ask::Rows { id },
                Some((at, ControlReply::Dead)),
            ) => (Some(at), NameOp::Dead(id.clone())),
            (
                Ask::Look { id } | Ask::Put { id } | Ask::Rows { id },
                Some((at, ControlReply::Alive | ControlReply::Rows { .. })),
            ) => (Some(at), NameOp::Alive(id.clone())),
            _ => return None,
        };
        Some(Call { begin: ask.began, end, op })
    };
    let calls = asks.iter().filter_map(call).collect();
    (NameMachine { unclaimed }, calls)
}

/// Rows of each experiment: all that were acknowledged before, none that was refused, and of no other experiment.
fn rows(name: &str, asks: &[&AskRecord], findings: &mut Vec<String>) {
    let puts: BTreeMap<u64, (&String, &AskRecord)> = asks
        .iter()
        .filter_map(|ask| match &ask.ask {
            Ask::Put { id } => Some((ask.op, (id, *ask))),
            _ => None,
        })
        .collect();
    for ask in asks {
        let (Ask::Rows { id }, Some((at, Answered::Told(ControlReply::Rows { ops, odd })))) = (&ask.ask, &ask.ended)
        else {
            continue;
        };
        let there: BTreeSet<u64> = ops.iter().copied().collect();
        findings.extend(odd.iter().map(|row| format!("{name}: {id} has the row {row}, which nobody wrote to it")));
        for op in &there {
            let known = puts.get(op).filter(|(of, put)| {
                let refused = matches!(put.ended, Some((_, Answered::Fail | Answered::Told(ControlReply::Dead))));
                *of == id && put.began < *at && !refused
            });
            if known.is_none() {
                findings.push(format!("{name}: {id} shows what operation {op} wrote, on line {at}"));
            }
        }
        let before = puts.iter().filter(|(op, (of, put))| {
            let acked = matches!(&put.ended, Some((end, Answered::Told(ControlReply::Alive))) if *end < ask.began);
            *of == id && acked && !there.contains(*op)
        });
        findings.extend(before.map(|(op, _)| format!("{name}: {id} lacks what operation {op} wrote, on line {at}")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{ask, evidence_of, found, good_rows, info, told};
    use crate::cluster::recording::events::{Ask, ControlReply, RunEvent};

    fn made(op: u64, id: &str, found: bool) -> [RunEvent; 2] {
        [ask(op, "n", Ask::Make), told(op, ControlReply::Made { id: id.into(), found })]
    }

    fn look(op: u64, id: &str, is: ControlReply) -> [RunEvent; 2] {
        [ask(op, "n", Ask::Look { id: id.into() }), told(op, is)]
    }

    fn dropped(op: u64, id: &str) -> [RunEvent; 2] {
        [ask(op, "n", Ask::Drop { id: id.into() }), told(op, ControlReply::Alive)]
    }

    fn put(op: u64, id: &str, is: ControlReply) -> [RunEvent; 2] {
        [ask(op, "n", Ask::Put { id: id.into() }), told(op, is)]
    }

    fn rows(op: u64, id: &str, ops: &[u64], odd: &[&str]) -> [RunEvent; 2] {
        let odd = odd.iter().map(|row| (*row).to_owned()).collect();
        [ask(op, "n", Ask::Rows { id: id.into() }), told(op, ControlReply::Rows { ops: ops.to_vec(), odd })]
    }

    fn check(parts: &[[RunEvent; 2]]) -> Vec<String> {
        let said: Vec<RunEvent> = parts.iter().flatten().cloned().collect();
        found("C12 names", &evidence_of(&said, &good_rows()))
    }

    #[test]
    fn a_life_and_the_next_are_fine() {
        let parts = [
            made(1, "a", false),
            made(2, "a", true),
            put(3, "a", ControlReply::Alive),
            rows(4, "a", &[3], &[]),
            dropped(5, "a"),
            look(6, "a", ControlReply::Dead),
            put(7, "a", ControlReply::Dead),
            made(8, "b", false),
            rows(9, "b", &[], &[]),
        ];
        assert_eq!(check(&parts), Vec::<String>::new());
    }

    #[test]
    fn what_was_dropped_and_lives_is_named() {
        let dead = [made(1, "a", false), dropped(2, "a")];
        for after in
            [look(3, "a", ControlReply::Alive), put(3, "a", ControlReply::Alive), made(3, "a", true), dropped(3, "a")]
        {
            let parts = [dead[0].clone(), dead[1].clone(), after];
            assert_eq!(check(&parts).len(), 1, "{parts:?}");
        }
    }

    #[test]
    fn two_at_a_time_and_a_lost_one_are_named() {
        assert!(check(&[made(1, "a", false), made(2, "b", false)])[0].contains("no order explains Made"));
        assert_eq!(check(&[made(1, "a", false), look(2, "a", ControlReply::Dead)]).len(), 1);
    }

    #[test]
    fn an_unknown_maker_explains_what_was_found() {
        let unknown = [ask(1, "n", Ask::Make), info(1)];
        assert_eq!(check(&[unknown, made(2, "x", true), look(3, "x", ControlReply::Alive)]), Vec::<String>::new());
        assert_eq!(check(&[made(2, "x", true)]).len(), 1, "nobody could have made it");
    }

    #[test]
    fn an_unknown_drop_may_have_happened() {
        let unknown = [ask(2, "n", Ask::Drop { id: "a".into() }), info(2)];
        for after in [ControlReply::Alive, ControlReply::Dead] {
            assert_eq!(check(&[made(1, "a", false), unknown.clone(), look(3, "a", after)]), Vec::<String>::new());
        }
    }

    #[test]
    fn rows_that_are_lost_strange_or_risen_are_named() {
        let start = [made(1, "a", false), put(2, "a", ControlReply::Alive)];
        let with = |last: [RunEvent; 2]| check(&[start[0].clone(), start[1].clone(), last]);
        assert!(with(rows(3, "a", &[], &[]))[0].contains("lacks what operation 2 wrote"));
        assert!(with(rows(3, "a", &[2, 9], &[]))[0].contains("shows what operation 9 wrote"));
        assert!(with(rows(3, "a", &[2], &["zz"]))[0].contains("has the row zz"));
        let risen = [start[0].clone(), start[1].clone(), dropped(3, "a"), made(4, "b", false), rows(5, "b", &[2], &[])];
        assert!(check(&risen)[0].contains("b shows what operation 2 wrote"));
    }
}

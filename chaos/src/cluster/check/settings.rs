//! Checker of settings: a setting is a register; each read returns the last write in some order that fits all times.

use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use super::linear::{Call, Order, SequentialMachine, order};
use crate::cluster::recording::events::{Ask, ControlReply};
use crate::cluster::recording::indexed_history::{Answered, AskRecord};

struct RegisterMachine;

#[derive(Clone, Debug, PartialEq, Eq)]
enum SettingOp {
    Set(u64),
    Get(Option<u64>),
}

impl SequentialMachine for RegisterMachine {
    type State = Option<u64>;
    type Op = SettingOp;

    fn start(&self) -> Option<u64> {
        None
    }

    fn step(&self, state: &Option<u64>, op: &SettingOp) -> Vec<Option<u64>> {
        match op {
            SettingOp::Set(value) => vec![Some(*value)],
            SettingOp::Get(value) if value == state => vec![*state],
            SettingOp::Get(_) => Vec::new(),
        }
    }
}

pub fn check(evidence: &Evidence) -> Vec<String> {
    let mut findings = Vec::new();
    for (key, asks) in by_key(evidence) {
        let calls = calls(&asks);
        if let Order::None { at } = order(&RegisterMachine, &calls) {
            findings.push(format!("{key}: no order explains {:?} on line {:?}", calls[at].op, calls[at].end));
        }
    }
    findings
}

pub fn unsure(evidence: &Evidence) -> Vec<String> {
    let keys = by_key(evidence).into_iter();
    keys.filter(|(_, asks)| matches!(order(&RegisterMachine, &calls(asks)), Order::Unknown { .. }))
        .map(|(key, _)| format!("{key}: too many orders to look through"))
        .collect()
}

fn by_key(evidence: &Evidence) -> BTreeMap<&str, Vec<&AskRecord>> {
    let mut keys: BTreeMap<&str, Vec<&AskRecord>> = BTreeMap::new();
    let asks = evidence.history.asks.iter().filter(|ask| matches!(ask.ask, Ask::Set { .. } | Ask::Get));
    asks.for_each(|ask| keys.entry(&ask.key).or_default().push(ask));
    keys
}

/// Returns the calls on a setting. A write of unknown outcome whose value was never read is left out.
fn calls(asks: &[&AskRecord]) -> Vec<Call<SettingOp>> {
    let got: BTreeSet<u64> = asks
        .iter()
        .filter_map(|ask| match &ask.ended {
            Some((_, Answered::Told(ControlReply::Value { value }))) => *value,
            _ => None,
        })
        .collect();
    let call = |ask: &&AskRecord| {
        let (end, op) = match (&ask.ask, &ask.ended) {
            (Ask::Set { value }, Some((at, Answered::Told(_)))) => (Some(*at), SettingOp::Set(*value)),
            (Ask::Set { .. }, Some((_, Answered::Fail))) => return None,
            (Ask::Set { value }, _) if got.contains(value) => (None, SettingOp::Set(*value)),
            (Ask::Get, Some((at, Answered::Told(ControlReply::Value { value })))) => {
                (Some(*at), SettingOp::Get(*value))
            }
            _ => return None,
        };
        Some(Call { begin: ask.began, end, op })
    };
    asks.iter().filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{ask, evidence_of, found, good_rows, info, told};
    use crate::cluster::recording::events::{Ask, ControlReply, RunEvent};

    fn set(op: u64) -> [RunEvent; 2] {
        [ask(op, "k", Ask::Set { value: op }), told(op, ControlReply::Done)]
    }

    fn get(op: u64, value: Option<u64>) -> [RunEvent; 2] {
        [ask(op, "k", Ask::Get), told(op, ControlReply::Value { value })]
    }

    fn check(parts: &[[RunEvent; 2]]) -> Vec<String> {
        let said: Vec<RunEvent> = parts.iter().flatten().cloned().collect();
        found("C12 settings", &evidence_of(&said, &good_rows()))
    }

    #[test]
    fn what_was_set_last_is_got() {
        assert_eq!(check(&[get(1, None), set(2), get(3, Some(2)), set(4), get(5, Some(4))]), Vec::<String>::new());
    }

    #[test]
    fn a_stale_and_a_lost_setting_are_named() {
        assert!(check(&[set(1), set(2), get(3, Some(1))])[0].contains("no order explains Get(Some(1))"));
        assert_eq!(check(&[set(1), get(2, None)]).len(), 1);
        assert_eq!(check(&[get(1, Some(9))]).len(), 1, "never set");
    }

    #[test]
    fn an_unknown_set_counts_from_when_it_is_got() {
        let unknown = [ask(1, "k", Ask::Set { value: 1 }), info(1)];
        assert_eq!(check(&[unknown.clone(), get(2, None), get(3, Some(1))]), Vec::<String>::new());
        assert_eq!(check(&[unknown, get(2, Some(1)), get(3, None)]).len(), 1);
    }

    #[test]
    fn a_refused_set_must_not_be_got() {
        let refused =
            [ask(1, "k", Ask::Set { value: 1 }), RunEvent::Fail { op: 1, status: Some(429), why: String::new() }];
        assert_eq!(check(&[refused, get(2, Some(1))]).len(), 1);
    }
}

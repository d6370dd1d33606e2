//! Availability checker: while a majority of nodes can communicate, nothing in use goes without a success for longer
//! than ten seconds.
//!
//! Requests in vain to a node that accepts no connections do not count: they show nothing about the other nodes.

use std::collections::BTreeMap;

use super::Evidence;
use crate::cluster::recording::events::{Outcome, Phase};
use crate::cluster::recording::indexed_history::{FaultRecord, Operation, Went};

/// A leader that is gone, cut off or held is replaced by then.
pub const OUTAGE_MAX_MICROS: u64 = 10_000_000;
/// Time within which a refused or unanswered client retries. Longer pauses are no outage: two tries at an isolated
/// node, and nothing more for seven seconds, do not show an outage of a shard that serves all others meanwhile.
const ASKED_AGAIN_MICROS: u64 = 5_000_000;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let history = &evidence.history;
    let mut findings = Vec::new();
    let windows: Vec<(&FaultRecord, u64, u64)> = history
        .faults
        .iter()
        .filter(|fault| fault.majority && fault.outcome == Outcome::Installed)
        .filter_map(|fault| Some((fault, fault.begun?, fault.healed?)))
        .collect();
    for (about, gaps) in gaps(evidence) {
        for Gap { from, to } in gaps.into_iter().filter(|gap| gap.long() > OUTAGE_MAX_MICROS) {
            // All of the gap within one fault: what reaches beyond may be another's.
            let during = windows.iter().find(|(_, begun, healed)| {
                let within = to.min(*healed).saturating_sub(from.max(*begun));
                within > OUTAGE_MAX_MICROS
            });
            if let Some((fault, ..)) = during {
                let seconds = (to - from) as f64 / 1e6;
                findings
                    .push(format!("{about}: {seconds:.1} s without a success during {} ({})", fault.kind, fault.what));
            }
        }
    }
    findings
}

/// A period of repeated requests without a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Previous success; or the first request after a pause.
    pub from: u64,
    /// Next success; or the end of the last try before a pause.
    pub to: u64,
}

impl Gap {
    pub fn long(&self) -> u64 {
        self.to - self.from
    }
}

/// Gaps of each object or key, in order; from the storm on.
pub fn gaps(evidence: &Evidence) -> BTreeMap<&str, Vec<Gap>> {
    let mut asked: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for one in evidence.history.operations.values() {
        let counts = matches!(one.phase, Phase::Storm | Phase::Calm) && one.kind != "read at a version";
        if counts && !is_in_vain(one, &evidence.history.faults) {
            asked.entry(&one.about).or_default().push(one);
        }
    }
    asked.into_iter().map(|(about, operations)| (about, gaps_of(operations))).collect()
}

/// Returns whether a request failed that was sent to a node while that node was deaf.
fn is_in_vain(one: &Operation, faults: &[FaultRecord]) -> bool {
    let is_deaf = |fault: &FaultRecord| {
        let (begun, healed) = (fault.begun.unwrap_or(u64::MAX), fault.healed.unwrap_or(u64::MAX));
        fault.deaf == Some(one.node) && (begun..healed).contains(&one.began)
    };
    !matches!(one.ended, Some((_, Went::Well))) && faults.iter().any(is_deaf)
}

fn gaps_of(mut operations: Vec<&Operation>) -> Vec<Gap> {
    let end = |one: &Operation| one.ended.map_or(u64::MAX, |(t, _)| t);
    let well = operations.iter().filter_map(|one| one.ended.filter(|(_, went)| *went == Went::Well));
    let mut successes: Vec<u64> = well.map(|(t, _)| t).collect();
    successes.sort_unstable();
    operations.sort_unstable_by_key(|one| one.began);
    let mut coming = operations.into_iter().peekable();
    // In the order in which they began: those that may be under way.
    let mut asking: Vec<&Operation> = Vec::new();
    let mut gaps = Vec::new();
    for pair in successes.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        while let Some(one) = coming.next_if(|one| one.began < to) {
            asking.push(one);
        }
        asking.retain(|one| end(one) > from);
        let mut open: Option<Gap> = None;
        for one in &asking {
            let (began, ended) = (one.began.max(from), end(one).min(to));
            match &mut open {
                Some(gap) if began <= gap.to.saturating_add(ASKED_AGAIN_MICROS) => gap.to = gap.to.max(ended),
                _ => gaps.extend(open.replace(Gap { from: began, to: ended })),
            }
        }
        gaps.extend(open);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{STEP, evidence, found};
    use super::*;

    fn fault(healed: u64) -> FaultRecord {
        FaultRecord {
            number: 1,
            kind: "kill".into(),
            what: "node 1".into(),
            majority: true,
            deaf: None,
            outcome: Outcome::Installed,
            begun: Some(13 * STEP),
            healed: Some(healed),
        }
    }

    #[test]
    fn a_long_outage_within_a_fault_is_named_and_a_short_one_is_not() {
        let with = |healed: u64, next: u64| {
            let mut evidence = evidence();
            let last = evidence.history.operations.values_mut().next_back().expect("an operation");
            (last.began, last.ended) = (13 * STEP, Some((next, Went::Well)));
            last.kind = "write";
            evidence.history.faults.push(fault(healed));
            found("C10 availability", &evidence)
        };
        assert_eq!(with(40 * STEP, 23 * STEP), Vec::<String>::new());
        assert!(with(40 * STEP, 30 * STEP)[0].contains("17.0 s without a success during kill"));
        assert_eq!(with(20 * STEP, 30 * STEP), Vec::<String>::new(), "healed by then");
    }

    #[test]
    fn a_node_that_accepts_no_connections_shows_no_outage_of_the_others() {
        let faults = [FaultRecord { deaf: Some(2), ..fault(40 * STEP) }];
        let is_in_vain = |node: u8, began: u64, went: Went| {
            let ended = Some((began + STEP, went));
            let one = Operation { about: "a".into(), kind: "write", node, phase: Phase::Storm, began, ended };
            is_in_vain(&one, &faults)
        };
        assert!(is_in_vain(2, 13 * STEP, Went::Unknown) && is_in_vain(2, 39 * STEP, Went::Refused));
        assert!(!is_in_vain(2, 13 * STEP, Went::Well), "it was served all the same");
        assert!(!is_in_vain(1, 13 * STEP, Went::Unknown), "another node accepts connections");
        assert!(!is_in_vain(2, 12 * STEP, Went::Unknown) && !is_in_vain(2, 40 * STEP, Went::Unknown), "another time");
    }

    #[test]
    fn what_nobody_asks_for_is_not_out() {
        let one = |began: u64, end: u64, went: Went| Operation {
            about: "a".into(),
            kind: "write",
            node: 1,
            phase: Phase::Storm,
            began,
            ended: Some((end, went)),
        };
        let gaps = |operations: &[Operation]| -> Vec<(u64, u64)> {
            gaps_of(operations.iter().collect()).iter().map(|gap| (gap.from, gap.to)).collect()
        };
        let (first, last) = (one(1, 2, Went::Well), one(39, 40, Went::Well));
        assert_eq!(gaps(&[first.clone(), last.clone()]), [(39, 40)], "left alone for a while");
        assert_eq!(
            gaps(&[first.clone(), one(20, 21, Went::Refused), last.clone()]),
            [(20, 40)],
            "refused, asked again"
        );
        assert_eq!(
            gaps(&[first.clone(), one(1, 30, Went::Unknown), last.clone()]),
            [(2, 40)],
            "waited for all the time"
        );
        let later = one(30_000_000, 30_000_001, Went::Well);
        assert_eq!(
            gaps(&[first.clone(), one(3, 20, Went::Unknown), one(4_000_000, 4_000_009, Went::Refused), later]),
            [(3, 4_000_009), (30_000_000, 30_000_001)],
            "asked again, and then left alone"
        );
        let hangs = Operation { ended: None, ..one(5, 0, Went::Well) };
        assert_eq!(gaps(&[first, hangs, last]), [(5, 40)], "waited for to this day");
    }
}

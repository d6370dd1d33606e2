//! While a majority of nodes can talk, nothing that is in use goes without a success for longer than ten seconds.

use std::collections::BTreeMap;

use super::Evidence;
use crate::cluster::history::{FaultRecord, Went};
use crate::cluster::said::{Outcome, Phase};

/// A leader that is gone, cut off or held is replaced by then.
pub const OUTAGE_MAX_MICROS: u64 = 10_000_000;

pub fn check(evidence: &Evidence) -> Vec<String> {
    let history = &evidence.history;
    let successes = successes(evidence);
    let mut findings = Vec::new();
    let windows: Vec<(&FaultRecord, u64, u64)> = history
        .faults
        .iter()
        .filter(|fault| fault.majority && fault.outcome == Outcome::Installed)
        .filter_map(|fault| Some((fault, fault.begun?, fault.healed?)))
        .collect();
    for (about, times) in &successes {
        for pair in times.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            if to - from <= OUTAGE_MAX_MICROS {
                continue;
            }
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

/// When operations on each object or key succeeded, in order; from the storm on.
pub fn successes(evidence: &Evidence) -> BTreeMap<&str, Vec<u64>> {
    let mut successes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for one in evidence.history.operations.values() {
        let counts = matches!(one.phase, Phase::Storm | Phase::Calm) && one.kind != "read at a version";
        if let Some((t, Went::Well)) = one.ended.filter(|_| counts) {
            successes.entry(&one.about).or_default().push(t);
        }
    }
    successes.values_mut().for_each(|times| times.sort_unstable());
    successes
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{STEP, evidence, found};
    use super::*;

    #[test]
    fn a_long_outage_within_a_fault_is_named_and_a_short_one_is_not() {
        let with = |healed: u64, next: u64| {
            let mut evidence = evidence();
            let last = evidence.history.operations.values_mut().next_back().expect("an operation");
            last.ended = Some((next, Went::Well));
            last.kind = "write";
            evidence.history.faults.push(FaultRecord {
                number: 1,
                kind: "kill".into(),
                what: "node 1".into(),
                majority: true,
                outcome: Outcome::Installed,
                begun: Some(13 * STEP),
                healed: Some(healed),
            });
            found("C10 availability", &evidence)
        };
        assert_eq!(with(40 * STEP, 23 * STEP), Vec::<String>::new());
        assert!(with(40 * STEP, 30 * STEP)[0].contains("17.0 s without a success during kill"));
        assert_eq!(with(20 * STEP, 30 * STEP), Vec::<String>::new(), "healed by then");
    }
}

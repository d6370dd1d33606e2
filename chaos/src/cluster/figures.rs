//! Figures of a run: counts, durations, outages and recovery.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::check::Evidence;
use super::check::availability::{Gap, gaps};
use super::environment::status::Status;
use super::recording::events::{Phase, RunEvent};
use super::recording::indexed_history::{FaultRecord, Went};

pub fn of(evidence: &Evidence) -> Map<String, Value> {
    let mut figures = Map::new();
    figures.insert("operations".into(), operations(evidence));
    figures.insert("latency_ms".into(), latencies(evidence));
    figures.insert("longest_outage_s".into(), outages(evidence));
    let gaps = all_gaps(evidence);
    figures.insert("faults".into(), evidence.history.faults.iter().map(|fault| told(&gaps, fault)).collect());
    figures.insert("leader_changes".into(), leader_changes(evidence).into());
    figures.insert("nodes_at_the_end".into(), last_gauges(evidence));
    figures
}

/// The same for people: what was done to the cluster, and how it took it.
pub fn notes(evidence: &Evidence) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let gaps = all_gaps(evidence);
    for fault in &evidence.history.faults {
        let told = told(&gaps, fault);
        let number = |name: &str| told[name].as_f64().map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}"));
        notes.push(format!(
            "{:>6} s  {} {}: {}; longest outage {} s, all served {} s after the heal",
            number("begun_s"),
            fault.kind,
            told["outcome"].as_str().unwrap_or_default(),
            fault.what,
            number("outage_s"),
            number("recovered_s"),
        ));
    }
    notes.push(format!("operations: {}", operations(evidence)));
    if let Value::Object(latencies) = latencies(evidence) {
        notes.extend(latencies.iter().map(|(name, times)| format!("ms of a {name}: {times}")));
    }
    notes
}

fn operations(evidence: &Evidence) -> Value {
    let mut counts: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for one in evidence.history.operations.values() {
        let went = match one.ended {
            Some((_, Went::Well)) => "ok",
            Some((_, Went::Refused)) => "refused",
            Some((_, Went::Unknown)) | None => "unknown",
        };
        *counts.entry(one.kind).or_default().entry(went).or_default() += 1;
    }
    json!(counts)
}

/// Latencies of operations that succeeded, by kind and phase.
fn latencies(evidence: &Evidence) -> Value {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for one in evidence.history.operations.values() {
        let phase = match one.phase {
            Phase::Storm => "storm",
            Phase::Calm => "calm",
            Phase::Setup | Phase::Look => continue,
        };
        if let Some((t, Went::Well)) = one.ended {
            times.entry(format!("{} in the {phase}", one.kind)).or_default().push(t - one.began);
        }
    }
    let percentiles = |mut times: Vec<u64>| {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100] as f64 / 1000.0;
        json!({ "count": times.len(), "p50": at(50), "p90": at(90), "p99": at(99), "max": at(100) })
    };
    times.into_iter().map(|(name, times)| (name, percentiles(times))).collect::<Map<String, Value>>().into()
}

/// Returns the longest time between two successes, for everything in use.
fn outages(evidence: &Evidence) -> Value {
    let longest = |gaps: Vec<Gap>| gaps.iter().map(Gap::long).max().unwrap_or(0);
    let gaps = gaps(evidence).into_iter();
    gaps.map(|(about, gaps)| (about.to_owned(), json!(seconds(longest(gaps))))).collect::<Map<String, Value>>().into()
}

fn all_gaps(evidence: &Evidence) -> Vec<Gap> {
    gaps(evidence).into_values().flatten().collect()
}

fn told(gaps: &[Gap], fault: &FaultRecord) -> Value {
    let seconds_of = |t: Option<u64>| t.map(seconds);
    let span = fault.begun.zip(fault.healed);
    json!({
        "number": fault.number,
        "kind": fault.kind,
        "what": fault.what,
        "outcome": fault.outcome,
        "begun_s": seconds_of(fault.begun),
        "healed_s": seconds_of(fault.healed),
        "outage_s": span.map(|(begun, healed)| seconds(outage(gaps, begun, healed))),
        "recovered_s": fault.healed.map(|healed| seconds(recovery(gaps, healed))),
    })
}

/// The longest that anything went without a success from the fault's begin on, until it was healed and served again.
fn outage(gaps: &[Gap], begun: u64, healed: u64) -> u64 {
    let within = gaps.iter().filter(|gap| gap.to > begun && gap.from <= healed);
    within.map(Gap::long).max().unwrap_or(0)
}

/// Returns the time from the heal until everything had succeeded again.
fn recovery(gaps: &[Gap], healed: u64) -> u64 {
    let over = gaps.iter().filter(|gap| gap.from <= healed && gap.to > healed);
    over.map(|gap| gap.to - healed).max().unwrap_or(0)
}

fn seconds(micros: u64) -> f64 {
    (micros / 1000) as f64 / 1000.0
}

/// Returns how often a group was seen with another leader than before.
pub fn leader_changes(evidence: &Evidence) -> u64 {
    let mut leaders: BTreeMap<String, u64> = BTreeMap::new();
    let mut changes = 0;
    for (_, said) in &evidence.history.others {
        let RunEvent::Status { status, .. } = said else { continue };
        for group in Status::of(status).unwrap_or_default().groups {
            let Some(leader) = group.leader else { continue };
            let before = leaders.insert(group.group.to_string(), leader);
            changes += u64::from(before.is_some_and(|before| before != leader));
        }
    }
    changes
}

/// Returns the last gauges of each node.
fn last_gauges(evidence: &Evidence) -> Value {
    let mut last: BTreeMap<String, Value> = BTreeMap::new();
    for (_, said) in &evidence.history.others {
        if let RunEvent::Gauges { node, gauges } = said {
            last.insert(node.to_string(), json!(gauges));
        }
    }
    json!(last)
}

/// The most that this metric was ever seen at, over all nodes.
pub fn highest(evidence: &Evidence, metric: &str) -> u64 {
    let gauges = evidence.history.others.iter().filter_map(|(_, said)| match said {
        RunEvent::Gauges { gauges, .. } => gauges.get(metric).copied(),
        _ => None,
    });
    gauges.fold(0.0, f64::max) as u64
}

#[cfg(test)]
mod tests {
    use super::super::check::hand_made::{STEP, evidence, evidence_of, good, good_rows};
    use super::super::recording::events::Outcome;
    use super::*;

    #[test]
    fn operations_are_counted_and_timed() {
        let figures = of(&evidence());
        assert_eq!(figures["operations"]["write"], json!({"ok": 3, "refused": 1, "unknown": 1}));
        assert_eq!(figures["latency_ms"]["write in the storm"]["p50"], json!(1000.0));
        assert_eq!(figures["longest_outage_s"]["set-0-0"], json!(5.0));
    }

    #[test]
    fn a_fault_tells_its_outage_and_when_it_was_over() {
        let mut evidence = evidence();
        evidence.history.faults.push(FaultRecord {
            number: 1,
            kind: "kill".into(),
            what: "node 1".into(),
            majority: true,
            deaf: None,
            outcome: Outcome::Installed,
            begun: Some(8 * STEP),
            healed: Some(11 * STEP),
        });
        let fault = &of(&evidence)["faults"][0];
        assert_eq!((&fault["outage_s"], &fault["recovered_s"]), (&json!(5.0), &json!(2.0)));
    }

    #[test]
    fn another_leader_is_a_change() {
        let status = |leader: u64| RunEvent::Status {
            node: 1,
            status: json!({"groups": [{"group": 1, "leader": leader, "applied": null}], "settled": true}),
        };
        let mut said = good();
        said.extend([1, 1, 2, 1].map(status));
        assert_eq!(leader_changes(&evidence_of(&said, &good_rows())), 2);
    }
}

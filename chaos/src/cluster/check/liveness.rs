//! Liveness checker: within thirty seconds of the last heal a hundred consecutive operations succeed on everything in
//! use, every request ends, and the nodes hold no more sockets and threads than before.

use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use crate::cluster::faults::conductor::{RECOVERY_MAX, STREAK};
use crate::cluster::recording::events::{Phase, RunEvent};
use crate::cluster::recording::indexed_history::{Operation, Went};

const RECOVERY_MICROS: u64 = RECOVERY_MAX.as_secs() * 1_000_000;
/// Fewer successes than this in half of the time are an outage, however calm it was.
const SLOW_MIN: usize = 20;
/// A gauge may be this much above what it was, and by so many.
const GROWTH: f64 = 1.2;
const GROWTH_SLACK: f64 = 48.0;
/// Gauges that must not grow. Files are not included: segments are kept open, and their number grows with the rows.
const GAUGES: [&str; 2] = ["sockets", "threads"];

pub fn check(evidence: &Evidence) -> Vec<String> {
    let history = &evidence.history;
    let mut findings = Vec::new();
    let open: Vec<_> = history.operations.iter().filter(|(_, one)| one.ended.is_none()).collect();
    if let Some((op, one)) = open.first() {
        findings.push(format!(
            "{} requests have no end; the first is {op}, a {} of {}",
            open.len(),
            one.kind,
            one.about
        ));
    }
    let Some(calm) = history.began(Phase::Calm) else { return findings };
    let until = calm + RECOVERY_MICROS;
    for (about, ends) in in_use(evidence, until) {
        let longest = longest(&ends);
        if longest < STREAK && !is_slow(&ends, until) {
            let within = RECOVERY_MAX.as_secs();
            findings.push(format!(
                "{about}: {longest} operations in a row within {within} s of the last heal, not {STREAK}"
            ));
        }
    }
    grown(evidence, calm, &mut findings);
    findings
}

/// Returns what was too slow to decide: no failure lasted long, but there were too few operations.
pub fn unsure(evidence: &Evidence) -> Vec<String> {
    let Some(calm) = evidence.history.began(Phase::Calm) else { return Vec::new() };
    let until = calm + RECOVERY_MICROS;
    let slow = |(_, ends): &(&str, Vec<(u64, Went)>)| longest(ends) < STREAK && is_slow(ends, until);
    let told = |(about, ends): (&str, Vec<(u64, Went)>)| {
        format!("{about}: only {} operations in the calm, all well at its end: too few to tell", ends.len())
    };
    in_use(evidence, until).into_iter().filter(slow).map(told).collect()
}

/// Returns the outcomes of operations in the calm phase, in order, for everything still in use.
fn in_use(evidence: &Evidence, until: u64) -> Vec<(&str, Vec<(u64, Went)>)> {
    let mut ends: BTreeMap<&str, Vec<(u64, Went)>> = BTreeMap::new();
    let used = |one: &&Operation| one.phase == Phase::Calm && one.kind != "read at a version";
    for one in evidence.history.operations.values().filter(used) {
        ends.entry(&one.about).or_default().extend(one.ended.filter(|(t, _)| *t <= until));
    }
    ends.values_mut().for_each(|ends| ends.sort_unstable());
    let newest = newest(ends.keys().copied());
    ends.into_iter().filter(|(about, _)| newest.contains(about)).collect()
}

fn longest(ends: &[(u64, Went)]) -> u32 {
    let (mut streak, mut longest) = (0, 0);
    for (_, went) in ends {
        streak = if *went == Went::Well { streak + 1 } else { 0 };
        longest = streak.max(longest);
    }
    longest
}

/// Nothing but successes in the last half of the time.
fn is_slow(ends: &[(u64, Went)], until: u64) -> bool {
    let late = || ends.iter().filter(|(t, _)| *t + RECOVERY_MICROS / 2 >= until);
    late().all(|(_, went)| *went == Went::Well) && late().count() >= SLOW_MIN
}

/// Returns the names in use: the last one of each series of names.
fn newest<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut last: BTreeMap<&str, (u32, &str)> = BTreeMap::new();
    for name in names {
        let (place, turn) = name.rsplit_once('-').unwrap_or((name, ""));
        let turn = turn.parse().unwrap_or(0);
        let known = last.entry(place).or_insert((turn, name));
        *known = (*known).max((turn, name));
    }
    last.into_values().map(|(_, name)| name).collect()
}

/// Against the most that any node had before the first fault.
fn grown(evidence: &Evidence, calm: u64, findings: &mut Vec<String>) {
    let first_fault = evidence.history.faults.iter().filter_map(|fault| fault.begun).min().unwrap_or(calm);
    let mut before: BTreeMap<&str, f64> = BTreeMap::new();
    let mut after: BTreeMap<(u8, &str), f64> = BTreeMap::new();
    for (t, said) in &evidence.history.others {
        let RunEvent::Gauges { node, gauges } = said else { continue };
        for (name, value) in GAUGES.iter().filter_map(|name| Some((*name, *gauges.get(*name)?))) {
            if *t < first_fault {
                let most = before.entry(name).or_default();
                *most = most.max(value);
            } else if *t > calm {
                after.insert((*node, name), value);
            }
        }
    }
    for ((node, name), value) in after {
        if let Some(was) = before.get(name).filter(|was| value > *was * GROWTH + GROWTH_SLACK) {
            findings
                .push(format!("node {node} has {value} {name} after the storm; before it no node had more than {was}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{STEP, evidence_of, found, good, good_rows, info, one, write};
    use super::*;
    use crate::cluster::recording::events::RunEvent;

    /// The calm with so many writes acknowledged; at `broken` one is not. They are a second apart.
    fn calm(count: u64, broken: Option<u64>) -> Vec<RunEvent> {
        let mut said = good();
        said.push(RunEvent::Phase { phase: Phase::Calm });
        for op in 100..100 + count {
            said.push(write(op, 1000 + op, None, &one()));
            said.push(if broken == Some(op) { info(op) } else { RunEvent::Ok { op } });
        }
        said
    }

    /// Returns a history with `apart` microseconds between any two events of the calm phase.
    fn paced(said: &[RunEvent], apart: u64) -> Evidence {
        let mut evidence = evidence_of(said, &good_rows());
        let calm = evidence.history.began(Phase::Calm).expect("a calm");
        for operation in evidence.history.operations.values_mut().filter(|one| one.phase == Phase::Calm) {
            operation.ended.iter_mut().for_each(|(t, _)| *t = calm + (*t - calm) / STEP * apart);
        }
        evidence
    }

    #[test]
    fn a_hundred_in_a_row_are_wanted() {
        let with = |count, broken| found("C10 liveness", &paced(&calm(count, broken), 1000));
        assert_eq!(with(100, None), Vec::<String>::new());
        assert!(with(99, None)[0].contains("99 operations in a row"), "and then nothing");
        assert!(with(150, Some(160))[0].contains("89 operations in a row"));
    }

    #[test]
    fn what_goes_well_but_slowly_is_not_known() {
        let slow = |broken| paced(&calm(150, broken), 200_000);
        assert_eq!((found("C10 liveness", &slow(None)), unsure(&slow(None)).len()), (Vec::new(), 1));
        assert_eq!(found("C10 liveness", &slow(Some(110))), Vec::<String>::new(), "it went wrong at the start only");
        assert_eq!((found("C10 liveness", &slow(Some(160))).len(), unsure(&slow(Some(160))).len()), (1, 0));
        let hardly = paced(&calm(30, None), 1_000_000);
        assert_eq!(found("C10 liveness", &hardly).len(), 1, "that is an outage");
    }

    #[test]
    fn of_what_takes_turns_the_last_is_in_use() {
        let names = ["append-0-2", "append-0-10", "append-1-0", "name 1-3"];
        assert_eq!(newest(names.into_iter()), BTreeSet::from(["append-0-10", "append-1-0", "name 1-3"]));
    }

    #[test]
    fn a_request_without_an_end_is_named() {
        let mut said = good();
        said.truncate(11);
        assert!(found("C10 liveness", &evidence_of(&said, &good_rows()))[0].contains("the first is 5, a write"));
    }

    #[test]
    fn a_node_that_keeps_sockets_open_is_named() {
        let gauges =
            |sockets: f64| RunEvent::Gauges { node: 2, gauges: BTreeMap::from([("sockets".to_owned(), sockets)]) };
        let with = |sockets| {
            let mut said = good();
            said.insert(1, gauges(100.0));
            said.extend([RunEvent::Phase { phase: Phase::Calm }, gauges(sockets)]);
            found("C10 liveness", &evidence_of(&said, &good_rows()))
        };
        assert_eq!(with(150.0), Vec::<String>::new());
        assert!(with(170.0)[0].contains("node 2 has 170 sockets"));
    }
}

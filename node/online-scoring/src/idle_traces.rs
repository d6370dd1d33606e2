//! Traces or groups that wait for silence: which ones had no write for the idle time of a rule (G-42).
//!
//! ```text
//! write --> waiting --silent()--> judged by the executor --judged()--> gone, or resting for the interval
//!              ^ later writes start the idle time again       | writes meanwhile wait again
//! ```

use std::collections::{BTreeSet, HashMap};

use thiserror::Error;

/// Upper bound of the traces or groups that one rule holds on one shard.
pub const IDLE_TRACES_MAX: usize = 100_000;
/// Upper bound of the silent traces in one answer.
pub const SILENT_TRACES_MAX: usize = 1_000;

/// Refusal of a write because too many traces wait. The executor reads the write again when some are silent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{IDLE_TRACES_MAX} traces of a rule wait for silence, which is the maximum; read the row again later")]
pub struct IdleTracesFull;

/// Trace or group that became silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentTrace {
    /// `root_span_id`, or the value of the group.
    pub key: String,
    /// Newest write.
    pub changed_xact: u64,
}

/// Writes to one trace that are not judged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnjudgedWrites {
    first_xact: u64,
    last_xact: u64,
    last_at_ms: u64,
}

impl UnjudgedWrites {
    fn plus(self, other: Option<UnjudgedWrites>) -> UnjudgedWrites {
        other.map_or(self, |other| UnjudgedWrites {
            first_xact: self.first_xact.min(other.first_xact),
            last_xact: self.last_xact.max(other.last_xact),
            last_at_ms: self.last_at_ms.max(other.last_at_ms),
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WaitingTrace {
    writes: Option<UnjudgedWrites>,
    /// Writes that the executor judges.
    judging: Option<UnjudgedWrites>,
    rests_until_ms: u64,
    /// Time at which the trace is silent, or at which its rest ends.
    due_at_ms: Option<u64>,
}

/// Traces or groups of one rule that wait for silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleTraces {
    idle_ms: u64,
    /// Shortest time from a judgement of a trace to the next.
    interval_ms: u64,
    traces: HashMap<String, WaitingTrace>,
    due: BTreeSet<(u64, String)>,
}

impl IdleTraces {
    pub fn new(idle_ms: u64, interval_ms: u64) -> IdleTraces {
        IdleTraces { idle_ms, interval_ms, traces: HashMap::new(), due: BTreeSet::new() }
    }

    pub fn len(&self) -> usize {
        self.traces.len()
    }

    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// Records a write to a trace at the time of its transaction. Score merges are no writes in this sense.
    pub fn write(&mut self, key: &str, xact: u64, at_ms: u64) -> Result<(), IdleTracesFull> {
        if !self.traces.contains_key(key) && self.traces.len() >= IDLE_TRACES_MAX {
            return Err(IdleTracesFull);
        }
        let write = UnjudgedWrites { first_xact: xact, last_xact: xact, last_at_ms: at_ms };
        let trace = self.traces.entry(key.to_owned()).or_default();
        trace.writes = Some(write.plus(trace.writes));
        self.schedule(key);
        Ok(())
    }

    /// Returns the traces that are silent at a time, at most [`SILENT_TRACES_MAX`], those that wait longest first.
    pub fn silent(&mut self, now_ms: u64) -> Vec<SilentTrace> {
        let mut silent = Vec::new();
        while silent.len() < SILENT_TRACES_MAX
            && let Some((due_at_ms, key)) = self.due.first().cloned()
            && due_at_ms <= now_ms
        {
            self.due.pop_first();
            let Some(trace) = self.traces.get_mut(&key) else { continue };
            trace.due_at_ms = None;
            trace.judging = trace.writes.take();
            match trace.judging {
                Some(writes) => silent.push(SilentTrace { key, changed_xact: writes.last_xact }),
                // the rest is over
                None => {
                    self.traces.remove(&key);
                }
            }
        }
        silent
    }

    /// Records that the executor has judged a silent trace, and has stored the triggers of it.
    pub fn judged(&mut self, key: &str, now_ms: u64) {
        let Some(trace) = self.traces.get_mut(key).filter(|trace| trace.judging.is_some()) else { return };
        trace.judging = None;
        trace.rests_until_ms = now_ms.saturating_add(self.interval_ms);
        if trace.writes.is_none() && self.interval_ms == 0 {
            self.traces.remove(key);
        } else {
            self.schedule(key);
        }
    }

    /// Returns a silent trace that could not be judged, to be silent again at a time.
    pub fn postpone(&mut self, key: &str, until_ms: u64) {
        let Some(trace) = self.traces.get_mut(key) else { return };
        let Some(judging) = trace.judging.take() else { return };
        trace.writes = Some(judging.plus(trace.writes));
        trace.rests_until_ms = trace.rests_until_ms.max(until_ms);
        self.schedule(key);
    }

    fn schedule(&mut self, key: &str) {
        let Some(trace) = self.traces.get_mut(key).filter(|trace| trace.judging.is_none()) else { return };
        let silent_at_ms = trace.writes.map_or(0, |writes| writes.last_at_ms.saturating_add(self.idle_ms));
        let due_at_ms = silent_at_ms.max(trace.rests_until_ms);
        if let Some(before) = trace.due_at_ms.replace(due_at_ms) {
            self.due.remove(&(before, key.to_owned()));
        }
        self.due.insert((due_at_ms, key.to_owned()));
    }

    /// Returns the time at which the next trace is silent.
    pub fn next_due_at_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_at_ms, _)| *due_at_ms)
    }

    /// Returns the position that the executor may store: later than it, all writes are found that are not judged.
    pub fn safe_position(&self, read_xact: u64) -> u64 {
        let unjudged = self.traces.values().flat_map(|trace| [trace.writes, trace.judging]).flatten();
        let earliest = unjudged.map(|writes| writes.first_xact.saturating_sub(1)).min();
        earliest.map_or(read_xact, |earliest| earliest.min(read_xact))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn silent(traces: &mut IdleTraces, now_ms: u64) -> Vec<(String, u64)> {
        traces.silent(now_ms).into_iter().map(|silent| (silent.key, silent.changed_xact)).collect()
    }

    fn one(key: &str, xact: u64) -> Vec<(String, u64)> {
        vec![(key.to_owned(), xact)]
    }

    #[test]
    fn a_trace_is_silent_once_for_each_pause() {
        let mut traces = IdleTraces::new(30, 0);
        traces.write("t", 1, 100).expect("there is room");
        traces.write("t", 2, 120).expect("there is room");
        assert_eq!(silent(&mut traces, 149), []);
        assert_eq!(silent(&mut traces, 150), one("t", 2));
        assert_eq!(silent(&mut traces, 500), []);
        traces.judged("t", 150);
        assert!(traces.is_empty());
        traces.write("t", 3, 600).expect("there is room");
        assert_eq!(silent(&mut traces, 630), one("t", 3));
    }

    #[test]
    fn writes_during_a_judgement_wait_again() {
        let mut traces = IdleTraces::new(30, 0);
        traces.write("t", 1, 100).expect("there is room");
        assert_eq!(silent(&mut traces, 130), one("t", 1));
        traces.write("t", 2, 131).expect("there is room");
        assert_eq!((silent(&mut traces, 200), traces.safe_position(9)), (vec![], 0));
        traces.judged("t", 200);
        assert_eq!(traces.safe_position(9), 1);
        assert_eq!(silent(&mut traces, 200), one("t", 2));
    }

    #[test]
    fn a_judgement_that_fails_is_repeated_with_all_writes() {
        let mut traces = IdleTraces::new(30, 0);
        traces.write("t", 1, 100).expect("there is room");
        assert_eq!(silent(&mut traces, 130), one("t", 1));
        traces.write("t", 2, 131).expect("there is room");
        traces.postpone("t", 400);
        assert_eq!((silent(&mut traces, 399), traces.safe_position(9)), (vec![], 0));
        assert_eq!(silent(&mut traces, 400), one("t", 2));
    }

    #[test]
    fn a_group_rests_for_its_interval_after_a_judgement() {
        let mut traces = IdleTraces::new(30, 1000);
        traces.write("g", 1, 100).expect("there is room");
        assert_eq!(silent(&mut traces, 130), one("g", 1));
        traces.judged("g", 130);
        assert_eq!((traces.len(), traces.safe_position(9)), (1, 9));
        traces.write("g", 2, 200).expect("there is room");
        assert_eq!(silent(&mut traces, 1129), []);
        assert_eq!(silent(&mut traces, 1130), one("g", 2));
        traces.judged("g", 1130);
        assert_eq!((silent(&mut traces, 2130), traces.is_empty()), (vec![], true));
    }

    #[test]
    fn new_traces_above_the_limit_are_refused_and_known_ones_are_not() {
        let mut traces = IdleTraces::new(30, 0);
        for trace in 0..IDLE_TRACES_MAX as u64 {
            traces.write(&trace.to_string(), trace, 0).expect("there is room");
        }
        assert_eq!(traces.write("one more", 1, 0), Err(IdleTracesFull));
        assert_eq!(traces.write("7", 1, 0), Ok(()));
        assert_eq!(traces.silent(30).len(), SILENT_TRACES_MAX);
    }

    #[derive(Clone, Debug)]
    enum IdleStep {
        Write { key: u8, late_ms: u64 },
        Wait { ms: u64 },
        Crash,
    }

    fn step() -> impl Strategy<Value = IdleStep> {
        prop_oneof![
            5 => (0_u8..4, 0_u64..3).prop_map(|(key, late_ms)| IdleStep::Write { key, late_ms }),
            3 => (0_u64..25).prop_map(|ms| IdleStep::Wait { ms }),
            1 => Just(IdleStep::Crash),
        ]
    }

    /// Times of the writes to a trace, with the number of those that were judged.
    #[derive(Default)]
    struct TraceModel {
        writes: Vec<(u64, u64)>,
        judged_xact: u64,
    }

    impl TraceModel {
        fn last(&self) -> Option<(u64, u64)> {
            let xact = self.writes.iter().map(|(xact, _)| *xact).max()?;
            let unjudged = self.writes.iter().filter(|(xact, _)| *xact > self.judged_xact);
            Some((xact, unjudged.map(|(_, at_ms)| *at_ms).max()?))
        }
    }

    proptest! {
        #[test]
        fn silence_is_found_as_by_a_search_through_all_writes(steps in prop::collection::vec(step(), 1..120)) {
            const IDLE_MS: u64 = 20;
            let mut traces = IdleTraces::new(IDLE_MS, 0);
            let mut model: BTreeMap<u8, TraceModel> = BTreeMap::new();
            let (mut now_ms, mut xact, mut position) = (1000_u64, 0_u64, 0_u64);
            for step in steps {
                match step {
                    IdleStep::Write { key, late_ms } => {
                        xact += 1;
                        traces.write(&key.to_string(), xact, now_ms - late_ms).expect("there is room");
                        model.entry(key).or_default().writes.push((xact, now_ms - late_ms));
                    }
                    IdleStep::Wait { ms } => now_ms += ms,
                    IdleStep::Crash => {
                        traces = IdleTraces::new(IDLE_MS, 0);
                        let lost = model.iter().flat_map(|(key, trace)| {
                            trace.writes.iter().map(move |(xact, at_ms)| (*xact, *at_ms, *key))
                        });
                        let mut lost: Vec<_> = lost.filter(|(xact, ..)| *xact > position).collect();
                        lost.sort_unstable();
                        for (xact, at_ms, key) in lost {
                            traces.write(&key.to_string(), xact, at_ms).expect("there is room");
                            // writes that come again are judged again
                            let trace = model.get_mut(&key).expect("it was written");
                            trace.judged_xact = trace.judged_xact.min(xact - 1);
                        }
                    }
                }
                let due = model.iter().filter_map(|(key, trace)| {
                    trace.last().filter(|(_, at_ms)| at_ms + IDLE_MS <= now_ms).map(|(xact, _)| (key.to_string(), xact))
                });
                let mut expected: Vec<_> = due.collect();
                let mut found = silent(&mut traces, now_ms);
                expected.sort();
                found.sort();
                prop_assert_eq!(&found, &expected);
                for (key, xact) in found {
                    traces.judged(&key, now_ms);
                    model.get_mut(&key.parse().expect("a number")).expect("it was written").judged_xact = xact;
                }
                position = traces.safe_position(xact);
                let unjudged = |trace: &TraceModel| trace.writes.iter().any(|(xact, _)| {
                    *xact > trace.judged_xact && *xact <= position
                });
                prop_assert!(!model.values().any(unjudged));
            }
        }
    }
}

//! Plan of a simulation, derived from its seed: size of the cluster, speed of its disks and network, and its faults
//! with their times.

use std::ops::Range;
use std::time::Duration;

use super::randomness::Dice;

/// Duration of the faults; afterwards everything is repaired, and the cluster has to be whole.
const FAULTS_FOR: Range<u64> = 4_000_000..12_000_000;
const FAULTS_MAX: u64 = 10;

/// Fault of the cluster. Its target is drawn when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A process ends; what it wrote is there.
    Kill,
    /// A machine loses power; what it had not synced may be gone.
    PowerCut,
    PowerCutAll,
    /// A process ends, or a machine loses power, in the middle of what it does on its disk.
    CrashWithin,
    /// A node is isolated in both directions.
    Isolate,
    /// Messages pass one way only.
    OneWay,
    /// Two nodes do not reach each other, and both reach the rest.
    Bridge,
    /// Messages are lost, doubled and late.
    Weather,
    SlowDisk,
    /// A node's clock jumps.
    Clock,
    HandOver,
    /// Every replica purges its log, so that a lagging one needs a snapshot.
    PurgeAll,
    /// A node is gone for good, and another takes its place.
    Replace,
    /// A replica is discarded and made anew under another id.
    Rebuild,
    /// A machine is put back to what it was when it was last stopped, after it ran once more.
    OldCopy,
    /// The same with a copy that was made while it ran.
    HotOldCopy,
}

const FAULTS: [Fault; 16] = [
    Fault::Kill,
    Fault::PowerCut,
    Fault::PowerCutAll,
    Fault::CrashWithin,
    Fault::Isolate,
    Fault::OneWay,
    Fault::Bridge,
    Fault::Weather,
    Fault::SlowDisk,
    Fault::Clock,
    Fault::HandOver,
    Fault::PurgeAll,
    Fault::Replace,
    Fault::Rebuild,
    Fault::OldCopy,
    Fault::HotOldCopy,
];

#[derive(Clone, Debug)]
pub struct SimPlan {
    pub nodes: u64,
    pub clients: u32,
    /// Faults in their order.
    pub faults: Vec<(Duration, Fault)>,
    pub faults_end: Duration,
    /// Between two operations of one client, in microseconds.
    pub rest: Range<u64>,
    /// Duration of a message.
    pub wire: Range<u64>,
    /// Duration of a write to the log, and of its sync.
    pub write: Range<u64>,
    pub sync: Range<u64>,
    /// Duration of any other piece of work.
    pub work: Range<u64>,
    /// A node seals one of its groups this often.
    pub seal: Range<u64>,
}

impl SimPlan {
    pub fn of(seed: u64) -> SimPlan {
        let dice = Dice::new(seed);
        let from =
            |ranges: &[Range<u64>]| ranges[usize::try_from(dice.below(ranges.len() as u64)).unwrap_or(0)].clone();
        let faults_end = dice.micros(&FAULTS_FOR);
        // Some kinds only: with all of them at once some pairs would hide each other.
        let kinds: Vec<Fault> = FAULTS.into_iter().filter(|_| dice.one_in(3)).collect();
        let ends_at = u64::try_from(faults_end.as_micros()).unwrap_or(0);
        let mut faults: Vec<(Duration, Fault)> = (0..dice.below(FAULTS_MAX + 1))
            .filter_map(|_| Some((dice.micros(&(500_000..ends_at)), dice.pick(&kinds)?)))
            .collect();
        faults.sort();
        SimPlan {
            nodes: if dice.one_in(4) { 5 } else { 3 },
            clients: 2 + u32::try_from(dice.below(4)).unwrap_or(0),
            faults,
            faults_end,
            rest: from(&[1_000..30_000, 10_000..200_000, 1..2]),
            wire: from(&[50..500, 200..5_000, 1_000..40_000]),
            write: from(&[10..100, 100..2_000]),
            sync: from(&[100..2_000, 1_000..10_000, 5_000..60_000]),
            work: from(&[1..200, 100..5_000]),
            seal: from(&[100_000..1_000_000, 500_000..4_000_000]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_again_and_seeds_differ() {
        assert_eq!(format!("{:?}", SimPlan::of(7)), format!("{:?}", SimPlan::of(7)));
        let all: Vec<SimPlan> = (0..200).map(SimPlan::of).collect();
        for fault in FAULTS {
            assert!(all.iter().any(|plan| plan.faults.iter().any(|(_, of)| *of == fault)), "{fault:?} never comes");
        }
        assert!(all.iter().any(|plan| plan.nodes == 5) && all.iter().any(|plan| plan.faults.is_empty()));
    }
}

//! Plan of a simulation, made from its seed: how large the cluster is, how fast its disks and wires are, and which
//! faults it meets when.

use std::ops::Range;
use std::time::Duration;

use super::randomness::Dice;

/// How long faults come; then everything is mended, and the cluster has to show that it is whole.
const FAULTS_FOR: Range<u64> = 4_000_000..12_000_000;
const FAULTS_MAX: u64 = 10;

/// What befalls the cluster. Whom it befalls is thrown when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A process ends; what it wrote is there.
    Kill,
    /// A machine loses power; what it had not synced may be gone.
    PowerCut,
    PowerCutAll,
    /// A process ends, or a machine loses power, in the middle of what it does on its disk.
    CrashWithin,
    /// Nobody reaches a node and it reaches nobody.
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
    /// Every replica lets go of its log, so that who is behind needs a snapshot.
    PurgeAll,
    /// A node is gone for good, and another takes its place.
    Replace,
    /// A replica is given up and made anew under another id.
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
    /// In their order.
    pub faults: Vec<(Duration, Fault)>,
    pub faults_end: Duration,
    /// Between two operations of one client, in microseconds.
    pub rest: Range<u64>,
    /// What a message takes.
    pub wire: Range<u64>,
    /// What a write to the log takes, and making it durable.
    pub write: Range<u64>,
    pub sync: Range<u64>,
    /// What any other piece of work takes.
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

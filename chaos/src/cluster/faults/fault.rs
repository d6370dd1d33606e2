//! Faults as data: kinds, their requirements, and the schedule derived from a seed. Pure.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cluster::environment::fault_support::Need;

/// The end of a run, in which nothing is done to the cluster: recovery is part of what is checked.
pub const CALM_SECONDS: u64 = 25;
/// Clients write for so long before the first fault.
pub const WARM_MS: u64 = 3000;
/// Between the end of one fault and the next.
const GAP_MS: RangeInclusive<u64> = 800..=1600;
/// Runs of this length have every kind of fault, and faults in pairs.
const PAIRS_FROM_SECONDS: u64 = 300;
const PAIRS_SHARE: f64 = 0.3;
/// A schedule of many hours is cut off here.
const FAULTS_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Kill,
    KillAll,
    Pause,
    Isolate,
    OneWay,
    Bridge,
    Loss,
    Slow,
    PowerCut,
    PowerCutAll,
    DiskFull,
    Snapshot,
    Rolling,
    Add,
    Replace,
    Clock,
    OldCopy,
    HotOldCopy,
    EmptyDir,
    MovedAddress,
    Files,
    SlowDisk,
    FlippedSegment,
    Ring,
    LongOneWay,
}

use Kind::*;

/// Properties of a kind.
struct FaultSpec {
    kind: Kind,
    name: &'static str,
    nodes_min: u8,
    need: Option<Need>,
    hold_ms: RangeInclusive<u64>,
    /// About how long it takes from its start until all is well again.
    takes_ms: u64,
}

const fn known(
    kind: Kind,
    name: &'static str,
    nodes_min: u8,
    need: Option<Need>,
    hold_ms: RangeInclusive<u64>,
    takes_ms: u64,
) -> FaultSpec {
    FaultSpec { kind, name, nodes_min, need, hold_ms, takes_ms }
}

const TABLE: [FaultSpec; 25] = [
    known(Kill, "kill", 1, None, 500..=4000, 6000),
    known(KillAll, "kill-all", 2, None, 200..=2000, 6000),
    // Longer than an election takes.
    known(Pause, "pause", 1, None, 1500..=5000, 5000),
    known(Isolate, "isolate", 3, Some(Need::Rules), 3000..=6000, 6000),
    known(OneWay, "one-way", 3, Some(Need::Rules), 2000..=5000, 6000),
    known(Bridge, "bridge", 3, Some(Need::Rules), 2000..=5000, 6000),
    known(Loss, "loss", 2, Some(Need::Rules), 2000..=5000, 5000),
    known(Slow, "slow", 1, Some(Need::Network), 2000..=5000, 5000),
    known(PowerCut, "power-cut", 1, Some(Need::Disk), 500..=3000, 7000),
    known(PowerCutAll, "power-cut-all", 2, Some(Need::Disk), 200..=1500, 8000),
    known(DiskFull, "disk-full", 1, Some(Need::Disk), 3000..=5000, 9000),
    known(Snapshot, "snapshot", 3, None, 6000..=9000, 12_000),
    known(Rolling, "rolling", 1, None, 500..=1000, 14_000),
    known(Add, "add", 3, None, 1000..=2000, 12_000),
    known(Replace, "replace", 3, None, 1000..=2000, 14_000),
    known(Clock, "clock", 1, Some(Need::Clock), 3000..=5000, 6000),
    known(OldCopy, "old-copy", 3, Some(Need::Rules), 5000..=7000, 40_000),
    known(HotOldCopy, "hot-old-copy", 3, Some(Need::Rules), 5000..=7000, 40_000),
    known(EmptyDir, "empty-directory", 3, None, 1000..=2000, 12_000),
    known(MovedAddress, "moved-address", 3, None, 1000..=2000, 15_000),
    known(Files, "files", 1, None, 11_000..=13_000, 10_000),
    known(SlowDisk, "slow-disk", 3, Some(Need::Trace), 1000..=2000, 25_000),
    // Until seven seals have made the damaged segments part of a compaction.
    known(FlippedSegment, "flipped-segment", 3, None, 20_000..=25_000, 30_000),
    // Longer than a node waits for the catalog before it refuses everything.
    known(Ring, "ring", 3, Some(Need::Rules), 30_000..=30_000, 36_000),
    known(LongOneWay, "long-one-way", 3, Some(Need::Rules), 30_000..=30_000, 36_000),
];

/// Faults of every run with three nodes and ninety seconds.
const FIRST: [Kind; 6] = [Kill, Pause, Isolate, PowerCutAll, Snapshot, Rolling];

impl Kind {
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|known| known.kind)
    }

    fn known(self) -> &'static FaultSpec {
        // The test below finds every kind in the table at its own place.
        &TABLE[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.known().name
    }

    pub fn nodes_min(self) -> u8 {
        self.known().nodes_min
    }

    pub fn need(self) -> Option<Need> {
        self.known().need
    }

    /// About how long it takes from its start until all is well again.
    pub fn takes_ms(self) -> u64 {
        self.known().takes_ms
    }

    /// Returns whether a run of this length includes it by default. Long faults would leave no time for the others.
    pub fn fits(self, seconds: u64) -> bool {
        seconds >= PAIRS_FROM_SECONDS || self < OldCopy
    }

    /// Returns whether it may run together with another: not if it waits for the cluster to be whole.
    fn pairs(self) -> bool {
        !matches!(
            self,
            Rolling
                | Add
                | Replace
                | Clock
                | OldCopy
                | HotOldCopy
                | EmptyDir
                | MovedAddress
                | SlowDisk
                | FlippedSegment
                | Ring
                | LongOneWay
        )
    }

    /// Returns whether the remaining nodes are a connected majority: then writes have to continue.
    pub fn leaves_majority(self, nodes: u8) -> bool {
        nodes >= 3 && !matches!(self, KillAll | PowerCutAll | Loss | Slow | Clock | OldCopy | HotOldCopy)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let names = || Kind::all().map(Kind::name).collect::<Vec<_>>().join(", ");
        Kind::all()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("there is no fault `{text}`; there are {}", names()))
    }
}

/// Target node of a fault, if it has a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The one that leads most groups.
    Leader,
    /// The one that leads fewest.
    Follower,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    pub kind: Kind,
    pub who: Who,
    pub gap_ms: u64,
    pub hold_ms: u64,
    /// All else that the fault chooses.
    pub salt: u64,
    /// A second fault, installed while the first is held, and healed with it.
    pub also: Option<Also>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Also {
    pub kind: Kind,
    pub who: Who,
    pub salt: u64,
}

/// Returns the faults of a run, in order, until there is no time left. `kinds` are those that this machine and this
/// number of nodes allow.
pub fn schedule(seed: u64, seconds: u64, kinds: &BTreeSet<Kind>) -> Vec<Planned> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut planned, mut spent_ms) = (Vec::new(), 0);
    let mut first: Vec<Kind> = FIRST.into_iter().filter(|kind| kinds.contains(kind)).collect();
    first.shuffle(&mut rng);
    let mut rest: Vec<Kind> = kinds.iter().copied().filter(|kind| !first.contains(kind)).collect();
    rest.shuffle(&mut rng);
    let mut follows = first.into_iter().chain(rest);
    let mut round: Vec<Kind> = Vec::new();
    while planned.len() < FAULTS_MAX && !kinds.is_empty() && spent_ms < storm_ms(seconds) {
        let kind = follows.next().or_else(|| {
            if round.is_empty() {
                // Every kind has its turn before one comes again.
                round = kinds.iter().copied().collect();
                round.shuffle(&mut rng);
            }
            round.pop()
        });
        let Some(kind) = kind else { break };
        let mut one = one(kind, &mut rng);
        if seconds >= PAIRS_FROM_SECONDS && rng.random_bool(PAIRS_SHARE) && kind.pairs() {
            one.also = also(kind, kinds, &mut rng);
        }
        // At the least: a machine that is fast has time for all of them.
        spent_ms += one.gap_ms + one.hold_ms;
        planned.push(one);
    }
    planned
}

/// Those at the schedule's begin for which there is time also on a machine that is slow.
pub fn promised(planned: &[Planned], seconds: u64) -> &[Planned] {
    let mut spent_ms = 0;
    let fitting = planned.iter().take_while(|one| {
        spent_ms += one.gap_ms + one.kind.takes_ms();
        spent_ms <= storm_ms(seconds)
    });
    &planned[..fitting.count()]
}

/// The time for faults: clients have written for a while before it, and go on after it.
fn storm_ms(seconds: u64) -> u64 {
    (seconds.saturating_sub(CALM_SECONDS) * 1000).saturating_sub(WARM_MS)
}

fn one(kind: Kind, rng: &mut ChaCha8Rng) -> Planned {
    let (who, gap_ms) = (who(rng), rng.random_range(GAP_MS));
    let hold_ms = rng.random_range(kind.known().hold_ms.clone());
    Planned { kind, who, gap_ms, hold_ms, salt: rng.random(), also: None }
}

fn also(first: Kind, kinds: &BTreeSet<Kind>, rng: &mut ChaCha8Rng) -> Option<Also> {
    let others: Vec<Kind> = kinds.iter().copied().filter(|kind| *kind != first && kind.pairs()).collect();
    let kind = *others.choose(rng)?;
    Some(Also { kind, who: who(rng), salt: rng.random() })
}

fn who(rng: &mut ChaCha8Rng) -> Who {
    match rng.random_range(0..4) {
        0 => Who::Follower,
        1 => Who::Any,
        _ => Who::Leader,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(nodes: u8) -> BTreeSet<Kind> {
        Kind::all().filter(|kind| kind.nodes_min() <= nodes).collect()
    }

    #[test]
    fn every_kind_stands_at_its_place_and_is_found_by_its_name() {
        for (place, kind) in Kind::all().enumerate() {
            assert_eq!((kind as usize, kind.name().parse()), (place, Ok(kind)));
        }
        assert!("kil".parse::<Kind>().is_err_and(|said| said.contains("kill-all")));
    }

    #[test]
    fn a_seed_makes_one_schedule() {
        assert_eq!(schedule(7, 90, &kinds(3)), schedule(7, 90, &kinds(3)));
        assert_ne!(schedule(7, 90, &kinds(3)), schedule(8, 90, &kinds(3)));
    }

    #[test]
    fn ninety_seconds_have_six_kinds_whatever_the_seed() {
        for seed in 0..200 {
            let planned = schedule(seed, 90, &kinds(3));
            let found: BTreeSet<Kind> = promised(&planned, 90).iter().map(|one| one.kind).collect();
            assert!(FIRST.iter().all(|kind| found.contains(kind)), "{seed}: {found:?}");
        }
    }

    #[test]
    fn what_is_promised_ends_before_the_calm() {
        for seconds in [0, 20, 40, 90, 600] {
            let planned = schedule(3, seconds, &kinds(3));
            let takes: u64 = promised(&planned, seconds).iter().map(|one| one.gap_ms + one.kind.takes_ms()).sum();
            assert!(takes == 0 || takes + WARM_MS <= (seconds - CALM_SECONDS) * 1000, "{seconds}");
        }
        assert!(schedule(3, 90, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn faults_come_in_pairs_in_long_runs_only() {
        let pairs = |seconds| schedule(1, seconds, &kinds(3)).iter().filter(|one| one.also.is_some()).count();
        assert_eq!(pairs(90), 0);
        assert!(pairs(600) > 5);
    }

    #[test]
    fn a_long_run_has_every_kind() {
        let planned = schedule(1, 600, &kinds(3));
        let found: BTreeSet<Kind> = promised(&planned, 600).iter().map(|one| one.kind).collect();
        assert_eq!(found, kinds(3));
    }
}

//! Decision what to store next of one group: pure.
//!
//! ```text
//! base ──part──part──part── base ──part── ...
//! ```
//! The node that leads a group stores it. After a change of the leader, the next one reads what is in the store and
//! continues there. Two nodes that both believe to lead store the same entries, because only applied entries are
//! stored, and those are the same everywhere.
//!
//! A1: parts continue the log without a gap as long as this node still has the entries.
//! A2: if it does not, a base is taken at once, and the log continues behind it.
//! A3: a base is taken regularly, so that a restore does not replay too much.

use std::time::Duration;

use crate::layout::{BaseName, LogPartName, Millis};

/// Pause between two parts of one group. It bounds what a disaster can lose.
pub const PART_EVERY: Duration = Duration::from_secs(2);
/// Plain bytes of parts behind a base, after which the next base is due.
pub const LOG_BYTES_MAX: u64 = 512 << 20;
/// Pause after a failed step. It doubles up to [`FAILED_PAUSE_MAX`].
const FAILED_PAUSE: Duration = Duration::from_secs(2);
pub const FAILED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// State of a group at a moment, as this node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupView {
    pub leads: bool,
    /// Last applied index, or 0.
    pub applied: u64,
    /// Index of the first entry in the log here.
    pub first_in_log: u64,
    pub now: Millis,
}

/// Step to take for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveStep {
    /// Read from the store what it has of the group.
    Resume,
    /// Store the state of the group.
    TakeBase,
    /// Store the applied entries from this index on.
    StorePart { from: u64 },
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveOutcome {
    /// The newest base in the store, and the last index that the log reaches from it without a gap.
    Resumed {
        base: Option<(u64, Millis)>,
        reached: u64,
    },
    BaseTaken {
        index: u64,
        at: Millis,
    },
    PartStored {
        last: u64,
        bytes: u64,
        at: Millis,
    },
    /// Entries behind the stored ones, or the content of a large write, are no longer on this node.
    EntriesGone,
    Failed,
}

/// Archive of one group, as this node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveLine {
    base_every: Duration,
    known: Option<KnownArchive>,
    /// Whether somebody asked for a base.
    is_base_wanted: bool,
    failures: u32,
    not_before: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownArchive {
    base: Option<(u64, Millis)>,
    /// Last index that the parts behind a base reach without a gap.
    reached: u64,
    bytes_since_base: u64,
    last_part: Millis,
    /// Time of the newest part that was complete at its time.
    complete_at: Millis,
    /// Whether the log cannot be continued, so that a base has to bridge the gap.
    has_gap: bool,
}

impl ArchiveLine {
    pub fn new(base_every: Duration) -> ArchiveLine {
        ArchiveLine { base_every, known: None, is_base_wanted: false, failures: 0, not_before: Millis(0) }
    }

    /// Asks for a base as soon as possible.
    pub fn want_base(&mut self) {
        self.is_base_wanted = true;
        self.not_before = Millis(0);
    }

    /// Returns the last index up to which a restore can replay the log. The log here has to keep the entries behind it.
    ///
    /// The newest base may have a higher index, but it does not serve for times before it.
    pub fn reached(&self) -> Option<u64> {
        self.known.as_ref().and_then(|known| known.base.map(|_| known.reached))
    }

    /// Returns the newest base in the store.
    pub fn base(&self) -> Option<BaseName> {
        let (index, at) = self.known.as_ref()?.base?;
        Some(BaseName { index, at })
    }

    /// Returns whether a base was asked for and is not stored yet.
    pub fn is_base_wanted(&self) -> bool {
        self.is_base_wanted
    }

    /// Returns the time for a part that does not have all entries that were applied before it was read.
    pub fn complete_at(&self) -> Millis {
        self.known.as_ref().map_or(Millis(0), |known| known.complete_at)
    }

    /// Decides about the next step. At most one step of a group may be under way.
    pub fn next(&mut self, view: GroupView) -> Option<ArchiveStep> {
        if !view.leads {
            // The next leader continues, and what it stores is not known here.
            self.known = None;
            self.is_base_wanted = false;
            return None;
        }
        if view.now < self.not_before {
            return None;
        }
        let Some(known) = &mut self.known else { return Some(ArchiveStep::Resume) };
        let Some((index, at)) = known.base else { return Some(ArchiveStep::TakeBase) };
        known.has_gap |= view.applied > known.reached && view.first_in_log > known.reached + 1;
        let age = Duration::from_millis(view.now.0.saturating_sub(at.0));
        let is_changed = view.applied > index;
        let is_due = is_changed && (age >= self.base_every || known.bytes_since_base >= LOG_BYTES_MAX);
        if known.has_gap || self.is_base_wanted || is_due {
            return Some(ArchiveStep::TakeBase);
        }
        let since_part = Duration::from_millis(view.now.0.saturating_sub(known.last_part.0));
        (view.applied > known.reached && since_part >= PART_EVERY)
            .then_some(ArchiveStep::StorePart { from: known.reached + 1 })
    }

    /// Takes the outcome of a step.
    pub fn done(&mut self, outcome: ArchiveOutcome, now: Millis) {
        if outcome != ArchiveOutcome::Failed {
            self.failures = 0;
        }
        match (outcome, &mut self.known) {
            (ArchiveOutcome::Resumed { base, reached }, known) => {
                let (last_part, complete_at) = (Millis(0), base.map_or(Millis(0), |(_, at)| at));
                *known =
                    Some(KnownArchive { base, reached, bytes_since_base: 0, last_part, complete_at, has_gap: false });
            }
            (ArchiveOutcome::BaseTaken { index, at }, Some(known)) => {
                // Without an earlier base, or behind a gap, the log begins behind the base.
                if known.base.is_none() || known.has_gap {
                    known.reached = known.reached.max(index);
                    known.complete_at = at;
                    known.has_gap = false;
                }
                known.base = Some((index, at));
                known.bytes_since_base = 0;
                self.is_base_wanted = false;
            }
            (ArchiveOutcome::PartStored { last, bytes, at }, Some(known)) => {
                known.reached = last;
                known.complete_at = known.complete_at.max(at);
                known.bytes_since_base += bytes;
                known.last_part = now;
            }
            (ArchiveOutcome::EntriesGone, Some(known)) => known.has_gap = true,
            (ArchiveOutcome::Failed, _) => {
                let pause = FAILED_PAUSE * 2_u32.saturating_pow(self.failures.min(10));
                self.failures += 1;
                self.not_before = Millis(now.0 + pause.min(FAILED_PAUSE_MAX).as_millis() as u64);
            }
            // This node ceased to lead while the step was under way.
            (_, None) => {}
        }
    }
}

/// Returns the last index that parts reach from a base without a gap.
pub fn reached_behind(base: u64, mut parts: Vec<LogPartName>) -> u64 {
    parts.sort();
    parts.iter().fold(base, |reached, part| match part.first <= reached + 1 {
        true => reached.max(part.last),
        false => reached,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVERY: Duration = Duration::from_secs(3600);

    fn view(applied: u64, first_in_log: u64, now: u64) -> GroupView {
        GroupView { leads: true, applied, first_in_log, now: Millis(now) }
    }

    #[test]
    fn parts_reach_as_far_as_they_follow_each_other() {
        let part = |first, last| LogPartName { first, last, at: Millis(0) };
        assert_eq!(reached_behind(10, vec![]), 10);
        assert_eq!(reached_behind(10, vec![part(21, 30), part(8, 14), part(15, 20)]), 30);
        assert_eq!(reached_behind(10, vec![part(3, 9), part(11, 12), part(14, 20)]), 12);
    }

    #[test]
    fn a_new_group_begins_with_a_base_and_parts_follow() {
        let mut line = ArchiveLine::new(EVERY);
        assert_eq!(line.next(view(5, 1, 0)), Some(ArchiveStep::Resume));
        line.done(ArchiveOutcome::Resumed { base: None, reached: 0 }, Millis(0));
        assert_eq!(line.next(view(5, 1, 0)), Some(ArchiveStep::TakeBase));
        assert_eq!(line.reached(), None);
        line.done(ArchiveOutcome::BaseTaken { index: 5, at: Millis(10) }, Millis(20));
        assert_eq!(line.reached(), Some(5));
        assert_eq!(line.next(view(5, 6, 5_000)), None, "nothing is new");
        assert_eq!(line.next(view(8, 6, 5_000)), Some(ArchiveStep::StorePart { from: 6 }));
        line.done(ArchiveOutcome::PartStored { last: 8, bytes: 100, at: Millis(4_900) }, Millis(5_000));
        assert_eq!(line.next(view(9, 6, 6_999)), None, "not so soon");
        assert_eq!(line.next(view(9, 6, 8_000)), Some(ArchiveStep::StorePart { from: 9 }));
        assert_eq!(line.next(view(9, 6, 3_600_010)), Some(ArchiveStep::TakeBase), "it is due");
    }

    #[test]
    fn entries_that_are_gone_need_a_base() {
        let mut line = ArchiveLine::new(EVERY);
        line.next(view(50, 40, 0));
        line.done(ArchiveOutcome::Resumed { base: Some((10, Millis(0))), reached: 30 }, Millis(0));
        assert_eq!(line.next(view(50, 40, 9_000)), Some(ArchiveStep::TakeBase));
        line.done(ArchiveOutcome::BaseTaken { index: 50, at: Millis(9_000) }, Millis(9_100));
        assert_eq!(line.next(view(50, 51, 20_000)), None);
        assert_eq!(line.next(view(52, 51, 20_000)), Some(ArchiveStep::StorePart { from: 51 }));
        line.done(ArchiveOutcome::EntriesGone, Millis(20_000));
        assert_eq!(line.next(view(52, 51, 20_000)), Some(ArchiveStep::TakeBase));
    }

    #[test]
    fn failures_pause_longer_and_longer() {
        let mut line = ArchiveLine::new(EVERY);
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..8 {
            assert_eq!(line.next(view(1, 1, now)), Some(ArchiveStep::Resume));
            line.done(ArchiveOutcome::Failed, Millis(now));
            let pause = (0..).step_by(1000).find(|wait| line.next(view(1, 1, now + wait)).is_some()).expect("an end");
            pauses.push(pause / 1000);
            now += pause;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn who_does_not_lead_forgets() {
        let mut line = ArchiveLine::new(EVERY);
        line.done(ArchiveOutcome::Resumed { base: Some((1, Millis(0))), reached: 3 }, Millis(0));
        assert_eq!(line.next(GroupView { leads: false, ..view(9, 1, 0) }), None);
        assert_eq!(line.reached(), None);
        line.done(ArchiveOutcome::PartStored { last: 9, bytes: 1, at: Millis(0) }, Millis(0));
        assert_eq!(line.reached(), None, "a step that ends late changes nothing");
        assert_eq!(line.next(view(9, 1, 0)), Some(ArchiveStep::Resume));
    }

    proptest! {
        /// Whatever is purged and whenever leaders change, the store has no hole behind its newest base that the line
        /// does not know of, and everything is stored in the end.
        #[test]
        fn everything_arrives(events in proptest::collection::vec((0..4_u8, 1..20_u64), 1..120)) {
            let mut line = ArchiveLine::new(EVERY);
            let (mut applied, mut first, mut now, mut leads) = (0_u64, 1_u64, 0_u64, true);
            // The store: the newest base, and which entries it has.
            let (mut base, mut stored) = (None::<(u64, Millis)>, std::collections::BTreeSet::new());
            for (event, amount) in events.into_iter().chain([(9, 0)]) {
                match event {
                    0 => applied += amount,
                    1 => first = (first + amount).min(applied + 1),
                    2 => leads = !leads,
                    9 => leads = true,
                    _ => {}
                }
                now += 4_000;
                for _ in 0..6 {
                    now += 3_000;
                    let view = GroupView { leads, applied, first_in_log: first, now: Millis(now) };
                    let Some(step) = line.next(view) else { continue };
                    prop_assert!(leads);
                    let outcome = match step {
                        ArchiveStep::Resume => {
                            let begin = base.map_or(0, |(index, _)| index);
                            let reached = (begin + 1..).take_while(|index| stored.contains(index)).last();
                            ArchiveOutcome::Resumed { base, reached: reached.unwrap_or(begin) }
                        }
                        ArchiveStep::TakeBase => {
                            base = Some((applied, Millis(now)));
                            ArchiveOutcome::BaseTaken { index: applied, at: Millis(now) }
                        }
                        ArchiveStep::StorePart { from } => {
                            prop_assert!(from >= first, "entry {from} is gone, the first is {first}");
                            stored.extend(from..=applied);
                            ArchiveOutcome::PartStored { last: applied, bytes: 1, at: Millis(now) }
                        }
                    };
                    line.done(outcome, Millis(now));
                }
            }
            prop_assert_eq!(line.reached(), Some(applied));
            let begin = base.map_or(0, |(index, _)| index);
            prop_assert!((begin + 1..=applied).all(|index| stored.contains(&index)));
        }
    }
}

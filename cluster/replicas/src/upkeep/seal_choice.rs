//! Choice of the groups that seal next. It is pure: it maps numbers to groups.
//!
//! D1: while nothing exceeds a limit, nothing seals.
//! D2: the largest memory table seals first. A table that is being sealed counts as gone.
//! D3: a group that is old, or that pins old log files, seals however small it is.
//! D4: the catalog seals at [`CATALOG_BYTES_MAX`]. Its store commits a seal at once, and uses and keeps many times its
//!     size in memory.

use std::time::Duration;

use assay_cluster_raft::SEALS_AT_ONCE;
use assay_storage_model::GroupId;

/// Number of concurrent seals for lack of memory: one more than are written, so that the next is ready.
const SEALS_FOR_MEMORY_MAX: usize = SEALS_AT_ONCE + 1;

/// Approximate size of the changes that one seal of the catalog writes.
pub const CATALOG_BYTES_MAX: u64 = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub memory_bytes: u64,
    pub age: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct SealCandidate {
    pub group: GroupId,
    pub memory_bytes: u64,
    /// Whether the group has unsealed entries.
    pub dirty: bool,
    pub age: Duration,
    /// Whether the group pins old log files.
    pub pinned: bool,
    pub sealing: bool,
}

pub fn decide(groups: &[SealCandidate], budget: &Budget) -> Vec<GroupId> {
    let idle = || groups.iter().filter(|report| report.dirty && !report.sealing);
    let is_due = |report: &&SealCandidate| {
        let is_much = report.group == GroupId::CATALOG && report.memory_bytes >= CATALOG_BYTES_MAX; // D4
        is_much || report.pinned || report.age >= budget.age // D3
    };
    let mut chosen: Vec<GroupId> = idle().filter(is_due).map(|report| report.group).collect();
    let leaving = |chosen: &[GroupId], report: &SealCandidate| report.sealing || chosen.contains(&report.group);
    let staying = groups.iter().filter(|report| !leaving(&chosen, report)).map(|report| report.memory_bytes);
    let mut staying: u64 = staying.sum();
    let under_way = groups.iter().filter(|report| leaving(&chosen, report)).count();
    let mut largest: Vec<&SealCandidate> = idle().filter(|report| !chosen.contains(&report.group)).collect();
    largest.sort_by_key(|report| (std::cmp::Reverse(report.memory_bytes), report.group));
    for report in largest.into_iter().take(SEALS_FOR_MEMORY_MAX.saturating_sub(under_way)) {
        if staying < budget.memory_bytes || report.memory_bytes == 0 {
            break; // D1
        }
        chosen.push(report.group); // D2
        staying -= report.memory_bytes;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { memory_bytes: 100, age: Duration::from_secs(60) };

    fn report(group: u64, memory_bytes: u64) -> SealCandidate {
        SealCandidate {
            group: GroupId(group),
            memory_bytes,
            dirty: true,
            age: Duration::ZERO,
            pinned: false,
            sealing: false,
        }
    }

    fn chosen(groups: &[SealCandidate]) -> Vec<u64> {
        decide(groups, &BUDGET).into_iter().map(|group| group.0).collect()
    }

    #[test]
    fn below_the_budget_nobody_seals() {
        assert_eq!(chosen(&[report(1, 50), report(2, 49)]), [0; 0]);
    }

    #[test]
    fn the_largest_seals_and_no_more_than_needed() {
        assert_eq!(chosen(&[report(1, 40), report(2, 60), report(3, 10)]), [2]);
        assert_eq!(chosen(&[report(1, 90), report(2, 90), report(3, 90)]), [1, 2]);
    }

    #[test]
    fn what_is_being_sealed_counts_as_gone() {
        let sealing = SealCandidate { sealing: true, ..report(1, 90) };
        assert_eq!(chosen(&[sealing, report(2, 60)]), [0; 0]);
        assert_eq!(chosen(&[sealing, report(2, 60), report(3, 50)]), [2]);
        let others = (4..).take(SEALS_FOR_MEMORY_MAX).map(|group| SealCandidate { sealing: true, ..report(group, 90) });
        let groups: Vec<SealCandidate> = others.chain([report(2, 60), report(3, 50)]).collect();
        assert_eq!(chosen(&groups), [0; 0], "as many as are written, and one more");
    }

    #[test]
    fn the_catalog_seals_little_at_a_time() {
        let budget = Budget { memory_bytes: u64::MAX, ..BUDGET };
        let of = |bytes| SealCandidate { group: GroupId::CATALOG, ..report(0, bytes) };
        assert_eq!(decide(&[of(CATALOG_BYTES_MAX - 1), report(7, CATALOG_BYTES_MAX)], &budget), []);
        assert_eq!(decide(&[of(CATALOG_BYTES_MAX)], &budget), [GroupId::CATALOG]);
    }

    #[test]
    fn the_old_and_those_that_pin_the_log_seal_however_small() {
        let old = SealCandidate { age: BUDGET.age, ..report(1, 0) };
        let pinning = SealCandidate { pinned: true, ..report(2, 1) };
        let clean = SealCandidate { dirty: false, pinned: true, ..report(3, 0) };
        assert_eq!(chosen(&[old, pinning, clean]), [1, 2]);
    }
}

//! Decision which objects restore a state: pure, from the names of objects.
//!
//! R1: every write that was acknowledged before the wanted time is in the plan.
//! R2: a base of the plan has no write that began after the wanted time. Parts of the log may have some, which the
//!     restore leaves out by their own times.
//! R3: a gap in the log is an error that names the times that can be restored, never a state with a hole.

use std::collections::BTreeMap;

use assay_storage_model::GroupId;

use crate::layout::{BaseName, LogPartName, Millis, group_name};

/// Objects of one group, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupObjects {
    pub bases: Vec<BaseName>,
    pub parts: Vec<LogPartName>,
}

/// What a restore reads for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    pub base: BaseName,
    /// Parts in the order of their entries. The first one may begin within the base.
    pub parts: Vec<LogPartName>,
}

/// What a restore reads, and the time of the restored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePlan {
    pub at: Millis,
    pub groups: BTreeMap<GroupId, GroupPlan>,
}

/// Reason why a time cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No point is in the store, so no state is known to be complete.
    NoPoint,
    /// The newest point is earlier.
    TooNew { newest: Millis },
    /// The first base of a group is later.
    TooOld { group: GroupId, oldest: Option<Millis> },
    /// Entries of a group are missing.
    Gap { group: GroupId, missing: u64, before: Option<Millis>, after: Option<Millis> },
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlanError::NoPoint => f.write_str("the backup is not complete yet: it has no point"),
            PlanError::TooNew { newest } => {
                write!(f, "the backup reaches {}; choose that time or an earlier one", time_text(*newest))
            }
            PlanError::TooOld { group, oldest: None } => {
                write!(f, "the backup is not complete: group {} has no base", group_name(*group))
            }
            PlanError::TooOld { oldest: Some(oldest), .. } => {
                write!(f, "the backup begins at {}; choose that time or a later one", time_text(*oldest))
            }
            PlanError::Gap { group, missing, before, after } => {
                write!(f, "the log of group {} lacks entry {missing}", group_name(*group))?;
                match (before, after) {
                    (Some(before), Some(after)) => {
                        let (before, after) = (time_text(*before), time_text(*after));
                        write!(f, "; choose a time up to {before}, or from {after} on")
                    }
                    (Some(before), None) => write!(f, "; choose a time up to {}", time_text(*before)),
                    (None, Some(after)) => write!(f, "; choose a time from {} on", time_text(*after)),
                    (None, None) => Ok(()),
                }
            }
        }
    }
}

/// Formats a time as RFC 3339, in UTC.
pub fn time_text(at: Millis) -> String {
    let micros = i64::try_from(at.0).unwrap_or(i64::MAX / 1000).saturating_mul(1000);
    assay_storage_model::event::format_micros(micros)
}

/// Plans the restore of the state at a time, or of the newest one.
///
/// `points` are sorted by time, each with the last index of every group. `groups` has the objects of all groups of the
/// cluster.
pub fn plan(
    wanted: Option<Millis>,
    points: &[(Millis, BTreeMap<GroupId, u64>)],
    groups: &BTreeMap<GroupId, GroupObjects>,
) -> Result<RestorePlan, PlanError> {
    let (newest, _) = points.last().ok_or(PlanError::NoPoint)?;
    let at = wanted.unwrap_or(*newest);
    // The first point that proves the wanted time.
    let (_, indices) = points.iter().find(|(time, _)| *time >= at).ok_or(PlanError::TooNew { newest: *newest })?;
    let planned = groups.iter().map(|(group, objects)| {
        let needed = indices.get(group).copied().unwrap_or(0);
        Ok((*group, plan_group(*group, objects, at, needed)?))
    });
    let groups: BTreeMap<_, _> = planned.collect::<Result<_, _>>()?;
    Ok(RestorePlan { at, groups })
}

fn plan_group(group: GroupId, objects: &GroupObjects, at: Millis, needed: u64) -> Result<GroupPlan, PlanError> {
    let base = objects.bases.iter().filter(|base| base.at <= at).max_by_key(|base| (base.index, base.at));
    let base = base.copied().ok_or_else(|| {
        let oldest = objects.bases.iter().map(|base| base.at).min();
        PlanError::TooOld { group, oldest }
    })?;
    let mut parts = Vec::new();
    let mut reached = base.index;
    let mut reached_at = base.at;
    for part in &objects.parts {
        if reached >= needed || reached_at > at {
            break;
        }
        if part.last <= reached {
            continue;
        }
        if part.first > reached + 1 {
            break;
        }
        parts.push(*part);
        reached = part.last;
        reached_at = part.at;
    }
    // Entries behind the wanted time are not needed, although the point has them.
    if reached < needed && reached_at <= at {
        let after = objects.bases.iter().filter(|base| base.index > reached).map(|base| base.at).min();
        let before = Some(reached_at).filter(|before| *before < at);
        return Err(PlanError::Gap { group, missing: reached + 1, before, after });
    }
    Ok(GroupPlan { base, parts })
}

/// Returns the first and the last time that can be restored without a gap between them, up to the newest point.
pub fn restorable(
    points: &[(Millis, BTreeMap<GroupId, u64>)],
    groups: &BTreeMap<GroupId, GroupObjects>,
) -> Option<(Millis, Millis)> {
    let (newest, _) = points.last()?;
    plan(None, points, groups).ok()?;
    let firsts = groups.values().map(|objects| {
        // Bases from the newest one back, as long as the log reaches the next one without a gap.
        let mut bases = objects.bases.clone();
        bases.sort();
        let mut first = bases.pop()?;
        while let Some(earlier) = bases.pop() {
            if !connects(objects, earlier.index, first.index) {
                break;
            }
            first = earlier;
        }
        Some(first.at)
    });
    let first = firsts.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    (first <= *newest).then_some((first, *newest))
}

/// Returns whether the log has all entries behind an index up to another one.
fn connects(objects: &GroupObjects, from: u64, to: u64) -> bool {
    let mut reached = from;
    for part in &objects.parts {
        if part.last > reached && part.first <= reached + 1 {
            reached = part.last;
        }
    }
    reached >= to
}

#[cfg(test)]
mod tests {
    use assay_storage_model::ShardId;

    use super::*;

    const GROUP: GroupId = GroupId::CATALOG;

    fn base(index: u64, at: u64) -> BaseName {
        BaseName { index, at: Millis(at) }
    }

    fn part(first: u64, last: u64, at: u64) -> LogPartName {
        LogPartName { first, last, at: Millis(at) }
    }

    fn one(bases: &[BaseName], parts: &[LogPartName]) -> BTreeMap<GroupId, GroupObjects> {
        BTreeMap::from([(GROUP, GroupObjects { bases: bases.to_vec(), parts: parts.to_vec() })])
    }

    fn point(at: u64, index: u64) -> (Millis, BTreeMap<GroupId, u64>) {
        (Millis(at), BTreeMap::from([(GROUP, index)]))
    }

    #[test]
    fn the_newest_base_before_the_time_and_the_log_behind_it() {
        let groups = one(&[base(10, 100), base(30, 300)], &[part(5, 20, 200), part(21, 40, 400), part(41, 50, 500)]);
        let points = [point(150, 10), point(500, 50)];
        let planned = |at| plan(Some(Millis(at)), &points, &groups).map(|plan| plan.groups[&GROUP].clone());
        assert_eq!(planned(120), Ok(GroupPlan { base: base(10, 100), parts: vec![] }), "the point proves it");
        assert_eq!(
            planned(250),
            Ok(GroupPlan { base: base(10, 100), parts: vec![part(5, 20, 200), part(21, 40, 400)] })
        );
        assert_eq!(planned(310), Ok(GroupPlan { base: base(30, 300), parts: vec![part(21, 40, 400)] }));
        assert_eq!(
            planned(450),
            Ok(GroupPlan { base: base(30, 300), parts: vec![part(21, 40, 400), part(41, 50, 500)] })
        );
        assert_eq!(plan(None, &points, &groups).expect("the newest").at, Millis(500));
    }

    #[test]
    fn times_outside_of_the_backup_are_refused_with_its_ends() {
        let groups = one(&[base(10, 100)], &[]);
        let points = [point(150, 10)];
        let planned = |at| plan(Some(Millis(at)), &points, &groups).map(drop);
        assert_eq!(planned(99), Err(PlanError::TooOld { group: GROUP, oldest: Some(Millis(100)) }));
        assert_eq!(planned(151), Err(PlanError::TooNew { newest: Millis(150) }));
        assert_eq!(plan(None, &[], &groups), Err(PlanError::NoPoint));
        let other = BTreeMap::from([(GroupId::of_shard(ShardId(1)), GroupObjects::default())]);
        assert!(matches!(plan(None, &points, &other), Err(PlanError::TooOld { oldest: None, .. })));
    }

    #[test]
    fn a_gap_is_an_error_only_for_times_within_it() {
        let groups = one(&[base(10, 100), base(30, 300)], &[part(11, 20, 200), part(31, 40, 400)]);
        let points = [point(180, 18), point(250, 25), point(400, 40)];
        let planned = |at| plan(Some(Millis(at)), &points, &groups).map(drop);
        assert_eq!(planned(170), Ok(()));
        let gap = PlanError::Gap { group: GROUP, missing: 21, before: Some(Millis(200)), after: Some(Millis(300)) };
        assert_eq!(planned(220), Err(gap));
        assert_eq!(planned(310), Ok(()));
        assert_eq!(restorable(&points, &groups), Some((Millis(300), Millis(400))));
        let whole = one(&[base(10, 100), base(30, 300)], &[part(11, 32, 200), part(31, 40, 400)]);
        assert_eq!(restorable(&points, &whole), Some((Millis(100), Millis(400))));
    }
}

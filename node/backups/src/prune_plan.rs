//! Decision which objects a backup no longer needs: pure, from the names of objects.
//!
//! Every time from the beginning of the period on stays restorable: of each group, the newest base before the period
//! stays, with everything behind it.

use std::collections::{BTreeMap, BTreeSet};

use assay_node_segment_store::StoredName;
use assay_storage_model::GroupId;

use crate::key::ContentHash;
use crate::layout::{self, Millis};
use crate::restore_plan::GroupObjects;

/// Age of a list of unused content, after which the content is deleted if it is still unused.
///
/// A base that is being written may name content that it found in the store. It takes less time than this.
pub const UNUSED_AGE_MILLIS: u64 = 24 * 3600 * 1000;

/// Returns the objects of groups that are not needed for any time from `keep_from` on.
pub fn outdated(
    keep_from: Millis,
    groups: &BTreeMap<GroupId, GroupObjects>,
    large: &BTreeMap<GroupId, Vec<u64>>,
) -> Vec<StoredName> {
    let mut outdated = Vec::new();
    for (group, objects) in groups {
        let before = objects.bases.iter().filter(|base| base.at <= keep_from);
        let Some(needed) = before.max_by_key(|base| (base.index, base.at)) else { continue };
        let older = objects.bases.iter().filter(|base| (base.index, base.at) < (needed.index, needed.at));
        outdated.extend(older.map(|base| base.of(*group)));
        let parts = objects.parts.iter().filter(|part| part.last <= needed.index);
        outdated.extend(parts.map(|part| part.of(*group)));
        let writes = large.get(group).into_iter().flatten().filter(|index| **index <= needed.index);
        outdated.extend(writes.map(|index| layout::large_write(*group, *index)));
    }
    outdated
}

/// Returns the points that are not needed: those before the period, and most of the automatic ones within it.
///
/// A time needs the first point behind it, which may be any later one. So of the automatic points the newest ones are
/// enough, and those on request stay for lists.
pub fn outdated_points(keep_from: Millis, points: &[(Millis, bool)]) -> Vec<StoredName> {
    let newest = points.len().saturating_sub(AUTOMATIC_POINTS_KEPT);
    let is_outdated =
        |(place, (at, is_requested)): &(usize, &(Millis, bool))| *place < newest && (!is_requested || *at < keep_from);
    points.iter().enumerate().filter(is_outdated).map(|(_, (at, _))| layout::point(*at)).collect()
}

/// Number of the newest points that always stay.
pub const AUTOMATIC_POINTS_KEPT: usize = 100;

/// Returns the content that may be deleted, and the content that is to be listed as unused.
///
/// Content is deleted if it is unused now, and an old list has it.
pub fn unused(
    now: Millis,
    stored: &BTreeSet<ContentHash>,
    named: &BTreeSet<ContentHash>,
    lists: &[(Millis, BTreeSet<ContentHash>)],
) -> (Vec<ContentHash>, Vec<ContentHash>) {
    let listed_before = |hash: &ContentHash| {
        let is_old = |at: &Millis| now.0.saturating_sub(at.0) >= UNUSED_AGE_MILLIS;
        lists.iter().any(|(at, hashes)| is_old(at) && hashes.contains(hash))
    };
    let unused = stored.iter().filter(|hash| !named.contains(hash)).copied();
    unused.partition(listed_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{BaseName, LogPartName};
    use crate::restore_plan::plan;

    const GROUP: GroupId = GroupId::CATALOG;

    #[test]
    fn every_time_of_the_period_stays_restorable() {
        let base = |index, at| BaseName { index, at: Millis(at) };
        let part = |first, last, at| LogPartName { first, last, at: Millis(at) };
        let parts = (1..60).map(|number| part(number * 10 + 1, number * 10 + 10, number * 100)).collect::<Vec<_>>();
        let bases = vec![base(10, 50), base(155, 1_600), base(300, 2_950), base(500, 4_970)];
        let objects = GroupObjects { bases, parts };
        let groups = BTreeMap::from([(GROUP, objects.clone())]);
        let points: Vec<_> =
            (1..60).map(|number| (Millis(number * 100), BTreeMap::from([(GROUP, number * 10 + 10)]))).collect();
        for keep_from in (100..6_000).step_by(50) {
            let large = BTreeMap::from([(GROUP, (1..600).collect())]);
            let gone: BTreeSet<_> = outdated(Millis(keep_from), &groups, &large).into_iter().collect();
            let left = GroupObjects {
                bases: objects.bases.iter().filter(|base| !gone.contains(&base.of(GROUP))).copied().collect(),
                parts: objects.parts.iter().filter(|part| !gone.contains(&part.of(GROUP))).copied().collect(),
            };
            let left = BTreeMap::from([(GROUP, left)]);
            for at in (keep_from..5_900).step_by(130) {
                let before = plan(Some(Millis(at)), &points, &groups).expect("restorable before");
                let after = plan(Some(Millis(at)), &points, &left).expect("restorable after");
                assert_eq!(before, after);
                let first = after.groups[&GROUP].base.index + 1;
                assert!((first..600).all(|index| !gone.contains(&layout::large_write(GROUP, index))));
            }
        }
        let gone = outdated(Millis(3_000), &groups, &BTreeMap::new());
        assert!(gone.contains(&base(155, 1_600).of(GROUP)), "something is deleted");
    }

    #[test]
    fn content_is_deleted_only_if_it_was_unused_for_a_day() {
        let hash = |byte| ContentHash([byte; 32]);
        let stored = BTreeSet::from([hash(1), hash(2), hash(3)]);
        let named = BTreeSet::from([hash(1)]);
        let now = Millis(UNUSED_AGE_MILLIS + 1_000);
        assert_eq!(unused(now, &stored, &named, &[]), (vec![], vec![hash(2), hash(3)]));
        let old = (Millis(1_000), BTreeSet::from([hash(1), hash(2)]));
        let new = (Millis(1_001), BTreeSet::from([hash(3)]));
        assert_eq!(unused(now, &stored, &named, &[old, new]), (vec![hash(2)], vec![hash(3)]));
    }

    #[test]
    fn the_newest_points_and_requested_ones_stay() {
        let points: Vec<_> = (0..300).map(|at| (Millis(at), at % 50 == 0)).collect();
        let gone: BTreeSet<_> = outdated_points(Millis(100), &points).into_iter().collect();
        let stays = |at: u64| !gone.contains(&layout::point(Millis(at)));
        assert!((200..300).all(stays));
        assert!(stays(100) && stays(150) && !stays(50) && !stays(101));
    }
}

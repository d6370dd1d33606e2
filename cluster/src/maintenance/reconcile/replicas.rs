//! Reconciliation of the replicas on this node with the map.
//!
//! A replica that is no longer in the map stays until its group's leader has removed it as a member. Until then a
//! majority may need it.
//!
//! Unfinished work is visible in `REPLICAS`. A line without a running replica is work until the replica runs or the
//! line is gone. A replica with damaged state is discarded here once the others do without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_directory::node_files::{KeptReplica, KeptState};
use assay_cluster_directory::starts::Floor;
use assay_storage_model::catalog::ShardMap;
use assay_storage_model::{GroupId, ReplicaId, ShardId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::scrub::dispensable;
use super::{CatalogChanges, LOOK, LOOK_MIN};
use crate::Shared;

/// Pause after a failure in a group.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// Pause before a damaged replica that the others cannot do without is reported again.
const DAMAGED_AGAIN_AFTER: Duration = Duration::from_secs(5);

pub(super) async fn run(shared: Arc<Shared>) {
    let mut not_before: BTreeMap<GroupId, Instant> = BTreeMap::new();
    loop {
        let changes = CatalogChanges::from_now(&shared);
        let map = shared.catalog.read().shard_map().cloned();
        if let Some(map) = map {
            step(&shared, &map, &mut not_before).await;
        }
        changes.wait(LOOK_MIN, LOOK).await;
    }
}

/// Closes replicas whose consensus ended because of damaged files. [`run`] discards them once the others do without
/// them.
pub(super) async fn close_damaged(shared: Arc<Shared>, mut damage: mpsc::Receiver<(GroupId, ReplicaId)>) {
    while let Some((group, replica)) = damage.recv().await {
        shared.close_replica(group, replica).await;
    }
}

/// Makes a step for every group, regardless of failures in others.
async fn step(shared: &Arc<Shared>, map: &ShardMap, not_before: &mut BTreeMap<GroupId, Instant>) {
    for number in 0..map.shards.len() {
        let group = GroupId::of_shard(ShardId(u16::try_from(number).expect("at most 256 shards")));
        let Some(members) = map.group(group) else { continue };
        if not_before.get(&group).is_some_and(|until| Instant::now() < *until) || shared.is_ending(group) {
            continue;
        }
        let wanted = members.replicas.iter().find(|replica| replica.node == shared.node).map(|replica| replica.id);
        let runs = shared.replicas.group(group).map(|found| found.replica());
        let kept = shared.kept_of(group);
        let damaged = kept.as_ref().is_some_and(|kept| shared.is_damaged(group, kept.replica));
        let work = next(kept, runs.is_some(), damaged, wanted);
        let pause = if matches!(work, Work::GiveUp(_)) { DAMAGED_AGAIN_AFTER } else { AFTER_FAILURE };
        match bring(shared, group, work).await {
            Ok(()) => drop(not_before.remove(&group)),
            Err(error) => {
                tracing::warn!(%group, error, "a replica could not be started or removed; will be retried");
                not_before.insert(group, Instant::now() + pause);
            }
        }
    }
}

/// Work for a group's replica on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Nothing,
    Add(ReplicaId),
    /// Start of a replica that was added but never started.
    Start(KeptReplica),
    /// Removal of a running replica that is not wanted.
    Leave(ReplicaId),
    /// Removal of a replica that neither runs nor is wanted. It must run until it is no longer a member of its group.
    LeaveOrStart(KeptReplica),
    /// Rest of an interrupted removal.
    FinishLeaving(ReplicaId),
    /// Discard of a replica with damaged state.
    GiveUp(ReplicaId),
}

/// Returns the work for a group's replica. Pure.
fn next(kept: Option<KeptReplica>, runs: bool, damaged: bool, wanted: Option<ReplicaId>) -> Work {
    let Some(kept) = kept else { return wanted.map_or(Work::Nothing, Work::Add) };
    let is_wanted = wanted == Some(kept.replica);
    match kept.state {
        KeptState::Leaving => Work::FinishLeaving(kept.replica),
        // The planner must assign another number first.
        KeptState::Lost if is_wanted => Work::Nothing,
        KeptState::Lost => wanted.map_or(Work::Nothing, Work::Add),
        KeptState::Kept => match (runs, damaged, is_wanted) {
            (true, _, true) => Work::Nothing,
            (true, _, false) | (false, true, false) => Work::Leave(kept.replica),
            (false, true, true) => Work::GiveUp(kept.replica),
            (false, false, true) => Work::Start(kept),
            (false, false, false) => Work::LeaveOrStart(kept),
        },
    }
}

async fn bring(shared: &Arc<Shared>, group: GroupId, work: Work) -> Result<(), String> {
    let done = match work {
        Work::Nothing => return Ok(()),
        // The replica may have run here, voted and acknowledged, after this directory was copied.
        Work::Add(replica) if !shared.start_histories.may_take(replica) => {
            if shared.start_histories.floor() == Floor::Unknown { Ok(()) } else { shared.never_take(group, replica) }
        }
        Work::Add(replica) => shared.add_replica(group, replica).await,
        Work::Start(kept) => shared.start_kept(&kept).await,
        Work::Leave(replica) if !may_leave(shared, group, replica).await => return Ok(()),
        Work::LeaveOrStart(kept) if !may_leave(shared, group, kept.replica).await => shared.start_kept(&kept).await,
        Work::Leave(replica) | Work::FinishLeaving(replica) | Work::LeaveOrStart(KeptReplica { replica, .. }) => {
            shared.drop_replica(group, replica).await
        }
        Work::GiveUp(replica) => return give_up(shared, group, replica).await,
    };
    done.map_err(|error| error.to_string())
}

async fn give_up(shared: &Arc<Shared>, group: GroupId, replica: ReplicaId) -> Result<(), String> {
    if !dispensable(shared, group, replica).await {
        return Err(format!(
            "replica {replica} is damaged and closed. Its group has not confirmed that it does without it, so its data stays"
        ));
    }
    match shared.lose_replica(group, replica).await {
        Ok(()) => tracing::error!(%group, %replica, "this replica was discarded; it is rebuilt from the others"),
        // No other replica may find the rest of its log. The next start finishes the removal.
        Err(error) => shared.config.on_fatal.report(format_args!("cannot discard a damaged replica: {error}")),
    }
    Ok(())
}

async fn may_leave(shared: &Shared, group: GroupId, replica: ReplicaId) -> bool {
    let reports = shared.reports().await;
    let told = reports.values().flat_map(|report| &report.led).filter(|led| led.group == group);
    told.max_by_key(|led| led.term)
        .is_some_and(|led| !led.changing && led.replicas.iter().all(|member| member.replica != replica))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_running_replica_is_work_until_it_runs_or_is_gone() {
        let line =
            |state| KeptReplica { group: GroupId(16), replica: ReplicaId(7), dir: "shards/000-r7".into(), state };
        let (own, other) = (Some(ReplicaId(7)), Some(ReplicaId(9)));
        let kept = || Some(line(KeptState::Kept));
        let check = |kept: Option<KeptReplica>, runs, damaged, wanted, expected: Work| {
            assert_eq!(next(kept.clone(), runs, damaged, wanted), expected, "{kept:?} {runs} {damaged} {wanted:?}");
        };
        check(None, false, false, None, Work::Nothing);
        check(None, false, false, own, Work::Add(ReplicaId(7)));
        check(kept(), true, false, own, Work::Nothing);
        check(kept(), true, false, None, Work::Leave(ReplicaId(7)));
        check(kept(), true, false, other, Work::Leave(ReplicaId(7)));
        // Regression: the replica was recorded, but the creation of its directory failed, and it never started.
        check(kept(), false, false, own, Work::Start(line(KeptState::Kept)));
        check(kept(), false, false, other, Work::LeaveOrStart(line(KeptState::Kept)));
        // The replica left while a reader still held it. It must be removed first, whether it is wanted again or not.
        for wanted in [None, own, other] {
            check(Some(line(KeptState::Leaving)), false, false, wanted, Work::FinishLeaving(ReplicaId(7)));
        }
        check(kept(), false, true, own, Work::GiveUp(ReplicaId(7)));
        check(kept(), false, true, None, Work::Leave(ReplicaId(7)));
        check(Some(line(KeptState::Lost)), false, false, own, Work::Nothing);
        check(Some(line(KeptState::Lost)), false, false, other, Work::Add(ReplicaId(9)));
        check(Some(line(KeptState::Lost)), false, false, None, Work::Nothing);
    }
}

//! Which replicas run on this node: those that the map names. One that the map does not name any more stays until its
//! group's leader has it no longer as a member; before that it may be needed for a majority.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::catalog::ShardMap;
use assay_storage_model::{GroupId, ReplicaId, ShardId};
use tokio::time::sleep;

use super::LOOK;
use crate::Shared;

/// After something went wrong; it is looked at again.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let map = shared.catalog.read().shard_map().cloned();
        let mut pause = LOOK;
        if let Some(map) = map
            && let Err(error) = step(&shared, &map).await
        {
            tracing::warn!(error, "a replica could not be started or taken away; tried again");
            pause = AFTER_FAILURE;
        }
        sleep(pause).await;
    }
}

async fn step(shared: &Arc<Shared>, map: &ShardMap) -> Result<(), String> {
    for number in 0..map.shards.len() {
        let group = GroupId::of_shard(ShardId(u16::try_from(number).expect("at most 256 shards")));
        let Some(members) = map.group(group) else { continue };
        let wanted = members.replicas.iter().find(|replica| replica.node == shared.node).map(|replica| replica.id);
        let here = shared.hub.group(group);
        match (here, wanted) {
            (None, Some(replica)) => shared.add_replica(group, replica).await.map_err(|error| error.to_string())?,
            (Some(here), wanted) if wanted != Some(here.replica()) => {
                let replica = here.replica();
                drop(here); // whoever holds it holds its files
                leave(shared, group, replica).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

async fn leave(shared: &Arc<Shared>, group: GroupId, replica: ReplicaId) -> Result<(), String> {
    if may_leave(shared, group, replica).await {
        shared.drop_replica(group, replica).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn may_leave(shared: &Shared, group: GroupId, replica: ReplicaId) -> bool {
    let reports = shared.reports().await;
    let told = reports.values().flat_map(|report| &report.led).filter(|led| led.group == group);
    told.max_by_key(|led| led.term)
        .is_some_and(|led| !led.changing && led.replicas.iter().all(|member| member.replica != replica))
}

//! Objects of a restored state, as the shards of a node that is opened without a network count them.

use std::collections::BTreeMap;

use assay_cluster::Cluster;
use assay_storage_model::ShardId;
use uuid::Uuid;

use crate::comparison::{DrillKind, RestoredObject};

/// Returns the rows of all objects of a node that has every shard.
pub fn restored_objects(cluster: &Cluster) -> BTreeMap<(DrillKind, Uuid), RestoredObject> {
    let mut found: BTreeMap<_, RestoredObject> = BTreeMap::new();
    let shards = (0..cluster.shards()).filter_map(|shard| cluster.shard(ShardId(shard)));
    for (object, record) in shards.flat_map(|shard| shard.objects()) {
        let Some(kind) = DrillKind::of(object.kind).filter(|_| !record.dropped) else { continue };
        // A large object is in several lanes.
        let (rows, newest) = (record.rows, record.last);
        let known = found.entry((kind, object.id)).or_insert(RestoredObject { rows: 0, newest });
        known.rows += rows;
        known.newest = known.newest.max(newest);
    }
    found
}

//! Tests of the map of groups and replicas, and of ids that are never reused.

use std::sync::Arc;

use assay_storage_catalog::Catalog;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, ChangeReplicas, GiveIds, IDS_GIVEN_MAX, Members, Replica, ShardMap,
};
use assay_storage_model::{GroupId, NodeId, ReplicaId, ShardId};

use crate::{apply, empty};

fn replica(id: u64, node: u64) -> Replica {
    Replica { id: ReplicaId(id), node: NodeId(node) }
}

/// Returns a map with every group on node 1. Replica 1 is the catalog's.
fn map(shards: u64) -> ShardMap {
    let members = |id| Members { epoch: 1, replicas: vec![replica(id, 1)] };
    ShardMap { catalog: members(1), shards: (0..shards).map(|shard| members(shard + 2)).collect() }
}

fn with_map() -> Arc<Catalog> {
    let (_, catalog) = empty();
    assert_eq!(apply(&catalog, CatalogCommand::SetShardMap(map(4))), CatalogOutcome::MapSet { version: 1 });
    catalog
}

fn change(catalog: &Catalog, expect_epoch: u64, replicas: &[Replica]) -> CatalogOutcome {
    let group = GroupId::of_shard(ShardId(0));
    apply(catalog, CatalogCommand::ChangeReplicas(ChangeReplicas { group, expect_epoch, replicas: replicas.to_vec() }))
}

fn give(catalog: &Catalog, nodes: u32, replicas: u32) -> CatalogOutcome {
    apply(catalog, CatalogCommand::GiveIds(GiveIds { nodes, replicas }))
}

fn given(node: u64, replica: u64) -> CatalogOutcome {
    CatalogOutcome::IdsGiven { first_node: NodeId(node), first_replica: ReplicaId(replica) }
}

fn is_refused(outcome: &CatalogOutcome, word: &str) -> bool {
    matches!(outcome, CatalogOutcome::Refused { reason } if reason.contains(word))
}

#[test]
fn the_map_is_set_once_and_its_ids_count_as_given() {
    let catalog = with_map();
    assert_eq!(apply(&catalog, CatalogCommand::SetShardMap(map(8))), CatalogOutcome::MapWasSet);
    assert_eq!(catalog.read().shard_map().expect("set").shards.len(), 4);
    assert_eq!(give(&catalog, 1, 2), given(2, 6));
    assert_eq!(give(&catalog, 1, 1), given(3, 8));
    assert!(is_refused(&give(&catalog, IDS_GIVEN_MAX + 1, 0), "at once"));
}

#[test]
fn a_map_that_breaks_a_rule_is_refused() {
    let (_, catalog) = empty();
    let mut twice = map(4);
    twice.shards[0].replicas[0].id = ReplicaId(1);
    let mut nowhere = map(4);
    nowhere.shards[1].replicas.clear();
    for (bad, word) in [(map(3), "4 to 256"), (map(257), "4 to 256"), (twice, "twice"), (nowhere, "1 to 255")] {
        assert!(is_refused(&apply(&catalog, CatalogCommand::SetShardMap(bad)), word), "{word}");
    }
    assert!(is_refused(&change(&catalog, 1, &[replica(1, 1)]), "no shard map"));
}

#[test]
fn replicas_change_one_epoch_at_a_time() {
    let catalog = with_map();
    give(&catalog, 1, 1);
    let both = [replica(2, 1), replica(6, 2)];
    assert_eq!(change(&catalog, 1, &both), CatalogOutcome::ReplicasChanged { epoch: 2 });
    assert_eq!(change(&catalog, 1, &both), CatalogOutcome::StaleEpoch { epoch: 2 });
    let map = catalog.read().shard_map().cloned().expect("set");
    assert_eq!(map.group(GroupId::of_shard(ShardId(0))).expect("a group").replicas, both);
    assert_eq!(map.group(GroupId::of_shard(ShardId(1))).expect("a group").epoch, 1);
    let unknown = ChangeReplicas { group: GroupId(9), expect_epoch: 1, replicas: both.to_vec() };
    assert!(is_refused(&apply(&catalog, CatalogCommand::ChangeReplicas(unknown)), "no group"));
}

#[test]
fn a_replica_or_node_that_was_never_given_or_was_here_before_is_refused() {
    let catalog = with_map();
    give(&catalog, 1, 2);
    assert!(is_refused(&change(&catalog, 1, &[replica(8, 2)]), "replica 8 was never given"));
    assert!(is_refused(&change(&catalog, 1, &[replica(6, 3)]), "node 3 was never given"));
    assert!(is_refused(&change(&catalog, 1, &[replica(3, 2)]), "never used again"), "another group has it");
    assert!(is_refused(&change(&catalog, 1, &[replica(2, 2)]), "never used again"), "a replica does not move");
    assert!(is_refused(&change(&catalog, 1, &[replica(2, 1), replica(6, 1)]), "twice"));
    change(&catalog, 1, &[replica(6, 2)]);
    assert!(is_refused(&change(&catalog, 2, &[replica(2, 1), replica(6, 2)]), "never used again"), "it left");
    assert_eq!(change(&catalog, 2, &[replica(7, 1), replica(6, 2)]), CatalogOutcome::ReplicasChanged { epoch: 3 });
}

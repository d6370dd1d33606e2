//! Validation of catalog commands, independent of the catalog's content.
//!
//! The proposer checks early for the client, and apply checks again and decides. The limits are part of the state
//! machine. Replicas with different limits would diverge, so a change of a limit needs a new version of the command.

use std::collections::BTreeSet;

use assay_storage_model::catalog::{
    CatalogCommand, ChangeReplicas, GiveIds, IDS_GIVEN_MAX, PutRecord, RECORD_BODY_BYTES_MAX, REPLICAS_PER_GROUP_MAX,
    Replica, SHARDS_MAX, SHARDS_MIN, ShardMap, UNIQUE_KEY_BYTES_MAX, UNIQUE_KEYS_MAX,
};

/// Checks a command and returns a description of the rule that it breaks.
pub fn check(command: &CatalogCommand) -> Result<(), String> {
    match command {
        CatalogCommand::Put(put) => check_put(put),
        CatalogCommand::Delete(_) => Ok(()),
        CatalogCommand::SetShardMap(map) => check_map(map),
        CatalogCommand::ChangeReplicas(ChangeReplicas { replicas, .. }) => check_members(replicas),
        CatalogCommand::GiveIds(GiveIds { nodes, replicas }) => {
            refuse_if(*nodes > IDS_GIVEN_MAX || *replicas > IDS_GIVEN_MAX, || {
                format!("at most {IDS_GIVEN_MAX} ids can be assigned at once")
            })
        }
    }
}

fn check_put(put: &PutRecord) -> Result<(), String> {
    refuse_if(put.body.len() > RECORD_BODY_BYTES_MAX, || {
        format!("the record has {} bytes, at most {RECORD_BODY_BYTES_MAX} are kept", put.body.len())
    })?;
    refuse_if(put.keys.len() > UNIQUE_KEYS_MAX, || {
        format!("the record has {} unique keys, at most {UNIQUE_KEYS_MAX} are kept", put.keys.len())
    })?;
    let mut seen = BTreeSet::new();
    for key in &put.keys {
        refuse_if(key.scope.len() + key.name.len() > UNIQUE_KEY_BYTES_MAX, || {
            format!("a unique key of `{}` is longer than {UNIQUE_KEY_BYTES_MAX} bytes", start_of(&key.scope))
        })?;
        refuse_if(!seen.insert(key), || format!("a unique key of `{}` comes twice", key.scope))?;
    }
    Ok(())
}

fn check_map(map: &ShardMap) -> Result<(), String> {
    refuse_if(!(SHARDS_MIN..=SHARDS_MAX).contains(&map.shards.len()), || {
        format!("a cluster has {SHARDS_MIN} to {SHARDS_MAX} shards, not {}", map.shards.len())
    })?;
    for members in std::iter::once(&map.catalog).chain(&map.shards) {
        check_members(&members.replicas)?;
    }
    let mut seen = BTreeSet::new();
    match map.replicas().find(|replica| !seen.insert(replica.id)) {
        Some(twice) => Err(format!("replica {} stands in the map twice", twice.id)),
        None => Ok(()),
    }
}

fn check_members(replicas: &[Replica]) -> Result<(), String> {
    refuse_if(replicas.is_empty() || replicas.len() > REPLICAS_PER_GROUP_MAX, || {
        format!("a group has 1 to {REPLICAS_PER_GROUP_MAX} replicas, not {}", replicas.len())
    })?;
    let (mut ids, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    for replica in replicas {
        refuse_if(replica.id.0 == 0 || replica.node.0 == 0, || "ids start at 1".into())?;
        refuse_if(!ids.insert(replica.id), || format!("replica {} stands in the group twice", replica.id))?;
        refuse_if(!nodes.insert(replica.node), || format!("node {} keeps the group twice", replica.node))?;
    }
    Ok(())
}

fn start_of(text: &str) -> String {
    text.chars().take(64).collect()
}

pub fn refuse_if(broken: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if broken { Err(reason()) } else { Ok(()) }
}

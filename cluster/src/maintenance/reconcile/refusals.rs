//! Closing of replicas that other nodes refused.
//!
//! Either this node runs on an older copy of its data directory, or a replica lacks acknowledged entries. Such replicas
//! are closed and discarded like damaged ones, and created again under later numbers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_directory::node_files::KeptState;
use assay_cluster_directory::starts::{COMPARED_WITHIN, Consequence, Floor, Name, StartId, write_marker};
use assay_cluster_network::{NoAnswer, Service};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::LOOK;
use super::scrub::dispensable;
use crate::Shared;
use crate::error::OpenError;

pub(crate) const PLACED: &str = "cluster.placed";
const ASK_MAX: Duration = Duration::from_secs(5);
/// Number of heartbeats that [`COMPARED_WITHIN`] must cover, because a heartbeat is longer than a round trip.
const COMPARED_HEARTBEATS: u32 = 10;
/// Pause after a failed step.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Interval after which a silent node is asked again, because a program before 0.5 may have been upgraded.
const SILENT_ASKED_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Interval at which changed acknowledgements of followers are stored.
const WRITTEN_EVERY: Duration = Duration::from_millis(500);
/// Time limit for the last seal of a replica that must not continue. It serves a later inspection of its directory.
const SEAL_MAX: Duration = Duration::from_secs(10);

/// Introduces this node to the others until all have compared.
pub(super) async fn compare_starts(shared: Arc<Shared>) {
    let start_histories = &shared.start_histories;
    let compared_within = COMPARED_WITHIN.max(shared.config.timing.heartbeat * COMPARED_HEARTBEATS);
    let (opened, mut silent_due) = (Instant::now(), Instant::now());
    loop {
        let asks_silent = Instant::now() >= silent_due;
        if asks_silent {
            silent_due = Instant::now() + SILENT_ASKED_AGAIN_AFTER;
        }
        let due = |node: &NodeId| start_histories.is_due(*node) || (asks_silent && start_histories.says_nothing(*node));
        for node in shared.net.peers().into_iter().filter(due) {
            let start_histories = Arc::clone(start_histories);
            tokio::spawn(async move {
                if let Err(why) = start_histories.exchange(node).await {
                    tracing::debug!(%node, why, "this node could not introduce itself");
                }
            });
        }
        if opened.elapsed() >= compared_within {
            start_histories.waited();
        }
        sleep(LOOK).await;
    }
}

pub(super) async fn act(shared: Arc<Shared>) {
    loop {
        let consequence = shared.start_histories.next().await;
        if let Err(error) = act_on(&shared, &consequence).await {
            // A failure here does not invalidate the finding, and the node must not continue with the refused replicas.
            shared.config.on_fatal.report(format_args!("cannot close the refused replicas: {error}"));
        }
    }
}

async fn act_on(shared: &Arc<Shared>, consequence: &Consequence) -> Result<(), OpenError> {
    match consequence {
        Consequence::CloseAll { by, missing } => close_all(shared, *by, *missing).await,
        Consequence::Close { by, group, replica, why, diverged } => {
            close(shared, *by, (*group, *replica), why, *diverged).await
        }
        Consequence::Stop { by, instead } => {
            shared.config.on_fatal.report(format_args!(
                "another process runs as node {} from a copy of this data directory, and node {by} accepts that one \
                 (start {instead}). Stop one of the two, and let it join again with an empty directory",
                shared.node
            ));
            Ok(())
        }
    }
}

async fn close_all(shared: &Arc<Shared>, by: NodeId, missing: StartId) -> Result<(), OpenError> {
    if shared.start_histories.has_start(missing) {
        return Ok(()); // two nodes missed the same start, or one reported it twice
    }
    let kept: Vec<Name> = {
        let kept = shared.kept.lock();
        kept.iter().filter(|one| one.state == KeptState::Kept).map(|one| (one.group, one.replica)).collect()
    };
    // A replica that votes alone has all existing data, and asks no other node.
    let alone = |(group, _): &Name| shared.replicas.group(*group).is_some_and(|found| found.is_alone());
    let (alone, closed): (Vec<Name>, Vec<Name>) = kept.into_iter().partition(alone);
    let (before, fresh) = (shared.start_histories.own(), StartId(Uuid::new_v4().as_u128()));
    // The marker is written first, as in a start, so that a crash in between does not look like a log of another time.
    let marking = Arc::clone(shared);
    let marked = tokio::task::spawn_blocking(move || {
        let log = marking.config.data_dir.join("log");
        write_marker(&*marking.config.disk, &log, Some(before), fresh)
    });
    marked
        .await
        .map_err(|error| OpenError::io("cannot record the start in the log")(std::io::Error::other(error)))??;
    shared.start_histories.change(|kept| kept.as_old_copy(missing, fresh, closed.iter().copied())).await?;
    tracing::error!(
        node = %shared.node, %by, %missing, replicas = closed.len(),
        "this data directory is an older copy: a later start had used it. Its replicas must not vote again: they are \
         closed, and rebuilt from the other nodes under new numbers"
    );
    for (group, replica) in alone {
        tracing::error!(%group, %replica, "no other node has this replica: it continues with the data of the older copy");
    }
    shared.catalog_heard.forget();
    join_all(closed.into_iter().map(|(group, replica)| shared.close_replica(group, replica))).await;
    Ok(())
}

async fn close(shared: &Arc<Shared>, by: NodeId, name: Name, why: &str, diverged: bool) -> Result<(), OpenError> {
    let (group, replica) = name;
    let found = shared.replicas.replica(group, replica);
    let is_kept = shared.kept_of(group).is_some_and(|kept| kept.replica == replica && kept.state == KeptState::Kept);
    if shared.start_histories.is_closed(group, replica) || !is_kept {
        return Ok(());
    }
    if found.as_ref().is_some_and(|found| found.is_alone()) {
        tracing::error!(%group, %replica, %by, why, "a replica is refused, but no other node has it: it continues");
        return Ok(());
    }
    shared.start_histories.change(|kept| kept.with_closed([name])).await?;
    tracing::error!(
        %group, %replica, %by, why,
        "a replica here must not continue: it is closed, and rebuilt from the other nodes under a new number"
    );
    if group == GroupId::CATALOG && diverged {
        // Other nodes would consider the state that this process derived from it newer than theirs.
        shared.config.on_fatal.report(format_args!(
            "this node's copy of the catalog must not continue: {why}. It is rebuilt from the other nodes at the next start"
        ));
        return Ok(());
    }
    if let Some(found) = found {
        // The seal serves a later inspection. It may fail.
        let _ = timeout(SEAL_MAX, found.seal()).await;
        drop(found); // holding the replica would keep its files in use
    }
    shared.close_replica(group, replica).await;
    Ok(())
}

/// Placement of replicas according to another node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PlacedThere {
    /// First replica number that was not assigned yet.
    next_replica: ReplicaId,
    /// Replica of the catalog on the calling node.
    catalog: Option<ReplicaId>,
}

/// Service that returns the placement of the caller from an up-to-date catalog.
#[derive(Debug)]
pub(crate) struct PlacementService(pub Arc<Shared>);

impl Service for PlacementService {
    fn answer(&self, from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let refused = |why: String| NoAnswer::Refused(why);
            let catalog = shared.replicas.group(GroupId::CATALOG);
            let catalog = catalog.ok_or_else(|| refused("the catalog is closed here".into()))?;
            catalog.fence().await.map_err(|error| refused(error.to_string()))?;
            let placed = {
                let state = shared.catalog.read();
                let members = state.shard_map().map(|map| map.catalog.replicas.as_slice()).unwrap_or_default();
                let catalog = members.iter().find(|replica| replica.node == from).map(|replica| replica.id);
                PlacedThere { next_replica: state.next_ids().1, catalog }
            };
            Ok(Bytes::from(serde_json::to_vec(&placed).expect("plain data encodes")))
        }
        .boxed()
    }
}

/// Renews this node's copy of the catalog step by step, if it must not run.
pub(super) async fn renew_catalog(shared: Arc<Shared>) {
    loop {
        sleep(LOOK).await;
        if let Err(why) = step(&shared).await {
            tracing::warn!(why, "this node's copy of the catalog could not be renewed; will be retried");
            sleep(AGAIN_AFTER).await;
        }
    }
}

async fn step(shared: &Arc<Shared>) -> Result<(), String> {
    let said = |error: OpenError| error.to_string();
    if shared.start_histories.floor() == Floor::Unknown {
        let placed = ask(shared).await?;
        let floor = shared.start_histories.change(|kept| kept.with_floor(placed.next_replica));
        return floor.await.map_err(|error| error.to_string());
    }
    let Some(kept) = shared.kept_of(GroupId::CATALOG) else { return Ok(()) };
    let replica = kept.replica;
    match kept.state {
        KeptState::Kept if shared.is_damaged(GroupId::CATALOG, replica) => {
            if !dispensable(shared, GroupId::CATALOG, replica).await {
                return Err("its group has not confirmed that it does without it".into());
            }
            tracing::error!(%replica, "this node's copy of the catalog is discarded; it is rebuilt from the others");
            shared.lose_catalog(replica).await.map_err(said)
        }
        KeptState::Lost => match ask(shared).await?.catalog {
            Some(named) if named == replica => Ok(()), // the planner has yet to assign another number
            Some(named) if shared.start_histories.may_take(named) => shared.add_catalog(named).await.map_err(said),
            // The number was assigned while the original of this copied directory was in use.
            Some(named) => shared.never_take_catalog(named).map_err(said),
            None => Ok(()),
        },
        KeptState::Kept | KeptState::Leaving => Ok(()),
    }
}

/// Requests the placement from all nodes. The first response from a node with contact to the catalog wins.
async fn ask(shared: &Shared) -> Result<PlacedThere, String> {
    let asked = shared.net.peers().into_iter().map(|node| {
        async move {
            let answer =
                shared.net.ask(node, PLACED, Bytes::new(), ASK_MAX).await.map_err(|error| error.to_string())?;
            serde_json::from_slice(&answer).map_err(|error| error.to_string())
        }
        .boxed()
    });
    let asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        return Err("no address of another node is known".into());
    }
    futures::future::select_ok(asked).await.map(|(placed, _)| placed)
}

/// Stores the acknowledgements of followers, and forgets those of removed replicas.
pub(super) async fn keep_acknowledged(shared: Arc<Shared>) {
    loop {
        sleep(WRITTEN_EVERY).await;
        shared.replicas.ids().into_iter().for_each(|group| shared.note_acknowledged(group));
        if shared.hears_catalog() {
            forget_gone(&shared);
        }
        let writing = Arc::clone(&shared);
        let written = tokio::task::spawn_blocking(move || {
            writing.start_histories.table.write(&*writing.config.disk, &writing.config.data_dir)
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the acknowledgements of followers could not be stored"),
            Err(error) => tracing::warn!(%error, "the acknowledgements of followers could not be stored"),
        }
    }
}

fn forget_gone(shared: &Shared) {
    let Some(map) = shared.catalog.read().shard_map().cloned() else { return };
    let members: BTreeSet<Name> = {
        let groups = shared.replicas.groups();
        let of = |group: &assay_cluster_raft::Group| {
            let id = group.id();
            group.status().members.into_iter().map(move |member| (id, member.replica)).collect::<Vec<_>>()
        };
        groups.iter().flat_map(of).collect()
    };
    shared.start_histories.table.retain(|name| {
        let placed = map.group(name.0).is_some_and(|group| group.replicas.iter().any(|replica| replica.id == name.1));
        placed || members.contains(&name)
    });
}

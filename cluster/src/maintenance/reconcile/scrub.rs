//! Scrub, which detects damage in data that nobody reads.
//!
//! Every byte of the segments is read periodically, and leaders compare their applied state with that of the other
//! members. Damage that a reader finds is queued for examination, and so is a replica whose snapshot was refused as
//! damaged.
//!
//! A damaged replica is discarded only if the others can do without it. It must lead nothing, and a majority of the
//! group must respond and be close behind without it. The group's leader permits this for one replica of the group at a
//! time. The replica then stops, and its files are moved aside. The planner assigns a new replica on the same node,
//! which the leader fills. If the others cannot do without the replica, it stays, and every scrub reports it again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::{NoAnswer, Service};
use assay_cluster_raft::Group;
use assay_storage_model::{GroupId, LogPosition, NodeId, ReplicaId};
use assay_storage_shard::Shard;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::Shared;
use crate::membership::removal::able_without;
use crate::monitoring::status::{GroupReport, OwnReport};

pub(crate) const DIGEST: &str = "cluster.digest";
pub(crate) const QUARANTINE: &str = "cluster.quarantine";
pub(crate) const SPARE: &str = "cluster.spare";
/// Maximum rate at which a scrub reads the disk.
const SCRUB_BYTES_A_SECOND: u64 = 32 << 20;
const ASK_MAX: Duration = Duration::from_secs(5);
/// Number of attempts to compare replicas at equal positions, which is difficult in a group with constant writes.
const COMPARISONS_MAX: usize = 50;
const COMPARED_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Time in which the others must prove that they can do without a replica.
const DISPENSABLE_WITHIN: Duration = Duration::from_secs(10);
/// Time for a replica with permission to be discarded and to report that.
const SPARED_FOR: Duration = Duration::from_secs(120);
/// Time for which a replica that was examined is not read again, because it may have to stay.
const SUSPECTED_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Upper bound of the findings in one replica that are logged.
const FINDINGS_SAID_MAX: usize = 5;

/// Position that a replica applied, and the digest of the resulting state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Compared {
    position: Option<LogPosition>,
    digest: u64,
}

pub(super) async fn run(shared: Arc<Shared>) {
    let mut due = Instant::now() + shared.config.scrub_every;
    let mut looked: BTreeMap<(GroupId, ReplicaId), Instant> = BTreeMap::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(due) => {}
            group = shared.net.suspects().next() => {
                let now = Instant::now();
                looked.retain(|_, at| now < *at + SUSPECTED_AGAIN_AFTER);
                if let Some(replica) = shared.replicas.group(group).map(|found| found.replica())
                    && looked.insert((group, replica), now).is_none()
                {
                    tracing::warn!(%group, %replica, "damage was found; the replica is examined");
                    look_at(&shared, group, replica).await;
                }
                continue;
            }
        }
        due = Instant::now() + shared.config.scrub_every;
        let replicas: Vec<_> = shared.replicas.groups().iter().map(|group| (group.id(), group.replica())).collect();
        for (group, replica) in replicas {
            look_at(&shared, group, replica).await;
        }
    }
}

async fn look_at(shared: &Arc<Shared>, group: GroupId, replica: ReplicaId) {
    let Some(shard) = group.shard().and_then(|shard| shared.replicas.shard(shard)) else { return };
    let findings = read_all(shared, group, replica, shard).await;
    if findings.is_empty() {
        if let Some(found) = shared.replicas.replica(group, replica).filter(Group::leads) {
            compare(shared, &found).await;
        }
        return;
    }
    let said = findings.iter().take(FINDINGS_SAID_MAX).cloned().collect::<Vec<_>>().join("; ");
    tracing::error!(%group, %replica, found = findings.len(), said, "damage");
    quarantine(shared, group, replica).await;
}

async fn read_all(shared: &Arc<Shared>, id: GroupId, replica: ReplicaId, shard: Arc<Shard>) -> Vec<String> {
    let shared = Arc::clone(shared);
    let reading = tokio::task::spawn_blocking(move || {
        let pace = |bytes: u64| {
            let goes_on = !shared.is_closing() && shared.replicas.replica(id, replica).is_some();
            if goes_on {
                std::thread::sleep(Duration::from_secs_f64(bytes as f64 / SCRUB_BYTES_A_SECOND as f64));
            }
            goes_on
        };
        shard.scrub(&pace)
    });
    reading.await.unwrap_or_default()
}

/// Discards this node's replica, if the others can do without it.
async fn quarantine(shared: &Arc<Shared>, group: GroupId, replica: ReplicaId) {
    let Some(found) = shared.replicas.replica(group, replica) else { return };
    if found.leads() {
        let Some(successor) = shared.first_there(shared.successors(&found)).await else {
            tracing::error!(%group, %replica, "this replica is damaged, and no other one can lead its group");
            return;
        };
        if let Err(why) = found.hand_over(successor).await {
            tracing::error!(%group, %replica, %why, "this replica is damaged, and no other one took over its lead");
            return;
        }
    }
    drop(found); // holding the replica would keep its files in use
    let until = Instant::now() + DISPENSABLE_WITHIN;
    let mut dispensed = dispensable(shared, group, replica).await;
    while !dispensed && Instant::now() < until {
        sleep(COMPARED_AGAIN_AFTER).await; // a new leader does not know the positions of the others yet
        dispensed = dispensable(shared, group, replica).await;
    }
    if !dispensed {
        tracing::error!(%group, %replica, "this replica is damaged, and its group cannot do without it");
        return;
    }
    match shared.lose_replica(group, replica).await {
        Ok(()) => tracing::error!(%group, %replica, "this replica was discarded; it is rebuilt from the others"),
        Err(error) => shared.config.on_fatal.report(format_args!("cannot discard a damaged replica: {error}")),
    }
}

/// Returns whether the group's leader can do without this replica.
pub(super) async fn dispensable(shared: &Arc<Shared>, group: GroupId, replica: ReplicaId) -> bool {
    let reports = shared.reports().await;
    let led = |report: &OwnReport| report.led.iter().find(|led| led.group == group).map(|led| led.term);
    let leader = reports.iter().filter_map(|(node, report)| Some((led(report)?, *node))).max();
    match leader {
        Some((_, node)) if node == shared.node => spare(shared, group, replica).await,
        Some((_, node)) => {
            let body = Bytes::from(serde_json::to_vec(&(group, replica)).expect("plain data encodes"));
            let answer = shared.net.ask(node, SPARE, body, ASK_MAX).await;
            answer.is_ok_and(|answer| serde_json::from_slice(&answer).unwrap_or(false))
        }
        None => false,
    }
}

/// Replicas that groups led here agreed to do without, each with the time.
#[derive(Debug, Default)]
pub(crate) struct Spared {
    last: Mutex<BTreeMap<GroupId, (ReplicaId, Instant)>>,
}

impl Spared {
    /// Returns whether this replica may be discarded, because no other member of the group was discarded recently.
    ///
    /// A later leader lacks this record, but does not count on members that report a lost replica. A replaced replica
    /// is no member, and its group was complete again before it left.
    fn one(&self, led: &GroupReport, replica: ReplicaId) -> bool {
        let (mut last, now) = (self.last.lock(), Instant::now());
        let is_member = |other: ReplicaId| led.replicas.iter().any(|member| member.replica == other);
        let goes = last.get(&led.group).filter(|(other, at)| now < *at + SPARED_FOR && is_member(*other));
        if goes.is_some_and(|(other, _)| *other != replica) {
            return false;
        }
        last.insert(led.group, (replica, now));
        true
    }
}

async fn spare(shared: &Shared, group: GroupId, replica: ReplicaId) -> bool {
    let reports = shared.reports().await;
    let own = reports.get(&shared.node).and_then(|report| report.led.iter().find(|led| led.group == group));
    own.is_some_and(|led| goes_without(led, replica, &reports) && shared.spared.one(led, replica))
}

/// Returns whether a majority responds and is close behind without this replica, and the members are not being changed.
fn goes_without(led: &GroupReport, replica: ReplicaId, reports: &BTreeMap<NodeId, OwnReport>) -> bool {
    let voters = led.replicas.iter().filter(|member| member.votes()).count();
    let others = able_without(led, reports).filter(|(other, _)| *other != replica).count();
    !led.changing && others > voters / 2
}

/// Service that permits the removal of a replica from a group led here.
#[derive(Debug)]
pub(crate) struct SpareService(pub Arc<Shared>);

impl Service for SpareService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = |_| NoAnswer::Refused("the request cannot be decoded".into());
            let (group, replica): (GroupId, ReplicaId) = serde_json::from_slice(&body).map_err(bad)?;
            let spared = spare(&shared, group, replica).await;
            Ok(Bytes::from(serde_json::to_vec(&spared).expect("plain data encodes")))
        }
        .boxed()
    }
}

/// Compares the applied state of this leader with that of the other members. A member that differs from the majority is
/// damaged.
async fn compare(shared: &Arc<Shared>, group: &Group) {
    let members = group.status().members;
    for _ in 0..COMPARISONS_MAX {
        if !group.leads() || shared.is_closing() {
            return;
        }
        let mut found: BTreeMap<ReplicaId, (NodeId, Compared)> = BTreeMap::new();
        for member in &members {
            if let Some(compared) = ask_digest(shared, group.id(), member.node).await {
                found.insert(member.replica, (member.node, compared));
            }
        }
        let at = found.get(&group.replica()).and_then(|(_, compared)| compared.position);
        if found.len() == members.len() && found.values().all(|(_, compared)| compared.position == at) {
            return judge(shared, group, &found).await;
        }
        sleep(COMPARED_AGAIN_AFTER).await;
    }
    tracing::debug!(group = %group.id(), "its replicas were never at the same position while they were compared");
}

async fn judge(shared: &Arc<Shared>, group: &Group, found: &BTreeMap<ReplicaId, (NodeId, Compared)>) {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, compared) in found.values() {
        *counts.entry(compared.digest).or_default() += 1;
    }
    let majority = found.len() / 2 + 1;
    let right = counts.iter().find(|(_, count)| **count >= majority).map(|(digest, _)| *digest);
    for (replica, (node, compared)) in found {
        if right == Some(compared.digest) {
            continue;
        }
        let known = right.is_some();
        tracing::error!(group = %group.id(), %replica, %node, known, "this replica applied different entries than others");
        if known {
            let body = serde_json::to_vec(&(group.id(), *replica)).expect("plain data encodes");
            if *node == shared.node {
                let (shared, id, replica) = (Arc::clone(shared), group.id(), *replica);
                tokio::spawn(async move { quarantine(&shared, id, replica).await });
            } else if let Err(why) = shared.net.ask(*node, QUARANTINE, Bytes::from(body), ASK_MAX).await {
                tracing::error!(%node, %why, "the leader could not be informed");
            }
        }
    }
}

async fn ask_digest(shared: &Shared, group: GroupId, node: NodeId) -> Option<Compared> {
    if node == shared.node {
        return own_digest(shared, group);
    }
    let body = Bytes::from(serde_json::to_vec(&group).expect("plain data encodes"));
    let answer = shared.net.ask(node, DIGEST, body, ASK_MAX).await.ok()?;
    serde_json::from_slice(&answer).ok()?
}

fn own_digest(shared: &Shared, group: GroupId) -> Option<Compared> {
    let digest = shared.replicas.shard(group.shard()?)?.digest();
    Some(Compared { position: digest.applied.position, digest: digest.digest })
}

/// Service that returns the digest of the applied state of a replica on this node.
#[derive(Debug)]
pub(crate) struct DigestService(pub Arc<Shared>);

impl Service for DigestService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = |_| NoAnswer::Refused("the request cannot be decoded".into());
            let group: GroupId = serde_json::from_slice(&body).map_err(bad)?;
            let digest = tokio::task::spawn_blocking(move || own_digest(&shared, group)).await;
            let digest = digest.map_err(|error| NoAnswer::Refused(error.to_string()))?;
            Ok(Bytes::from(serde_json::to_vec(&digest).expect("plain data encodes")))
        }
        .boxed()
    }
}

/// Service with which a leader reports that a replica on this node is damaged.
#[derive(Debug)]
pub(crate) struct QuarantineService(pub Arc<Shared>);

impl Service for QuarantineService {
    fn answer(&self, from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = |_| NoAnswer::Refused("the request cannot be decoded".into());
            let (group, replica): (GroupId, ReplicaId) = serde_json::from_slice(&body).map_err(bad)?;
            tracing::error!(%group, %replica, %from, "another node reports that this replica is damaged");
            tokio::spawn(async move { quarantine(&shared, group, replica).await });
            Ok(Bytes::new())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitoring::status::{ReplicaReport, Role};

    const SHARD: GroupId = GroupId(16);

    fn led(matched: [u64; 3]) -> GroupReport {
        let voter = |(id, matched)| ReplicaReport {
            replica: ReplicaId(id),
            node: NodeId(id),
            role: Role::Voter,
            matched: Some(matched),
        };
        GroupReport {
            group: SHARD,
            shard: SHARD.shard(),
            leader: Some(NodeId(1)),
            term: 3,
            replicas: (1..).zip(matched).map(voter).collect(),
            applied: Some(1000),
            changing: false,
        }
    }

    #[test]
    fn a_replica_is_spared_only_where_the_others_are_really_there() {
        let answering = |nodes: &[u64]| -> BTreeMap<NodeId, OwnReport> {
            nodes.iter().map(|node| (NodeId(*node), OwnReport::default())).collect()
        };
        let spared = |led: &GroupReport, reports: &BTreeMap<_, _>| goes_without(led, ReplicaId(2), reports);
        assert!(spared(&led([1000, 1000, 990]), &answering(&[1, 2, 3])));
        assert!(
            !spared(&led([1000, 1000, 990]), &answering(&[1, 2])),
            "what is known of one that died stays as it was"
        );
        assert!(!spared(&led([1000, 1000, 10]), &answering(&[1, 2, 3])), "one that is being filled");
        let changing = GroupReport { changing: true, ..led([1000, 1000, 1000]) };
        assert!(!spared(&changing, &answering(&[1, 2, 3])));
        let mut reports = answering(&[1, 2, 3]);
        reports.get_mut(&NodeId(3)).expect("there").lost.push((SHARD, ReplicaId(3)));
        assert!(!spared(&led([1000, 1000, 1000]), &reports), "one that was given up");
    }

    #[tokio::test(start_paused = true)]
    async fn one_replica_of_a_group_goes_at_a_time() {
        let (spared, led) = (Spared::default(), led([1000; 3]));
        assert!(spared.one(&led, ReplicaId(2)));
        assert!(spared.one(&led, ReplicaId(2)), "it asks again");
        assert!(!spared.one(&led, ReplicaId(3)));
        assert!(spared.one(&GroupReport { group: GroupId(17), ..led.clone() }, ReplicaId(3)), "another group");
        tokio::time::advance(SPARED_FOR).await;
        assert!(spared.one(&led, ReplicaId(3)));
    }

    /// Regression: a replica discarded twice within two minutes stayed closed until they were over.
    #[test]
    fn a_replica_that_took_the_place_of_one_that_went_may_go_as_well() {
        let (spared, mut led) = (Spared::default(), led([1000; 3]));
        assert!(spared.one(&led, ReplicaId(2)));
        led.replicas[1].replica = ReplicaId(4);
        assert!(spared.one(&led, ReplicaId(4)));
        assert!(!spared.one(&led, ReplicaId(3)));
    }
}

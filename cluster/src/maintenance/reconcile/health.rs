//! Health of the nodes that may lead a group: they respond, have a fast disk, and can open files.
//!
//! Every node probes every other one. The results may differ between nodes for a moment. A lead that moved for that
//! reason stays for a while before it may move again (`members`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::node_records::{self, NodeState};
use assay_cluster_network::{AskError, NoAnswer, Service};
use assay_cluster_raft::machine::files_ran_out;
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::Shared;

pub(crate) const HEALTH: &str = "cluster.health";
const ASKED_EVERY: Duration = Duration::from_secs(2);
const ASK_MAX: Duration = Duration::from_millis(1500);
/// Number of missing responses after which a node gets no lead.
const SILENT_AFTER: u32 = 3;

const FILES_PROBED_EVERY: Duration = Duration::from_millis(250);
/// Time without free file descriptors after which a node leads nothing, because large writes and seals need files.
const SHORT_AFTER: Duration = Duration::from_secs(2);
/// Time without a failed probe after which the node may lead again.
const FILES_SUFFICE_AFTER: Duration = Duration::from_secs(10);

/// Condition that a node reports about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Condition {
    /// Whether the node is impaired. The name is from a time when a slow disk was the only reason.
    #[serde(default)]
    slow_disk: bool,
}

/// Last reports of each node.
#[derive(Debug, Default)]
pub(crate) struct Health {
    others: Mutex<BTreeMap<NodeId, Heard>>,
    files: Mutex<FileShortage>,
}

/// Detection of a lack of file descriptors in this process, by probes.
#[derive(Debug, Default)]
struct FileShortage {
    /// First failed probe since the last successful one.
    failing_since: Option<Instant>,
    last_failed: Option<Instant>,
    is_short: bool,
}

impl FileShortage {
    /// Records a probe, and returns whether it changed the result.
    fn note(&mut self, now: Instant, failed: bool) -> bool {
        let was_short = self.is_short;
        if failed {
            self.last_failed = Some(now);
            let since = *self.failing_since.get_or_insert(now);
            self.is_short |= now - since >= SHORT_AFTER;
        } else {
            self.failing_since = None;
            self.is_short &= self.last_failed.is_some_and(|last| now - last < FILES_SUFFICE_AFTER);
        }
        self.is_short != was_short
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    condition: Condition,
    silent: u32,
}

impl Health {
    fn note(&self, node: NodeId, answer: Option<Condition>) {
        let mut others = self.others.lock();
        let heard = others.entry(node).or_default();
        match answer {
            Some(condition) => *heard = Heard { condition, silent: 0 },
            None => heard.silent = heard.silent.saturating_add(1),
        }
    }

    fn is_short_of_files(&self) -> bool {
        self.files.lock().is_short
    }

    /// Returns whether the node may take over a lead. A node without a probe may not.
    fn is_well(&self, node: NodeId) -> bool {
        let others = self.others.lock();
        others.get(&node).is_some_and(|heard| heard.silent < SILENT_AFTER && !heard.condition.slow_disk)
    }
}

impl Shared {
    /// Returns whether this node should lead nothing, because its disk is slow or it cannot open files.
    pub fn is_impaired(&self) -> bool {
        self.log.is_slow() || self.health.is_short_of_files()
    }

    /// Returns the nodes that may lead: active, responding, and not impaired.
    pub fn able_to_lead(&self) -> BTreeSet<NodeId> {
        let records = node_records::all(&self.catalog.read());
        let active = records.into_values().filter(|(record, _)| record.state == NodeState::Active);
        let able = |node: &NodeId| match *node == self.node {
            true => !self.is_impaired(),
            false => self.health.is_well(*node),
        };
        active.map(|(record, _)| record.node).filter(able).collect()
    }
}

pub(super) async fn run(shared: Arc<Shared>) {
    let mut was_slow = false;
    loop {
        let is_slow = shared.log.is_slow();
        if is_slow != was_slow {
            was_slow = is_slow;
            match is_slow {
                true => tracing::warn!("the disk is slow: this node hands over its groups, and leads none"),
                false => tracing::info!("the disk is no longer slow: this node may lead again"),
            }
        }
        let others: Vec<NodeId> =
            node_records::addresses(&shared.catalog.read()).into_keys().filter(|node| *node != shared.node).collect();
        let asked = others.into_iter().map(|node| {
            let shared = &shared;
            async move { shared.health.note(node, condition(shared, node).await) }
        });
        join_all(asked).await;
        sleep(ASKED_EVERY).await;
    }
}

/// Opens a file regularly, to detect a lack of file descriptors.
pub(super) async fn probe_files(shared: Arc<Shared>) {
    loop {
        let opened = File::open(&shared.config.data_dir);
        let failed = opened.is_err_and(|error| files_ran_out(&error));
        let (is_news, is_short) = {
            let mut files = shared.health.files.lock();
            (files.note(Instant::now(), failed), files.is_short)
        };
        match (is_news, is_short) {
            (true, true) => tracing::warn!(
                "this process has no free file descriptor: it hands over its groups, and leads none; raise `ulimit -n`"
            ),
            (true, false) => tracing::info!("this process can open files again: this node may lead again"),
            (false, _) => {}
        }
        sleep(FILES_PROBED_EVERY).await;
    }
}

async fn condition(shared: &Shared, node: NodeId) -> Option<Condition> {
    match shared.net.ask_repeatable(node, HEALTH, Bytes::new(), ASK_MAX).await {
        Ok(answer) => serde_json::from_slice(&answer).ok(),
        // Nodes of version 0.4 do not know the request, but a refusal proves that they are alive.
        Err(AskError::Refused { .. } | AskError::Busy { .. }) => Some(Condition::default()),
        Err(_) => None,
    }
}

/// Service that reports the condition of this node.
#[derive(Debug)]
pub(crate) struct HealthService(pub Arc<Shared>);

impl Service for HealthService {
    fn answer(&self, _from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let condition = Condition { slow_disk: self.0.is_impaired() };
        async move { Ok(Bytes::from(serde_json::to_vec(&condition).expect("plain data encodes"))) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_well_while_it_answers_and_its_disk_is_fast() {
        let (health, node) = (Health::default(), NodeId(2));
        assert!(!health.is_well(node), "nothing was heard of it");
        health.note(node, Some(Condition::default()));
        assert!(health.is_well(node));
        (1..SILENT_AFTER).for_each(|_| health.note(node, None));
        assert!(health.is_well(node), "a busy machine may miss some");
        health.note(node, None);
        assert!(!health.is_well(node));
        health.note(node, Some(Condition { slow_disk: true }));
        assert!(!health.is_well(node));
    }

    #[test]
    fn a_process_is_short_of_files_after_two_seconds_of_failures_and_until_ten_without() {
        let (mut files, begin) = (FileShortage::default(), Instant::now());
        let mut probe = |second: u64, failed: bool| {
            files.note(begin + Duration::from_secs(second), failed);
            files.is_short
        };
        assert!(!probe(0, true) && !probe(1, true) && !probe(2, false), "it passed");
        assert!(!probe(3, true) && !probe(4, true));
        assert!(probe(5, true));
        assert!(probe(6, false) && probe(14, false), "it may come back");
        assert!(!probe(15, false));
    }
}

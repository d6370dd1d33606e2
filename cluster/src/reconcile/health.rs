//! How the nodes are that may lead something: whether they answer, and whether their disks are slow.
//!
//! Every node asks every other one. What nodes know may differ for a moment; a lead that moved for that reason stays for
//! a while before it may move again (`members`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::Shared;
use crate::nodes::{self, NodeState};
use crate::service::{AskError, NoAnswer, Service};

pub(crate) const HEALTH: &str = "cluster.health";
const ASKED_EVERY: Duration = Duration::from_secs(2);
const ASK_MAX: Duration = Duration::from_millis(1500);
/// A node that gave no answer this often is given nothing to lead.
const SILENT_AFTER: u32 = 3;

/// What a node says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Condition {
    #[serde(default)]
    slow_disk: bool,
}

/// What was last heard of each node.
#[derive(Debug, Default)]
pub(crate) struct Health {
    others: Mutex<BTreeMap<NodeId, Heard>>,
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

    /// Whether the node may be given a lead. One that was not asked yet may not.
    fn is_well(&self, node: NodeId) -> bool {
        let others = self.others.lock();
        others.get(&node).is_some_and(|heard| heard.silent < SILENT_AFTER && !heard.condition.slow_disk)
    }
}

impl Shared {
    /// The nodes that are to lead something: active, answering, and with a disk that is not slow.
    pub fn able_to_lead(&self) -> BTreeSet<NodeId> {
        let records = nodes::all(&self.catalog.read());
        let active = records.into_values().filter(|(record, _)| record.state == NodeState::Active);
        let able = |node: &NodeId| match *node == self.node {
            true => !self.log.is_slow(),
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
                true => tracing::warn!("the disk is slow: this node gives away what it leads, and leads nothing"),
                false => tracing::info!("the disk is no longer slow: this node may lead again"),
            }
        }
        let others: Vec<NodeId> =
            nodes::addresses(&shared.catalog.read()).into_keys().filter(|node| *node != shared.node).collect();
        let asked = others.into_iter().map(|node| {
            let shared = &shared;
            async move { shared.health.note(node, condition(shared, node).await) }
        });
        join_all(asked).await;
        sleep(ASKED_EVERY).await;
    }
}

async fn condition(shared: &Shared, node: NodeId) -> Option<Condition> {
    match shared.ask_repeatable(node, HEALTH, Bytes::new(), ASK_MAX).await {
        Ok(answer) => serde_json::from_slice(&answer).ok(),
        // A node of 0.4 does not know the question, and lives.
        Err(AskError::Refused { .. } | AskError::Busy { .. }) => Some(Condition::default()),
        Err(_) => None,
    }
}

/// Answers how this node is.
#[derive(Debug)]
pub(crate) struct OwnHealth(pub Arc<Shared>);

impl Service for OwnHealth {
    fn answer(&self, _from: NodeId, _body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let condition = Condition { slow_disk: self.0.log.is_slow() };
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
}

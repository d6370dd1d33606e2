//! Usage of organizations and their credentials by day: rows, bytes, queries, and model calls with their cost.
//!
//! ```text
//! writes, queries, model calls ── count ── ledger of this node ── usage/<day>.json, once a minute
//!                                               │
//!                    of_organization: the ledgers of all nodes, added up
//! ```
//! Each node counts the requests that it received. A crash loses up to a minute of counts. So the figures describe use,
//! and are no basis of limits: quotas and budgets have their own, exact counts.

mod day;
mod files;
mod ledger;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Cluster, NoAnswer, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::files::UsageFiles;
use crate::ledger::{UsageLedger, together};

pub use crate::day::Day;
pub use crate::ledger::{DAYS_MAX, UsageAmounts, UsageEntry};

/// Name of the service for other nodes.
const USAGE: &str = "usage.days";
/// Time limit for the answer of another node.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Interval at which changed days are written.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// Clock of the node, in microseconds since 1970.
type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Meter of usage on this node, which also asks the other nodes.
pub struct UsageMeter {
    cluster: Arc<Cluster>,
    clock: Clock,
    files: UsageFiles,
    state: Arc<Mutex<MeterState>>,
}

#[derive(Debug, Default)]
struct MeterState {
    ledger: UsageLedger,
    /// Days that differ from their files.
    changed: BTreeSet<Day>,
}

impl std::fmt::Debug for UsageMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UsageMeter").finish_non_exhaustive()
    }
}

/// Usage of an organization on all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    pub entries: Vec<UsageEntry>,
    /// Nodes that did not answer, whose usage is missing.
    pub silent: Vec<NodeId>,
}

/// Request from one node to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct UsageQuestion {
    organization: Uuid,
    first: Day,
    last: Day,
}

impl UsageMeter {
    /// Reads the usage of earlier runs, and starts to answer other nodes.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created or listed.
    pub fn open(cluster: &Arc<Cluster>, clock: Clock) -> io::Result<Arc<UsageMeter>> {
        let (files, ledger) = UsageFiles::open(Arc::clone(cluster.disk()), cluster.data_dir())?;
        let state = Arc::new(Mutex::new(MeterState { ledger, changed: BTreeSet::new() }));
        cluster.serve(USAGE, Arc::new(UsageDaysService(Arc::clone(&state))));
        Ok(Arc::new(UsageMeter { cluster: Arc::clone(cluster), clock, files, state }))
    }

    pub fn today(&self) -> Day {
        Day::of_micros((self.clock)())
    }

    /// Counts what a credential used now. `credential` is nil if there is none.
    pub fn count(&self, organization: Uuid, credential: Uuid, amounts: UsageAmounts) {
        let day = self.today();
        let mut state = self.state.lock();
        state.ledger.add(UsageEntry { day, organization, credential, amounts });
        state.changed.insert(day);
    }

    /// Returns the usage of an organization from one day to another, both included, on all nodes.
    pub async fn of_organization(&self, organization: Uuid, first: Day, last: Day) -> UsageReport {
        let question = UsageQuestion { organization, first, last };
        let own = self.cluster.node();
        let others: Vec<NodeId> = self.cluster.peer_counts().into_keys().filter(|node| *node != own).collect();
        let asked = others.iter().map(|node| async move { (*node, self.ask(*node, &question).await) });
        let mut all = self.state.lock().ledger.of_organization(organization, first, last);
        let mut silent = Vec::new();
        for (node, answer) in join_all(asked).await {
            match answer {
                Some(entries) => all.extend(entries),
                None => silent.push(node),
            }
        }
        UsageReport { entries: together(all), silent }
    }

    async fn ask(&self, node: NodeId, question: &UsageQuestion) -> Option<Vec<UsageEntry>> {
        let body = Bytes::from(serde_json::to_vec(question).expect("plain data encodes"));
        let answer = self.cluster.ask(node, USAGE, body, ANSWER_WITHIN).await.ok()?;
        serde_json::from_slice(&answer).ok()
    }

    /// Writes the changed days to their files. Days that cannot be written are tried again.
    pub fn save(&self) {
        let (changed, kept): (BTreeSet<Day>, BTreeSet<Day>) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.changed), state.ledger.days().collect())
        };
        for day in changed.iter().filter(|day| kept.contains(day)) {
            let entries = self.state.lock().ledger.of_day(*day);
            if let Err(why) = self.files.write(*day, &entries) {
                tracing::warn!(%day, %why, "the usage of a day cannot be written");
                self.state.lock().changed.insert(*day);
            }
        }
        if !changed.is_empty()
            && let Err(why) = self.files.remove_others(|day| kept.contains(&day))
        {
            tracing::warn!(%why, "the usage of past days cannot be removed");
        }
    }

    /// Saves changes until it is dropped.
    pub async fn keep_saving(self: Arc<UsageMeter>) {
        loop {
            tokio::time::sleep(SAVE_EVERY).await;
            let meter = Arc::clone(&self);
            if let Err(why) = tokio::task::spawn_blocking(move || meter.save()).await {
                tracing::error!(%why, "the usage could not be saved");
            }
        }
    }
}

/// Service that other nodes call. They authorize their callers.
#[derive(Debug)]
struct UsageDaysService(Arc<Mutex<MeterState>>);

impl Service for UsageDaysService {
    fn answer(&self, _from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let state = Arc::clone(&self.0);
        async move {
            let refused = |why: serde_json::Error| NoAnswer::Refused(format!("the request cannot be decoded: {why}"));
            let UsageQuestion { organization, first, last } = serde_json::from_slice(&body).map_err(refused)?;
            let entries = state.lock().ledger.of_organization(organization, first, last);
            Ok(Bytes::from(serde_json::to_vec(&entries).map_err(refused)?))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;

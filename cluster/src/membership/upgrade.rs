//! Confirmation of upgrades. Before it, nodes write nothing that the previous version cannot read.
//!
//! A record in the catalog lists the confirmed features. An operator confirms an upgrade of several nodes. A node that is
//! its whole cluster confirms at its start, because no other version runs beside it.

use std::collections::BTreeSet;

use assay_cluster_network::node_records::{self, Feature};
use assay_cluster_raft::Group;
use assay_storage_catalog::State;
use assay_storage_model::GroupId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::certificates::node_certificates::{now_micros, setting};
use crate::error::OpenError;
use crate::membership::operations::OperateError;
use crate::{Cluster, Shared};

/// Name of the setting. Frozen.
const CONFIRMED: &str = "confirmed_features";
/// Features whose use leaves something behind that older programs cannot read.
const CONFIRMED_FIRST: [Feature; 1] = [Feature::ConditionalWrites];
/// Upper bound of the attempts with concurrent operators.
const ATTEMPTS_MAX: usize = 8;

/// Body of the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct ConfirmedFeatures {
    features: BTreeSet<String>,
}

/// State of the last upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// Names of the features that are not used before an operator confirms the upgrade.
    pub unconfirmed: BTreeSet<String>,
    /// Reasons why the upgrade cannot be confirmed yet.
    pub obstacles: Vec<String>,
}

fn confirmed(state: &State) -> ConfirmedFeatures {
    let record = state.find(&setting(CONFIRMED));
    record.and_then(|record| serde_json::from_slice(&record.body).ok()).unwrap_or_default()
}

fn unconfirmed(state: &State) -> BTreeSet<String> {
    let known = confirmed(state).features;
    CONFIRMED_FIRST.iter().map(|feature| feature.name().to_owned()).filter(|name| !known.contains(name)).collect()
}

/// Returns descriptions of what prevents the use of a feature: nodes that lack it, or a confirmation that is missing.
pub(crate) fn obstacles(state: &State, feature: Feature) -> Vec<String> {
    let mut found = node_records::lacking(state, feature);
    if found.is_empty() && unconfirmed(state).contains(feature.name()) {
        found.push("the upgrade is not confirmed: run `assay cluster finalize`".to_owned());
    }
    found
}

/// Returns the state of the last upgrade.
pub(crate) fn upgrade_report(state: &State) -> UpgradeReport {
    let obstacles: BTreeSet<String> =
        CONFIRMED_FIRST.iter().flat_map(|feature| node_records::lacking(state, *feature)).collect();
    UpgradeReport { unconfirmed: unconfirmed(state), obstacles: obstacles.into_iter().collect() }
}

/// Returns the write that confirms all features of this program, or `None` if they are confirmed.
fn confirmation(state: &State) -> Option<CatalogCommand> {
    let new = unconfirmed(state);
    if new.is_empty() {
        return None;
    }
    let record = state.find(&setting(CONFIRMED));
    let mut body = confirmed(state);
    body.features.extend(new);
    Some(CatalogCommand::Put(PutRecord {
        kind: RecordKind::CLUSTER_SETTING,
        id: record.map_or_else(Uuid::new_v4, |record| record.id),
        org: None,
        expect: record.map_or(Expect::Absent, |record| Expect::Revision(record.revision)),
        keys: vec![setting(CONFIRMED)],
        body: serde_json::to_vec(&body).expect("plain data encodes"),
        at: now_micros(),
    }))
}

impl Shared {
    /// Confirms an upgrade on a node that is its whole cluster and leads the catalog.
    pub async fn confirm_upgrade_alone(&self, catalog: &Group) -> Result<(), OpenError> {
        let has_others = node_records::present(&self.catalog.read()).any(|node| node.node != self.node);
        let Some(command) = confirmation(&self.catalog.read()).filter(|_| !has_others) else { return Ok(()) };
        catalog.propose(vec![Bytes::from(command.encode())]).await?;
        Ok(())
    }
}

impl Cluster {
    /// Confirms an upgrade. From then on the cluster uses all features of this version, and cannot go back to the
    /// previous one. Returns the names of the newly confirmed features.
    pub async fn finalize_upgrade(&self) -> Result<BTreeSet<String>, OperateError> {
        for _ in 0..ATTEMPTS_MAX {
            self.fence(GroupId::CATALOG).await?;
            let (report, command) = {
                let state = self.shared.catalog.read();
                (upgrade_report(&state), confirmation(&state))
            };
            if !report.obstacles.is_empty() {
                let why = report.obstacles.join(", ");
                return Err(OperateError::Refused(format!("upgrade all nodes first: {why}")));
            }
            let Some(command) = command else { return Ok(BTreeSet::new()) };
            if let CatalogOutcome::Put { .. } = self.shared.change(command).await? {
                return Ok(report.unconfirmed);
            }
        }
        Err(OperateError::Failed("the upgrade is being confirmed concurrently: try again".into()))
    }
}

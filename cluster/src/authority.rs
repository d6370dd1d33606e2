//! The certificates of nodes: the cluster's own authority, kept in the catalog, and this node's door to the network.
//!
//! The founder makes the authority when it first leads the catalog alone, also on a directory of before there were
//! several nodes. Its key is in the catalog because any node may let another one in; whoever can read a node's data
//! directory can make certificates of the cluster, as they can read its data.
//!
//! So every node makes its own next certificate, by its copy of the catalog, and needs nobody for it: also one that comes
//! back after years. An operator may put one of an authority of their own into `tls/`; that one is theirs to renew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use assay_cluster_raft::{Group, Timing};
use assay_cluster_transport::{
    Authority, CertificateRequest, Handlers, Identity, Patience, Transport, TransportConfig, new_request,
};
use assay_storage_catalog::State;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind, UniqueKey};
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Shared;
use crate::error::OpenError;
use crate::join::JoinDoor;
use crate::keeping::NodeFile;
use crate::large::{self, BlobService};
use crate::nodes::{self, NodeRecord, NodeState};
use crate::reconcile::{
    CLOCK, DIGEST, Digests, HEALTH, INTRODUCE, Introductions, OwnClock, OwnHealth, PLACED, Placed, QUARANTINE,
    Quarantines, SPARE, Spares,
};
use crate::route::{PROPOSE, Proposals};
use crate::start_histories::{START_HISTORY, START_ID, StartHistoryService, StartIdService};
use crate::status::{Reports, STATUS};

/// A certificate is made anew when less than this part of the time that it is valid for is left.
const RENEWED_AT_PART: u32 = 3;

#[derive(Serialize, Deserialize)]
struct AuthorityBody {
    certificate_pem: String,
    key_pem: String,
}

/// Settings of the cluster that its founder chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Of each shard, where there are nodes enough.
    pub replicas: u16,
}

pub(crate) fn setting(name: &str) -> UniqueKey {
    UniqueKey::new("cluster_setting", name)
}

fn put_setting(name: &str, body: Vec<u8>, at: i64) -> CatalogCommand {
    CatalogCommand::Put(PutRecord {
        kind: RecordKind::CLUSTER_SETTING,
        id: Uuid::new_v4(),
        org: None,
        expect: Expect::Absent,
        keys: vec![setting(name)],
        body,
        at,
    })
}

pub(crate) fn now_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn settings(state: &State) -> Settings {
    kept_settings(state).unwrap_or(Settings { replicas: crate::config::REPLICAS_DEFAULT })
}

/// None where the catalog of this node does not have them, or not yet.
pub(crate) fn kept_settings(state: &State) -> Option<Settings> {
    state.find(&setting("placement")).and_then(|record| serde_json::from_slice(&record.body).ok())
}

impl Shared {
    /// The authority, from the catalog of this node.
    pub fn authority(&self) -> Result<Authority, OpenError> {
        let record = self.catalog.read().find(&setting("authority")).cloned().ok_or(OpenError::NoAuthority)?;
        let body: AuthorityBody = serde_json::from_slice(&record.body).map_err(|_| OpenError::NoAuthority)?;
        Ok(Authority::from_pem(self.id, &body.certificate_pem, &body.key_pem)?)
    }

    /// What the first node tells the catalog once: the authority, the settings, itself. Leading it alone, it needs
    /// nobody's agreement.
    pub async fn introduce_founder(&self, catalog: &Group) -> Result<(), OpenError> {
        let now = now_micros();
        let missing = |name: &str| self.catalog.read().find(&setting(name)).is_none();
        let mut commands = Vec::new();
        if missing("authority") {
            let authority = Authority::new(self.id)?;
            let body =
                AuthorityBody { certificate_pem: authority.certificate_pem().to_owned(), key_pem: authority.key_pem() };
            commands.push(put_setting("authority", serde_json::to_vec(&body).expect("plain data encodes"), now));
        }
        if missing("placement") {
            let settings = Settings { replicas: self.config.replicas };
            commands.push(put_setting("placement", serde_json::to_vec(&settings).expect("plain data encodes"), now));
        }
        let known = nodes::all(&self.catalog.read()).remove(&self.node);
        let address = self.own_address()?;
        if known.as_ref().is_none_or(|(node, _)| node.address != address) {
            let state = known.as_ref().map_or(NodeState::Active, |(node, _)| node.state);
            let expect = known.map_or(Expect::Absent, |(_, revision)| Expect::Revision(revision));
            let node = NodeRecord { node: self.node, address, state };
            commands.push(CatalogCommand::Put(nodes::put(&node, expect, now)));
        }
        if !commands.is_empty() {
            let outcomes =
                catalog.propose(commands.iter().map(|command| Bytes::from(command.encode())).collect()).await?;
            for outcome in outcomes {
                if !matches!(outcome, Outcome::Catalog(CatalogOutcome::Put { .. } | CatalogOutcome::Taken { .. })) {
                    return Err(OpenError::OtherMap(format!("it answered {outcome:?}")));
                }
            }
        }
        Ok(())
    }

    /// What this node starts with: what it keeps, or a new key with its certificate where that is gone. None where the
    /// catalog, which has the authority, has yet to come.
    fn identity(&self) -> Result<Option<Identity>, OpenError> {
        let knows_authority = self.knows_authority();
        match self.keeping.identity()? {
            Some(kept) => {
                let kept = self.renewed(kept)?;
                let is_over = kept.runs_out()? <= SystemTime::now();
                Ok(Some(kept).filter(|_| knows_authority || !is_over))
            }
            None if knows_authority => {
                let authority = self.authority()?;
                let (key_pem, request) = new_request()?;
                let certificate_pem = authority.issue(self.node, &request, self.config.certificate_valid)?;
                let authority_pem = authority.certificate_pem().to_owned();
                let made = Identity { authority_pem, certificate_pem, key_pem };
                self.keeping.set_identity(&made)?;
                Ok(Some(made))
            }
            None => Ok(None),
        }
    }

    fn knows_authority(&self) -> bool {
        self.catalog.read().find(&setting("authority")).is_some()
    }

    /// What this node keeps, with its next certificate where this one is about to run out.
    pub fn renewed(&self, kept: Identity) -> Result<Identity, OpenError> {
        if !self.knows_authority() {
            return Ok(kept);
        }
        let authority = self.authority()?;
        let left = kept.runs_out()?.duration_since(SystemTime::now()).unwrap_or_default();
        if !is_due(left, self.config.certificate_valid) || !kept.is_by(authority.certificate_pem())? {
            return Ok(kept);
        }
        let request = CertificateRequest::of_key(&kept.key_pem)?;
        let certificate_pem = authority.issue(self.node, &request, self.config.certificate_valid)?;
        self.keeping.set_certificate(&certificate_pem)?;
        tracing::info!(seconds_left = left.as_secs(), "this node's certificate was made anew");
        Ok(Identity { certificate_pem, ..kept })
    }

    /// Where others reach this node: what it is told now, else what it was told before, which it keeps.
    fn own_address(&self) -> Result<Option<String>, OpenError> {
        let kept = self.keeping.node()?;
        match &self.config.peer {
            Some(peer) if kept.address.as_ref() != Some(&peer.address) => {
                self.keeping.set_node(&NodeFile { node: self.node, address: Some(peer.address.clone()) })?;
                Ok(Some(peer.address.clone()))
            }
            Some(peer) => Ok(Some(peer.address.clone())),
            None => Ok(kept.address),
        }
    }

    /// Opens the door for other nodes, if there is an address and a certificate, and it is not open.
    pub async fn open_network(self: &Arc<Self>) -> Result<(), OpenError> {
        let Some(peer) = &self.config.peer else { return Ok(()) };
        if self.net.transport().is_some() {
            return Ok(());
        }
        let Some(identity) = self.identity()? else { return Ok(()) };
        let config = TransportConfig {
            cluster: self.id,
            node: self.node,
            listen: peer.listen,
            identity,
            weather: self.config.weather.clone(),
            patience: patience(self.config.timing),
            runtime: self.parts.runtime.clone(),
        };
        let handlers = Handlers::new().open_call(crate::join::JOIN, Arc::new(JoinDoor(Arc::clone(self))));
        let transport = Transport::start(config, handlers)?;
        transport.set_addresses(self.known_addresses()?);
        tracing::info!(listen = %transport.local_addr(), address = %peer.address, "other nodes can reach this one");
        self.net.open(transport, &self.hub);
        self.register_services();
        Ok(())
    }

    fn register_services(self: &Arc<Self>) {
        self.serve(PROPOSE, Arc::new(Proposals(Arc::clone(self))));
        self.serve(STATUS, Arc::new(Reports(Arc::clone(self))));
        self.serve(DIGEST, Arc::new(Digests(Arc::clone(self))));
        self.serve(QUARANTINE, Arc::new(Quarantines(Arc::clone(self))));
        self.serve(SPARE, Arc::new(Spares(Arc::clone(self))));
        self.serve(CLOCK, Arc::new(OwnClock));
        self.serve(START_HISTORY, Arc::new(StartHistoryService(Arc::clone(&self.start_histories))));
        self.serve(START_ID, Arc::new(StartIdService(Arc::clone(&self.start_histories))));
        self.serve(PLACED, Arc::new(Placed(Arc::clone(self))));
        self.serve(HEALTH, Arc::new(OwnHealth(Arc::clone(self))));
        self.serve(INTRODUCE, Arc::new(Introductions(Arc::clone(self))));
        self.serve(large::PUT, Arc::new(BlobService::Put(Arc::clone(&self.writes))));
        self.serve(large::GET, Arc::new(BlobService::Get(Arc::clone(&self.writes))));
    }

    /// The catalog's, and where that has not come yet those that were kept.
    pub fn known_addresses(&self) -> Result<BTreeMap<NodeId, String>, OpenError> {
        let mut addresses = self.keeping.peers()?;
        addresses.extend(nodes::addresses(&self.catalog.read()));
        addresses.remove(&self.node);
        Ok(addresses)
    }

    /// When the certificate that other nodes are shown runs out; none where nobody is shown one.
    pub fn certificate_runs_out(&self) -> Option<SystemTime> {
        self.net.transport()?.identity().runs_out().ok()
    }

    /// Whether this node is all there is of its cluster: every group has one member, which is here.
    pub async fn is_alone(&self) -> bool {
        if self.hub.group(GroupId::CATALOG).is_none() {
            return false; // it is closed, and others have it
        }
        for group in self.hub.groups() {
            if group.count_members().await != Some(1) {
                return false;
            }
        }
        true
    }
}

/// How soon the direct path to a node counts as down: before its silence makes followers ask for votes, so that
/// heartbeats go another way in time. Never sooner than a round trip, which is shorter than a heartbeat.
fn patience(timing: Timing) -> Patience {
    let default = Patience::default();
    Patience {
        ping_after: default.ping_after.max(timing.heartbeat * 5 / 6),
        silent_after: default.silent_after.max(timing.heartbeat * 5 / 3),
        connect_within: default.connect_within.max(timing.election_min),
    }
}

/// What is left longer than it could be is of an earlier program, whose certificates never ran out.
fn is_due(left: Duration, valid: Duration) -> bool {
    let part = valid / RENEWED_AT_PART;
    left < part || left > valid + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_due_in_its_last_third_and_where_it_lasts_for_ever() {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        for (left, due) in [(0, true), (29, true), (31, false), (90, false), (91, false), (36_500, true)] {
            assert_eq!(is_due(days(left), days(90)), due, "{left} of 90 days");
        }
    }
}

//! Certificates of nodes: the cluster's own authority in the catalog, and this node's transport.
//!
//! The founder creates the authority when it first leads the catalog alone and has a master key. This includes a
//! directory from before clusters of several nodes. The private key is in the catalog, wrapped by the master key. A
//! copy of a data directory opens it only together with that key. Clusters from before 0.5.0 have it in plain text
//! until every node runs 0.5.0 and has the master key. The catalog's leader then wraps it.
//!
//! A node with the master key issues its own next certificate from its copy of the catalog, independently of other
//! nodes. A node without it requests one from a node that has it. An operator may put a certificate of their own
//! authority into `tls/`, and renews it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use assay_cluster_directory::node_files::NodeFile;
use assay_cluster_network::large_writes::{self, BlobService};
use assay_cluster_network::node_records::{self, NodeProgram, NodeRecord, NodeState};
use assay_cluster_network::start_histories::{START_HISTORY, START_ID, StartHistoryService, StartIdService};
use assay_cluster_network::{NoAnswer, Service};
use assay_cluster_raft::{Group, Timing};
use assay_cluster_transport::{
    Authority, CertificateRequest, Handlers, Identity, Patience, Transport, TransportConfig, new_request,
};
use assay_storage_catalog::State;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record, RecordKind, UniqueKey};
use assay_storage_model::command::Outcome;
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Shared;
use crate::certificates::authority_records::{Authorities, CertificateChange, StatedCertificates};
use crate::certificates::key_wrap::KeyWrap;
use crate::error::OpenError;
use crate::maintenance::reconcile::{
    CLOCK, ClockService, DIGEST, DigestService, HEALTH, HealthService, INTRODUCE, IntroductionService, PLACED,
    PlacementService, QUARANTINE, QuarantineService, SPARE, SpareService,
};
use crate::membership::join::JoinService;
use crate::membership::recovery::is_restoring;
use crate::membership::unknown_nodes::{VOUCH, VoucherService};
use crate::monitoring::status::{ReportService, STATUS};
use crate::routing::{PROPOSE, ProposeService};

/// Service with which a node with the master key issues a certificate.
pub(crate) const CERTIFY: &str = "cluster.certify";
/// Time limit of the request for a certificate, for which the other node only reads its catalog and signs.
const CERTIFY_MAX: Duration = Duration::from_secs(5);

/// Settings of the cluster that its founder chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Number of replicas of each shard, if there are enough nodes.
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

/// Returns the recorded settings, or `None` if this node's catalog does not have them yet.
pub(crate) fn kept_settings(state: &State) -> Option<Settings> {
    state.find(&setting("placement")).and_then(|record| serde_json::from_slice(&record.body).ok())
}

pub(crate) fn record_of(state: &State) -> Result<(Authorities, Arc<Record>), OpenError> {
    let record = state.find(&setting("authority")).cloned().ok_or(OpenError::NoAuthority)?;
    let body = serde_json::from_slice(&record.body).map_err(|_| OpenError::NoAuthority)?;
    Ok((body, record))
}

/// Request of a node without the master key.
#[derive(Serialize, Deserialize)]
struct Certify {
    /// Node that the certificate is for.
    node: NodeId,
    /// Public key in PEM.
    key: String,
}

#[derive(Serialize, Deserialize)]
struct Certified {
    certificate: String,
}

impl Shared {
    /// Returns the authorities of this cluster, from this node's catalog.
    pub fn authorities(&self) -> Result<Authorities, OpenError> {
        record_of(&self.catalog.read()).map(|(body, _)| body)
    }

    /// Returns the current authority with its private key, or `None` if this node lacks the master key that wraps it.
    pub fn authority(&self) -> Result<Option<Authority>, OpenError> {
        let body = self.authorities()?;
        let key_pem = match &body.wrapped_key {
            None => body.key_pem,
            Some(wrapped) => match &self.config.keys {
                Some(keys) if keys.id_of(wrapped).is_some_and(|id| keys.ids().contains(&id)) => {
                    keys.unwrap(&Authorities::label(&body.certificate_pem), wrapped).map_err(OpenError::Keys)?
                }
                _ => return Ok(None),
            },
        };
        Ok(Some(Authority::from_pem(self.id, &body.certificate_pem, &key_pem)?))
    }

    /// Issues a certificate for a node, here or through a node that has the authority's key.
    pub async fn issue(&self, node: NodeId, request: &CertificateRequest) -> Result<String, String> {
        if let Some(authority) = self.authority().map_err(|error| error.to_string())? {
            return authority.issue(node, request, self.config.certificate_valid).map_err(|error| error.to_string());
        }
        let with_keys: Vec<NodeId> = {
            let state = self.catalog.read();
            let has_keys = |node: &NodeRecord| {
                node.program.as_ref().and_then(|program| program.keys.as_ref()).is_some_and(|keys| !keys.is_empty())
            };
            let others = node_records::present(&state).filter(|known| known.node != self.node && has_keys(known));
            others.map(|known| known.node).collect()
        };
        let body = Certify { node, key: request.pem().to_owned() };
        let body = Bytes::from(serde_json::to_vec(&body).expect("plain data encodes"));
        let mut why = "no other node states that it has the master key".to_owned();
        for other in with_keys {
            match self.net.ask(other, CERTIFY, body.clone(), CERTIFY_MAX).await {
                Ok(answer) => match serde_json::from_slice::<Certified>(&answer) {
                    Ok(answer) => return Ok(answer.certificate),
                    Err(error) => why = format!("node {other} sent a response that cannot be decoded: {error}"),
                },
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("no certificate for node {node}: this node does not have the master key, and {why}"))
    }

    /// Returns this node's statement about its program.
    pub fn own_program(&self) -> NodeProgram {
        let keys = self.config.keys.as_ref().map(|keys| keys.ids()).unwrap_or_default();
        let identity = self.net.transport().map(|transport| transport.identity());
        let shown = identity.and_then(|identity| self.authorities().ok()?.shown(&identity).ok()).unwrap_or_default();
        let StatedCertificates { trusts, certified_by } = shown;
        NodeProgram { keys: Some(keys), trusts, certified_by, ..NodeProgram::own() }
    }

    /// Writes the records of the first node to the catalog once: the authority, the settings, and the node itself.
    ///
    /// The node leads the catalog alone, so it needs no majority.
    pub async fn introduce_founder(&self, catalog: &Group) -> Result<(), OpenError> {
        let now = now_micros();
        let missing = |name: &str| self.catalog.read().find(&setting(name)).is_none();
        let mut commands = Vec::new();
        if missing("authority")
            && let Some(keys) = &self.config.keys
        {
            keys.make().map_err(OpenError::Keys)?;
            let (certificate_pem, wrapped_key) = self.new_authority(&**keys)?;
            let body = Authorities {
                certificate_pem,
                key_pem: String::new(),
                wrapped_key: Some(wrapped_key),
                next: None,
                previous: Vec::new(),
                retired: Vec::new(),
            };
            commands.push(put_setting("authority", serde_json::to_vec(&body).expect("plain data encodes"), now));
        }
        if missing("placement") {
            let settings = Settings { replicas: self.config.replicas };
            commands.push(put_setting("placement", serde_json::to_vec(&settings).expect("plain data encodes"), now));
        }
        let known = node_records::all(&self.catalog.read()).remove(&self.node);
        let address = self.own_address()?;
        if known.as_ref().is_none_or(|(node, _)| node.address != address) {
            let state = known.as_ref().map_or(NodeState::Active, |(node, _)| node.state);
            let expect = known.map_or(Expect::Absent, |(_, revision)| Expect::Revision(revision));
            let node = NodeRecord { node: self.node, address, state, program: Some(self.own_program()) };
            commands.push(CatalogCommand::Put(node_records::put(&node, expect, now)));
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

    /// Creates an authority, and returns its certificate and its wrapped private key.
    pub fn new_authority(&self, keys: &dyn KeyWrap) -> Result<(String, String), OpenError> {
        let authority = Authority::new(self.id)?;
        let certificate_pem = authority.certificate_pem().to_owned();
        let wrapped = keys.wrap(&Authorities::label(&certificate_pem), &authority.key_pem());
        Ok((certificate_pem, wrapped.map_err(OpenError::Keys)?))
    }

    /// Returns the identity for the start of this node: the kept one, or a new key with a certificate if there is none.
    ///
    /// Returns `None` if the authority is unknown here. The same holds if its key cannot be opened and there is no
    /// valid certificate.
    fn identity(&self) -> Result<Option<Identity>, OpenError> {
        let authority = match self.authority() {
            Ok(authority) => authority,
            Err(OpenError::NoAuthority) => None,
            Err(error) => return Err(error),
        };
        let Some(kept) = self.node_files.identity()? else {
            let Some(authority) = authority else { return Ok(None) };
            let (key_pem, request) = new_request()?;
            let certificate_pem = authority.issue(self.node, &request, self.config.certificate_valid)?;
            let made = Identity { authority_pem: self.authorities()?.trusted(), certificate_pem, key_pem };
            self.node_files.set_identity(&made)?;
            return Ok(Some(made));
        };
        let due = self.due(&kept)?;
        let kept = match (due, authority) {
            (CertificateChange::Nothing, _) => kept,
            (CertificateChange::Trust(authority_pem), _) => self.keep_trust(kept, authority_pem)?,
            (CertificateChange::Certificate(authority_pem), Some(authority)) => {
                let request = CertificateRequest::of_key(&kept.key_pem)?;
                let certificate = authority.issue(self.node, &request, self.config.certificate_valid)?;
                self.keep_certificate(kept, authority_pem, certificate)?
            }
            // Another node issues it once it can be reached.
            (CertificateChange::Certificate(authority_pem), None) => self.keep_trust(kept, authority_pem)?,
        };
        let is_over = kept.runs_out()? <= SystemTime::now();
        Ok(Some(kept).filter(|_| !is_over))
    }

    /// Returns the change that is due to the certificates in this node's directory.
    fn due(&self, kept: &Identity) -> Result<CertificateChange, OpenError> {
        match self.authorities() {
            Ok(body) => Ok(body.due(kept, self.config.certificate_valid)?),
            Err(OpenError::NoAuthority) => Ok(CertificateChange::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Updates the certificates in this node's directory. Requests one from another node if this one cannot issue it.
    pub async fn renew(self: &Arc<Self>) -> Result<Identity, OpenError> {
        let looked = self.blocking(|shared| {
            let kept = shared.node_files.identity()?.ok_or(OpenError::NoIdentity)?;
            Ok((shared.due(&kept)?, kept))
        });
        match looked.await? {
            (CertificateChange::Nothing, kept) => Ok(kept),
            (CertificateChange::Trust(authority_pem), kept) => {
                self.blocking(|shared| shared.keep_trust(kept, authority_pem)).await
            }
            (CertificateChange::Certificate(authority_pem), kept) => {
                let request = CertificateRequest::of_key(&kept.key_pem)?;
                match self.issue(self.node, &request).await {
                    Ok(certificate) => {
                        self.blocking(|shared| shared.keep_certificate(kept, authority_pem, certificate)).await
                    }
                    Err(why) => {
                        // The current certificate is valid for a while, but the node must already trust the
                        // certificates of the others.
                        self.blocking(|shared| shared.keep_trust(kept, authority_pem)).await?;
                        Err(OpenError::Keys(why))
                    }
                }
            }
        }
    }

    /// Returns the identity in this node's directory.
    pub async fn kept_identity(self: &Arc<Self>) -> Result<Identity, OpenError> {
        self.blocking(|shared| shared.node_files.identity()?.ok_or(OpenError::NoIdentity)).await
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shared) -> Result<T, OpenError> + Send + 'static,
    ) -> Result<T, OpenError> {
        let shared = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.map_err(|error| OpenError::io("cannot use the certificates")(std::io::Error::other(error)))?
    }

    fn keep_trust(&self, kept: Identity, authority_pem: String) -> Result<Identity, OpenError> {
        if kept.authority_pem == authority_pem {
            return Ok(kept);
        }
        self.node_files.set_authority(&authority_pem)?;
        tracing::info!("this node's trusted certificate authorities changed");
        Ok(Identity { authority_pem, ..kept })
    }

    fn keep_certificate(
        &self,
        kept: Identity,
        authority_pem: String,
        certificate_pem: String,
    ) -> Result<Identity, OpenError> {
        let left = kept.runs_out()?.duration_since(SystemTime::now()).unwrap_or_default();
        let kept = self.keep_trust(kept, authority_pem)?;
        self.node_files.set_certificate(&certificate_pem)?;
        tracing::info!(seconds_left = left.as_secs(), "this node's certificate was renewed");
        Ok(Identity { certificate_pem, ..kept })
    }

    /// Returns the address at which others reach this node: the configured one, or else the previous one from its
    /// files.
    fn own_address(&self) -> Result<Option<String>, OpenError> {
        let kept = self.node_files.node()?;
        match &self.config.peer {
            Some(peer) if kept.address.as_ref() != Some(&peer.address) => {
                self.node_files.set_node(&NodeFile { node: self.node, address: Some(peer.address.clone()) })?;
                Ok(Some(peer.address.clone()))
            }
            Some(peer) => Ok(Some(peer.address.clone())),
            None => Ok(kept.address),
        }
    }

    /// Starts the transport for other nodes if it does not run yet. Requires an address and a certificate.
    pub async fn open_network(self: &Arc<Self>) -> Result<(), OpenError> {
        let Some(peer) = &self.config.peer else { return Ok(()) };
        // A restored node gets an authority of its own first.
        if self.net.transport().is_some() || is_restoring(&self.config)? {
            return Ok(());
        }
        let Some(identity) = self.identity()? else { return Ok(()) };
        // Removed nodes must be known before the first call arrives.
        self.net.set_removed(node_records::Removed::of(&self.catalog.read()));
        let config = TransportConfig {
            cluster: self.id,
            node: self.node,
            listen: peer.listen,
            identity,
            fault_injector: self.config.fault_injector.clone(),
            patience: patience(self.config.timing),
            runtime: self.parts.runtime.clone(),
        };
        let handlers =
            Handlers::new().open_call(crate::membership::join::JOIN, Arc::new(JoinService(Arc::clone(self))));
        let transport = Transport::start(config, handlers)?;
        transport.set_addresses(self.known_addresses()?);
        tracing::info!(listen = %transport.local_addr(), address = %peer.address, "other nodes can reach this one");
        self.net.open(transport, &self.replicas);
        self.register_services();
        Ok(())
    }

    fn register_services(self: &Arc<Self>) {
        self.net.serve(PROPOSE, Arc::new(ProposeService(Arc::clone(self))));
        self.net.serve(STATUS, Arc::new(ReportService(Arc::clone(self))));
        self.net.serve(DIGEST, Arc::new(DigestService(Arc::clone(self))));
        self.net.serve(QUARANTINE, Arc::new(QuarantineService(Arc::clone(self))));
        self.net.serve(SPARE, Arc::new(SpareService(Arc::clone(self))));
        self.net.serve(CLOCK, Arc::new(ClockService));
        self.net.serve(START_HISTORY, Arc::new(StartHistoryService(Arc::clone(&self.start_histories))));
        self.net.serve(START_ID, Arc::new(StartIdService(Arc::clone(&self.start_histories))));
        self.net.serve(PLACED, Arc::new(PlacementService(Arc::clone(self))));
        self.net.serve(CERTIFY, Arc::new(Certifier(Arc::clone(self))));
        self.net.serve(VOUCH, Arc::new(VoucherService(Arc::clone(self))));
        self.net.serve(HEALTH, Arc::new(HealthService(Arc::clone(self))));
        self.net.serve(INTRODUCE, Arc::new(IntroductionService(Arc::clone(self))));
        self.net.serve(large_writes::PUT, Arc::new(BlobService::Put(Arc::clone(&self.writes))));
        self.net.serve(large_writes::GET, Arc::new(BlobService::Get(Arc::clone(&self.writes))));
    }

    /// Returns the addresses from the catalog, supplemented by the stored ones.
    pub fn known_addresses(&self) -> Result<BTreeMap<NodeId, String>, OpenError> {
        let mut addresses = self.node_files.peers()?;
        addresses.extend(node_records::addresses(&self.catalog.read()));
        addresses.remove(&self.node);
        Ok(addresses)
    }

    /// Returns the expiry of the certificate used towards other nodes, or `None` without a certificate.
    pub fn certificate_runs_out(&self) -> Option<SystemTime> {
        self.net.transport()?.identity().runs_out().ok()
    }

    /// Returns whether this node is its whole cluster, so that every group has one member, which is here.
    pub async fn is_alone(&self) -> bool {
        if self.replicas.group(GroupId::CATALOG).is_none() {
            return false; // the replica is closed, so others have the catalog
        }
        for group in self.replicas.groups() {
            if group.count_members().await != Some(1) {
                return false;
            }
        }
        true
    }
}

/// Returns the time limits for detecting a broken direct path to a node.
///
/// They expire before the silence of the node makes followers request votes, so that heartbeats are relayed in time.
/// They are never below a round trip, which is shorter than a heartbeat.
fn patience(timing: Timing) -> Patience {
    let default = Patience::default();
    Patience {
        ping_after: default.ping_after.max(timing.heartbeat * 5 / 6),
        silent_after: default.silent_after.max(timing.heartbeat * 5 / 3),
        connect_within: default.connect_within.max(timing.election_min),
    }
}

/// Service that issues certificates to nodes without the master key, for themselves or for nodes that join through
/// them.
#[derive(Debug)]
struct Certifier(Arc<Shared>);

impl Service for Certifier {
    fn answer(&self, from: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let shared = Arc::clone(&self.0);
        async move { shared.certify(from, &body).map_err(NoAnswer::Refused) }.boxed()
    }
}

impl Shared {
    fn certify(&self, from: NodeId, body: &[u8]) -> Result<Bytes, String> {
        let Certify { node, key } = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let is_known = node == from || crate::membership::join::was_admitted(&self.catalog.read(), node, &key);
        if !is_known {
            return Err(format!(
                "node {from} asks for a certificate of node {node}, which was not admitted with this key"
            ));
        }
        let request = CertificateRequest::from_pem(&key).map_err(|error| error.to_string())?;
        let authority = self.authority().map_err(|error| error.to_string())?;
        let authority = authority.ok_or("this node does not have the master key either")?;
        let certificate = authority.issue(node, &request, self.config.certificate_valid);
        let certificate = certificate.map_err(|error| error.to_string())?;
        tracing::info!(%node, asked_by = %from, "issued a certificate for a node without the master key");
        Ok(Bytes::from(serde_json::to_vec(&Certified { certificate }).expect("plain data encodes")))
    }
}

//! Join of a new node to a cluster.
//!
//! An operator obtains a token from a member. The token contains the cluster, its address, the trusted authority, and a
//! secret for one use.
//!
//! The new node creates a key, connects, checks that it reached the cluster of its token, and presents the secret. It
//! receives an unused number, a certificate, and the number of its copy of the catalog. If the response is lost, the
//! same request with the same key gets the same response.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster_directory::data_dir::{Format, HomeError, Lock, read_format, write_format};
use assay_cluster_directory::node_files::{KeptReplica, KeptState, NodeFile, NodeFiles};
use assay_cluster_network::node_records::{self, NodeProgram, NodeRecord, NodeState, Removed};
use assay_cluster_transport::{
    Call, CertificateRequest, Handler, Identity, Received, Refusal, RefusalCode, join_call, new_request,
};
use assay_storage_blobs::BlobName;
use assay_storage_catalog::State;
use assay_storage_disk::SharedDisk;
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, ChangeReplicas, Expect, GiveIds, Members, PutRecord, Record, RecordKind, Replica,
    UniqueKey,
};
use assay_storage_model::{ClusterId, GroupId, NodeId, ReplicaId};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::certificates::node_certificates::now_micros;
use crate::membership::operations::OperateError;
use crate::{Cluster, Shared};

pub(crate) const JOIN: &str = "cluster.join";
const TOKEN_PREFIX: &str = "assay-join-";
const TOKEN_BYTES_MAX: usize = 8192;
const SECRET_BYTES: usize = 32;
const JOIN_MAX: Duration = Duration::from_secs(30);
/// Upper bound of the attempts to change the catalog's members, which may change concurrently.
const ATTEMPTS_MAX: usize = 16;

/// Token that an operator carries from a member to a node that is to join.
#[derive(Serialize, Deserialize)]
struct Token {
    cluster: ClusterId,
    address: String,
    authority: String,
    secret: String,
}

impl Token {
    fn encode(&self) -> String {
        let text = serde_json::to_vec(self).expect("plain data encodes");
        format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(text))
    }

    fn decode(text: &str) -> Result<Token, JoinError> {
        let wrong = || JoinError::Token("it is not what `assay cluster token` printed; copy the whole line".into());
        let text = text.trim();
        if text.len() > TOKEN_BYTES_MAX {
            return Err(wrong());
        }
        let coded = text.strip_prefix(TOKEN_PREFIX).ok_or_else(wrong)?;
        let bytes = URL_SAFE_NO_PAD.decode(coded).map_err(|_| wrong())?;
        serde_json::from_slice(&bytes).map_err(|_| wrong())
    }
}

#[derive(Serialize, Deserialize)]
struct Request {
    secret: String,
    /// Public key in PEM.
    key: String,
    address: String,
    /// Features of the joining program. Programs before 0.5.0 neither send nor read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<NodeProgram>,
}

#[derive(Serialize, Deserialize)]
struct Admission {
    cluster: ClusterId,
    node: NodeId,
    catalog_replica: ReplicaId,
    shards: u16,
    authority: String,
    certificate: String,
    peers: BTreeMap<u64, String>,
}

/// Join token in the catalog, with the node that used it, if any.
#[derive(Serialize, Deserialize)]
struct TokenBody {
    /// Expiry in microseconds since the epoch.
    expires: i64,
    used_by: Option<UsedBy>,
}

#[derive(Clone, Serialize, Deserialize)]
struct UsedBy {
    key: String,
    node: NodeId,
    catalog_replica: ReplicaId,
}

/// Returns whether the node was admitted with this public key.
pub(crate) fn was_admitted(state: &State, node: NodeId, key: &str) -> bool {
    let tokens = state.all(RecordKind::JOIN_TOKEN);
    let mut used = tokens.filter_map(|token| serde_json::from_slice::<TokenBody>(&token.body).ok()?.used_by);
    used.any(|used| used.node == node && used.key == key)
}

/// Returns the expiry of a token in microseconds, or `None` if the record is no token.
pub(crate) fn expires(token: &Record) -> Option<i64> {
    serde_json::from_slice::<TokenBody>(&token.body).ok().map(|body| body.expires)
}

fn token_key(secret: &str) -> UniqueKey {
    UniqueKey::new("join_token", BlobName::of(secret.as_bytes()).to_string())
}

#[derive(Debug, Error)]
pub enum JoinError {
    #[error("the token is not valid: {0}")]
    Token(String),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{} belongs to cluster {found}: give the new node an empty directory", dir.display())]
    Other { dir: std::path::PathBuf, found: ClusterId },
    #[error("{address} refused to admit this node: {why}")]
    Refused { address: String, why: String },
    #[error(transparent)]
    Certificate(#[from] assay_cluster_transport::TransportError),
}

/// Result of a join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Joined {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Whether the node had joined before this call.
    pub before: bool,
}

/// Returns whether the text has the form of a token from `assay cluster token`.
///
/// Only the cluster can tell whether the token is still valid.
pub fn is_token(text: &str) -> bool {
    Token::decode(text).is_ok()
}

impl Cluster {
    /// Creates a token with which one node may join within `valid`.
    pub async fn make_token(&self, valid: Duration) -> Result<String, OperateError> {
        let peer = self.shared.config.peer.as_ref().ok_or(OperateError::NoAddress)?;
        let authority = self.shared.authorities().map_err(|error| OperateError::Failed(error.to_string()))?.trusted();
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret)
            .map_err(|error| OperateError::Failed(format!("cannot get random bytes: {error}")))?;
        let secret = URL_SAFE_NO_PAD.encode(secret);
        let now = now_micros();
        let valid = i64::try_from(valid.as_micros()).unwrap_or(i64::MAX);
        let body = TokenBody { expires: now.saturating_add(valid), used_by: None };
        let put = CatalogCommand::Put(PutRecord {
            kind: RecordKind::JOIN_TOKEN,
            id: Uuid::new_v4(),
            org: None,
            expect: Expect::Absent,
            keys: vec![token_key(&secret)],
            body: serde_json::to_vec(&body).expect("plain data encodes"),
            at: now,
        });
        self.shared.change(put).await?;
        Ok(Token { cluster: self.shared.id, address: peer.address.clone(), authority, secret }.encode())
    }
}

/// Joins a directory to the cluster of a token, without starting the node. A repeated call returns the same result.
pub async fn join(disk: SharedDisk, dir: &Path, token: &str, address: &str) -> Result<Joined, JoinError> {
    let token = Token::decode(token)?;
    let node_files = NodeFiles { disk: disk.clone(), dir: dir.to_owned() };
    // A node that already joined may run and hold the lock, so the lock is taken only if there is work.
    if let Some(before) = joined_before(&node_files, token.cluster)? {
        return Ok(before);
    }
    let io = |source| JoinError::Home(HomeError::Io { doing: format!("making {}", dir.display()), source });
    disk.create_dir_all(dir).map_err(io)?;
    let _lock = Lock::take(dir)?;
    // Another process may have joined in the meantime.
    if let Some(before) = joined_before(&node_files, token.cluster)? {
        return Ok(before);
    }
    assay_cluster_directory::data_dir::check_empty(&*disk, dir)?;
    let (key_pem, request) = kept_key(dir)?;
    let asked = Request {
        secret: token.secret,
        key: request.pem().to_owned(),
        address: address.to_owned(),
        program: Some(NodeProgram::own()),
    };
    let body = Bytes::from(serde_json::to_vec(&asked).expect("plain data encodes"));
    let refused = |why: String| JoinError::Refused { address: token.address.clone(), why };
    let call = Call::new(JOIN, body, JOIN_MAX);
    let answer = join_call(&token.authority, token.cluster, &token.address, call).await;
    let answer = answer.map_err(|error| refused(error.to_string()))?;
    let admitted: Admission = serde_json::from_slice(&answer).map_err(|error| refused(error.to_string()))?;
    keep(&node_files, key_pem, admitted, address)
}

/// Returns the earlier join of a directory, or `None` if it may join.
///
/// A join writes the format file last, so the file is reliable without the lock.
fn joined_before(node_files: &NodeFiles, cluster: ClusterId) -> Result<Option<Joined>, JoinError> {
    match read_format(&*node_files.disk, &node_files.dir)? {
        Some(found) if found.cluster == cluster => {
            Ok(Some(Joined { cluster, node: node_files.node()?.node, before: true }))
        }
        Some(found) => Err(JoinError::Other { dir: node_files.dir.clone(), found: found.cluster }),
        None => Ok(None),
    }
}

/// Returns the key of a directory, which is created once, so that a repeated request comes from the same node.
fn kept_key(dir: &Path) -> Result<(String, CertificateRequest), JoinError> {
    let path = dir.join("JOINING.tmp");
    let io =
        |doing: &str, source| JoinError::Home(HomeError::Io { doing: format!("{doing} {}", path.display()), source });
    if let Ok(text) = std::fs::read_to_string(&path)
        && let Some((key, request)) = text.split_once("\n\n")
        && let Ok(request) = CertificateRequest::from_pem(request)
    {
        return Ok((key.to_owned(), request));
    }
    let (key, request) = new_request()?;
    assay_cluster_directory::node_files::write_secret(
        &path,
        format!("{}\n\n{}", key.trim_end(), request.pem()).as_bytes(),
    )
    .map_err(|source| io("writing", source))?;
    Ok((key, request))
}

fn keep(node_files: &NodeFiles, key_pem: String, admitted: Admission, address: &str) -> Result<Joined, JoinError> {
    let Admission { cluster, node, catalog_replica, shards, authority, certificate, peers } = admitted;
    node_files.set_identity(&Identity { authority_pem: authority, certificate_pem: certificate, key_pem })?;
    node_files.set_peers(&peers.into_iter().map(|(node, at)| (NodeId(node), at)).collect())?;
    let catalog = KeptReplica {
        group: GroupId::CATALOG,
        replica: catalog_replica,
        dir: "catalog".into(),
        state: KeptState::Kept,
    };
    node_files.set_replicas(&[catalog])?;
    node_files.set_node(&NodeFile { node, address: Some(address.to_owned()) })?;
    // The format file is written last: a directory with this file has joined.
    write_format(&*node_files.disk, &node_files.dir, &Format { cluster, shards, founded: true })?;
    let _ = std::fs::remove_file(node_files.dir.join("JOINING.tmp")); // no longer needed
    Ok(Joined { cluster, node, before: false })
}

/// Service that admits new nodes. Every node offers it, because admission goes through the catalog.
pub(crate) struct JoinService(pub Arc<Shared>);

impl fmt::Debug for JoinService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinDoor")
    }
}

impl Handler for JoinService {
    fn call(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        let shared = Arc::clone(&self.0);
        async move {
            let bad = || Refusal::new(RefusalCode::BadRequest, "the request to join cannot be decoded");
            let request: Request = serde_json::from_slice(&received.body).map_err(|_| bad())?;
            let admitted =
                shared.admit(request).await.map_err(|why| Refusal::new(RefusalCode::NotAuthenticated, why))?;
            Ok(Bytes::from(serde_json::to_vec(&admitted).expect("plain data encodes")))
        }
        .boxed()
    }
}

impl Shared {
    async fn admit(self: &Arc<Self>, request: Request) -> Result<Admission, String> {
        let key = CertificateRequest::from_pem(&request.key).map_err(|error| error.to_string())?;
        let catalog = self.replicas.group(GroupId::CATALOG).ok_or("the catalog is not on this node")?;
        catalog.fence().await.map_err(|error| format!("the catalog is unavailable: {error}"))?;
        let token = self.catalog.read().find(&token_key(&request.secret)).cloned();
        let token = token.ok_or("its token is unknown here; make a new one with `assay cluster token`")?;
        let body: TokenBody = serde_json::from_slice(&token.body).map_err(|error| error.to_string())?;
        let used = match body.used_by.clone() {
            Some(used) if used.key == request.key => used,
            Some(_) => return Err("its token was used; make a new one with `assay cluster token`".into()),
            None if body.expires < now_micros() => {
                return Err("its token has expired; make a new one with `assay cluster token`".into());
            }
            None => self.use_token(&token, body, &request).await?,
        };
        self.note_node(used.node, &request).await?;
        let used = self.add_to_catalog(used, &token_key(&request.secret)).await?;
        let certificate = self.issue(used.node, &key).await?;
        let authority = self.authorities().map_err(|error| error.to_string())?.trusted();
        let peers = node_records::addresses(&self.catalog.read());
        tracing::info!(node = %used.node, address = request.address, "a node joins");
        Ok(Admission {
            cluster: self.id,
            node: used.node,
            catalog_replica: used.catalog_replica,
            shards: self.shards,
            authority,
            certificate,
            peers: peers.into_iter().filter(|(node, _)| *node != used.node).map(|(node, at)| (node.0, at)).collect(),
        })
    }

    /// Assigns numbers and records the user of the token. The first record wins.
    async fn use_token(self: &Arc<Self>, token: &Record, body: TokenBody, request: &Request) -> Result<UsedBy, String> {
        let given = self.change(CatalogCommand::GiveIds(GiveIds { nodes: 1, replicas: 1 })).await;
        let CatalogOutcome::IdsGiven { first_node, first_replica } = given.map_err(|error| error.to_string())? else {
            return Err("the catalog assigned no number".into());
        };
        let used = UsedBy { key: request.key.clone(), node: first_node, catalog_replica: first_replica };
        self.note_used(token, body, &used).await?;
        Ok(used)
    }

    async fn note_used(self: &Arc<Self>, token: &Record, body: TokenBody, used: &UsedBy) -> Result<(), String> {
        let body = TokenBody { used_by: Some(used.clone()), ..body };
        let put = CatalogCommand::Put(PutRecord {
            kind: RecordKind::JOIN_TOKEN,
            id: token.id,
            org: None,
            expect: Expect::Revision(token.revision),
            keys: token.keys.clone(),
            body: serde_json::to_vec(&body).expect("plain data encodes"),
            at: now_micros(),
        });
        match self.change(put).await.map_err(|error| error.to_string())? {
            CatalogOutcome::Put { .. } => Ok(()),
            _ => Err("its token was used by another node at the same moment".into()),
        }
    }

    async fn note_node(self: &Arc<Self>, node: NodeId, request: &Request) -> Result<(), String> {
        let known = node_records::all(&self.catalog.read()).remove(&node);
        let expect = known.as_ref().map_or(Expect::Absent, |(_, revision)| Expect::Revision(*revision));
        if Removed::of(&self.catalog.read()).contains(node) {
            return Err("this node was removed from the cluster; make a new token for an empty directory".into());
        }
        let program = known.and_then(|(record, _)| record.program).or_else(|| request.program.clone());
        let record = NodeRecord { node, address: Some(request.address.clone()), state: NodeState::Active, program };
        let put = self.change(CatalogCommand::Put(node_records::put(&record, expect, now_micros()))).await;
        match put.map_err(|error| error.to_string())? {
            CatalogOutcome::Put { .. } => Ok(()),
            other => Err(format!("the catalog answered {other:?}")),
        }
    }

    /// Adds the node's replica of the catalog.
    ///
    /// Its number may be outdated, because the planner or another joining node may have placed a higher number
    /// meanwhile.
    async fn add_to_catalog(self: &Arc<Self>, mut used: UsedBy, token: &UniqueKey) -> Result<UsedBy, String> {
        for _ in 0..ATTEMPTS_MAX {
            let map = self.catalog.read().shard_map().cloned().ok_or("this cluster has no shard map yet")?;
            let Members { epoch, mut replicas } = map.catalog.clone();
            if let Some(placed) = replicas.iter().find(|replica| replica.node == used.node) {
                return Ok(UsedBy { catalog_replica: placed.id, ..used });
            }
            replicas.push(Replica { id: used.catalog_replica, node: used.node });
            let change = ChangeReplicas { group: GroupId::CATALOG, expect_epoch: epoch, replicas };
            match self.change(CatalogCommand::ChangeReplicas(change)).await.map_err(|error| error.to_string())? {
                CatalogOutcome::ReplicasChanged { .. } => return Ok(used),
                CatalogOutcome::StaleEpoch { .. } => {}
                CatalogOutcome::Refused { reason } => {
                    tracing::info!(reason, "a joining node gets another number for its copy of the catalog");
                    used = self.renumber(used, token).await?;
                }
                other => return Err(format!("the catalog answered {other:?}")),
            }
        }
        Err("the members of the catalog are being changed concurrently: try again".into())
    }

    /// Assigns another number for the replica of the catalog. It is recorded with the token first, because the request
    /// may be repeated.
    async fn renumber(self: &Arc<Self>, used: UsedBy, token: &UniqueKey) -> Result<UsedBy, String> {
        let given = self.change(CatalogCommand::GiveIds(GiveIds { nodes: 0, replicas: 1 })).await;
        let CatalogOutcome::IdsGiven { first_replica, .. } = given.map_err(|error| error.to_string())? else {
            return Err("the catalog assigned no number".into());
        };
        let used = UsedBy { catalog_replica: first_replica, ..used };
        let record = self.catalog.read().find(token).cloned().ok_or("its token was deleted meanwhile")?;
        let body: TokenBody = serde_json::from_slice(&record.body).map_err(|error| error.to_string())?;
        self.note_used(&record, body, &used).await?;
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Master key that reverses texts.
    #[derive(Debug)]
    struct Turned;

    impl crate::KeyWrap for Turned {
        fn make(&self) -> Result<(), String> {
            Ok(())
        }

        fn ids(&self) -> Vec<String> {
            vec!["turned".into()]
        }

        fn wrap(&self, _label: &str, plain: &str) -> Result<String, String> {
            Ok(plain.chars().rev().collect())
        }

        fn unwrap(&self, _label: &str, wrapped: &str) -> Result<String, String> {
            Ok(wrapped.chars().rev().collect())
        }

        fn id_of(&self, _wrapped: &str) -> Option<String> {
            Some("turned".into())
        }
    }

    /// Regression: a node could not join while replicas were placed, because a higher number had been placed meanwhile.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_number_that_was_overtaken_is_exchanged() {
        let dir = tempfile::tempdir().expect("a directory");
        let peer = crate::PeerConfig::new("127.0.0.1:7400", Some(([127, 0, 0, 1], 0).into())).expect("an address");
        let config = crate::ClusterConfig {
            data_dir: dir.path().to_owned(),
            shards: 4,
            peer: Some(peer),
            keys: Some(Arc::new(Turned)),
            ..crate::ClusterConfig::default()
        };
        let cluster = Cluster::open(config).await.expect("a cluster");
        let token = cluster.make_token(Duration::from_secs(60)).await.expect("a token");
        let secret = Token::decode(&token).expect("reads").secret;
        let (_, key) = new_request().expect("a key");
        let request = Request { secret, key: key.pem().to_owned(), address: "127.0.0.1:7401".into(), program: None };
        let shared = &cluster.shared;
        let key = token_key(&request.secret);
        let record = shared.catalog.read().find(&key).cloned().expect("it is kept");
        let body: TokenBody = serde_json::from_slice(&record.body).expect("reads");
        let used = shared.use_token(&record, body, &request).await.expect("a number");

        let CatalogOutcome::IdsGiven { first_replica: higher, .. } =
            shared.change(CatalogCommand::GiveIds(GiveIds { nodes: 0, replicas: 1 })).await.expect("given")
        else {
            panic!("no number")
        };
        let group = GroupId::of_shard(assay_storage_model::ShardId(0));
        let members = shared.catalog.read().shard_map().and_then(|map| map.group(group).cloned()).expect("placed");
        let replicas = vec![Replica { id: higher, node: shared.node }];
        let change = ChangeReplicas { group, expect_epoch: members.epoch, replicas };
        let placed = shared.change(CatalogCommand::ChangeReplicas(change)).await.expect("answered");
        assert!(matches!(placed, CatalogOutcome::ReplicasChanged { .. }), "{placed:?}");

        let admitted = shared.add_to_catalog(used.clone(), &key).await.expect("it joins all the same");
        assert!(admitted.catalog_replica > higher && used.catalog_replica < higher);
        let kept = shared.catalog.read().find(&key).cloned().expect("kept");
        let kept: TokenBody = serde_json::from_slice(&kept.body).expect("reads");
        assert_eq!(kept.used_by.map(|used| used.catalog_replica), Some(admitted.catalog_replica));
        cluster.shutdown().await.expect("closes");
    }

    fn token_of(cluster: ClusterId) -> String {
        let (address, authority, secret) = ("127.0.0.1:1".into(), "pem".into(), "s".into());
        Token { cluster, address, authority, secret }.encode()
    }

    /// Regression: a join repeated while its node ran failed on the lock, and its caller never started.
    #[tokio::test]
    async fn a_directory_that_joined_says_so_also_while_its_node_runs() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk: SharedDisk = Arc::new(assay_storage_disk::RealDisk);
        let (cluster, other) = (ClusterId(Uuid::from_u128(7)), ClusterId(Uuid::from_u128(8)));
        let node_files = NodeFiles { disk: disk.clone(), dir: dir.path().to_owned() };
        node_files.set_node(&NodeFile { node: NodeId(2), address: Some("127.0.0.1:2".into()) }).expect("writes");
        write_format(&*disk, dir.path(), &Format { cluster, shards: 4, founded: true }).expect("writes");
        let _running = Lock::take(dir.path()).expect("free");

        let joined = join(disk.clone(), dir.path(), &token_of(cluster), "127.0.0.1:2").await;
        assert_eq!(joined.expect("it had joined"), Joined { cluster, node: NodeId(2), before: true });
        let refused = join(disk.clone(), dir.path(), &token_of(other), "127.0.0.1:2").await;
        assert!(matches!(&refused, Err(JoinError::Other { found, .. }) if *found == cluster), "{refused:?}");

        let new = tempfile::tempdir().expect("a directory");
        let _busy = Lock::take(new.path()).expect("free");
        let refused = join(disk, new.path(), &token_of(cluster), "127.0.0.1:2").await;
        assert!(matches!(refused, Err(JoinError::Home(HomeError::Locked(_)))), "{refused:?}");
    }

    #[test]
    fn a_token_reads_back_and_a_damaged_one_is_refused() {
        let token = Token {
            cluster: ClusterId(Uuid::from_u128(7)),
            address: "10.0.0.1:7400".into(),
            authority: "pem".into(),
            secret: "s".into(),
        };
        let text = token.encode();
        assert_eq!(Token::decode(&format!(" {text}\n")).expect("reads").address, "10.0.0.1:7400");
        assert!(is_token(&text) && !is_token(&text[1..]));
        for wrong in ["", "assay-join-", "assay-join-%%", &text[1..], &text[..text.len() - 3]] {
            assert!(Token::decode(wrong).is_err(), "{wrong}");
        }
    }
}

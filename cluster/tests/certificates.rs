//! Tests of the certificates of two running nodes, and of principals in requests between nodes.
//!
//! An operator's own certificates are adopted without a restart and never overwritten. Other tests cover another
//! authority of the cluster, and forged certificates.

mod addresses;
mod keys;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use assay_cluster::{
    AskError, Cluster, ClusterConfig, DelegatedService, Feature, Guard, KeyWrap, NoAnswer, ObjectAccess, OnFatal,
    PeerConfig, ServiceNames, join,
};
use assay_cluster_transport::{
    Authority, Call, CallError, Handlers, Identity, Patience, Transport, TransportConfig, new_request,
};
use assay_storage_disk::RealDisk;
use assay_storage_model::catalog::{RecordKind, UniqueKey};
use assay_storage_model::{GroupId, NodeId, ObjectKey, ObjectKind, OrgId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use keys::Keys;
use serde_json::Value;
use tokio::runtime::Handle;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Validity longer than that of any certificate that nodes issue themselves.
const OWN_VALID: Duration = Duration::from_secs(1000 * 24 * 3600);
/// Wait for the check of the files, which runs every two seconds.
const TAKEN_UP_MAX: Duration = Duration::from_secs(15);
const READY_MAX: Duration = Duration::from_secs(30);
const TOKEN_VALID: Duration = Duration::from_secs(60);

async fn open(dir: &Path, address: &str) -> Cluster {
    let config = ClusterConfig {
        data_dir: dir.to_owned(),
        shards: 4,
        peer: Some(PeerConfig::new(address, None).expect("an address")),
        on_fatal: OnFatal::call(|why| panic!("{why}")),
        keys: Some(Arc::new(Keys("k1"))),
        ..ClusterConfig::default()
    };
    Cluster::open(config).await.expect("opens")
}

async fn wait_for(what: &str, at_most: Duration, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < at_most, "{what}: not within {at_most:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn valid_for(cluster: &Cluster) -> Duration {
    let runs_out = cluster.certificate_runs_out().expect("a certificate");
    runs_out.duration_since(SystemTime::now()).unwrap_or_default()
}

/// Installs files like an operator: first the trusted authorities, on all nodes, then each node's own pair.
fn put(dir: &Path, name: &str, text: &str) {
    let (file, new) = (dir.join("tls").join(name), dir.join("tls").join(format!("{name}.new")));
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file)).expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_own_pair_is_taken_up_without_a_restart() {
    let home = tempfile::tempdir().expect("a directory");
    let dirs = [home.path().join("1"), home.path().join("2")];
    let addresses = [addresses::unused(), addresses::unused()];
    let first = open(&dirs[0], &addresses[0]).await;
    let token = first.make_token(TOKEN_VALID).await.expect("a token");
    join(Arc::new(RealDisk), &dirs[1], &token, &addresses[1]).await.expect("joins");
    let second = open(&dirs[1], &addresses[1]).await;
    wait_for("both are ready", READY_MAX, || first.is_ready() && second.is_ready()).await;
    assert!(valid_for(&first) < 400 * DAY && valid_for(&second) < 400 * DAY);

    let own = Authority::new(first.id()).expect("an authority");
    for dir in &dirs {
        let cluster_s = std::fs::read_to_string(dir.join("tls/authority.pem")).expect("the cluster's");
        put(dir, "authority.pem", &format!("{cluster_s}\n{}", own.certificate_pem()));
    }
    let mut pairs = Vec::new();
    for (dir, node) in dirs.iter().zip([NodeId(1), NodeId(2)]) {
        let (key, request) = new_request().expect("a key pair");
        let certificate = own.issue(node, &request, OWN_VALID).expect("a certificate");
        put(dir, "node.key", &key);
        // Half of a pair is invalid, so the current pair stays, and the node serves.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        second.fence(GroupId::CATALOG).await.expect("both still speak");
        put(dir, "node.pem", &certificate);
        pairs.push((key, certificate));
    }
    let both = || valid_for(&first) > 900 * DAY && valid_for(&second) > 900 * DAY;
    wait_for("both show what was put there", TAKEN_UP_MAX, both).await;

    second.shutdown().await.expect("closes");
    drop(second);
    let second = open(&dirs[1], &addresses[1]).await;
    wait_for("it is known by its new certificate", READY_MAX, || first.is_ready() && second.is_ready()).await;
    second.fence(GroupId::CATALOG).await.expect("the catalog's majority is both of them");
    for (dir, (key, certificate)) in dirs.iter().zip(&pairs) {
        let kept = |name: &str| std::fs::read_to_string(dir.join("tls").join(name)).expect("a file");
        assert!(kept("node.key") == *key && kept("node.pem") == *certificate, "nobody writes over an operator's pair");
    }
    second.shutdown().await.expect("closes");
    first.shutdown().await.expect("closes");
}

/// Creates two nodes of one cluster.
struct Pair {
    _home: tempfile::TempDir,
    addresses: [String; 2],
    first: Cluster,
    second: Cluster,
}

async fn pair() -> Pair {
    let home = tempfile::tempdir().expect("a directory");
    let dirs = [home.path().join("1"), home.path().join("2")];
    let addresses = [addresses::unused(), addresses::unused()];
    let first = open(&dirs[0], &addresses[0]).await;
    let token = first.make_token(TOKEN_VALID).await.expect("a token");
    join(Arc::new(RealDisk), &dirs[1], &token, &addresses[1]).await.expect("joins");
    let second = open(&dirs[1], &addresses[1]).await;
    wait_for("both are ready", READY_MAX, || first.is_ready() && second.is_ready()).await;
    let stated = || {
        let all = |cluster: &Cluster| {
            cluster.all_nodes_have(Feature::Principals) && cluster.nodes_without_key("k1").is_empty()
        };
        all(&first) && all(&second)
    };
    wait_for("both state what they run", READY_MAX, stated).await;
    Pair { _home: home, addresses, first, second }
}

impl Pair {
    async fn close(self) {
        self.second.shutdown().await.expect("closes");
        self.first.shutdown().await.expect("closes");
    }
}

/// Returns the authority with its private key, as available to a thief of the directory and the master key.
fn stolen(cluster: &Cluster) -> Authority {
    let state = cluster.catalog().read();
    let record = state.find(&UniqueKey::new("cluster_setting", "authority")).cloned().expect("it is kept");
    let body: Value = serde_json::from_slice(&record.body).expect("JSON");
    let certificate = body["certificate_pem"].as_str().expect("a certificate");
    let wrapped = body["wrapped_key"].as_str().expect("its key is wrapped");
    let label = wrapped.split('|').nth(1).expect("a label");
    let key = Keys("k1").unwrap(label, wrapped).expect("opens");
    Authority::from_pem(cluster.id(), certificate, &key).expect("fits")
}

/// Returns a caller that claims to be this node, with a certificate of this authority.
fn impostor(cluster: &Cluster, authority: &Authority, node: NodeId, address: &str) -> Transport {
    let (key_pem, request) = new_request().expect("a key pair");
    let certificate_pem = authority.issue(node, &request, OWN_VALID).expect("a certificate");
    let authority_pem = {
        let state = cluster.catalog().read();
        let record = state.find(&UniqueKey::new("cluster_setting", "authority")).cloned().expect("it is kept");
        let body: Value = serde_json::from_slice(&record.body).expect("JSON");
        // The caller must trust its own certificate and the other side's.
        format!("{}\n{}", body["certificate_pem"].as_str().expect("a certificate"), authority.certificate_pem())
    };
    let identity = Identity { authority_pem, certificate_pem, key_pem };
    let listen = ([127, 0, 0, 1], 0).into();
    let (patience, runtime) = (Patience::default(), Handle::current());
    let config =
        TransportConfig { cluster: cluster.id(), node, listen, identity, fault_injector: None, patience, runtime };
    let transport = Transport::start(config, Handlers::new()).expect("listens");
    transport.set_addresses(std::collections::BTreeMap::from([(NodeId(1), address.to_owned())]));
    transport
}

async fn asks(transport: &Transport) -> Result<Bytes, CallError> {
    transport.call(NodeId(1), Call::new("cluster.status", Bytes::new(), Duration::from_secs(5))).await
}

/// Regression: a certificate made with a copied key was accepted permanently, also under a number that never joined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_certificates_are_refused_once_the_authority_was_rotated_and_unknown_numbers_always() {
    let pair = pair().await;
    let (first, second) = (&pair.first, &pair.second);
    let nodes = first.catalog().read().all(RecordKind::NODE).count();
    assert_eq!(nodes, 2);
    let before = stolen(first);
    let (known, unknown) = (
        impostor(first, &before, NodeId(2), &pair.addresses[0]),
        impostor(first, &before, NodeId(99), &pair.addresses[0]),
    );
    assert!(asks(&known).await.is_ok(), "whoever has the key makes what nodes believe");
    for _ in 0..3 {
        let refused = asks(&unknown).await;
        assert!(matches!(&refused, Err(CallError::Refused(why)) if why.why.contains("99")), "{refused:?}");
        tokio::time::sleep(Duration::from_millis(700)).await;
    }

    second.rotate_authority().await.expect("begins");
    let done = || {
        let ended = |cluster: &Cluster| cluster.authority_status().is_some_and(|status| !status.rotating);
        ended(first) && ended(second)
    };
    wait_for("every node has taken the new authority up", READY_MAX * 2, done).await;
    assert_ne!(stolen(first).certificate_pem(), before.certificate_pem());
    let begun = Instant::now();
    while asks(&known).await.is_ok() {
        assert!(begun.elapsed() < TAKEN_UP_MAX, "a connection with a retired certificate stays");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let anew = impostor(first, &before, NodeId(2), &pair.addresses[0]);
    assert!(matches!(asks(&anew).await, Err(CallError::NotReached(_))), "nobody believes the old key");
    second.fence(GroupId::CATALOG).await.expect("the nodes believe each other");
    for transport in [known, unknown, anew] {
        transport.shutdown().await;
    }
    pair.close().await;
}

const NAMES: ServiceNames = ServiceNames { plain: "test.service", on_behalf: "test.service.for" };

/// Service that returns the caller.
#[derive(Debug)]
struct Echo(Arc<Cluster>);

impl DelegatedService for Echo {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        _from: NodeId,
        body: Bytes,
        _within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let cluster = Arc::clone(&self.0);
        async move {
            let object = ObjectKey::new(OrgId(Uuid::nil()), ObjectKind::Dataset, Uuid::nil());
            cluster.check(principal.clone(), ObjectAccess::Write, vec![object]).await?;
            Ok([principal.as_deref().unwrap_or(b"nobody"), b" ", &body[..]].concat().into())
        }
        .boxed()
    }
}

#[derive(Debug)]
struct OnlyAlice;

impl Guard for OnlyAlice {
    fn check(
        &self,
        principal: Bytes,
        access: ObjectAccess,
        objects: Vec<ObjectKey>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let is_allowed = &principal[..] == b"alice" && access == ObjectAccess::Write && objects.len() == 1;
        async move { if is_allowed { Ok(()) } else { Err("not granted here".into()) } }.boxed()
    }
}

/// Regression: requests of any node were answered, whatever the principal of the node's own request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_checks_on_whose_behalf_another_one_asks() {
    let Pair { _home, first, second, .. } = pair().await;
    let first = Arc::new(first);
    first.serve_on_behalf(NAMES, Arc::new(Echo(Arc::clone(&first))));
    let ask = async |principal: &[u8]| {
        let (service, body) = second.addressed(NodeId(1), NAMES, principal, Bytes::from_static(b"body"));
        assert_eq!(service, NAMES.on_behalf, "both nodes name principals");
        second.ask(NodeId(1), service, body, Duration::from_secs(10)).await
    };
    let early = ask(b"alice").await;
    assert!(
        matches!(early, Err(AskError::NotLeader { .. })),
        "before it can check it has to be asked again: {early:?}"
    );
    first.guard_with(Arc::new(OnlyAlice));
    assert_eq!(ask(b"alice").await, Ok(Bytes::from_static(b"alice body")));
    for other in [&b"mallory"[..], b""] {
        assert!(matches!(ask(other).await, Err(AskError::Refused { .. })), "{other:?}");
    }
    // A node before 0.5.0 uses the other name, and its catalog may be a moment behind.
    let plain = second.ask(NodeId(1), NAMES.plain, Bytes::from_static(b"body"), Duration::from_secs(10)).await;
    assert_eq!(plain, Ok(Bytes::from_static(b"nobody body")));
    second.shutdown().await.expect("closes");
    first.shutdown().await.expect("closes");
}

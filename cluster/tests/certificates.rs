//! Certificates of an operator's own authority, put into `tls/` of two nodes that run: taken up without a restart, never
//! written over, and known by the other node when connections are made anew.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use assay_cluster::{Cluster, ClusterConfig, OnFatal, PeerConfig, join};
use assay_cluster_transport::{Authority, new_request};
use assay_storage_disk::RealDisk;
use assay_storage_model::{GroupId, NodeId};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Longer than any certificate that nodes make by themselves.
const OWN_VALID: Duration = Duration::from_secs(1000 * 24 * 3600);
/// The files are looked at every two seconds.
const TAKEN_UP_MAX: Duration = Duration::from_secs(15);
const READY_MAX: Duration = Duration::from_secs(30);
const TOKEN_VALID: Duration = Duration::from_secs(60);

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

async fn open(dir: &Path, address: &str) -> Cluster {
    let config = ClusterConfig {
        data_dir: dir.to_owned(),
        shards: 4,
        peer: Some(PeerConfig::new(address, None).expect("an address")),
        on_fatal: OnFatal::call(|why| panic!("{why}")),
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

/// As an operator does it: what is to be trusted first, on all nodes, then each its own pair.
fn put(dir: &Path, name: &str, text: &str) {
    let (file, new) = (dir.join("tls").join(name), dir.join("tls").join(format!("{name}.new")));
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file)).expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_own_pair_is_taken_up_without_a_restart() {
    let home = tempfile::tempdir().expect("a directory");
    let dirs = [home.path().join("1"), home.path().join("2")];
    let addresses = [free_address(), free_address()];
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
        // Half of a pair is no pair: what is in use stays, and the node serves.
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

//! Nodes on this machine, their rows, and their files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use assay_cluster::{
    CallFaults, Cluster, ClusterConfig, FaultInjector, HomeError, LogConfig, OnFatal, OpenError, PeerConfig, join,
};
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_log::LogError;
use assay_storage_model::command::{Action, Command, Outcome, RowOp, Write};
use assay_storage_model::{GroupId, NodeId, ObjectKey, ObjectKind, OrgId, ShardId, Xact};
use bytes::Bytes;
use uuid::Uuid;

use crate::addresses;
use crate::keys::Keys;

pub const SHARDS: u16 = 4;
/// Number of seals after which a shard is compacted.
pub const SEALS_TO_COMPACT: usize = assay_storage_shard::SEGMENTS_PER_TIER;
const OBJECTS: u128 = 24;
pub const SETTLED_MAX: Duration = Duration::from_secs(60);
const TOKEN_VALID: Duration = Duration::from_secs(60);

/// Directory and settings of one node.
#[derive(Clone, Debug)]
pub struct TestNode {
    pub dir: PathBuf,
    pub address: String,
    pub replicas: u16,
    pub shards: u16,
    /// Pairs of nodes between which no packets pass.
    pub cuts: Arc<Cuts>,
    /// Delay of log writes in milliseconds.
    pub write_delay: Arc<AtomicU64>,
}

/// Pairs of nodes. Messages from the first to the second are dropped.
#[derive(Debug, Default)]
pub struct Cuts(Mutex<BTreeSet<(u64, u64)>>);

impl Cuts {
    pub fn set(&self, cut: impl IntoIterator<Item = (u64, u64)>) {
        *self.0.lock().expect("nobody panics with it") = cut.into_iter().collect();
    }
}

impl FaultInjector for Cuts {
    fn faults(&self, from: NodeId, to: NodeId, _service: &str) -> CallFaults {
        let cut = self.0.lock().expect("nobody panics with it");
        let (lose_request, lose_answer) = (cut.contains(&(from.0, to.0)), cut.contains(&(to.0, from.0)));
        CallFaults { lose_request, lose_answer, ..CallFaults::default() }
    }
}

impl TestNode {
    pub fn new(home: &Path, name: &str, replicas: u16) -> TestNode {
        let (cuts, write_delay) = (Arc::default(), Arc::default());
        TestNode { dir: home.join(name), address: addresses::unused(), replicas, shards: SHARDS, cuts, write_delay }
    }

    pub fn config(&self, disk: SharedDisk) -> ClusterConfig {
        ClusterConfig {
            data_dir: self.dir.clone(),
            shards: self.shards,
            replicas: self.replicas,
            peer: Some(PeerConfig::new(&self.address, None).expect("an address")),
            on_fatal: OnFatal::call(|why| panic!("{why}")),
            disk,
            keys: Some(Arc::new(Keys("k1"))),
            fault_injector: Some(Arc::clone(&self.cuts) as Arc<dyn FaultInjector>),
            log: LogConfig { write_delay: Some(Arc::clone(&self.write_delay)), ..LogConfig::default() },
            ..ClusterConfig::default()
        }
    }

    /// Opens the node. An earlier one that was not stopped, or that refused to start, ends in the background.
    pub async fn try_open(&self) -> Result<Cluster, OpenError> {
        loop {
            match self.open_on(Arc::new(RealDisk)).await {
                Err(OpenError::Home(HomeError::Locked(_)) | OpenError::Log(LogError::Io { .. })) => {
                    tokio::time::sleep(Duration::from_millis(20)).await
                }
                opened => return opened,
            }
        }
    }

    pub async fn open_on(&self, disk: SharedDisk) -> Result<Cluster, OpenError> {
        Cluster::open(self.config(disk)).await
    }

    pub async fn open(&self) -> Cluster {
        self.try_open().await.expect("opens")
    }

    /// Joins the node to the cluster, through one of its nodes.
    pub async fn join(&self, through: &Cluster) -> NodeId {
        let token = through.make_token(TOKEN_VALID).await.expect("a token");
        join(Arc::new(RealDisk), &self.dir, &token, &self.address).await.expect("joins").node
    }

    /// Returns the lines of `REPLICAS` by group: number, directory, state. A founder has none before anything moves.
    pub fn replicas(&self) -> BTreeMap<GroupId, (u64, PathBuf, String)> {
        let text = std::fs::read_to_string(self.dir.join("REPLICAS")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix("replica "));
        let parsed = lines.map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().expect("a number");
            (GroupId(number(0)), (number(1), self.dir.join(words[2]), words[3].to_owned()))
        });
        parsed.collect()
    }
}

pub async fn wait_for(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !done().await {
        assert!(begun.elapsed() < SETTLED_MAX, "{what}: not within {SETTLED_MAX:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub async fn settled(cluster: &Cluster) {
    let begun = Instant::now();
    loop {
        let why = [cluster.not_ready(), cluster.status().await.unsettled].concat();
        if why.is_empty() {
            return;
        }
        assert!(begun.elapsed() < SETTLED_MAX, "not settled within {SETTLED_MAX:?}: {why:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Founds a cluster with this many nodes, each with its replicas, and writes rows.
pub async fn founded(home: &Path, nodes: usize, replicas: u16) -> Vec<(TestNode, Cluster)> {
    founded_with(home, nodes, replicas, SHARDS).await
}

pub async fn founded_with(home: &Path, nodes: usize, replicas: u16, shards: u16) -> Vec<(TestNode, Cluster)> {
    let mut all: Vec<(TestNode, Cluster)> = Vec::new();
    let cuts: Arc<Cuts> = Arc::default();
    for number in 1..=nodes {
        let cuts = Arc::clone(&cuts);
        let place = TestNode { shards, cuts, ..TestNode::new(home, &number.to_string(), replicas) };
        if let Some((_, first)) = all.first() {
            place.join(first).await;
        }
        let opened = place.open().await;
        all.push((place, opened));
    }
    let first = &all[0].1;
    wait_for("all are known", async || first.status().await.nodes.len() == nodes).await;
    settled(first).await;
    write_rows(first, "first").await;
    all
}

fn object(number: u128) -> ObjectKey {
    ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(number))
}

/// Writes one row of each object.
pub async fn write_rows(cluster: &Cluster, id: &str) {
    for number in 0..OBJECTS {
        write_row(cluster, id, number).await;
    }
}

/// Writes one row of this object.
pub async fn write_row(cluster: &Cluster, id: &str, number: u128) {
    act_on_row(cluster, id, number, Action::Upsert).await;
}

/// Merges a document into this row of each object.
pub async fn merge_rows(cluster: &Cluster, id: &str) {
    for number in 0..OBJECTS {
        act_on_row(cluster, id, number, Action::Merge).await;
    }
}

async fn act_on_row(cluster: &Cluster, id: &str, number: u128, action: Action) {
    let doc = format!(r#"{{"id":"{id}","input":"some text"}}"#);
    let row = RowOp {
        id,
        action,
        span_id: id,
        root_span_id: id,
        is_root: true,
        created: 0,
        doc: doc.as_bytes(),
        rules: b"",
        audit: b"",
    };
    let write = Write { object: object(number), assigned: Xact::ZERO, request: None, rows: vec![row] };
    let shard = cluster.locate(&object(number));
    let command = Bytes::from(Command::Write(write).encode());
    // A lead that moves leaves the outcome unknown. A repeated write of the row is harmless.
    wait_for("written", async || matches!(cluster.write(shard, command.clone()).await, Ok(Outcome::Written { .. })))
        .await;
}

/// Checks the row of every object whose shard is on this node, and returns their number.
pub async fn rows_are_there(cluster: &Cluster, id: &str) -> usize {
    let mut found = 0;
    for object in (0..OBJECTS).map(object) {
        let shard = cluster.locate(&object);
        let Some(here) = cluster.shard(shard) else { continue };
        cluster.fence(GroupId::of_shard(shard)).await.expect("fences");
        let view = here.view();
        assert!(view.get(&object, id, view.version()).expect("reads").is_some(), "{id} of {object:?}");
        found += 1;
    }
    found
}

pub async fn seal_all(cluster: &Cluster) {
    let groups = (0..SHARDS).map(|number| GroupId::of_shard(ShardId(number))).chain([GroupId::CATALOG]);
    for group in groups.filter(|group| cluster.group(*group).is_some()) {
        cluster.seal(group).await.expect("seals");
    }
}

pub async fn stop(cluster: Cluster) {
    cluster.shutdown().await.expect("closes");
}

/// Finds the file with this name anywhere below.
pub fn file_below(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path());
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => file_below(&path, name),
        false => path.file_name().is_some_and(|found| found == name).then_some(path),
    })
}

/// Finds the files anywhere below whose names end this way.
pub fn files_below(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path());
    let found = entries.flat_map(|path| match path.is_dir() {
        true => files_below(&path, suffix),
        false => Some(path).filter(|path| path.to_string_lossy().ends_with(suffix)).into_iter().collect(),
    });
    found.collect()
}

/// Flips a bit of the file. A repetition restores it.
pub fn flip_a_bit(file: &Path) {
    let mut bytes = std::fs::read(file).expect("reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).expect("writes");
}

pub fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

//! Tests of the whole cache: encryption at rest, identical calls, and several nodes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use assay_storage_disk::{SharedDisk, SimulatedDisk, read_whole};
use assay_storage_model::{NodeId, OrgId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::cipher::tests::FixedKeys;
use crate::entry::tests::response;
use crate::*;

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const BOTH: CachePlan = CachePlan { read: Some(MaxAge::Any), write_ttl_s: Some(60) };
const READ: CachePlan = CachePlan { read: Some(MaxAge::Any), write_ttl_s: None };
const WRITE: CachePlan = CachePlan { read: None, write_ttl_s: Some(60) };

/// Reaction of a node to messages from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Responds,
    /// The node does not know the service, like an older version.
    KnowsNone,
    Silent,
    Garbles,
}

/// Nodes that reach each other.
#[derive(Debug, Default)]
struct TestNodes {
    caches: Mutex<HashMap<NodeId, (ResponseCache, Manner)>>,
    asked: AtomicUsize,
}

#[derive(Debug)]
struct TestPeers {
    view: Arc<CacheView>,
    nodes: Arc<TestNodes>,
}

impl CachePeers for TestPeers {
    fn view(&self) -> Arc<CacheView> {
        Arc::clone(&self.view)
    }

    fn ask(&self, node: NodeId, body: Bytes, _within: Duration) -> BoxFuture<'static, Result<Bytes, String>> {
        self.nodes.asked.fetch_add(1, Ordering::Relaxed);
        let asked = self.nodes.caches.lock().get(&node).cloned();
        async move {
            match asked {
                Some((cache, Manner::Responds)) => cache.answer(body).await,
                Some((_, Manner::Silent)) => std::future::pending().await,
                Some((_, Manner::Garbles)) => Ok(Bytes::from_static(b"\x01\x01garbled")),
                Some((_, Manner::KnowsNone)) | None => Err("there is no such service".to_owned()),
            }
        }
        .boxed()
    }
}

/// Cluster in memory with a simulated clock.
struct TestCluster {
    nodes: Arc<TestNodes>,
    keys: Arc<FixedKeys>,
    now_ms: Arc<AtomicU64>,
    alive: Vec<NodeId>,
}

impl TestCluster {
    fn new(count: u64) -> TestCluster {
        let cluster = TestCluster {
            nodes: Arc::default(),
            keys: FixedKeys::of(&[(ORG, 1)]),
            now_ms: Arc::new(AtomicU64::new(1_000_000)),
            alive: (1..=count).map(NodeId).collect(),
        };
        for node in &cluster.alive {
            cluster.start(*node, Arc::new(SimulatedDisk::new()), Path::new("/cache"));
        }
        cluster
    }

    fn start(&self, own: NodeId, disk: SharedDisk, directory: &Path) -> ResponseCache {
        let view = Arc::new(CacheView { own, alive: self.alive.clone() });
        let now_ms = Arc::clone(&self.now_ms);
        let cache = ResponseCache::open(CacheSettings {
            disk,
            directory: directory.to_path_buf(),
            limits: CacheLimits::default(),
            keys: Arc::clone(&self.keys) as Arc<dyn EntryKeys>,
            peers: Arc::new(TestPeers { view, nodes: Arc::clone(&self.nodes) }),
            clock: CacheClock::new(move || now_ms.load(Ordering::Relaxed)),
            runtime: Handle::current(),
        });
        let cache = cache.expect("the disk works");
        self.nodes.caches.lock().insert(own, (cache.clone(), Manner::Responds));
        cache
    }

    fn cache(&self, node: u64) -> ResponseCache {
        self.nodes.caches.lock()[&NodeId(node)].0.clone()
    }

    fn set_manner(&self, node: u64, manner: Manner) {
        self.nodes.caches.lock().get_mut(&NodeId(node)).expect("a node").1 = manner;
    }

    fn pass(&self, seconds: u64) {
        self.now_ms.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    /// Returns a key that the node owns.
    fn key_of(&self, node: u64) -> CacheKey {
        let keys = (0..=255).map(|byte| CacheKey::of_hash(ORG, [byte; 32]));
        keys.into_iter().find(|key| key.owner(&self.alive) == Some(NodeId(node))).expect("one of so many")
    }
}

fn lead(start: CacheStart) -> CacheLead {
    match start {
        CacheStart::Lead(lead) => lead,
        CacheStart::Hit(cached) => panic!("there is an entry: {cached:?}"),
    }
}

fn hit(start: CacheStart) -> CachedResponse {
    match start {
        CacheStart::Hit(cached) => cached,
        CacheStart::Lead(_) => panic!("there is no entry"),
    }
}

async fn store(cache: &ResponseCache, key: &CacheKey, body: &str) -> bool {
    lead(cache.begin(key, WRITE).await).store(response(body)).await
}

async fn body(cache: &ResponseCache, key: &CacheKey) -> Option<String> {
    let cached = cache.get(key, MaxAge::Any).await?;
    Some(String::from_utf8(cached.body.to_vec()).expect("is text"))
}

#[tokio::test]
async fn an_answer_is_replayed_until_its_time_ends() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    let leading = lead(cache.begin(&key, BOTH).await);
    assert_eq!(leading.ttl_s(), Some(60));
    let stream =
        CacheableResponse { is_stream: true, content_type: "text/event-stream".into(), ..response("data: x\n\n") };
    assert!(leading.store(stream.clone()).await);
    cluster.pass(59);
    let cached = hit(cache.begin(&key, BOTH).await);
    assert_eq!(cached, CachedResponse::new(stream, 1_000_000, 60));
    assert_eq!(cached.age_s(1_059_000), 59);
    let strict = CachePlan { read: Some(MaxAge::Seconds(58)), ..BOTH };
    drop(lead(cache.begin(&key, strict).await));
    cluster.pass(1);
    drop(lead(cache.begin(&key, BOTH).await));
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.misses, counts.stored, counts.expired), (1, 3, 1, 1));
    assert_eq!((counts.entries, counts.bytes, counts.errors, counts.damaged), (0, 0, 0, 0));
}

#[tokio::test]
async fn plans_are_kept_to() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    assert!(!lead(cache.begin(&key, READ).await).store(response("a")).await, "it may not be written");
    assert!(!lead(cache.begin(&key, CachePlan::NONE).await).store(response("a")).await);
    assert!(lead(cache.begin(&key, WRITE).await).store(response("b")).await);
    drop(lead(cache.begin(&key, CachePlan::NONE).await));
    assert!(lead(cache.begin(&key, WRITE).await).store(response("c")).await, "it is not read");
    assert_eq!(hit(cache.begin(&key, READ).await).body, "c");
    assert_eq!((cache.counts().hits, cache.counts().misses), (1, 1));
}

#[tokio::test]
async fn the_plain_text_is_not_in_the_files() {
    let disk = Arc::new(SimulatedDisk::new());
    let cluster = TestCluster::new(1);
    let cache = cluster.start(NodeId(1), Arc::clone(&disk) as SharedDisk, Path::new("/cache"));
    let key = cluster.key_of(1);
    let secret = CacheableResponse {
        note: json!({"model": "a-secret-model"}),
        content_type: "application/a-secret-type".into(),
        ..response(&"an answer that nobody else may read ".repeat(40))
    };
    assert!(lead(cache.begin(&key, BOTH).await).store(secret.clone()).await);
    let files = disk.files();
    let [(path, length)] = &files[..] else { panic!("one file: {files:?}") };
    let bytes = read_whole(&*disk, path, *length).expect("a file");
    let plain: [&[u8]; 5] = [b"answer", b"nobody", b"a-secret-model", b"a-secret-type", &key.hash()[..8]];
    for part in plain {
        assert!(!bytes.windows(part.len()).any(|window| window == part), "{part:?}");
    }
    let name = path.to_string_lossy();
    assert!(!name.contains(&format!("{:02x}", key.hash()[0]).repeat(32)), "the name is not the key: {name}");
    let restarted = cluster.start(NodeId(1), disk, Path::new("/cache"));
    assert_eq!(hit(restarted.begin(&key, BOTH).await).body, secret.body);
}

#[tokio::test]
async fn an_entry_that_does_not_open_is_a_miss_and_goes() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    assert!(store(&cache, &key, "a").await);
    cluster.keys.0.lock().insert(ORG, 2);
    assert_eq!(body(&cache, &key).await, None);
    assert_eq!((cache.counts().damaged, cache.counts().entries), (1, 0));
    assert!(store(&cache, &key, "b").await);
    cluster.keys.0.lock().remove(&ORG);
    assert_eq!(body(&cache, &key).await, None);
    assert!(!store(&cache, &key, "c").await, "without a key nothing is kept");
    cluster.keys.0.lock().insert(ORG, 2);
    assert_eq!(body(&cache, &key).await.as_deref(), Some("b"), "a key that is away for a while costs no entry");
    assert_eq!((cache.counts().damaged, cache.counts().errors), (1, 2));
}

#[tokio::test]
async fn every_changed_byte_of_a_file_is_found() {
    let disk = Arc::new(SimulatedDisk::new());
    let cluster = TestCluster::new(1);
    let cache = cluster.start(NodeId(1), Arc::clone(&disk) as SharedDisk, Path::new("/cache"));
    let key = cluster.key_of(1);
    assert!(store(&cache, &key, "a").await);
    let (path, bytes) = disk.files().pop().expect("a file");
    // The bytes of the last use are not authenticated.
    for byte in (0..bytes).filter(|byte| !(16..24).contains(byte)) {
        disk.flip_bit(&path, byte * 8 + byte % 8).expect("is there");
        assert_eq!(body(&cache, &key).await, None, "byte {byte}");
        assert!(disk.files().is_empty());
        assert!(store(&cache, &key, "a").await);
    }
}

#[tokio::test]
async fn a_power_cut_leaves_whole_entries_or_none() {
    let disk = Arc::new(SimulatedDisk::new());
    let cluster = TestCluster::new(1);
    let cache = cluster.start(NodeId(1), Arc::clone(&disk) as SharedDisk, Path::new("/cache"));
    let keys = (1..=4).map(|byte| CacheKey::of_hash(ORG, [byte; 32])).collect::<Vec<_>>();
    let text = "an answer of some length ".repeat(1000);
    for key in &keys {
        assert!(store(&cache, key, &text).await);
    }
    for seed in 0..30 {
        let cache = cluster.start(NodeId(1), Arc::new(disk.power_cut(seed)), Path::new("/cache"));
        for key in &keys {
            assert!(body(&cache, key).await.is_none_or(|body| body == text), "seed {seed}");
            assert!(store(&cache, key, &text).await);
            assert!(body(&cache, key).await.is_some());
        }
    }
}

#[tokio::test]
async fn an_entry_of_another_key_does_not_open() {
    let disk = Arc::new(SimulatedDisk::new());
    let cluster = TestCluster::new(1);
    let cache = cluster.start(NodeId(1), Arc::clone(&disk) as SharedDisk, Path::new("/cache"));
    let [one, other] = [1, 2].map(|byte| CacheKey::of_hash(ORG, [byte; 32]));
    assert!(store(&cache, &one, "a").await);
    let (first, _) = disk.files().pop().expect("a file");
    assert!(store(&cache, &other, "b").await);
    let second = disk.files().into_iter().map(|(path, _)| path).find(|path| *path != first).expect("a file");
    let disk: SharedDisk = disk;
    disk.rename(&first, &second).expect("are there");
    assert_eq!((body(&cache, &other).await, body(&cache, &one).await), (None, None));
}

#[tokio::test]
async fn identical_calls_share_one() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    let calls = Arc::new(AtomicUsize::new(0));
    let call = |plan| {
        let (cache, calls) = (cache.clone(), Arc::clone(&calls));
        async move {
            match cache.begin(&key, plan).await {
                CacheStart::Hit(cached) => cached.body,
                CacheStart::Lead(lead) => {
                    calls.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_millis(20)).await;
                    lead.store(response("once")).await;
                    Bytes::from_static(b"once")
                }
            }
        }
    };
    let bodies = join_all((0..50).map(|_| call(BOTH))).await;
    assert!(bodies.iter().all(|body| body == "once"));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.shared, counts.misses, counts.stored), (49, 49, 1, 1));
    let others = [call(READ), call(BOTH), call(READ)];
    join_all(others).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn after_a_leader_without_an_answer_the_next_one_leads() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    let first = lead(cache.begin(&key, BOTH).await);
    let waiting = |plan| {
        let cache = cache.clone();
        tokio::spawn(async move { cache.begin(&key, plan).await })
    };
    let (second, third) = (waiting(BOTH), waiting(BOTH));
    sleep(Duration::from_millis(20)).await;
    assert!(!second.is_finished() && !third.is_finished());
    drop(first);
    let (early, late) = match futures::future::select(second, third).await {
        futures::future::Either::Left((early, late)) | futures::future::Either::Right((early, late)) => (early, late),
    };
    let second = lead(early.expect("no panic"));
    let large = CacheableResponse { body: vec![0; ENTRY_BYTES_MAX].into(), ..response("") };
    assert!(!second.store(large).await, "too large to be kept, so nobody gets it");
    let third = lead(late.await.expect("no panic"));
    let (reader, fourth) = (waiting(READ), waiting(BOTH));
    sleep(Duration::from_millis(20)).await;
    assert!(!reader.is_finished() && !fourth.is_finished());
    assert!(third.store(response("third")).await);
    assert_eq!(hit(reader.await.expect("no panic")).body, "third");
    assert_eq!(hit(fourth.await.expect("no panic")).body, "third");
    assert_eq!(cache.counts().refused, 1);
}

#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    let first = lead(cache.begin(&key, BOTH).await);
    let begun = Instant::now();
    let second = lead(cache.begin(&key, BOTH).await);
    assert_eq!(begun.elapsed().as_secs(), FLIGHT_WAIT_MAX.as_secs());
    assert!(second.store(response("second")).await, "it may write all the same");
    assert!(first.store(response("first")).await);
    assert_eq!(body(&cache, &key).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn who_may_not_read_calls_beside_a_leader() {
    let cluster = TestCluster::new(1);
    let (cache, key) = (cluster.cache(1), cluster.key_of(1));
    let first = lead(cache.begin(&key, WRITE).await);
    let second = lead(cache.begin(&key, WRITE).await);
    let reader = tokio::spawn({
        let cache = cache.clone();
        async move { cache.begin(&key, BOTH).await }
    });
    sleep(Duration::from_millis(20)).await;
    assert!(second.store(response("second")).await);
    assert!(!reader.is_finished(), "it waits for the first one");
    assert!(first.store(response("first")).await);
    assert_eq!(hit(reader.await.expect("no panic")).body, "first");
}

#[tokio::test]
async fn the_owner_keeps_the_entry_for_all_nodes() {
    let cluster = TestCluster::new(3);
    let key = cluster.key_of(2);
    assert!(store(&cluster.cache(1), &key, "a").await);
    assert_eq!([1, 2, 3].map(|node| cluster.cache(node).counts().entries), [0, 1, 0]);
    for node in 1..=3 {
        assert_eq!(body(&cluster.cache(node), &key).await.as_deref(), Some("a"), "node {node}");
        assert_eq!(cluster.cache(node).counts().remote_hits, u64::from(node != 2));
    }
    let asked = cluster.nodes.asked.load(Ordering::Relaxed);
    assert_eq!(body(&cluster.cache(2), &key).await.as_deref(), Some("a"));
    assert_eq!(cluster.nodes.asked.load(Ordering::Relaxed), asked, "the owner asks nobody");
    assert!(cluster.cache(3).get(&key, MaxAge::Seconds(0)).await.is_some());
    cluster.pass(2);
    assert!(cluster.cache(3).get(&key, MaxAge::Seconds(1)).await.is_none());
    cluster.pass(60);
    assert_eq!(body(&cluster.cache(1), &key).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_does_not_help_is_a_miss() {
    for manner in [Manner::KnowsNone, Manner::Silent, Manner::Garbles] {
        let cluster = TestCluster::new(2);
        let (cache, key) = (cluster.cache(1), cluster.key_of(2));
        assert!(store(&cache, &key, "at the owner").await);
        cluster.set_manner(2, manner);
        let begun = Instant::now();
        drop(lead(cache.begin(&key, BOTH).await));
        assert!(begun.elapsed() <= LOOKUP_WITHIN + Duration::from_millis(5), "{manner:?}");
        assert!(store(&cache, &key, "here").await, "{manner:?}");
        let expected = (manner != Manner::Garbles).then_some("here");
        assert_eq!(body(&cache, &key).await.as_deref(), expected, "{manner:?}");
        cluster.set_manner(2, Manner::Responds);
        assert_eq!(body(&cache, &key).await.as_deref(), Some("at the owner"), "{manner:?}");
    }
}

#[tokio::test]
async fn an_organization_is_removed_from_all_nodes() {
    let cluster = TestCluster::new(3);
    for node in 1..=3 {
        assert!(store(&cluster.cache(1), &cluster.key_of(node), "a").await);
    }
    cluster.set_manner(3, Manner::KnowsNone);
    assert_eq!(cluster.cache(1).remove_organization(ORG).await, [NodeId(3)]);
    assert_eq!([1, 2, 3].map(|node| cluster.cache(node).counts().entries), [0, 0, 1]);
    cluster.set_manner(3, Manner::Responds);
    assert_eq!(cluster.cache(2).remove_organization(ORG).await, []);
    assert_eq!(cluster.cache(3).counts().entries, 0);
}

#[tokio::test]
async fn messages_of_another_form_are_refused() {
    let cluster = TestCluster::new(1);
    for body in [&b""[..], b"\x02\x01", b"\x01\x09", b"\x01\x02short"] {
        let refused = cluster.cache(1).answer(Bytes::from_static(body)).await;
        assert_eq!(refused, Err("the message cannot be decoded".to_owned()));
    }
}

//! Stores of segments and whole backups, in a directory and in the bucket of an S3 server that others wrote. Of the
//! requests to the server, 5 % fail and 5 % hang. Without Python or its package index this reports "not covered" and
//! passes, unless ASSAY_REQUIRE=all.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_node_segment_store::{
    BucketLocation, BucketService, BucketStore, Chunks, DirectoryStore, SegmentStore, StoreError, StoredName, chunks_of,
};
use assay_test_api::backup::{Backup, create, next_second, text};
use assay_test_api::rows::{Rows, call};
use assay_test_api::server::{Options, Server};
use assay_test_clients::faulty_proxy::{BLOCK, FaultyProxy};
use assay_test_clients::s3_server::{self, BUCKET, S3Server};
use assay_test_clients::suite::covered;
use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use futures::stream;
use serde_json::json;

const OBJECTS: usize = 24;
/// More than two parts of an upload, and no multiple of their size.
const LARGE_BYTES: usize = (20 << 20) + 4_321;
const ROWS_OBJECTS: usize = 4;
/// Size of a row that is stored as a large write, beside the log.
const LARGE_ROW_BYTES: usize = 1 << 20;
/// Time for a backup, a verification and two restores. A request that hung in all of its attempts would take as long.
const PATIENCE: Duration = Duration::from_secs(400);
/// Shards of the node. The fewer there are, the fewer requests are sent.
const SHARDS: usize = 4;

fn name(text: &str) -> StoredName {
    StoredName::new(text).expect("a name")
}

fn content(length: usize, seed: usize) -> Bytes {
    (0..length).map(|place| ((place * 31 + place / 251 + seed) % 256) as u8).collect()
}

/// Puts, lists, reads and deletes small objects, many at the same time.
async fn small_objects(store: &dyn SegmentStore) -> Result<()> {
    let names: Vec<_> = (0..OBJECTS).map(|number| name(&format!("b/{number:03}"))).collect();
    let plain = |number: usize| content(1_000 + number, number);
    let puts = names.iter().enumerate().map(|(number, name)| async move {
        let written = store.put(name, chunks_of(plain(number))).await?;
        ensure!(written == 1_000 + number as u64, "{written} bytes of {name}");
        anyhow::Ok(())
    });
    try_join_all(puts).await?;
    store.put(&name("a"), chunks_of(Bytes::new())).await?;
    store.put(&name("b-other"), chunks_of(plain(0))).await?;
    store.put(&names[3], chunks_of(plain(3))).await.context("the same object again")?;

    let listed = store.list("b", None).await?;
    ensure!(listed.iter().map(|object| &object.name).eq(&names), "{listed:?}");
    ensure!(listed.iter().zip(1_000..).all(|(object, bytes)| object.bytes == bytes), "{listed:?}");
    let behind = store.list("b", Some(&names[20])).await?;
    ensure!(behind.iter().map(|object| &object.name).eq(&names[21..]), "{behind:?}");
    let between = store.list("b", Some(&name("b/0205"))).await?;
    ensure!(between.iter().map(|object| &object.name).eq(&names[21..]), "{between:?}");
    ensure!(store.list("", None).await?.len() == OBJECTS + 2, "everything");
    ensure!(store.list("nothing", None).await?.is_empty(), "no such directory");

    let reads = names.iter().enumerate().map(|(number, name)| async move {
        let (whole, range) = (plain(number), 17 + number as u64..900);
        let read = store.read(name, range.clone()).await?;
        ensure!(read == whole[range.start as usize..900], "{name}");
        ensure!(store.length(name).await? == Some(whole.len() as u64), "{name}");
        anyhow::Ok(())
    });
    try_join_all(reads).await?;
    ensure!(store.read(&names[0], 4..4).await?.is_empty(), "an empty range");
    ensure!(store.length(&name("a")).await? == Some(0), "an empty object");
    ensure!(store.length(&name("b/9")).await?.is_none(), "no object");
    let missing = store.read(&name("b/9"), 0..1).await;
    ensure!(missing.as_ref().is_err_and(StoreError::is_missing), "{missing:?}");
    for range in [990..1_001, 1_000..1_001, 5_000..5_001] {
        let short = store.read(&names[0], range.clone()).await;
        ensure!(matches!(short, Err(StoreError::Short { end, .. }) if end == range.end), "{range:?}: {short:?}");
    }
    let deletions = names[..10].iter().map(|name| async move {
        store.delete(name).await?;
        store.delete(name).await
    });
    try_join_all(deletions).await?;
    let left = store.list("b", None).await?;
    ensure!(left.iter().map(|object| &object.name).eq(&names[10..]), "{left:?}");
    ensure!(store.remove_leftovers().await? == 0, "nobody left anything");
    Ok(())
}

/// Returns chunks of other sizes than the parts of an upload, which end with an error if they are to fail.
fn uneven_chunks(whole: &Bytes, fails: bool) -> Chunks {
    let starts = (0..whole.len()).step_by(3_000_001);
    let mut chunks: Vec<_> = starts.map(|start| Ok(whole.slice(start..whole.len().min(start + 3_000_001)))).collect();
    if fails {
        chunks.push(Err(StoreError::Content("the disk".into())));
    }
    Box::pin(stream::iter(chunks))
}

/// Puts objects that are written in parts. Content that fails leaves nothing.
async fn large_objects(store: &dyn SegmentStore) -> Result<()> {
    let whole = content(LARGE_BYTES, 7);
    let names: Vec<_> = (0..3).map(|number| name(&format!("large/{number}"))).collect();
    let puts = join_all(names.iter().map(|name| store.put(name, uneven_chunks(&whole, false)))).await;
    for written in puts {
        ensure!(written? == LARGE_BYTES as u64, "another length");
    }
    let ends = |range: &Range<usize>| range.start as u64..range.end as u64;
    let ranges = [0..1, (8 << 20) - 3..(8 << 20) + 3, 10 << 20..18 << 20, LARGE_BYTES - 1..LARGE_BYTES];
    for (name, range) in names.iter().flat_map(|name| ranges.iter().map(move |range| (name, range))) {
        ensure!(store.read(name, ends(range)).await? == whole[range.clone()], "{name} at {range:?}");
    }
    for (bytes, text) in [(&whole, "large/broken"), (&whole.slice(..100), "broken")] {
        let failed = store.put(&name(text), uneven_chunks(bytes, true)).await;
        ensure!(matches!(failed, Err(StoreError::Content(_))), "{failed:?}");
        ensure!(store.length(&name(text)).await?.is_none(), "{text} is there");
    }
    Ok(())
}

async fn whole_suite(store: &dyn SegmentStore) -> Result<()> {
    small_objects(store).await.with_context(|| format!("small objects in {}", store.location()))?;
    large_objects(store).await.with_context(|| format!("large objects in {}", store.location()))
}

/// Writes rows, and backs up a node.
fn backed_up(backup: &Backup, data: &Path) -> Result<(Rows, Rows, String)> {
    let settings = vec![format!("store.shards={SHARDS}")];
    let server = Server::start(&Options { environment: backup.environment()?, settings, ..Options::new(data) })?;
    let wrote = write(&server.url, data).with_context(|| server.log());
    server.kill()?;
    wrote
}

fn write(url: &str, data: &Path) -> Result<(Rows, Rows, String)> {
    let mut rows = Rows::new(&[url.to_owned()], ROWS_OBJECTS)?;
    rows.write(url, "first")?;
    create(data)?;
    rows.write(url, "early")?;
    let large = call(url, "POST", "/v1/project", &json!({"name": "large"}))?;
    let large = large["id"].as_str().context("an id")?.to_owned();
    let row = json!({"events": [{"id": "large", "input": "x".repeat(LARGE_ROW_BYTES)}]});
    call(url, "POST", &format!("/v1/project_logs/{large}/insert"), &row)?;
    let (early, second) = (rows.clone(), next_second()?);
    rows.write(url, "late")?;
    create(data)?;
    Ok((early, rows, second))
}

fn restored(backup: &Backup, dir: &Path, at: Option<&str>, rows: &Rows) -> Result<()> {
    let data = dir.join(if at.is_some() { "at-second" } else { "newest" });
    let begun = Instant::now();
    backup.restore(&data, at)?;
    println!("restored {} within {:?}", text(&data)?, begun.elapsed());
    let server = Server::start(&Options { key: None, ..Options::new(&data) })?;
    let found = rows.all_there(&server.url)?;
    ensure!(found == rows.acknowledged(), "{found} rows are there, of {}", rows.acknowledged());
    ensure!(server.stop()?.success(), "it stops well");
    Ok(())
}

fn whole_backup(backup: &Backup, dir: &Path) -> Result<()> {
    let (early, all, second) = backed_up(backup, &dir.join("data"))?;
    let verified = backup.run(&["verify"])?;
    ensure!(verified.success, "{}{}", verified.out, verified.errors);
    restored(backup, dir, Some(&second), &early)?;
    restored(backup, dir, None, &all)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

/// Checks that faults were met, as many as announced.
fn assert_faulty(proxy: &FaultyProxy, requests_min: usize) {
    let (requests, faults) = proxy.counts();
    println!("{requests} requests, {faults} of them with a fault");
    assert!(requests >= requests_min, "{requests} requests");
    assert!(faults * BLOCK >= requests, "{faults} faults in {requests} requests");
}

#[test]
fn a_directory_holds_segments() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = DirectoryStore::open(dir.path().join("store")).expect("a store");
    block_on(whole_suite(&store)).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn a_bucket_holds_segments_while_requests_fail_and_hang() {
    if covered("a bucket of segments", s3_server::available()).is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let server = S3Server::start(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let proxy = FaultyProxy::start(&server.address, 11).expect("a proxy");
    server.create("other").unwrap_or_else(|error| panic!("{error:#}"));
    for (bucket, prefix) in [(BUCKET, ""), ("other", "some/prefix")] {
        let location = BucketLocation { service: BucketService::S3, bucket: bucket.into(), prefix: prefix.into() };
        let store = BucketStore::with_variables(&location, s3_server::variables(&proxy.address())).expect("a store");
        block_on(whole_suite(&store)).unwrap_or_else(|error| panic!("{error:#}"));
    }
    assert_faulty(&proxy, 200);
}

#[test]
fn a_node_is_backed_up_to_a_bucket_while_requests_fail_and_hang() {
    if covered("a backup in a bucket", s3_server::available()).is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let server = S3Server::start(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let proxy = FaultyProxy::start(&server.address, 12).expect("a proxy");
    let variables = s3_server::variables(&proxy.address());
    let backup = Backup::at(&format!("s3://{BUCKET}/assay"), dir.path(), variables);
    let backup = backup.unwrap_or_else(|error| panic!("{error:#}"));
    let begun = Instant::now();
    whole_backup(&backup, dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("backed up, verified and restored within {:?}", begun.elapsed());
    assert_faulty(&proxy, 100);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

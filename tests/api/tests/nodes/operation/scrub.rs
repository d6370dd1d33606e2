//! A bit flips on the disk of one node of three: it is found without any read there, and at once by a read. The replica
//! is rebuilt from the others, and its shard is served meanwhile.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::process::run;
use assay_test_api::rows::Rows;
use serde_json::Value;

/// Rows are on the disk soon.
const SEALS: (&str, &str) = ("ASSAY_STORE_SEAL_AGE_SECONDS", "1");
/// Shortest possible interval; by default segments are read once a day.
const SCRUBS: (&str, &str) = ("ASSAY_CLUSTER_SCRUB_EVERY_SECONDS", "1");
const DAMAGED: usize = 2;
const OBJECTS: usize = 6;
const ROUNDS: usize = 4;
const SEALED_MAX: Duration = Duration::from_secs(20);
const REBUILT_MAX: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(100);

/// A segment of the node, and the shard and replica that have it: `shards/003-r26/...`.
#[derive(Debug)]
struct SegmentOnDisk {
    file: PathBuf,
    shard: u64,
    replica: u64,
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// The largest segment that is on the disk by now.
fn a_segment(node: &Path) -> Result<Option<SegmentOnDisk>> {
    let mut files = Vec::new();
    files_below(&node.join("shards"), &mut files);
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
    let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |known| known.len());
    let Some(file) = files.into_iter().filter(is_segment).max_by_key(bytes) else { return Ok(None) };
    let name = file.strip_prefix(node.join("shards"))?.components().next().context("a replica's directory")?;
    let name = name.as_os_str().to_string_lossy().into_owned();
    let (shard, replica) = name.split_once("-r").with_context(|| format!("{name} names no replica"))?;
    let (shard, replica) = (shard.parse()?, replica.parse()?);
    Ok(Some(SegmentOnDisk { file, shard, replica }))
}

fn flip_a_bit(file: &Path) -> Result<()> {
    let mut bytes = std::fs::read(file)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // In place: whoever has the file open reads it as well.
    let opened = std::fs::OpenOptions::new().write(true).open(file)?;
    std::os::unix::fs::FileExt::write_all_at(&opened, &bytes[middle..=middle], u64::try_from(middle)?)?;
    Ok(())
}

/// The replica of the shard that the node votes with, once everything is settled.
fn replica_now(dir: &Path, shard: u64) -> Result<Option<u64>> {
    let dir = dir.to_str().context("a path that is text")?;
    let status: Value = run(&["cluster", "status", "--json", "--data-dir", dir], &[], "")?.json()?;
    let groups = status["groups"].as_array().context("groups")?;
    let group = groups.iter().find(|group| group["shard"] == shard).context("the shard")?;
    let own = group["replicas"].as_array().into_iter().flatten().find(|replica| replica["node"] == DAMAGED);
    let votes = own.filter(|own| own["role"] == "voter" && status["settled"] == true);
    Ok(votes.and_then(|own| own["replica"].as_u64()))
}

/// Written and read all the while, on these nodes.
fn held(dev: &Dev, data: &Path, busy: &[usize]) -> Result<()> {
    let node = data.join(format!("node-{DAMAGED}"));
    let mut rows = Rows::new(&dev.urls, OBJECTS)?;
    for round in 0..ROUNDS {
        rows.write(&dev.urls[round % dev.urls.len()], &format!("before-{round}"))?;
    }
    let begun = Instant::now();
    let found = loop {
        if let Some(found) = a_segment(&node)? {
            break found;
        }
        ensure!(begun.elapsed() < SEALED_MAX, "nothing was sealed within {SEALED_MAX:?}");
        std::thread::sleep(POLL);
    };
    println!("{found:?}");
    flip_a_bit(&found.file)?;
    let flipped = Instant::now();
    let mut round = 0;
    loop {
        let url = &dev.urls[busy[round % busy.len()] - 1];
        rows.write(url, &format!("meanwhile-{round}"))?;
        rows.all_there(url)?;
        round += 1;
        let now = replica_now(&data.join("node-1"), found.shard)?;
        if now.is_some_and(|replica| replica != found.replica) {
            break;
        }
        ensure!(flipped.elapsed() < REBUILT_MAX, "not rebuilt within {REBUILT_MAX:?}: still replica {now:?}");
    }
    println!("rebuilt after {:?}, with {round} rounds meanwhile", flipped.elapsed());
    ensure!(rows.refusals == 0, "the shard was not served: {} refusals", rows.refusals);
    ensure!(!found.file.exists() || !a_replica_uses(&node, &found)?, "the damaged replica is still in use");
    for url in &dev.urls {
        println!("{url} has {} rows", rows.all_there(url)?);
    }
    Ok(())
}

/// Returns whether the node still counts the damaged replica as one of its own.
fn a_replica_uses(node: &Path, found: &SegmentOnDisk) -> Result<bool> {
    let kept = std::fs::read_to_string(node.join("REPLICAS"))?;
    let own = format!(" {} shards/{:03}-r{} kept", found.replica, found.shard, found.replica);
    Ok(kept.lines().any(|line| line.ends_with(&own)))
}

fn outlived(settings: &[(&str, &str)], busy: &[usize]) {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start_with(&data, settings).unwrap_or_else(|error| panic!("{error:#}"));
    held(&dev, &data, busy).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}

#[test]
fn a_flipped_bit_is_found_and_the_replica_rebuilt_while_its_shard_serves() {
    outlived(&[SEALS, SCRUBS], &[1, 3]);
}

#[test]
fn whoever_reads_a_flipped_bit_has_the_rows_from_others_and_the_replica_is_rebuilt() {
    outlived(&[SEALS], &[DAMAGED]);
}

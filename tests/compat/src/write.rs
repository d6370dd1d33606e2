//! Writes the data of a release with the current program: first sealed and compacted data, then data in the log only.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use assay_test_api::case::{Case, Target};
use assay_test_api::server::{Options, Server};
use assay_tests_tidy::formats;
use assay_tests_tidy::workspace::Workspace;

use crate::doctor;
use crate::record::Recorded;
use crate::release::{KEY, Release};

/// An address for other nodes, so that the node's own files are included, with a free port: several nodes run at once.
pub const PEER: [&str; 2] = ["cluster.peer_address=127.0.0.1:17471", "cluster.peer_listen=127.0.0.1:0"];
/// Few shards, so that one of them gets segments enough to be compacted; and every look at them seals.
const SEALED: [&str; 2] = ["store.shards=4", "store.seal_age_seconds=0"];
const SEALED_CASES: [&str; 2] = ["1-kept.json", "2-changed.json"];
/// A node settles its segments some time after its last seal.
const SETTLED_MAX: Duration = Duration::from_secs(120);
const SETTLED_LOOK: Duration = Duration::from_millis(200);
/// Cases that run after a restart with default settings: nothing is old or large enough to be sealed.
const UNSEALED_CASES: [&str; 1] = ["3-unsealed.json"];

/// Writes a release into `dir`. `place` is an empty directory.
pub fn release(dir: &Path, place: &Path) -> Result<Release> {
    let data = place.join("data");
    let mut seen = Recorded::default();
    let mut options = Options { key: Some(KEY.into()), ..Options::new(&data) };
    options.settings = SEALED.map(str::to_owned).to_vec();
    // An address for other nodes is for a directory that was founded.
    Server::start(&options)?.stop()?;
    options.settings.extend(PEER.map(str::to_owned));
    let server = Server::start(&options)?;
    for case in SEALED_CASES {
        run(case, &server)?;
        seen.look(&server)?;
    }
    settled(&data)?;
    server.stop()?;

    options.settings = PEER.map(str::to_owned).to_vec();
    let server = Server::start(&options)?;
    for case in UNSEALED_CASES {
        run(case, &server)?;
    }
    let reads = seen.reads(&server)?;
    // A stop would be too kind: what is under way has to be in the log.
    server.kill()?;
    has_everything(&data)?;
    let workspace = Workspace::this();
    Release::pack(dir, place, &reads, &formats::text(&formats::constants(&workspace.sources())))
}

/// Waits until segments are columnar, as they become where nothing is sealed for a while.
fn settled(data: &Path) -> Result<()> {
    let until = Instant::now() + SETTLED_MAX;
    while !has_columns(data)? {
        anyhow::ensure!(Instant::now() < until, "no segment has become columnar within {SETTLED_MAX:?}");
        thread::sleep(SETTLED_LOOK);
    }
    Ok(())
}

/// Returns whether a file below the directory is a word index, which only columnar segments have.
fn has_columns(dir: &Path) -> Result<bool> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "words") || (path.is_dir() && has_columns(&path)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn run(name: &str, server: &Server) -> Result<()> {
    let own = std::env::var("CARGO_MANIFEST_DIR").context("cargo says where this crate is")?;
    let case = Case::read(&Path::new(&own).join("writing").join(name))?;
    let target = Target { urls: vec![server.url.clone()], key: server.key.clone(), run: String::new() };
    let verdict = case.run(name, &target);
    anyhow::ensure!(verdict.failures.is_empty(), "{}", verdict.failures.join("\n\n"));
    Ok(())
}

/// Checks that a release has data of every kind. The cases themselves wait for segments and for a compaction.
fn has_everything(data: &Path) -> Result<()> {
    let found = doctor::examine(data)?;
    let shards = || found.lines().filter(|line| line.contains("shard "));
    let unsealed = shards().any(|line| line.contains("the next start applies") && !line.contains(" 0 entries"));
    anyhow::ensure!(unsealed, "every entry is sealed:\n{found}");
    let segments = shards().any(|line| line.contains("segments") && !line.contains(" 0 segments"));
    anyhow::ensure!(segments, "nothing is sealed:\n{found}");
    anyhow::ensure!(has_columns(data)?, "no segment is columnar:\n{found}");
    let blobs = found.lines().any(|line| line.contains("blobs:") && !line.contains(" 0 files"));
    anyhow::ensure!(blobs, "no write went through a blob:\n{found}");
    Ok(())
}

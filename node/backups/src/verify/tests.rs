//! Tests of the verification on a backup of a few hundred objects: every flipped bit and every missing object is named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_node_secrets::{Secret, VAULT_KEY_BYTES, VaultKey};
use assay_node_segment_store::DirectoryStore;
use assay_storage_model::{ClusterId, LogPosition, ShardId};
use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::*;
use crate::key::BackupKey;
use crate::log_part::ArchivedEntry;
use crate::manifest::{StoredFile, UnusedManifest};
use crate::pace::Pace;
use crate::prune::prune;

const SHARDS: u16 = 4;
const FIRST: u64 = 1_764_000_000_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
/// Index of the first base. The second one is behind 100 entries, and the log goes on for as many.
const BEGIN: u64 = 10;
const ENTRIES: u64 = 200;
const PART_ENTRIES: u64 = 10;
const FILES: u64 = 3;
const FLIPS: u32 = 100;

/// Backup in a directory, with a runtime to work on it.
struct SampleBackup {
    dir: TempDir,
    repository: Repository,
    runtime: Runtime,
}

/// Returns bytes that differ by a seed.
fn noise(seed: u64, length: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

impl SampleBackup {
    /// Creates a backup with two bases of each group, which are this far apart.
    fn create(apart: u64) -> SampleBackup {
        let dir = tempfile::tempdir().expect("a directory");
        let runtime = Runtime::new().expect("a runtime");
        let repository = opened(&dir.path().join("store"));
        runtime.block_on(fill(&repository, apart)).expect("stored");
        SampleBackup { dir, repository, runtime }
    }

    /// Returns the paths of all objects, sorted.
    fn objects(&self) -> Vec<StoredName> {
        let listed = self.runtime.block_on(self.repository.store().list("", None)).expect("a list");
        listed.into_iter().map(|object| object.name).collect()
    }

    fn path(&self, name: &StoredName) -> PathBuf {
        self.dir.path().join("store").join(name.as_str())
    }

    /// Returns the findings, or the error as the only one.
    fn findings(&self) -> Vec<String> {
        let verified = self.runtime.block_on(verify(&self.repository, true, |_| {}));
        verified.map_or_else(|why| vec![why.to_string()], |found| found.findings)
    }
}

fn opened(path: &Path) -> Repository {
    let store = Arc::new(DirectoryStore::open(path.to_owned()).expect("a store"));
    Repository::new(store, BackupKey::new(VaultKey::new([7; VAULT_KEY_BYTES])), Pace::new(None))
}

async fn fill(repository: &Repository, apart: u64) -> Result<(), BackupError> {
    repository.found(ClusterId(Uuid::from_u128(5)), SHARDS).await?;
    let keys = repository.keep_master_keys(&[Secret::new("current".into()), Secret::new("earlier".into())]).await?;
    let groups = (0..SHARDS).map(|shard| GroupId::of_shard(ShardId(shard))).chain([GroupId::CATALOG]);
    let mut bases = BTreeMap::new();
    for (number, group) in (0..).zip(groups) {
        let seed = number * 1_000;
        put_log(repository, group, apart, seed).await?;
        for (base, at) in [(BEGIN, FIRST), (BEGIN + ENTRIES / 2, FIRST + apart)] {
            let base = BaseName { index: base, at: Millis(at) };
            put_base(repository, group, base, seed + base.index).await?;
            bases.insert((at, group), base);
        }
    }
    for second in (10..60).step_by(5) {
        for (at, index) in [(FIRST, BEGIN + ENTRIES / 4), (FIRST + apart, BEGIN + ENTRIES)] {
            let of_time = |(begin, group): &(u64, GroupId), base: &BaseName| (*begin == at).then_some((*group, *base));
            let newest: BTreeMap<_, _> = bases.iter().filter_map(|(place, base)| of_time(place, base)).collect();
            let point = PointManifest {
                at: Millis(at + second * 1_000),
                cluster: ClusterId(Uuid::from_u128(5)),
                program: "1.0.0".into(),
                groups: newest.keys().map(|group| (*group, index)).collect(),
                bases: newest,
                master_keys: keys,
                is_requested: second == 10,
            };
            repository.put_json(&layout::point(point.at), &point).await?;
        }
    }
    let unused = put_content(repository, &noise(1, 500)).await?.content;
    repository.put_json(&layout::unused(Millis(FIRST)), &UnusedManifest { contents: vec![unused] }).await
}

async fn put_content(repository: &Repository, plain: &[u8]) -> Result<StoredFile, BackupError> {
    let mut hasher = repository.key().hasher();
    hasher.update(plain);
    let content = hasher.finish();
    repository.put(&layout::content(&content), plain).await?;
    Ok(StoredFile { name: format!("{content}"), bytes: plain.len() as u64, content })
}

async fn put_base(repository: &Repository, group: GroupId, base: BaseName, seed: u64) -> Result<(), BackupError> {
    let mut files = Vec::new();
    for file in 0..FILES {
        files.push(put_content(repository, &noise(seed + file, 100 + seed % 900)).await?);
    }
    let kept = put_content(repository, &noise(seed + FILES, 300)).await?;
    let position = LogPosition { term: 1, replica: 1, index: base.index }.into();
    let program = "1.0.0".to_owned();
    let manifest = BaseManifest { group, position, at: base.at, program, kept, files };
    repository.put_json(&base.of(group), &manifest).await
}

/// Stores parts of a log. Every third one names a large write.
async fn put_log(repository: &Repository, group: GroupId, apart: u64, seed: u64) -> Result<(), BackupError> {
    for (number, first) in (0..).zip((BEGIN + 1..=BEGIN + ENTRIES).step_by(PART_ENTRIES as usize)) {
        let last = first + PART_ENTRIES - 1;
        let mut entries = Vec::new();
        for index in first..=last {
            let position = LogPosition { term: 1, replica: 1, index };
            let named = Bytes::from(noise(seed + index, 60));
            let content = if index == last && number % 3 == 0 {
                repository.put(&layout::large_write(group, index), &noise(seed + index, 2_000)).await?;
                ArchivedContent::Large(named)
            } else {
                ArchivedContent::Commands(named)
            };
            entries.push(ArchivedEntry { position, content });
        }
        let begin = if first <= BEGIN + ENTRIES / 2 { FIRST } else { FIRST + apart };
        let at = Millis(begin + 1_000 * number);
        repository.put(&LogPartName { first, last, at }.of(group), &log_part::encode(&entries)).await?;
    }
    Ok(())
}

fn says_of(findings: &[String], name: &StoredName) -> bool {
    findings.iter().any(|finding| finding.contains(&format!("object {name} of the backup")))
}

#[test]
fn each_flipped_bit_is_named() {
    let sample = SampleBackup::create(HOUR);
    let objects = sample.objects();
    assert!(objects.len() > 200, "{} objects", objects.len());
    assert_eq!(sample.findings(), Vec::<String>::new());
    let flip = |name: &StoredName, bit: &Index| {
        let path = sample.path(name);
        let intact = std::fs::read(&path).expect("read");
        let mut flipped = intact.clone();
        let bit = bit.index(flipped.len() * 8);
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, flipped).expect("written");
        let findings = sample.findings();
        std::fs::write(&path, intact).expect("written");
        prop_assert!(says_of(&findings, name), "bit {} of {}: {:?}", bit, name, findings);
        Ok(())
    };
    let mut runner = TestRunner::new(Config { cases: FLIPS, failure_persistence: None, ..Config::default() });
    let places = (any::<Index>(), any::<Index>());
    runner.run(&places, |(object, bit)| flip(object.get(&objects), &bit)).expect("each is named");
    // The descriptor is the only object in plain text, and heads name the key.
    for name in [layout::descriptor(), layout::descriptor_copy()] {
        runner.run(&any::<Index>(), |bit| flip(&name, &bit)).expect("each is named");
    }
    assert_eq!(sample.findings(), Vec::<String>::new());
}

#[test]
fn each_missing_object_that_a_restore_may_need_is_named() {
    let sample = SampleBackup::create(HOUR);
    let unused = sample.runtime.block_on(sample.repository.unused_list(Millis(FIRST))).expect("a list").contents;
    let unused: Vec<_> = unused.iter().map(layout::content).collect();
    let is_needed = |name: &&StoredName| {
        let text = name.as_str();
        !text.starts_with(layout::POINTS) && !text.starts_with(layout::UNUSED) && !unused.contains(name)
    };
    let objects = sample.objects();
    for name in objects.iter().filter(is_needed) {
        let (path, aside) = (sample.path(name), sample.dir.path().join("aside"));
        std::fs::rename(&path, &aside).expect("moved");
        let findings = sample.findings();
        std::fs::rename(&aside, &path).expect("moved");
        let is_named = match (LogPartName::parse(name), name.as_str().contains("/log/")) {
            (Some(part), true) => {
                let group = name.as_str().split('/').nth(1).unwrap_or_default();
                let lacks = format!("the log of group {group} lacks ");
                let entry = part.first.to_string();
                findings.iter().any(|finding| finding.starts_with(&lacks) && finding.contains(&entry))
            }
            _ => says_of(&findings, name),
        };
        assert!(is_named, "{name}: {findings:?}");
    }
    assert_eq!(sample.findings(), Vec::<String>::new());
}

#[test]
fn what_was_deleted_as_outdated_is_not_missed() {
    let sample = SampleBackup::create(3 * DAY);
    let before = sample.objects().len();
    let pruned = sample.runtime.block_on(prune(&sample.repository, Millis(FIRST + 3 * DAY + HOUR)));
    assert!(pruned.expect("pruned").objects > 20);
    assert!(sample.objects().len() < before);
    assert_eq!(sample.findings(), Vec::<String>::new());
}

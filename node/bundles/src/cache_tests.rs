//! Tests of the cache: restarts, damage, limits, threads, and a model of its order.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use crate::cache::{BundleCache, CachedBundle};
use crate::directory::remove_tree;
use crate::error::{BundleError, BundleRefusal, EntryProblem};
use crate::index::CacheFull;
use crate::kind::{BundleKey, BundleKind};
use crate::limits::BundleCacheLimits;
use crate::samples::{RawEntry, gzip, raw_zip};

const BLOCK: u64 = 4096;
/// Disk space of a cached text of one block: the text, two directories and the manifest.
const SMALL: u64 = 4 * BLOCK;

/// Temporary folder whose read-only directories are removed too, also for users who are not root.
#[derive(Debug)]
struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        remove_tree(self.path()).unwrap();
    }
}

fn key(kind: BundleKind, number: u32) -> BundleKey {
    BundleKey::new(kind, format!("{number:064x}").parse().unwrap())
}

fn node(number: u32) -> BundleKey {
    key(BundleKind::Node, number)
}

fn python(number: u32) -> BundleKey {
    key(BundleKind::Python, number)
}

fn limits(bytes: u64, bundles: usize) -> BundleCacheLimits {
    BundleCacheLimits { bytes, bundles, ..BundleCacheLimits::default() }
}

fn open(folder: &TestFolder) -> BundleCache {
    BundleCache::open(folder.path(), BundleCacheLimits::default()).unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn sample_zip() -> Vec<u8> {
    let tool = RawEntry { mode: 0o106_755, ..RawEntry::deflated("lib/bin/tool", b"#!/bin/sh") };
    raw_zip(&[tool, RawEntry { mode: 0o100_666, ..RawEntry::deflated("register.py", b"import lib") }])
}

#[test]
fn an_unpacked_bundle_is_read_only_for_everybody() {
    let folder = TestFolder::new();
    let cache = open(&folder);
    let bundle = cache.insert(&python(1), &sample_zip()).unwrap();
    assert_eq!(bundle.path(), folder.path().join(python(1).directory_name()).join("tree"));
    assert_eq!(fs::read_to_string(bundle.join("register.py")).unwrap(), "import lib");
    assert_eq!(mode(&bundle.join("register.py")), 0o444);
    assert_eq!(mode(&bundle.join("lib/bin/tool")), 0o555);
    for directory in [bundle.to_path_buf(), bundle.join("lib"), bundle.join("lib/bin")] {
        assert_eq!(mode(&directory), 0o555, "{directory:?}");
    }
    let bundle = cache.insert(&node(1), &gzip(b"exports.a = 1")).unwrap();
    assert_eq!(fs::read_to_string(bundle.join("bundle.cjs")).unwrap(), "exports.a = 1");
    assert_eq!(names(folder.path()).len(), 2, "the kinds of one hash are two entries");
    assert_eq!(bundle.key(), &node(1));
}

#[test]
fn entries_survive_a_restart_and_incomplete_ones_do_not() {
    let folder = TestFolder::new();
    drop(open(&folder).insert(&python(1), &sample_zip()).unwrap());
    let temporary = folder.path().join(".tmp-7");
    fs::create_dir_all(temporary.join("tree")).unwrap();
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o555)).unwrap();
    fs::write(folder.path().join(".tmp-8"), "a file").unwrap();
    fs::create_dir_all(folder.path().join(node(2).directory_name()).join("tree")).unwrap();
    fs::write(folder.path().join("notes.txt"), "kept").unwrap();
    let cache = open(&folder);
    assert_eq!(names(folder.path()), BTreeSet::from([python(1).directory_name(), "notes.txt".to_owned()]));
    assert_eq!(cache.usage().bundles, 1);
    let bundle = cache.get(&python(1)).unwrap().unwrap();
    assert_eq!(fs::read_to_string(bundle.join("register.py")).unwrap(), "import lib");
    assert!(cache.get(&python(2)).unwrap().is_none());
}

/// Change of an unpacked tree.
type Damage = fn(&Path);

#[test]
fn a_directory_that_differs_from_its_manifest_is_unpacked_again() {
    let damages: [(&str, Damage); 6] = [
        ("a missing file", |tree| fs::remove_file(tree.join("register.py")).unwrap()),
        ("a longer file", |tree| {
            fs::set_permissions(tree.join("register.py"), fs::Permissions::from_mode(0o644)).unwrap();
            fs::write(tree.join("register.py"), "import lib, os").unwrap();
        }),
        ("one more file", |tree| fs::write(tree.join("more.py"), "").unwrap()),
        ("one more directory", |tree| fs::create_dir(tree.join("more")).unwrap()),
        ("a link", |tree| {
            fs::remove_file(tree.join("register.py")).unwrap();
            symlink("/etc/passwd", tree.join("register.py")).unwrap();
        }),
        ("no tree", |tree| remove_tree(tree).unwrap()),
    ];
    for (name, damage) in damages {
        let folder = TestFolder::new();
        let tree = open(&folder).insert(&python(1), &sample_zip()).unwrap().to_path_buf();
        fs::set_permissions(&tree, fs::Permissions::from_mode(0o755)).unwrap();
        damage(&tree);
        let cache = open(&folder);
        assert!(cache.get(&python(1)).unwrap().is_none(), "{name}");
        assert_eq!((names(folder.path()).len(), cache.usage().bundles), (0, 0), "{name}");
        let bundle = cache.insert(&python(1), &sample_zip()).unwrap();
        assert_eq!(fs::read_to_string(bundle.join("register.py")).unwrap(), "import lib", "{name}");
    }
}

#[test]
fn an_entry_that_vanished_from_the_disk_is_unpacked_again() {
    let folder = TestFolder::new();
    let cache = open(&folder);
    drop(cache.insert(&node(1), b"1").unwrap());
    remove_tree(&folder.path().join(node(1).directory_name())).unwrap();
    assert!(cache.get(&node(1)).unwrap().is_none());
    assert!(cache.insert(&node(1), b"1").unwrap().join("bundle.cjs").exists());
}

#[test]
fn an_error_leaves_nothing_on_the_disk() {
    let folder = TestFolder::new();
    let cache = open(&folder);
    let last = RawEntry { crc: 0, ..RawEntry::stored("b.py", b"damaged") };
    let error = cache.insert(&python(1), &raw_zip(&[RawEntry::stored("a/a.py", b"x"), last])).unwrap_err();
    let problem = EntryProblem::Content("Invalid checksum".into());
    assert!(matches!(error, BundleError::Refused(refusal) if refusal == BundleRefusal::entry("b.py", problem)));
    let error = BundleCache::open(folder.path(), limits(2 * BLOCK, 9)).unwrap().insert(&node(1), b"1").unwrap_err();
    let expected = CacheFull::Larger { bytes: SMALL, max: 2 * BLOCK };
    assert!(matches!(error, BundleError::CacheFull(full) if full == expected));
    assert_eq!(names(folder.path()), BTreeSet::new());
    assert_eq!(cache.usage().failed_removals, 0);
}

#[test]
fn an_error_of_the_disk_names_the_operation_and_the_path() {
    let folder = TestFolder::new();
    let path = folder.path().join("cache");
    let cache = BundleCache::open(&path, BundleCacheLimits::default()).unwrap();
    fs::remove_dir(&path).unwrap();
    let error = cache.insert(&node(1), b"1").unwrap_err().to_string();
    assert!(error.contains("cannot create the directory") && error.contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn a_bundle_in_use_stays_and_makes_room_after_its_release() {
    let folder = TestFolder::new();
    let cache = BundleCache::open(folder.path(), limits(2 * SMALL, 9)).unwrap();
    let first = cache.insert(&node(1), b"1").unwrap();
    let second = cache.insert(&node(2), b"2").unwrap();
    let error = cache.insert(&node(3), b"3").unwrap_err();
    let expected = CacheFull::BytesInUse { bytes: SMALL, in_use: 2 * SMALL, max: 2 * SMALL };
    assert!(matches!(error, BundleError::CacheFull(full) if full == expected));
    assert!(first.join("bundle.cjs").exists() && second.join("bundle.cjs").exists());
    // A bundle with two holders stays until the second one ends.
    let again = cache.get(&node(1)).unwrap().unwrap();
    drop(first);
    assert!(cache.insert(&node(3), b"3").is_err());
    drop(again);
    let third = cache.insert(&node(3), b"3").unwrap();
    assert!(third.join("bundle.cjs").exists() && second.join("bundle.cjs").exists());
    assert!(cache.get(&node(1)).unwrap().is_none());
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn smaller_limits_remove_the_least_recently_used_at_the_start() {
    let folder = TestFolder::new();
    let cache = open(&folder);
    (1..=4).for_each(|number| drop(cache.insert(&node(number), b"text").unwrap()));
    drop(cache.get(&node(1)).unwrap().unwrap());
    drop(cache);
    let cache = BundleCache::open(folder.path(), limits(2 * SMALL, 9)).unwrap();
    assert_eq!(names(folder.path()), BTreeSet::from([node(1).directory_name(), node(4).directory_name()]));
    assert_eq!(cache.usage().bytes, 2 * SMALL);
}

#[test]
fn threads_that_need_one_bundle_share_it() {
    let folder = TestFolder::new();
    let cache = open(&folder);
    let stored = sample_zip();
    let paths: BTreeSet<PathBuf> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| cache.insert(&python(1), &stored).unwrap().to_path_buf())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(paths.len(), 1);
    assert_eq!(names(folder.path()), BTreeSet::from([python(1).directory_name()]));
    assert_eq!((cache.usage().bundles, cache.usage().bundles_in_use), (1, 0));
}

#[test]
fn threads_with_more_bundles_than_fit_read_whole_ones() {
    let folder = TestFolder::new();
    let cache = BundleCache::open(folder.path(), limits(4 * SMALL, 9)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..40 {
                    let number = (thread * 7 + round * 3) % 10;
                    let text = format!("exports.a = {number}");
                    let bundle = match cache.get(&node(number)).unwrap() {
                        Some(bundle) => bundle,
                        None => cache.insert(&node(number), text.as_bytes()).unwrap(),
                    };
                    assert_eq!(fs::read_to_string(bundle.join("bundle.cjs")).unwrap(), text);
                }
            });
        }
    });
    let usage = cache.usage();
    assert!(usage.bytes <= 4 * SMALL && usage.bundles_in_use == 0 && usage.failed_removals == 0, "{usage:?}");
    assert_eq!(names(folder.path()).len(), usage.bundles);
}

/// Operation on a cache. Numbers of bundles in use are taken modulo their count.
#[derive(Clone, Debug)]
enum CacheStep {
    Get(u32),
    Insert(u32),
    Release(usize),
    Restart,
}

/// Bundles in order of their last use, with the number of their holders.
#[derive(Debug, Default)]
struct CacheModel {
    bundles: Vec<(u32, usize)>,
}

const MODEL_LIMITS: (u64, usize) = (24 * BLOCK, 4);

/// Bundles have different sizes: number 7 fits only without others, and number 8 never.
fn model_bytes(number: u32) -> u64 {
    u64::from(3 + 3 * number) * BLOCK
}

fn model_text(number: u32) -> Vec<u8> {
    vec![b' '; usize::try_from(model_bytes(number) - 3 * BLOCK).unwrap().max(1)]
}

impl CacheModel {
    fn use_one(&mut self, number: u32) -> bool {
        let Some(at) = self.bundles.iter().position(|(other, _)| *other == number) else { return false };
        let (_, holders) = self.bundles.remove(at);
        self.bundles.push((number, holders + 1));
        true
    }

    fn bytes(bundles: &[(u32, usize)]) -> u64 {
        bundles.iter().map(|(number, _)| model_bytes(*number)).sum()
    }

    fn insert(&mut self, number: u32) -> bool {
        if self.use_one(number) {
            return true;
        }
        let mut left = self.bundles.clone();
        while CacheModel::bytes(&left) + model_bytes(number) > MODEL_LIMITS.0 || left.len() == MODEL_LIMITS.1 {
            let Some(oldest) = left.iter().position(|(_, holders)| *holders == 0) else { return false };
            left.remove(oldest);
        }
        left.push((number, 1));
        self.bundles = left;
        true
    }

    fn release(&mut self, number: u32) {
        self.bundles.iter_mut().filter(|(other, _)| *other == number).for_each(|(_, holders)| *holders -= 1);
    }

    fn names(&self) -> BTreeSet<String> {
        self.bundles.iter().map(|(number, _)| node(*number).directory_name()).collect()
    }
}

fn steps() -> impl Strategy<Value = Vec<CacheStep>> {
    let step = prop_oneof![
        3 => (1..9_u32).prop_map(CacheStep::Get),
        6 => (1..9_u32).prop_map(CacheStep::Insert),
        5 => (0..8_usize).prop_map(CacheStep::Release),
        1 => Just(CacheStep::Restart),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_cache_has_what_its_model_has(steps in steps()) {
        let folder = TestFolder::new();
        let (bytes, bundles) = MODEL_LIMITS;
        let mut cache = BundleCache::open(folder.path(), limits(bytes, bundles)).unwrap();
        let mut model = CacheModel::default();
        let mut held: Vec<(u32, CachedBundle)> = Vec::new();
        for step in steps {
            match step {
                CacheStep::Get(number) => {
                    let found = cache.get(&node(number)).unwrap();
                    prop_assert_eq!(found.is_some(), model.use_one(number));
                    held.extend(found.map(|bundle| (number, bundle)));
                }
                CacheStep::Insert(number) => {
                    let result = cache.insert(&node(number), &model_text(number));
                    prop_assert_eq!(result.is_ok(), model.insert(number), "{:?}", result);
                    held.extend(result.ok().map(|bundle| (number, bundle)));
                }
                CacheStep::Release(at) if !held.is_empty() => {
                    let (number, _) = held.swap_remove(at % held.len());
                    model.release(number);
                }
                CacheStep::Release(_) => {}
                CacheStep::Restart => {
                    held.drain(..).for_each(|(number, _)| model.release(number));
                    drop(cache);
                    cache = BundleCache::open(folder.path(), limits(bytes, bundles)).unwrap();
                }
            }
            prop_assert_eq!(names(folder.path()), model.names());
            for (number, bundle) in &held {
                prop_assert_eq!(fs::metadata(bundle.join("bundle.cjs")).unwrap().len(), model_text(*number).len() as u64);
            }
            let usage = cache.usage();
            prop_assert_eq!((usage.bundles, usage.bytes), (model.bundles.len(), CacheModel::bytes(&model.bundles)));
            prop_assert!(usage.bytes <= bytes && usage.bundles <= bundles);
        }
    }
}

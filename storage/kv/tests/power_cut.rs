//! Tests of a power cut in the middle of a commit, at any block of sled's file: the commit before or the one after
//! remains, whole.
//!
//! sled cannot run on a simulated disk. Instead its file is copied after the barrier of one commit and during the work
//! of the next, and cuts are composed from the two. Each 4 KiB block written since the barrier is kept or lost, and the
//! new length with it. Detected damage also fails here, because a single node could not rebuild from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use assay_storage_kv::{Batch, Entries, Kv, SledKv};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CACHE_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: usize = 4096;

type Files = BTreeMap<String, Vec<u8>>;

fn files_of(dir: &Path) -> Files {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    paths.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}

fn random_commit(kv: &SledKv, dice: &mut ChaCha8Rng, keys: u32, changes: u32) {
    let mut batch = Batch::new();
    for _ in 0..changes {
        let mut value = vec![0; dice.random_range(0..=4096)];
        dice.fill(&mut value[..]);
        batch.put(format!("key {:05}", dice.random_range(0..keys)), value);
    }
    kv.commit(&batch).unwrap();
}

/// `old` with each block that differs from `new` replaced by it at the given odds, as long as `length`.
fn mixed(old: &[u8], new: &[u8], length: usize, mut keep: impl FnMut() -> bool) -> Vec<u8> {
    let mut image = old.to_vec();
    image.resize(length, 0);
    for start in (0..length.min(new.len())).step_by(BLOCK_BYTES) {
        let end = (start + BLOCK_BYTES).min(length).min(new.len());
        if image[start..end] != new[start..end] && keep() {
            image[start..end].copy_from_slice(&new[start..end]);
        }
    }
    image
}

fn check(keys: u32, changes: u32, warm: u32) {
    let root = tempfile::tempdir().unwrap();
    let (dir, cut) = (root.path().join("kv"), root.path().join("cut"));
    let mut dice = ChaCha8Rng::seed_from_u64(u64::from(changes));
    let kv = SledKv::open(&dir, CACHE_BYTES).unwrap();
    for _ in 0..warm {
        random_commit(&kv, &mut dice, keys, changes);
    }
    for step in 0..4 {
        let (before, content_before) = (files_of(&dir), kv.scan(b"").unwrap());
        random_commit(&kv, &mut dice, keys, changes);
        let (after, content_after) = (files_of(&dir), kv.scan(b"").unwrap());
        let (old, new) = (&before["db"], &after["db"]);
        let images = [
            ("its new length lost", mixed(old, new, old.len(), || true)),
            ("what is in its new length lost", mixed(&mixed(old, new, old.len(), || true), new, new.len(), || false)),
            ("all but its new length lost", mixed(old, new, new.len(), || false)),
            ("half lost", mixed(old, new, new.len().max(old.len()), || dice.random_range(0..2) == 0)),
            ("little lost", mixed(old, new, new.len().max(old.len()), || dice.random_range(0..20) > 0)),
        ];
        for (what, image) in images {
            let context = format!("{changes} changes, step {step}, {what}");
            let _ = fs::remove_dir_all(&cut);
            fs::create_dir_all(&cut).unwrap();
            for (name, content) in &before {
                fs::write(cut.join(name), if name == "db" { &image } else { content }).unwrap();
            }
            let found: Entries = match SledKv::open(&cut, CACHE_BYTES) {
                Ok(found) => found.scan(b"").unwrap(),
                Err(error) => panic!("{context}: {error}"),
            };
            assert!(found == content_before || found == content_after, "{context}: neither before nor after");
        }
    }
}

#[test]
fn small_commits_are_whole_or_absent() {
    check(60, 4, 20);
}

#[test]
fn commits_over_several_segments_are_whole_or_absent() {
    check(400, 200, 8);
}

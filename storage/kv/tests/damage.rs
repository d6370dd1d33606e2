//! Tests of damaged, missing and half-written files of a store: damage is found at open or harmless, and no wrong entry
//! is returned.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assay_storage_kv::{Batch, Entries, Kv, KvError, SledKv, panic_is_contained};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CACHE_BYTES: u64 = 1 << 20;

/// Single bits flipped, one store each.
const FLIPS: u32 = 200;

type FileContents = BTreeMap<PathBuf, Vec<u8>>;

/// Panics that are contained are the subject here; their traces would hide the ones that are not.
fn quiet() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic_is_contained() {
            loud(panic);
        }
    }));
}

fn files_of(dir: &Path) -> FileContents {
    let mut found = FileContents::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            found.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    found
}

fn lay_out(dir: &Path, files: &FileContents) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).unwrap();
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
    }
}

/// One commit of a few changes; `expected` follows.
fn commit(kv: &SledKv, dice: &mut ChaCha8Rng, keys: u32, changes: u32, expected: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut batch = Batch::new();
    for _ in 0..changes {
        let key = format!("key {:05}", dice.random_range(0..keys)).into_bytes();
        if dice.random_range(0..8) == 0 {
            batch.delete(key.clone());
            expected.remove(&key);
        } else {
            let mut value = vec![0; dice.random_range(0..=4096)];
            dice.fill(&mut value[..]);
            batch.put(key.clone(), value.clone());
            expected.insert(key, value);
        }
    }
    kv.commit(&batch).unwrap();
}

fn entries(expected: &BTreeMap<Vec<u8>, Vec<u8>>) -> Entries {
    expected.clone().into_iter().collect()
}

/// A small, closed store, and what is in it.
fn small_store(dir: &Path, seed: u64) -> (FileContents, Entries) {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut expected = BTreeMap::new();
    for _ in 0..2 {
        let kv = SledKv::open(dir, CACHE_BYTES).unwrap();
        for _ in 0..12 {
            commit(&kv, &mut dice, 60, 6, &mut expected);
        }
    }
    (files_of(dir), entries(&expected))
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    quiet();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("kv");
    let (files, expected) = small_store(&dir, 1);
    let mut dice = ChaCha8Rng::seed_from_u64(2);
    // Bits of what is written; sled's file is mostly zeros behind its last segment.
    let written: Vec<(&PathBuf, usize)> = files
        .iter()
        .map(|(name, content)| (name, content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)))
        .collect();
    let (mut damaged, mut harmless) = (0, 0);
    for flip in 0..FLIPS {
        // Half of the flips by size, half by file, so that the small files get their share.
        let (name, at) = if flip % 2 == 0 {
            let mut at = dice.random_range(0..written.iter().map(|(_, length)| length).sum::<usize>());
            let file = written
                .iter()
                .find(|(_, length)| {
                    at < *length || {
                        at -= length;
                        false
                    }
                })
                .unwrap();
            (file.0, at)
        } else {
            let (name, length) = written[dice.random_range(0..written.len())];
            (name, dice.random_range(0..length))
        };
        let mut flipped = files.clone();
        flipped.get_mut(name).unwrap()[at] ^= 1 << dice.random_range(0..8);
        lay_out(&dir, &flipped);
        match SledKv::open(&dir, CACHE_BYTES) {
            Err(KvError::Damaged { .. } | KvError::TooSlow { .. }) => damaged += 1,
            Err(error) => panic!("{} byte {at}: {error}", name.display()),
            Ok(kv) => {
                assert_eq!(kv.scan(b"").unwrap(), expected, "{} byte {at}", name.display());
                assert_eq!(kv.entries(), expected.len() as u64);
                harmless += 1;
            }
        }
    }
    println!("{damaged} found, {harmless} harmless");
    assert!(damaged > FLIPS / 4, "the flips met what is stored: {damaged} found, {harmless} harmless");
}

#[test]
fn a_missing_file_is_found_or_harmless() {
    quiet();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("kv");
    let (files, expected) = small_store(&dir, 3);
    for name in files.keys() {
        for emptied in [false, true] {
            let mut without = files.clone();
            without.remove(name);
            if emptied {
                without.insert(name.clone(), Vec::new());
            }
            lay_out(&dir, &without);
            match SledKv::open(&dir, CACHE_BYTES) {
                Err(KvError::Damaged { .. } | KvError::TooSlow { .. }) => {}
                Err(error) => panic!("without {}: {error}", name.display()),
                Ok(kv) => assert_eq!(kv.scan(b"").unwrap(), expected, "without {}", name.display()),
            }
        }
    }
    let mut unsealed = files;
    unsealed.remove(Path::new("kv.seal"));
    lay_out(&dir, &unsealed);
    let error = SledKv::open(&dir, CACHE_BYTES).unwrap_err();
    assert!(error.to_string().contains("but its seal is missing"), "{error}");
}

#[test]
fn a_store_set_back_by_two_commits_is_found() {
    quiet();
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("kv");
    let (files, expected) = small_store(&dir, 4);
    let mut dice = ChaCha8Rng::seed_from_u64(5);
    let mut now: BTreeMap<_, _> = expected.iter().cloned().collect();
    for ahead in 0..2 {
        lay_out(&dir, &files);
        let kv = SledKv::open(&dir, CACHE_BYTES).unwrap();
        for _ in 0..=ahead {
            commit(&kv, &mut dice, 60, 6, &mut now);
        }
        drop(kv);
        let later = files_of(&dir);
        // An old sled beside the new seal, as a copy put back by hand would leave it.
        let mut old_sled = files.clone();
        old_sled.insert("kv.seal".into(), later[Path::new("kv.seal")].clone());
        lay_out(&dir, &old_sled);
        assert!(matches!(SledKv::open(&dir, CACHE_BYTES), Err(KvError::Damaged { .. })));
        // A new sled beside the old seal: right after one commit, since a crash leaves just that.
        let mut old_seal = later;
        old_seal.insert("kv.seal".into(), files[Path::new("kv.seal")].clone());
        lay_out(&dir, &old_seal);
        assert_eq!(SledKv::open(&dir, CACHE_BYTES).is_ok(), ahead == 0);
    }
}

#[test]
fn a_store_that_was_being_made_is_made_anew() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("kv");
    drop(SledKv::open(&dir, CACHE_BYTES).unwrap());
    let files = files_of(&dir);
    for cut in 0..1_u32 << files.len() {
        let left = files.iter().enumerate().filter(|(number, _)| cut & (1 << number) != 0);
        lay_out(&dir, &left.map(|(_, (name, content))| (name.clone(), content.clone())).collect());
        match SledKv::open(&dir, CACHE_BYTES) {
            Ok(kv) => assert_eq!(kv.entries(), 0),
            Err(error) => panic!("cut {cut}: {error}"),
        }
    }
}

//! Tests of the layout on disk: generations, chunks, and detection of damage.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use assay_storage_catalog::{Catalog, CatalogConfig, CatalogError};
use assay_storage_disk::RealDisk;
use assay_storage_kv::{Batch, CommitFault, FaultyKv, Kv, MemoryKv};
use assay_storage_model::catalog::{Expect, RECORD_BODY_BYTES_MAX};

use crate::{KIND, apply, at, delete, empty, id, put};

const CACHE_BYTES: u64 = 1 << 20;

fn open(dir: &Path) -> Result<Arc<Catalog>, CatalogError> {
    let disk = Arc::new(RealDisk);
    Catalog::open(CatalogConfig { disk, dir: dir.join("catalog"), kv_cache_bytes: CACHE_BYTES })
}

fn reopen(kv: &MemoryKv) -> Result<Arc<Catalog>, CatalogError> {
    Catalog::open_on(Arc::new(kv.power_cut()))
}

/// Returns a catalog with records of one chunk, of many chunks and a deleted one, and with a membership.
fn filled() -> (Arc<MemoryKv>, Arc<Catalog>) {
    let (kv, catalog) = empty();
    apply(&catalog, put(1, Expect::Absent, &["a"], "{}"));
    apply(&catalog, put(2, Expect::Absent, &["b"], &"x".repeat(10_000)));
    apply(&catalog, put(3, Expect::Absent, &[], "{}"));
    apply(&catalog, delete(3, Expect::Any));
    catalog.apply_membership(at(4), b"voters: 1").expect("applies");
    catalog.seal().expect("seals");
    (kv, catalog)
}

#[test]
fn the_largest_record_comes_back_and_leaves_nothing_behind_when_it_shrinks() {
    let (kv, catalog) = empty();
    let before = kv.entries();
    apply(&catalog, put(1, Expect::Any, &[], &"x".repeat(RECORD_BODY_BYTES_MAX)));
    catalog.seal().expect("seals");
    assert!(kv.entries() > before + 256, "in chunks");
    let opened = reopen(&kv).expect("opens");
    assert_eq!(opened.read().get(KIND, id(1)).expect("there").body.len(), RECORD_BODY_BYTES_MAX);
    apply(&catalog, put(1, Expect::Any, &[], "{}"));
    catalog.seal().expect("seals");
    assert_eq!(kv.entries(), before + 1);
    assert_eq!(reopen(&kv).expect("opens").read().digest(), catalog.read().digest());
}

#[test]
fn a_value_that_is_lost_or_changed_or_added_or_old_is_seen_at_open() {
    let (kv, catalog) = filled();
    for (key, value) in kv.scan(b"").expect("scans") {
        let damage = |batch: &Batch| {
            let copy = kv.power_cut();
            copy.commit(batch).expect("commits");
            assert!(matches!(reopen(&copy), Err(CatalogError::Damaged { .. })), "{key:?} {batch:?}");
        };
        let mut lost = Batch::default();
        lost.delete(key.clone());
        damage(&lost);
        for place in [0, value.len() / 2, value.len() - 1] {
            let mut changed = value.clone();
            changed[place] ^= 1;
            let mut batch = Batch::default();
            batch.put(key.clone(), changed);
            damage(&batch);
        }
        let mut cut = Batch::default();
        cut.put(key.clone(), value[..value.len() - 1].to_vec());
        damage(&cut);
        let mut added = Batch::default();
        added.put([&key[..], &[0]].concat(), value.clone());
        damage(&added);
    }
    let old = kv.power_cut();
    apply(&catalog, put(1, Expect::Any, &["a"], "{\"newer\":1}"));
    catalog.seal().expect("seals");
    let mut mixed = Batch::default();
    let record = [b"r", &KIND.0.to_be_bytes()[..], id(1).as_bytes(), &[0, 0]].concat();
    mixed.put(record.clone(), old.get(&record).expect("gets").expect("there"));
    let mixture = kv.power_cut();
    mixture.commit(&mixed).expect("commits");
    assert!(matches!(reopen(&mixture), Err(CatalogError::Damaged { .. })), "one value of an older seal");
}

#[test]
fn a_seal_without_news_writes_nothing() {
    let (kv, catalog) = filled();
    let faulty = Arc::new(FaultyKv::new(Arc::new(kv.power_cut()), None));
    let opened = Catalog::open_on(Arc::clone(&faulty) as Arc<dyn Kv>).expect("opens");
    assert_eq!(opened.seal().expect("seals"), catalog.applied());
    assert_eq!(faulty.commits(), 0);
    opened.apply_blank(at(5)).expect("applies");
    opened.seal().expect("seals");
    assert_eq!(faulty.commits(), 1, "the position alone is news");
}

#[test]
fn after_a_failed_seal_nothing_more_is_sealed_or_reported_as_sealed() {
    let inner = Arc::new(MemoryKv::new());
    drop(Catalog::open_on(Arc::clone(&inner) as Arc<dyn Kv>).expect("opens"));
    let faulty: Arc<dyn Kv> = Arc::new(FaultyKv::new(inner, Some((1, CommitFault::BeforeApplying))));
    let catalog = Catalog::open_on(faulty).expect("opens");
    apply(&catalog, put(1, Expect::Absent, &[], "{}"));
    assert!(catalog.seal().is_err());
    assert!(matches!(catalog.seal(), Err(CatalogError::Failed)));
    assert_eq!(catalog.sealed().position, None);
}

#[test]
fn an_export_that_was_cut_or_changed_is_refused_and_nothing_changes() {
    let (_, catalog) = filled();
    let bytes = catalog.export().expect("exports").bytes;
    let (_, other) = empty();
    let before = other.read().digest();
    for place in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let mut changed = bytes.to_vec();
        changed[place] ^= 4;
        assert!(matches!(Catalog::check_export(&changed), Err(CatalogError::BadExport(_))), "{place}");
        assert!(matches!(other.install(&changed), Err(CatalogError::BadExport(_))), "{place}");
        assert!(matches!(other.install(&bytes[..place]), Err(CatalogError::BadExport(_))), "{place}");
    }
    assert_eq!(other.read().digest(), before);
    Catalog::check_export(&bytes).expect("whole, it is taken");
    other.install(&bytes).expect("whole, it installs");
    assert_eq!(other.read().digest(), catalog.read().digest());
}

#[test]
fn on_disk_a_seal_and_an_install_survive_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_, source) = filled();
    let catalog = open(dir.path()).expect("opens");
    apply(&catalog, put(9, Expect::Absent, &[], "{}"));
    catalog.seal().expect("seals");
    let digest = catalog.read().digest();
    drop(catalog);
    let catalog = open(dir.path()).expect("opens again");
    assert_eq!(catalog.read().digest(), digest);
    catalog.install(&source.export().expect("exports").bytes).expect("installs");
    drop(catalog);
    let catalog = open(dir.path()).expect("opens what was installed");
    assert_eq!(catalog.read().digest(), source.read().digest());
    assert_eq!(catalog.sealed(), source.sealed());
    assert!(!dir.path().join("catalog/g0001").exists() && dir.path().join("catalog/g0002").exists());
}

#[test]
fn an_install_cut_short_leaves_the_old_state_and_no_leftovers() {
    let dir = tempfile::tempdir().expect("a directory");
    let catalog = open(dir.path()).expect("opens");
    apply(&catalog, put(9, Expect::Absent, &[], "{}"));
    catalog.seal().expect("seals");
    let digest = catalog.read().digest();
    drop(catalog);
    fs::create_dir_all(dir.path().join("catalog/g0002/kv")).expect("half an install");
    fs::write(dir.path().join("catalog/g0002/kv/db"), b"half").expect("half an install");
    assert_eq!(open(dir.path()).expect("opens").read().digest(), digest);
    assert!(!dir.path().join("catalog/g0002").exists());
}

#[test]
fn a_lost_or_wrong_current_and_a_lost_generation_are_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let current = dir.path().join("catalog/CURRENT");
    let catalog = open(dir.path()).expect("opens");
    apply(&catalog, put(9, Expect::Absent, &[], "{}"));
    catalog.seal().expect("seals");
    drop(catalog);
    let text = fs::read(&current).expect("there");
    let refused = |why: &str| {
        let error = open(dir.path()).expect_err(why);
        assert!(matches!(error, CatalogError::Damaged { .. }), "{why}: {error}");
    };
    fs::write(&current, b"g0001").expect("writes");
    refused("without its checksum");
    fs::remove_file(&current).expect("removes");
    refused("gone, though the generation was in use");
    fs::write(&current, &text).expect("writes");
    open(dir.path()).expect("as before");
    fs::remove_dir_all(dir.path().join("catalog/g0001/kv")).expect("removes");
    refused("the store is gone");
    fs::remove_dir_all(dir.path().join("catalog/g0001")).expect("removes");
    refused("the generation is gone");
}

#[test]
fn a_first_start_that_was_cut_short_starts_again() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(open(dir.path()).expect("opens"));
    fs::remove_file(dir.path().join("catalog/CURRENT")).expect("as if it was not written yet");
    assert_eq!(open(dir.path()).expect("opens").read().records(), 0);
    assert!(dir.path().join("catalog/CURRENT").exists());
}

#[test]
fn on_disk_a_large_export_is_installed_in_several_commits_and_is_whole_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_, source) = empty();
    for number in 1..=20 {
        apply(&source, put(number, Expect::Absent, &[], &"x".repeat(RECORD_BODY_BYTES_MAX)));
    }
    let catalog = open(dir.path()).expect("opens");
    catalog.install(&source.export().expect("exports").bytes).expect("installs");
    drop(catalog);
    let catalog = open(dir.path()).expect("opens again");
    assert_eq!(catalog.read().digest(), source.read().digest());
}

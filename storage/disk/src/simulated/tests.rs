//! What a power cut may and may not take from a simulated disk.

use super::*;
use crate::replace_whole;

const SEEDS: std::ops::Range<u64> = 0..200;

fn disk_with_dir() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(Path::new("/data/dir")).unwrap();
    disk
}

fn content(disk: &SimulatedDisk, path: &str) -> Option<Vec<u8>> {
    crate::read_whole(disk, Path::new(path), 1 << 20).ok()
}

#[test]
fn synced_bytes_under_synced_names_survive_every_cut() {
    let disk = disk_with_dir();
    let file = disk.create(Path::new("/data/dir/a")).unwrap();
    file.append(&[7; 10_000]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/data/dir")).unwrap();
    for seed in SEEDS {
        assert_eq!(content(&disk.power_cut(seed), "/data/dir/a").unwrap(), vec![7; 10_000]);
    }
}

#[test]
fn a_synced_file_without_a_synced_name_may_be_gone_but_never_partial() {
    let disk = disk_with_dir();
    let file = disk.create(Path::new("/data/dir/a")).unwrap();
    file.append(b"whole").unwrap();
    file.sync().unwrap();
    let found: Vec<_> = SEEDS.map(|seed| content(&disk.power_cut(seed), "/data/dir/a")).collect();
    assert!(found.contains(&None));
    assert!(found.contains(&Some(b"whole".to_vec())));
    assert!(found.iter().flatten().all(|content| content == b"whole"));
}

#[test]
fn unsynced_bytes_are_kept_lost_or_torn() {
    let disk = disk_with_dir();
    let path = Path::new("/data/dir/a");
    replace_whole(&disk, path, &[1; 8192]).unwrap();
    disk.open(path).unwrap().write_at(0, &[2; 8192]).unwrap();
    let found: Vec<_> = SEEDS.map(|seed| content(&disk.power_cut(seed), "/data/dir/a").unwrap()).collect();
    assert_eq!(found[SEED_LOSES_ALL as usize], vec![1; 8192]);
    assert_eq!(found[SEED_KEEPS_ALL as usize], vec![2; 8192]);
    assert!(found.iter().any(|bytes| bytes[..4096].contains(&1) && bytes[..4096].contains(&2)), "a torn block");
    assert!(found.iter().any(|bytes| bytes[..4096] == [1; 4096] && bytes[4096..] == [2; 4096]), "reordered blocks");
}

#[test]
fn an_unsynced_end_may_be_cut_anywhere() {
    let disk = disk_with_dir();
    let path = Path::new("/data/dir/a");
    replace_whole(&disk, path, b"synced").unwrap();
    disk.open(path).unwrap().append(&[9; 20_000]).unwrap();
    let mut lengths = BTreeMap::new();
    for seed in SEEDS {
        let found = content(&disk.power_cut(seed), "/data/dir/a").unwrap();
        assert_eq!(&found[..6], b"synced");
        *lengths.entry(found.len()).or_insert(0) += 1;
    }
    assert!(lengths.len() > 10 && lengths.contains_key(&6) && lengths.contains_key(&20_006));
}

#[test]
fn a_rename_is_whole_or_has_not_happened() {
    let disk = disk_with_dir();
    let (old, new) = (Path::new("/data/dir/old"), Path::new("/data/dir/new"));
    replace_whole(&disk, old, b"old").unwrap();
    replace_whole(&disk, new, b"new").unwrap();
    disk.rename(new, old).unwrap();
    let mut seen = [false; 2];
    for seed in SEEDS {
        let cut = disk.power_cut(seed);
        match (content(&cut, "/data/dir/old"), content(&cut, "/data/dir/new")) {
            (Some(a), Some(b)) if a == b"old" && b == b"new" => seen[0] = true,
            (Some(a), None) if a == b"new" => seen[1] = true,
            other => panic!("half a rename: {other:?}"),
        }
    }
    assert_eq!(seen, [true, true]);
}

#[test]
fn replacing_a_file_leaves_the_old_or_the_new_content_at_every_cut() {
    let disk = disk_with_dir();
    let path = Path::new("/data/dir/a");
    replace_whole(&disk, path, b"first").unwrap();
    for seed in SEEDS {
        assert_eq!(content(&disk.power_cut(seed), "/data/dir/a").unwrap(), b"first");
    }
    replace_whole(&disk, path, b"second").unwrap();
    for seed in SEEDS {
        assert_eq!(content(&disk.power_cut(seed), "/data/dir/a").unwrap(), b"second");
    }
}

#[test]
fn a_removed_file_comes_back_unless_its_directory_was_synced() {
    let disk = disk_with_dir();
    let path = Path::new("/data/dir/a");
    replace_whole(&disk, path, b"here").unwrap();
    disk.remove(path).unwrap();
    assert_eq!(content(&disk.power_cut(SEED_LOSES_ALL), "/data/dir/a").unwrap(), b"here");
    disk.sync_dir(Path::new("/data/dir")).unwrap();
    assert_eq!(content(&disk.power_cut(SEED_LOSES_ALL), "/data/dir/a"), None);
}

#[test]
fn syncing_one_directory_of_a_move_makes_the_whole_move_durable() {
    let disk = disk_with_dir();
    disk.create_dir_all(Path::new("/data/other")).unwrap();
    let file = disk.create(Path::new("/data/dir/a")).unwrap();
    file.append(b"moved").unwrap();
    file.sync().unwrap();
    disk.rename(Path::new("/data/dir/a"), Path::new("/data/other/a")).unwrap();
    disk.sync_dir(Path::new("/data/other")).unwrap();
    let cut = disk.power_cut(SEED_LOSES_ALL);
    assert_eq!(content(&cut, "/data/other/a").unwrap(), b"moved");
    assert_eq!(content(&cut, "/data/dir/a"), None);
}

#[test]
fn the_same_seed_finds_the_same_disk() {
    let disk = disk_with_dir();
    for number in 0..20 {
        let file = disk.create(&PathBuf::from(format!("/data/dir/{number}"))).unwrap();
        file.append(&[number; 5000]).unwrap();
    }
    for seed in 2..10 {
        assert_eq!(disk.power_cut(seed).files(), disk.power_cut(seed).files());
    }
    assert_ne!(disk.power_cut(2).files(), disk.power_cut(3).files());
}

#[test]
fn a_flipped_bit_is_seen_now_and_after_a_cut() {
    let disk = disk_with_dir();
    let path = Path::new("/data/dir/a");
    replace_whole(&disk, path, &[0, 0]).unwrap();
    disk.flip_bit(path, 9).unwrap();
    assert_eq!(content(&disk, "/data/dir/a").unwrap(), [0, 2]);
    assert_eq!(content(&disk.power_cut(5), "/data/dir/a").unwrap(), [0, 2]);
    assert_eq!(disk.flip_bit(path, 16).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_full_disk_takes_what_fits_and_says_so() {
    let disk = SimulatedDisk::with_total(100);
    disk.create_dir_all(Path::new("/data")).unwrap();
    let file = disk.create(Path::new("/data/a")).unwrap();
    assert_eq!(file.append(&[1; 150]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 100);
    disk.remove(Path::new("/data/a")).unwrap();
    disk.create(Path::new("/data/b")).unwrap().append(&[1; 100]).unwrap();
}

//! What every [`Disk`] does alike; each implementation's tests call [`run`] in one line.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::pages::PAGE_BYTES;
use crate::{DirEntry, Disk, PageBuffer, SharedDisk, parent_of, read_whole, replace_whole, temporary_name};

/// Runs the whole suite; `make` gives a disk and an existing, empty directory on it, new each time. Panics with what differs.
pub fn run(make: impl Fn() -> (SharedDisk, PathBuf)) {
    let checks: [fn(&dyn Disk, &Path); 10] = [
        a_file_reads_back_what_was_written,
        a_bulk_file_is_a_file_like_any_other,
        reads_beyond_the_end_fail,
        a_length_cuts_and_extends,
        names_are_made_once,
        a_rename_replaces_and_moves,
        removed_files_stay_readable_through_their_handle,
        directories_are_made_with_their_parents_and_go_with_their_content,
        a_listing_is_sorted_and_complete,
        whole_files_are_replaced_and_read_within_limits,
    ];
    for check in checks {
        let (disk, dir) = make();
        check(&*disk, &dir);
    }
    let (disk, dir) = make();
    appends_from_many_threads_never_overlap(&disk, &dir);
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.kind(),
    }
}

fn a_file_reads_back_what_was_written(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("a");
    let file = disk.create(&path).unwrap();
    assert!(file.is_empty().unwrap());
    assert_eq!(file.append(b"hello ").unwrap(), 0);
    assert_eq!(file.append(b"world").unwrap(), 6);
    file.write_at(0, b"J").unwrap();
    file.write_at(13, b"!").unwrap();
    file.sync().unwrap();
    disk.sync_dir(dir).unwrap();
    let again = disk.open(&path).unwrap();
    assert_eq!(again.len().unwrap(), 14);
    let mut found = [0; 14];
    again.read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"Jello world\0\0!");
    assert_eq!(again.append(b"?").unwrap(), 14);
    assert_eq!(file.len().unwrap(), 15, "handles of one file see the same");
}

fn a_bulk_file_is_a_file_like_any_other(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("a");
    let file = disk.create_bulk(&path).unwrap();
    assert_eq!(kind(disk.create_bulk(&path)), ErrorKind::AlreadyExists);
    let mut expected = Vec::new();
    let mut buffer = PageBuffer::new(2 * PAGE_BYTES);
    // Whole pages, a short piece, and whole pages that then do not lie on pages of the file.
    for (round, bytes) in [2 * PAGE_BYTES, PAGE_BYTES, 5, PAGE_BYTES].into_iter().enumerate() {
        buffer.clear();
        assert!(buffer.fill(&vec![round as u8 + 1; bytes]).is_empty());
        assert_eq!(file.append(buffer.as_slice()).unwrap(), expected.len() as u64);
        expected.extend_from_slice(buffer.as_slice());
        let mut found = vec![0; expected.len()];
        file.read_at(0, &mut found).unwrap();
        assert_eq!(found, expected, "what was appended is read at once");
    }
    file.sync().unwrap();
    assert_eq!(file.len().unwrap(), expected.len() as u64);
    assert_eq!(read_whole(disk, &path, 1 << 20).unwrap(), expected);
}

fn reads_beyond_the_end_fail(disk: &dyn Disk, dir: &Path) {
    let file = disk.create(&dir.join("a")).unwrap();
    file.append(b"12345").unwrap();
    file.read_at(5, &mut []).unwrap();
    assert_eq!(kind(file.read_at(3, &mut [0; 3])), ErrorKind::UnexpectedEof);
    assert_eq!(kind(file.read_at(6, &mut [0; 1])), ErrorKind::UnexpectedEof);
}

fn a_length_cuts_and_extends(disk: &dyn Disk, dir: &Path) {
    let file = disk.create(&dir.join("a")).unwrap();
    file.append(&[9; 5000]).unwrap();
    file.sync().unwrap();
    file.set_len(10).unwrap();
    file.set_len(4100).unwrap();
    let mut found = vec![1; 4100];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(found[..10], [9; 10]);
    assert!(found[10..].iter().all(|byte| *byte == 0), "what was cut does not come back");
    assert_eq!(file.append(b"x").unwrap(), 4100);
}

fn names_are_made_once(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("a");
    assert!(!disk.exists(&path).unwrap());
    assert_eq!(kind(disk.open(&path)), ErrorKind::NotFound);
    assert_eq!(kind(disk.remove(&path)), ErrorKind::NotFound);
    disk.create(&path).unwrap();
    assert!(disk.exists(&path).unwrap());
    assert_eq!(kind(disk.create(&path)), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.create(&dir.join("none/a"))), ErrorKind::NotFound);
    assert!(!disk.exists(&dir.join("none/a")).unwrap());
    assert!(disk.exists(dir).unwrap());
}

fn a_rename_replaces_and_moves(disk: &dyn Disk, dir: &Path) {
    let (a, b, below) = (dir.join("a"), dir.join("b"), dir.join("below"));
    disk.create_dir_all(&below).unwrap();
    disk.create(&a).unwrap().append(b"from a").unwrap();
    disk.create(&b).unwrap().append(b"from b").unwrap();
    disk.rename(&a, &b).unwrap();
    assert!(!disk.exists(&a).unwrap());
    assert_eq!(read_whole(disk, &b, 100).unwrap(), b"from a");
    disk.rename(&b, &below.join("c")).unwrap();
    disk.rename(&below, &dir.join("moved")).unwrap();
    assert_eq!(read_whole(disk, &dir.join("moved/c"), 100).unwrap(), b"from a");
    assert_eq!(kind(disk.rename(&a, &b)), ErrorKind::NotFound);
    assert!(disk.rename(&dir.join("moved/c"), &dir.join("none/c")).is_err());
    assert!(disk.rename(&dir.join("moved"), &dir.join("moved/into")).is_err());
}

fn removed_files_stay_readable_through_their_handle(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("a");
    let file = disk.create(&path).unwrap();
    file.append(b"still here").unwrap();
    disk.remove(&path).unwrap();
    disk.sync_dir(dir).unwrap();
    let mut found = [0; 10];
    file.read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"still here");
    assert!(!disk.exists(&path).unwrap());
    disk.create(&path).unwrap();
    assert_eq!(disk.open(&path).unwrap().len().unwrap(), 0);
}

fn directories_are_made_with_their_parents_and_go_with_their_content(disk: &dyn Disk, dir: &Path) {
    let deep = dir.join("one/two/three");
    disk.create_dir_all(&deep).unwrap();
    disk.create_dir_all(&deep).unwrap();
    disk.create(&deep.join("a")).unwrap();
    assert!(disk.remove(&deep).is_err(), "a directory is no file");
    assert!(disk.create_dir_all(&deep.join("a")).is_err());
    assert!(disk.create_dir_all(&deep.join("a/b")).is_err());
    disk.remove_dir_all(&dir.join("one")).unwrap();
    disk.sync_dir(dir).unwrap();
    assert_eq!(disk.list(dir).unwrap(), vec![]);
    assert_eq!(kind(disk.remove_dir_all(&dir.join("one"))), ErrorKind::NotFound);
}

fn a_listing_is_sorted_and_complete(disk: &dyn Disk, dir: &Path) {
    disk.create(&dir.join("b")).unwrap().append(&[0; 300]).unwrap();
    disk.create_dir_all(&dir.join("c")).unwrap();
    disk.create(&dir.join("c/inside")).unwrap();
    disk.create(&dir.join("a")).unwrap();
    let entry = |name: &str, is_dir, length| DirEntry { name: name.to_owned(), is_dir, length };
    assert_eq!(disk.list(dir).unwrap(), vec![entry("a", false, 0), entry("b", false, 300), entry("c", true, 0)]);
    assert_eq!(kind(disk.list(&dir.join("none"))), ErrorKind::NotFound);
    let space = disk.space(dir).unwrap();
    assert!(space.free <= space.total && space.total > 0);
}

fn whole_files_are_replaced_and_read_within_limits(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("a");
    // As a crash before the rename leaves it.
    disk.create(&temporary_name(&path)).unwrap().append(b"half").unwrap();
    replace_whole(disk, &path, b"first").unwrap();
    replace_whole(disk, &path, b"second").unwrap();
    assert_eq!(read_whole(disk, &path, 6).unwrap(), b"second");
    assert_eq!(kind(read_whole(disk, &path, 5)), ErrorKind::InvalidData);
    assert!(!disk.exists(&temporary_name(&path)).unwrap());
    assert_eq!(parent_of(&path), dir);
}

fn appends_from_many_threads_never_overlap(disk: &SharedDisk, dir: &Path) {
    let file = disk.create(&dir.join("a")).unwrap();
    std::thread::scope(|scope| {
        for number in 1..=4_u8 {
            let file = Arc::clone(&file);
            scope.spawn(move || {
                for _ in 0..50 {
                    let at = file.append(&[number; 10]).unwrap();
                    assert_eq!(at % 10, 0);
                }
            });
        }
    });
    let mut found = vec![0; 2000];
    file.read_at(0, &mut found).unwrap();
    assert!(found.chunks(10).all(|chunk| chunk.iter().all(|byte| *byte == chunk[0])));
    assert_eq!(file.len().unwrap(), 2000);
}

//! Data directory of a node: its format file and its lock.
//!
//! ```text
//! assay 1                                       the version of what is below
//! cluster 6fd0...                               never changes
//! shards 16                                     never changes
//! founded yes                                   `no` until every group led once; nothing is acknowledged before
//! sum 89ab12cd                                  CRC32C of the lines above
//! ```
//! The format file is the first thing in a new directory and is replaced once, when the founding ended. The lock is on
//! the file `LOCK` and goes with the process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use assay_storage_disk::{Disk, read_whole, replace_whole};
use assay_storage_model::ClusterId;
use thiserror::Error;

pub const FORMAT_VERSION: u32 = 1;
const FORMAT: &str = "FORMAT";
const LOCK: &str = "LOCK";
/// File in a directory that is being restored. The format file is written before it is removed.
const UNFINISHED_RESTORE: &str = "UNFINISHED-RESTORE";
const LOST_AND_FOUND: &str = "lost+found";
/// Names that may exist before the format file does, and those that every file system makes.
const OF_A_START: [&str; 7] = [LOCK, LOST_AND_FOUND, "JOINING.tmp", "NODE", "PEERS", "REPLICAS", "tls"];
const FORMAT_BYTES_MAX: u64 = 4096;

#[derive(Debug, Error)]
pub enum HomeError {
    #[error("{} is in use by another process: stop that one, or give this one a directory of its own", .0.display())]
    Locked(PathBuf),
    #[error("{} was written by a newer version (format {found}, this program supports {FORMAT_VERSION}): upgrade this program", dir.display())]
    Newer { dir: PathBuf, found: String },
    #[error("{} belongs to cluster {found}, not to {wanted}: give this node the directory it had, or an empty one", dir.display())]
    OtherCluster { dir: PathBuf, found: ClusterId, wanted: ClusterId },
    /// A bootstrap here would create a second cluster next to the one that this node belongs to.
    #[error(
        "{dir} holds no data, and {why}, so this node belongs to an existing cluster. If it had data, mount the disk \
         that holds it or name its directory with --data-dir. If it is new, prepare the first node \
         with `assay cluster init --data-dir {dir} --peer-address HOST:PORT`. Prepare any other with `assay cluster join \
         TOKEN --data-dir {dir} --peer-address HOST:PORT`, and start it again. Nothing was created", dir = dir.display()
    )]
    Empty { dir: PathBuf, why: String },
    #[error("{} is not empty and has no file FORMAT, so it is not a data directory: choose an empty or a new one", .0.display())]
    NotOurs(PathBuf),
    #[error(
        "{} holds a restore that was interrupted: run `assay backup restore` into it again, which begins anew, or delete \
         the directory", .0.display()
    )]
    UnfinishedRestore(PathBuf),
    #[error("{}: {what}. Restore the file from a backup; `assay doctor` checks the rest", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

fn io_error(doing: String) -> impl FnOnce(io::Error) -> HomeError {
    move |source| HomeError::Io { doing, source }
}

/// Content of the format file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub cluster: ClusterId,
    pub shards: u16,
    pub founded: bool,
}

impl Format {
    fn encode(&self) -> String {
        let Format { cluster, shards, founded } = self;
        let founded = if *founded { "yes" } else { "no" };
        let body = format!("assay {FORMAT_VERSION}\ncluster {cluster}\nshards {shards}\nfounded {founded}\n");
        let sum = crc32c::crc32c(body.as_bytes());
        format!("{body}sum {sum:08x}\n")
    }

    fn decode(text: &str) -> Option<Format> {
        let at = text.rfind("sum ")?;
        let (body, sum) = text.split_at(at);
        if sum != format!("sum {:08x}\n", crc32c::crc32c(body.as_bytes())) {
            return None;
        }
        let mut lines = body.lines().skip(1);
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        Some(Format {
            cluster: value("cluster")?.parse().ok()?,
            shards: value("shards")?.parse().ok()?,
            founded: value("founded")? == "yes",
        })
    }
}

/// Held while a process works in a data directory.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock goes when the file is closed")] File);

impl Lock {
    /// Locks the directory, or reports the owner.
    pub fn take(dir: &Path) -> Result<Lock, HomeError> {
        let path = dir.join(LOCK);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(io_error(format!("opening {}", path.display())))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(HomeError::Locked(dir.to_owned())),
            Err(TryLockError::Error(source)) => {
                Err(HomeError::Io { doing: format!("locking {}", path.display()), source })
            }
        }
    }
}

/// Reads the format file; none where there is none.
pub fn read_format(disk: &dyn Disk, dir: &Path) -> Result<Option<Format>, HomeError> {
    let path = dir.join(FORMAT);
    let reading = || format!("reading {}", path.display());
    if !disk.exists(&path).map_err(io_error(reading()))? {
        return Ok(None);
    }
    let bytes = read_whole(disk, &path, FORMAT_BYTES_MAX).map_err(io_error(reading()))?;
    let damaged = |what: &str| HomeError::Damaged { path: path.clone(), what: what.to_owned() };
    let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
    let version = text.lines().next().and_then(|line| line.strip_prefix("assay "));
    match version.map(str::parse::<u32>) {
        Some(Ok(found)) if found > FORMAT_VERSION && format_of_any_version(&text) => {
            Err(HomeError::Newer { dir: dir.to_owned(), found: found.to_string() })
        }
        Some(Ok(FORMAT_VERSION)) => {
            Format::decode(&text).map(Some).ok_or_else(|| damaged("its lines do not match their checksum"))
        }
        _ => Err(damaged("its first line does not name a version")),
    }
}

/// Recognizes a format file of any version. A newer file ends in a checksum too; a mismatch is damage, whatever version
/// it claims.
fn format_of_any_version(text: &str) -> bool {
    text.rfind("sum ").is_some_and(|at| text[at..] == format!("sum {:08x}\n", crc32c::crc32c(&text.as_bytes()[..at])))
}

/// Refuses a directory that `read_or_found` would refuse or must not found in, before anything is written to it.
///
/// `expects_data` is the reason why the directory has to belong to a node already.
pub fn check_before_lock(disk: &dyn Disk, dir: &Path, expects_data: Option<&str>) -> Result<(), HomeError> {
    if read_format(disk, dir)?.is_some() {
        return Ok(());
    }
    if disk.exists(dir).map_err(io_error(format!("looking for {}", dir.display())))? {
        check_empty(disk, dir)?;
    }
    match expects_data {
        Some(why) => Err(HomeError::Empty { dir: dir.to_owned(), why: why.to_owned() }),
        None => Ok(()),
    }
}

/// Reads the format of a locked directory, or founds a new one there.
pub fn read_or_found(disk: &dyn Disk, dir: &Path, new: Format, wanted: Option<ClusterId>) -> Result<Format, HomeError> {
    match read_format(disk, dir)? {
        Some(found) => match wanted {
            Some(wanted) if wanted != found.cluster => {
                Err(HomeError::OtherCluster { dir: dir.to_owned(), found: found.cluster, wanted })
            }
            _ => Ok(found),
        },
        None => {
            check_empty(disk, dir)?;
            write_format(disk, dir, &new)?;
            Ok(new)
        }
    }
}

/// Checks that a directory without a format file holds only what a founding or a joining that was cut short left.
pub fn check_empty(disk: &dyn Disk, dir: &Path) -> Result<(), HomeError> {
    let entries = disk.list(dir).map_err(io_error(format!("listing {}", dir.display())))?;
    if entries.iter().any(|entry| entry.name == UNFINISHED_RESTORE) {
        return Err(HomeError::UnfinishedRestore(dir.to_owned()));
    }
    let ours = |name: &str| OF_A_START.contains(&name) || name == format!("{FORMAT}.tmp");
    match entries.iter().all(|entry| ours(&entry.name)) {
        true => Ok(()),
        false => Err(HomeError::NotOurs(dir.to_owned())),
    }
}

/// Marks a locked directory without a format file as one that is being restored. What an interrupted restore left there
/// is removed.
pub fn begin_restore(disk: &dyn Disk, dir: &Path) -> Result<(), HomeError> {
    match check_empty(disk, dir) {
        Err(HomeError::UnfinishedRestore(_)) => {}
        checked => {
            checked?;
            let marker = dir.join(UNFINISHED_RESTORE);
            let written = replace_whole(disk, &marker, b"`assay backup restore` has begun\n");
            return written.map_err(io_error(format!("writing {}", marker.display())));
        }
    }
    let removing = |name: &str| format!("removing {}", dir.join(name).display());
    for entry in disk.list(dir).map_err(io_error(format!("listing {}", dir.display())))? {
        if [LOCK, LOST_AND_FOUND, UNFINISHED_RESTORE].contains(&entry.name.as_str()) {
            continue;
        }
        let path = dir.join(&entry.name);
        let removed = if entry.is_dir { disk.remove_dir_all(&path) } else { disk.remove(&path) };
        removed.map_err(io_error(removing(&entry.name)))?;
    }
    disk.sync_dir(dir).map_err(io_error(removing("what an earlier restore left")))
}

/// Makes a restored directory a data directory. Everything else in it must be durable.
pub fn finish_restore(disk: &dyn Disk, dir: &Path, format: &Format) -> Result<(), HomeError> {
    write_format(disk, dir, format)?;
    let marker = dir.join(UNFINISHED_RESTORE);
    let removed = disk.remove(&marker).and_then(|()| disk.sync_dir(dir));
    removed.map_err(io_error(format!("removing {}", marker.display())))
}

pub fn write_format(disk: &dyn Disk, dir: &Path, format: &Format) -> Result<(), HomeError> {
    let path = dir.join(FORMAT);
    let written = replace_whole(disk, &path, format.encode().as_bytes());
    written.map_err(io_error(format!("writing {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format() -> Format {
        Format { cluster: ClusterId(uuid::Uuid::from_u128(7)), shards: 16, founded: true }
    }

    #[test]
    fn a_format_reads_back_and_every_changed_byte_is_seen() {
        let text = format().encode();
        assert_eq!(Format::decode(&text), Some(format()));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("ascii stays ascii");
            assert_eq!(Format::decode(&changed), None, "byte {at}");
        }
    }

    #[test]
    fn a_directory_with_other_files_is_not_taken() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("thesis.txt"), "mine").expect("writes");
        let refused = read_or_found(&assay_storage_disk::RealDisk, dir.path(), format(), None);
        assert!(matches!(refused, Err(HomeError::NotOurs(_))));
    }

    #[test]
    fn an_interrupted_restore_begins_anew_and_no_node_starts_from_it() {
        let (disk, dir) = (assay_storage_disk::RealDisk, tempfile::tempdir().expect("a directory"));
        let path = dir.path();
        begin_restore(&disk, path).expect("it is empty");
        std::fs::create_dir(path.join("log")).expect("a directory");
        std::fs::write(path.join("log/0"), "half").expect("writes");
        std::fs::write(path.join("NODE"), "half").expect("writes");
        let refused = read_or_found(&disk, path, format(), None).expect_err("nothing is founded").to_string();
        assert!(refused.contains("`assay backup restore` into it again"), "{refused}");
        begin_restore(&disk, path).expect("it begins anew");
        assert_eq!(std::fs::read_dir(path).expect("a directory").count(), 1, "only the marker stays");
        finish_restore(&disk, path, &format()).expect("finished");
        assert_eq!(read_or_found(&disk, path, format(), None).expect("a data directory"), format());
        std::fs::write(path.join(UNFINISHED_RESTORE), "a kill behind the format file").expect("writes");
        assert!(check_before_lock(&disk, path, Some("it has data")).is_ok());
    }

    #[test]
    fn a_refused_directory_is_left_as_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        let check = |dir: &Path, why| check_before_lock(&assay_storage_disk::RealDisk, dir, why);
        let missing = dir.path().join("missing");
        assert!(check(&missing, None).is_ok());
        let refused = check(&missing, Some("cluster.peer_address is set")).expect_err("no data").to_string();
        for part in ["missing holds no data", "cluster.peer_address is set", "mount the disk", "cluster join TOKEN"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert!(!missing.exists());
        // What an unmounted volume leaves behind is as empty.
        std::fs::create_dir(dir.path().join("lost+found")).expect("creates");
        assert!(matches!(check(dir.path(), Some("x")), Err(HomeError::Empty { .. })));
        std::fs::write(dir.path().join("thesis.txt"), "mine").expect("writes");
        assert!(matches!(check(dir.path(), None), Err(HomeError::NotOurs(_))));
        assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 2);
        std::fs::remove_file(dir.path().join("thesis.txt")).expect("removes");
        write_format(&assay_storage_disk::RealDisk, dir.path(), &format()).expect("writes");
        assert!(check(dir.path(), Some("x")).is_ok());
    }

    #[test]
    fn a_newer_format_says_upgrade_and_a_broken_one_says_damaged() {
        let dir = tempfile::tempdir().expect("a directory");
        let body = "assay 2\nwhatever\n";
        let newer = format!("{body}sum {:08x}\n", crc32c::crc32c(body.as_bytes()));
        std::fs::write(dir.path().join(FORMAT), newer).expect("writes");
        let read = || read_format(&assay_storage_disk::RealDisk, dir.path());
        assert!(matches!(read(), Err(HomeError::Newer { .. })));
        std::fs::write(dir.path().join(FORMAT), body).expect("writes");
        assert!(matches!(read(), Err(HomeError::Damaged { .. })));
    }

    #[test]
    fn a_directory_is_locked_for_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = Lock::take(dir.path()).expect("free");
        assert!(matches!(Lock::take(dir.path()), Err(HomeError::Locked(_))));
        drop(first);
        Lock::take(dir.path()).expect("free again");
    }
}

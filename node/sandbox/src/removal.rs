//! Removal of directories in which functions have written.
//!
//! A function may nest directories deeper than any stack, and take away its own permissions. So a directory is emptied
//! into its root instead of by recursion, and permissions are restored first.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Upper bound of the directories that wait for their removal. What is beyond is removed at the next start.
const WAITING_MAX: usize = 4_096;
/// Upper bound of the attempts to empty one directory, in which a killed process may still be writing.
const ATTEMPTS_MAX: usize = 8;
/// Permissions that the owner of a directory needs to empty it.
const OWNER_ALL: u32 = 0o700;

/// Remover of directories. It works in a thread of its own, because a function can leave millions of files.
#[derive(Clone, Debug)]
pub struct Remover {
    orders: mpsc::SyncSender<PathBuf>,
}

/// Directory of a sandbox, removed some time after it is dropped.
#[derive(Debug)]
pub struct SandboxDirectory {
    path: PathBuf,
    remover: Remover,
}

impl Remover {
    /// Starts the thread, which ends with the last clone of the remover.
    pub fn start() -> io::Result<Remover> {
        let (orders, received) = mpsc::sync_channel::<PathBuf>(WAITING_MAX);
        let run = move || {
            for path in received {
                // What is left is removed at the next start of the node.
                let _ = remove_directory(&path);
            }
        };
        thread::Builder::new().name("sandbox-remover".into()).spawn(run)?;
        Ok(Remover { orders })
    }

    /// Takes over a directory, which is removed when the returned value is dropped.
    pub fn own(&self, path: PathBuf) -> SandboxDirectory {
        SandboxDirectory { path, remover: self.clone() }
    }
}

impl SandboxDirectory {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SandboxDirectory {
    fn drop(&mut self) {
        let _ = self.remover.orders.try_send(std::mem::take(&mut self.path));
    }
}

/// Removes a directory with its contents. Links are removed and not followed. A missing one is no error.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    let root = match opened(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut emptied = Emptying { root: &root, waiting: Vec::new(), number: 0 };
    for _ in 0..ATTEMPTS_MAX {
        emptied.empty(&root)?;
        while let Some(name) = emptied.waiting.pop() {
            emptied.remove(&name)?;
        }
        match rustix::fs::rmdir(path) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return Ok(removed?),
        }
    }
    Err(io::Error::other("the directory does not stay empty"))
}

/// Directory that is being emptied.
struct Emptying<'a> {
    root: &'a OwnedFd,
    /// Names of directories in the root that are still there.
    waiting: Vec<CString>,
    /// Number of the last directory that was moved to the root.
    number: u64,
}

impl Emptying<'_> {
    /// Removes the files of a directory, and moves its directories to the root.
    fn empty(&mut self, directory: &OwnedFd) -> rustix::io::Result<()> {
        let is_root = directory.as_raw_fd() == self.root.as_raw_fd();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let is_directory = entry.file_type() == FileType::Directory
                || matches!(rustix::fs::unlinkat(directory, name, AtFlags::empty()), Err(Errno::ISDIR | Errno::PERM));
            match is_directory {
                true if is_root => self.waiting.push(name.to_owned()),
                true => self.adopt(directory, name)?,
                false => {}
            }
        }
        Ok(())
    }

    /// Moves a directory to the root under a new name.
    fn adopt(&mut self, directory: &OwnedFd, name: &std::ffi::CStr) -> rustix::io::Result<()> {
        // A directory that gets another parent is written to, so its owner needs the permission.
        drop(opened(directory, name)?);
        loop {
            self.number += 1;
            let adopted = CString::new(format!(".removed-{}", self.number)).map_err(|_| Errno::INVAL)?;
            match rustix::fs::renameat_with(directory, name, self.root, &adopted, RenameFlags::NOREPLACE) {
                // The name is taken; the next number may be free.
                Err(Errno::EXIST) => {}
                moved => {
                    moved?;
                    self.waiting.push(adopted);
                    return Ok(());
                }
            }
        }
    }

    /// Empties and removes a directory of the root.
    fn remove(&mut self, name: &CString) -> rustix::io::Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            let directory = opened(self.root, name.as_c_str())?;
            self.empty(&directory)?;
            match rustix::fs::unlinkat(self.root, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                removed => return removed,
            }
        }
        Err(Errno::NOTEMPTY)
    }
}

/// Opens a directory, and gives its owner the permissions to empty it.
fn opened(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(parent, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = rustix::fs::fstat(&place)?.st_mode & 0o7777;
    if mode & OWNER_ALL != OWNER_ALL {
        // The link of the descriptor leads to this directory, whatever its name leads to by now.
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        std::fs::set_permissions(link, PermissionsExt::from_mode(mode | OWNER_ALL)).map_err(|_| Errno::ACCESS)?;
    }
    rustix::fs::openat(&place, c".", flags | OFlags::RDONLY, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(bits: u32) -> fs::Permissions {
        PermissionsExt::from_mode(bits)
    }

    #[test]
    fn a_link_is_removed_and_its_target_stays() {
        let ground = tempfile::tempdir().expect("a directory");
        let (root, target) = (ground.path().join("root"), ground.path().join("target"));
        fs::create_dir_all(root.join("a/b")).expect("directories");
        fs::create_dir(&target).expect("a directory");
        fs::write(target.join("file"), "kept").expect("a file");
        symlink(&target, root.join("a/b/link")).expect("a link");
        symlink(&target, root.join("link")).expect("a link");
        remove_directory(&root).expect("removed");
        assert!(!root.exists() && target.join("file").exists());
        remove_directory(&root).expect("a missing one is no error");
        symlink(&target, &root).expect("a link");
        assert!(remove_directory(&root).is_err() && target.join("file").exists());
    }

    #[test]
    fn directories_without_permissions_are_removed() {
        let ground = tempfile::tempdir().expect("a directory");
        let root = ground.path().join("root");
        fs::create_dir_all(root.join("temp/a/b")).expect("directories");
        fs::write(root.join("temp/a/b/file"), "x").expect("a file");
        for (place, bits) in [("temp/a/b", 0o300), ("temp/a", 0), ("temp", 0o500)] {
            fs::set_permissions(root.join(place), mode(bits)).expect("permissions");
        }
        remove_directory(&root).expect("removed");
        assert!(!root.exists());
    }

    #[test]
    fn nesting_has_no_limit() {
        const DEPTH: usize = 5_000;
        let ground = tempfile::tempdir().expect("a directory");
        let root = ground.path().join("root");
        fs::create_dir(&root).expect("a directory");
        let mut place = opened(CWD, &root).expect("a directory");
        for _ in 0..DEPTH {
            rustix::fs::mkdirat(&place, c"d", Mode::RWXU).expect("a directory");
            place = opened(&place, c"d").expect("a directory");
        }
        drop(place);
        remove_directory(&root).expect("removed");
        assert!(!root.exists());
    }

    #[test]
    fn a_dropped_directory_is_removed() {
        let ground = tempfile::tempdir().expect("a directory");
        let root = ground.path().join("root");
        fs::create_dir_all(root.join("a")).expect("directories");
        let owned = Remover::start().expect("a thread").own(root.clone());
        assert_eq!(owned.path(), root);
        drop(owned);
        let is_gone = (0..500).any(|_| {
            thread::sleep(std::time::Duration::from_millis(10));
            !root.exists()
        });
        assert!(is_gone);
    }
}

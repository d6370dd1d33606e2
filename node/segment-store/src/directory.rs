//! Store in a directory, for a second disk or a network file system.
//!
//! An object is written beside its place under a name that no object has, synced, renamed, and its directory is synced.
//! A crash leaves at most such a temporary file, which [`SegmentStore::remove_leftovers`] removes once it is old.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use assay_storage_disk::{RealDisk, SharedDisk};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::error::StoreError;
use crate::name::StoredName;
use crate::{Chunks, SegmentStore, StoredObject};

/// Prefix of temporary files. The name of an object never begins with a dot.
const TEMPORARY: &str = ".tmp-";
/// Age of a temporary file whose writer is certainly gone.
const TEMPORARY_AGE: Duration = Duration::from_secs(24 * 3600);
/// Depth of directories, beyond which a list stops.
const DEPTH_MAX: usize = 8;

/// Store in a directory. Clones share nothing but the path.
#[derive(Clone, Debug)]
pub struct DirectoryStore {
    disk: SharedDisk,
    root: PathBuf,
}

impl DirectoryStore {
    /// Opens a directory, and creates it if its parent exists.
    ///
    /// A missing parent is an error: most likely, a file system is not mounted.
    pub fn open(root: PathBuf) -> Result<DirectoryStore, StoreError> {
        DirectoryStore::on_disk(Arc::new(RealDisk), root)
    }

    /// Opens a directory of a given disk.
    pub fn on_disk(disk: SharedDisk, root: PathBuf) -> Result<DirectoryStore, StoreError> {
        let store = DirectoryStore { disk, root };
        let parent = store.root.parent().unwrap_or(&store.root).to_owned();
        let is_there = store.disk.exists(&parent).map_err(|why| store.failed("looking for its parent", why))?;
        if !is_there {
            let why = io::Error::new(io::ErrorKind::NotFound, format!("{} does not exist", parent.display()));
            return Err(store.failed("opening the directory", why));
        }
        store.create_dir(&store.root).map_err(|why| store.failed("creating the directory", why))?;
        Ok(store)
    }

    /// Removes the temporary files of writers that are gone, and returns their number. Blocking.
    fn remove_temporaries(&self, now: SystemTime) -> Result<usize, StoreError> {
        let failed = |why| self.failed("removing leftovers", why);
        let mut removed = 0;
        let mut waiting = vec![(self.root.clone(), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            for entry in self.disk.list(&directory).map_err(failed)? {
                let path = directory.join(&entry.name);
                if entry.is_dir && depth < DEPTH_MAX {
                    waiting.push((path, depth + 1));
                } else if entry.name.starts_with(TEMPORARY) && is_old(&path, now) {
                    self.disk.remove(&path).map_err(failed)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn failed(&self, doing: impl Into<String>, source: io::Error) -> StoreError {
        StoreError::Io { location: self.location(), doing: doing.into(), source }
    }

    fn path_of(&self, name: &StoredName) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// Creates a directory and its parents below the root, each durably.
    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        if self.disk.exists(directory)? {
            return Ok(());
        }
        let parent = directory.parent().unwrap_or(directory);
        if directory != self.root {
            self.create_dir(parent)?;
        }
        self.disk.create_dir_all(directory)?;
        self.disk.sync_dir(parent)
    }

    fn list_below(
        &self,
        directory: &Path,
        prefix: &str,
        depth: usize,
        found: &mut Vec<StoredObject>,
    ) -> io::Result<()> {
        if depth > DEPTH_MAX || !self.disk.exists(directory)? {
            return Ok(());
        }
        for entry in self.disk.list(directory)? {
            let Ok(name) = StoredName::new(format!("{prefix}{}", entry.name)) else { continue };
            if entry.is_dir {
                self.list_below(&directory.join(&entry.name), &format!("{name}/"), depth + 1, found)?;
            } else {
                found.push(StoredObject { name, bytes: entry.length });
            }
        }
        Ok(())
    }

    /// Runs a blocking step outside the workers of the runtime.
    async fn blocking<T: Send + 'static>(
        &self,
        step: impl FnOnce(&DirectoryStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let done = spawn_blocking(move || step(&store)).await;
        done.unwrap_or_else(|why| Err(self.failed("waiting for a thread", io::Error::other(why))))
    }

    async fn write(&self, temporary: PathBuf, mut content: Chunks) -> Result<u64, StoreError> {
        let path = temporary.clone();
        let mut file = self
            .blocking(move |store| {
                let parent = path.parent().unwrap_or(&path);
                let created = store.create_dir(parent).and_then(|()| store.disk.create(&path));
                created.map_err(|why| store.failed(format!("creating {}", path.display()), why))
            })
            .await?;
        let mut bytes = 0;
        while let Some(chunk) = content.next().await {
            let chunk = chunk?;
            bytes += chunk.len() as u64;
            file = self
                .blocking(move |store| {
                    file.append(&chunk).map_err(|why| store.failed("writing an object", why))?;
                    Ok(file)
                })
                .await?;
        }
        self.blocking(move |store| file.sync().map_err(|why| store.failed("syncing an object", why))).await?;
        Ok(bytes)
    }
}

/// Returns whether a file was last changed long ago.
fn is_old(path: &Path, now: SystemTime) -> bool {
    let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > TEMPORARY_AGE))
}

impl SegmentStore for DirectoryStore {
    fn put<'a>(&'a self, name: &'a StoredName, content: Chunks) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let path = self.path_of(name);
            let temporary = path.with_file_name(format!("{TEMPORARY}{}", Uuid::new_v4().simple()));
            let written = self.write(temporary.clone(), content).await;
            let moved = self
                .blocking({
                    let is_written = written.is_ok();
                    move |store| {
                        if !is_written {
                            // The error of the write is the one to report.
                            let _ = store.disk.remove(&temporary);
                            return Ok(());
                        }
                        let parent = path.parent().unwrap_or(&path);
                        let moved = store.disk.rename(&temporary, &path).and_then(|()| store.disk.sync_dir(parent));
                        moved.map_err(|why| store.failed(format!("writing {}", path.display()), why))
                    }
                })
                .await;
            let bytes = written?;
            moved.map(|()| bytes)
        })
    }

    fn read<'a>(&'a self, name: &'a StoredName, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        let (name, path) = (name.clone(), self.path_of(name));
        Box::pin(self.blocking(move |store| {
            let file = match store.disk.open(&path) {
                Err(why) if why.kind() == io::ErrorKind::NotFound => {
                    return Err(StoreError::Missing { location: store.location(), name });
                }
                opened => opened.map_err(|why| store.failed(format!("opening {name}"), why))?,
            };
            let reading = |why| store.failed(format!("reading {name}"), why);
            if file.len().map_err(reading)? < range.end {
                return Err(StoreError::Short { location: store.location(), name, end: range.end });
            }
            let mut buffer = vec![0; usize::try_from(range.end - range.start).unwrap_or(usize::MAX)];
            file.read_at(range.start, &mut buffer).map_err(reading)?;
            Ok(Bytes::from(buffer))
        }))
    }

    fn length<'a>(&'a self, name: &'a StoredName) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        let path = self.path_of(name);
        Box::pin(self.blocking(move |store| match store.disk.open(&path).and_then(|file| file.len()) {
            Ok(length) => Ok(Some(length)),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(store.failed(format!("opening {}", path.display()), why)),
        }))
    }

    fn list<'a>(
        &'a self,
        directory: &'a str,
        behind: Option<&'a StoredName>,
    ) -> BoxFuture<'a, Result<Vec<StoredObject>, StoreError>> {
        let (directory, behind) = (directory.trim_end_matches('/').to_owned(), behind.cloned());
        Box::pin(self.blocking(move |store| {
            let (path, prefix) = match directory.as_str() {
                "" => (store.root.clone(), String::new()),
                inner => (store.root.join(inner), format!("{inner}/")),
            };
            let mut found = Vec::new();
            let listed = store.list_below(&path, &prefix, 0, &mut found);
            listed.map_err(|why| store.failed(format!("listing {}", path.display()), why))?;
            found.retain(|object| behind.as_ref().is_none_or(|behind| object.name > *behind));
            found.sort();
            Ok(found)
        }))
    }

    fn delete<'a>(&'a self, name: &'a StoredName) -> BoxFuture<'a, Result<(), StoreError>> {
        let path = self.path_of(name);
        Box::pin(self.blocking(move |store| match store.disk.remove(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(store.failed(format!("deleting {}", path.display()), why))
            }
            _ => Ok(()),
        }))
    }

    fn remove_leftovers(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.blocking(|store| store.remove_temporaries(SystemTime::now())))
    }

    fn location(&self) -> String {
        self.root.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::{Disk, SimulatedDisk};
    use futures::stream;

    use super::*;
    use crate::chunks_of;

    fn name(text: &str) -> StoredName {
        StoredName::new(text).expect("a name")
    }

    fn names(objects: Vec<StoredObject>) -> Vec<String> {
        objects.into_iter().map(|object| object.name.as_str().to_owned()).collect()
    }

    #[tokio::test]
    async fn objects_are_put_read_listed_and_deleted() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = DirectoryStore::open(dir.path().join("store")).expect("a store");
        for text in ["b/2", "b/10", "b/c/1", "a"] {
            let written = store.put(&name(text), chunks_of(Bytes::from(text.to_owned()))).await;
            assert_eq!(written.expect("written"), text.len() as u64);
        }
        assert_eq!(names(store.list("b", None).await.expect("a list")), ["b/10", "b/2", "b/c/1"]);
        assert_eq!(names(store.list("b", Some(&name("b/10"))).await.expect("a list")), ["b/2", "b/c/1"]);
        assert_eq!(names(store.list("nothing", None).await.expect("a list")), Vec::<String>::new());
        assert_eq!(store.read(&name("b/10"), 1..4).await.expect("read"), "/10");
        assert_eq!(store.length(&name("b/10")).await.expect("a length"), Some(4));
        assert_eq!(store.length(&name("b/11")).await.expect("no length"), None);
        assert!(store.read(&name("b/11"), 0..1).await.expect_err("missing").is_missing());
        assert!(matches!(store.read(&name("b/10"), 0..5).await, Err(StoreError::Short { end: 5, .. })));
        store.delete(&name("b/10")).await.expect("deleted");
        store.delete(&name("b/10")).await.expect("there is none");
        assert_eq!(names(store.list("", None).await.expect("a list")), ["a", "b/2", "b/c/1"]);
    }

    #[tokio::test]
    async fn content_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = DirectoryStore::open(dir.path().join("store")).expect("a store");
        let broken = [Ok(Bytes::from_static(b"half")), Err(StoreError::Content("the disk".into()))];
        let written = store.put(&name("a/b"), Box::pin(stream::iter(broken))).await;
        assert!(matches!(written, Err(StoreError::Content(_))));
        assert_eq!(std::fs::read_dir(dir.path().join("store/a")).expect("a directory").count(), 0);
    }

    #[tokio::test]
    async fn a_missing_parent_is_an_error_and_old_leftovers_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = DirectoryStore::open(dir.path().join("mount/store")).expect_err("not mounted");
        assert!(error.to_string().contains("mount does not exist"), "{error}");
        let store = DirectoryStore::open(dir.path().join("store")).expect("a store");
        std::fs::create_dir(dir.path().join("store/a")).expect("a directory");
        std::fs::write(dir.path().join("store/a/.tmp-1"), "x").expect("written");
        assert_eq!(store.remove_temporaries(SystemTime::now()).expect("looked"), 0, "its writer may live");
        let later = SystemTime::now() + 2 * TEMPORARY_AGE;
        assert_eq!(store.remove_temporaries(later).expect("looked"), 1);
        assert_eq!(names(store.list("", None).await.expect("a list")), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_was_put_survives_a_power_cut() {
        let disk = SimulatedDisk::new();
        disk.create_dir_all(Path::new("/backups")).expect("a directory");
        let shared: SharedDisk = Arc::new(disk.clone());
        let store = DirectoryStore::on_disk(shared, "/backups/store".into()).expect("a store");
        store.put(&name("a/b/c"), chunks_of(Bytes::from_static(b"content"))).await.expect("written");
        let after = disk.power_cut(assay_storage_disk::SEED_LOSES_ALL);
        let store = DirectoryStore::on_disk(Arc::new(after), "/backups/store".into()).expect("a store");
        assert_eq!(store.read(&name("a/b/c"), 0..7).await.expect("read"), "content");
    }
}

//! Directory with the state of an import: `state.json`, the hashes of known rows, and a lock.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use assay_node_importers::{ImportSource, ImportState, PlannedPage, StateHeader};

const STATE: &str = "state.json";
const STATE_NEW: &str = "state.json.new";
const KNOWN: &str = "known";
const LOCK: &str = "lock";
const HASH_BYTES: usize = size_of::<u64>();

/// Directory of one import.
#[derive(Debug)]
pub struct StateStore {
    dir: PathBuf,
    known: File,
    /// Held until the import ends.
    _lock: File,
}

impl StateStore {
    /// Opens the directory, and returns the state in it and the hashes of known rows.
    ///
    /// `header` is of this run. An earlier run has its own window, which stays.
    pub fn open(dir: &Path, header: &StateHeader) -> anyhow::Result<(StateStore, Option<ImportState>, HashSet<u64>)> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let lock = open(&dir.join(LOCK))?;
        let in_use = || format!("{}: another import uses it", dir.display());
        lock.try_lock().with_context(in_use)?;
        let known = open(&dir.join(KNOWN))?;
        let mut store = StateStore { dir: dir.to_owned(), known, _lock: lock };
        let state = match fs::read(dir.join(STATE)) {
            Ok(saved) => {
                let state = ImportState::resumed(&saved, header).map_err(anyhow::Error::from);
                Some(state.with_context(|| dir.display().to_string())?)
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
            Err(why) => return Err(why).with_context(|| format!("reading {}", dir.join(STATE).display())),
        };
        let hashes = store.hashes(state.as_ref().map_or(0, |state| state.known))?;
        Ok((store, state, hashes))
    }

    /// Reads the hashes of acknowledged pages, and removes later ones.
    fn hashes(&mut self, count: u64) -> anyhow::Result<HashSet<u64>> {
        let doing = || format!("reading {}", self.dir.join(KNOWN).display());
        let bytes = count * HASH_BYTES as u64;
        let there = self.known.metadata().with_context(doing)?.len();
        anyhow::ensure!(there >= bytes, "{}: it is truncated; delete the directory to start again", doing());
        self.known.set_len(bytes).with_context(doing)?;
        let mut content = Vec::new();
        self.known.seek(SeekFrom::Start(0)).with_context(doing)?;
        self.known.read_to_end(&mut content).with_context(doing)?;
        let (chunks, _) = content.as_chunks::<HASH_BYTES>();
        Ok(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }

    /// Saves the state behind an acknowledged page. Hashes come first, so that the state never names missing ones.
    pub fn save(&mut self, state: &ImportState, page: Option<&PlannedPage>) -> anyhow::Result<()> {
        let doing = || format!("writing {}", self.dir.display());
        if let Some(page) = page.filter(|page| !page.known.is_empty()) {
            let bytes: Vec<u8> = page.known.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            self.known.write_all(&bytes).and_then(|()| self.known.sync_data()).with_context(doing)?;
        }
        let new = self.dir.join(STATE_NEW);
        let mut file = File::create(&new).with_context(doing)?;
        file.write_all(&serde_json::to_vec(state)?).and_then(|()| file.sync_all()).with_context(doing)?;
        fs::rename(&new, self.dir.join(STATE)).with_context(doing)?;
        File::open(&self.dir).and_then(|dir| dir.sync_all()).with_context(doing)
    }

    /// Writes a file of the report, and returns its path.
    pub fn write(&self, name: &str, content: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    opened.with_context(|| format!("opening {}", path.display()))
}

/// Returns the default directory of an import, below the current one.
pub fn default_dir(source: &dyn ImportSource, hash: u64) -> PathBuf {
    PathBuf::from(format!("assay-import-{}-{hash:016x}", source.name()))
}

#[cfg(test)]
mod tests {
    use assay_node_importers::{ImportWindow, OtlpSource, SourceTask};

    use super::*;

    #[test]
    fn hashes_of_an_unacknowledged_page_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let source = OtlpSource { path: "x".into() };
        let header = StateHeader::new(&source, "http://a", "p", ImportWindow::default());
        let (mut store, none, hashes) = StateStore::open(dir.path(), &header).unwrap();
        assert!(none.is_none() && hashes.is_empty());
        assert!(StateStore::open(dir.path(), &header).unwrap_err().to_string().contains("another import uses it"));
        let mut state = ImportState::new(header.clone(), vec![SourceTask::new("files")]);
        let page = PlannedPage { known: vec![1, 2], ..PlannedPage::default() };
        state.acknowledge(&page, Vec::new()).unwrap();
        store.save(&state, Some(&page)).unwrap();
        // A page whose state is not written.
        store.known.write_all(&3_u64.to_le_bytes()).unwrap();
        drop(store);
        let (_store, resumed, hashes) = StateStore::open(dir.path(), &header).unwrap();
        assert_eq!(resumed, Some(state));
        assert_eq!(hashes, HashSet::from([1, 2]));
        drop(_store);
        let other = StateHeader { project: "q".into(), ..header };
        assert!(format!("{:#}", StateStore::open(dir.path(), &other).unwrap_err()).contains("another import"));
    }
}

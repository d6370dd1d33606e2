//! A disk in memory that knows what has been made durable and what a power cut may still take.
//!
//! `power_cut(seed)` gives the disk as a machine would find it after the cut. Per file: synced content is there; a
//! 4 KiB block written since the last sync is the old one, the new one, or torn between the two at any byte; the length
//! is the old one, the new one or between. Per directory: each change since the last `sync_dir` has happened or not,
//! where a change is kept only if every earlier one to the same names was; a rename is one change. This is more than
//! a journaling file system does to us, and that is the purpose: code that lives with this lives with those.
//!
//! Not modelled: a drive that lies about syncs, and unsynced versions between the last synced and the last written one.
//! Paths are taken from the root whether or not they start with it; ".." is refused.

mod content;
mod names;

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{DirEntry, Disk, DiskFile, Space};
use content::Content;
use names::{Change, NodeNumber};

/// Everything unsynced is lost.
pub const SEED_LOSES_ALL: u64 = 0;

/// Everything unsynced is kept.
pub const SEED_KEEPS_ALL: u64 = 1;

/// Bytes a simulated disk has room for unless told.
const TOTAL_BYTES_DEFAULT: u64 = 1 << 40;

/// Largest file, in bytes: it is held in memory twice.
const FILE_BYTES_MAX: u64 = 1 << 32;

const ROOT: NodeNumber = 0;

/// A directory tree in memory; clones share it.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// Never shrinks: open handles and names that a power cut may bring back still need their node.
    nodes: BTreeMap<NodeNumber, Node>,
    /// Changes to names that no `sync_dir` has covered yet, in the order they were made.
    pending: Vec<Change>,
    total: u64,
}

#[derive(Debug)]
enum Node {
    File(Content),
    Dir { current: Names, durable: Names },
}

type Names = BTreeMap<String, NodeNumber>;

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    node: NodeNumber,
    path: PathBuf,
}

/// The dice of a power cut: splitmix64, so that a seed means the same for ever.
#[derive(Debug)]
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice { seed, state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..choices`; the first for the seed that loses all and the last for the one that keeps all.
    fn choose(&mut self, choices: u64) -> u64 {
        match self.seed {
            SEED_LOSES_ALL => 0,
            SEED_KEEPS_ALL => choices - 1,
            _ => self.next() % choices,
        }
    }
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedDisk {
    pub fn new() -> SimulatedDisk {
        Self::with_total(TOTAL_BYTES_DEFAULT)
    }

    /// A disk that is full when its files hold `total` bytes.
    pub fn with_total(total: u64) -> SimulatedDisk {
        let root = Node::Dir { current: Names::new(), durable: Names::new() };
        let state = State { nodes: BTreeMap::from([(ROOT, root)]), pending: Vec::new(), total };
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// The disk as it is found after a power cut now. This one goes on as if nothing had happened.
    pub fn power_cut(&self, seed: u64) -> SimulatedDisk {
        let state = self.state.lock();
        let mut dice = Dice::new(seed);
        let mut nodes = BTreeMap::new();
        for (number, node) in &state.nodes {
            let node = match node {
                Node::File(content) => Node::File(content.after_power_cut(&mut dice)),
                Node::Dir { durable, .. } => Node::Dir { current: Names::new(), durable: durable.clone() },
            };
            nodes.insert(*number, node);
        }
        let mut found = State { nodes, pending: Vec::new(), total: state.total };
        for change in names::kept_by_power_cut(&state.pending, &mut dice) {
            found.apply_to_durable(change);
        }
        for node in found.nodes.values_mut() {
            if let Node::Dir { current, durable } = node {
                current.clone_from(durable);
            }
        }
        SimulatedDisk { state: Arc::new(Mutex::new(found)) }
    }

    /// Turns one bit of a file around, as a medium that rots would: in what is durable too.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let node = state.find(path)?;
        if state.content_mut(node, path)?.flip(bit) {
            return Ok(());
        }
        Err(refused(path, io::ErrorKind::InvalidInput, "has no such bit"))
    }

    /// All files with their lengths, sorted by path.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        let mut found = Vec::new();
        let mut dirs = vec![(PathBuf::from("/"), ROOT)];
        while let Some((dir, number)) = dirs.pop() {
            let Some(Node::Dir { current, .. }) = state.nodes.get(&number) else { continue };
            for (name, number) in current {
                match &state.nodes[number] {
                    Node::Dir { .. } => dirs.push((dir.join(name), *number)),
                    Node::File(content) => found.push((dir.join(name), content.len())),
                }
            }
        }
        found.sort();
        found
    }

    fn handle(&self, node: NodeNumber, path: &Path) -> Arc<dyn DiskFile> {
        Arc::new(SimulatedFile { state: Arc::clone(&self.state), node, path: path.to_path_buf() })
    }
}

fn refused(path: &Path, kind: io::ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, format!("{} {why} (simulated disk)", path.display()))
}

/// The names on the way from the root to `path`.
fn steps(path: &Path) -> io::Result<Vec<String>> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => steps.push(name.to_string_lossy().into_owned()),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(refused(path, io::ErrorKind::InvalidInput, "is not a plain path"));
            }
        }
    }
    Ok(steps)
}

impl State {
    fn find_steps(&self, steps: &[String], path: &Path) -> io::Result<NodeNumber> {
        let mut number = ROOT;
        for step in steps {
            let Some(Node::Dir { current, .. }) = self.nodes.get(&number) else {
                return Err(refused(path, io::ErrorKind::NotADirectory, "goes through a file"));
            };
            number = *current.get(step).ok_or_else(|| refused(path, io::ErrorKind::NotFound, "does not exist"))?;
        }
        Ok(number)
    }

    fn find(&self, path: &Path) -> io::Result<NodeNumber> {
        self.find_steps(&steps(path)?, path)
    }

    /// The directory that holds `path`'s name, and the name.
    fn place(&self, path: &Path) -> io::Result<(NodeNumber, String)> {
        let mut steps = steps(path)?;
        let name = steps.pop().ok_or_else(|| refused(path, io::ErrorKind::InvalidInput, "is the root"))?;
        let dir = self.find_steps(&steps, path)?;
        self.names(dir, path)?;
        Ok((dir, name))
    }

    fn names(&self, dir: NodeNumber, path: &Path) -> io::Result<&Names> {
        match self.nodes.get(&dir) {
            Some(Node::Dir { current, .. }) => Ok(current),
            _ => Err(refused(path, io::ErrorKind::NotADirectory, "is not a directory")),
        }
    }

    fn content(&self, node: NodeNumber, path: &Path) -> io::Result<&Content> {
        match self.nodes.get(&node) {
            Some(Node::File(content)) => Ok(content),
            _ => Err(refused(path, io::ErrorKind::IsADirectory, "is not a file")),
        }
    }

    fn content_mut(&mut self, node: NodeNumber, path: &Path) -> io::Result<&mut Content> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(content)) => Ok(content),
            _ => Err(refused(path, io::ErrorKind::IsADirectory, "is not a file")),
        }
    }

    /// A change is seen at once and durable later.
    fn make(&mut self, change: Change) {
        change.apply(|dir, name, node| self.set_name(dir, name, node, false));
        self.pending.push(change);
    }

    fn apply_to_durable(&mut self, change: &Change) {
        change.apply(|dir, name, node| self.set_name(dir, name, node, true));
    }

    fn set_name(&mut self, dir: NodeNumber, name: &str, node: Option<NodeNumber>, in_durable: bool) {
        let Some(Node::Dir { current, durable }) = self.nodes.get_mut(&dir) else { return };
        let names = if in_durable { durable } else { current };
        match node {
            Some(node) => names.insert(name.to_owned(), node),
            None => names.remove(name),
        };
    }

    fn sync_names(&mut self, dir: NodeNumber) {
        let (durable, rest) = names::split_for_sync(std::mem::take(&mut self.pending), dir);
        self.pending = rest;
        for change in &durable {
            self.apply_to_durable(change);
        }
    }

    fn add(&mut self, node: Node) -> NodeNumber {
        let number = self.nodes.len() as NodeNumber;
        self.nodes.insert(number, node);
        number
    }

    fn remove_tree(&mut self, dir: NodeNumber, name: &str, node: NodeNumber) {
        let below: Vec<(String, NodeNumber)> = match self.nodes.get(&node) {
            Some(Node::Dir { current, .. }) => current.iter().map(|(name, node)| (name.clone(), *node)).collect(),
            _ => Vec::new(),
        };
        for (below_name, below_node) in below {
            self.remove_tree(node, &below_name, below_node);
        }
        self.make(Change::Unlink { dir, name: name.to_owned() });
    }

    fn used_below(&self, node: NodeNumber) -> u64 {
        match &self.nodes[&node] {
            Node::File(content) => content.len(),
            Node::Dir { current, .. } => current.values().map(|node| self.used_below(*node)).sum(),
        }
    }

    fn free(&self) -> u64 {
        self.total.saturating_sub(self.used_below(ROOT))
    }

    /// Writes what there is room for, as a real disk does, and fails if that is not all.
    fn write(&mut self, node: NodeNumber, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let length = self.content(node, path)?.len();
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or_else(|| refused(path, io::ErrorKind::FileTooLarge, "would be too large to simulate"))?;
        let growth = end.saturating_sub(length);
        let lacking = if self.total == TOTAL_BYTES_DEFAULT { 0 } else { growth.saturating_sub(self.free()) };
        let fitting = bytes.len().saturating_sub(usize::try_from(lacking).unwrap_or(usize::MAX));
        self.content_mut(node, path)?.write(offset, &bytes[..fitting]);
        if lacking > 0 {
            return Err(refused(path, io::ErrorKind::StorageFull, "does not fit"));
        }
        Ok(())
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        let (dir, name) = state.place(path)?;
        if state.names(dir, path)?.contains_key(&name) {
            return Err(refused(path, io::ErrorKind::AlreadyExists, "exists"));
        }
        let node = state.add(Node::File(Content::default()));
        state.make(Change::Link { dir, name, node });
        drop(state);
        Ok(self.handle(node, path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.state.lock();
        let node = state.find(path)?;
        state.content(node, path)?;
        drop(state);
        Ok(self.handle(node, path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.state.lock().find(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let node = state.find(from)?;
        let (from_dir, from_name) = state.place(from)?;
        let (to_dir, to_name) = state.place(to)?;
        if steps(to)?.starts_with(&steps(from)?) && steps(to)?.len() > steps(from)?.len() {
            return Err(refused(to, io::ErrorKind::InvalidInput, "is below what would get its name"));
        }
        let taken = state.names(to_dir, to)?.get(&to_name).copied();
        if taken == Some(node) {
            return Ok(());
        }
        let is_dir = matches!(state.nodes[&node], Node::Dir { .. });
        match taken.map(|taken| &state.nodes[&taken]) {
            Some(Node::Dir { .. }) if !is_dir => {
                return Err(refused(to, io::ErrorKind::IsADirectory, "is a directory"));
            }
            Some(Node::Dir { current, .. }) if !current.is_empty() => {
                return Err(refused(to, io::ErrorKind::DirectoryNotEmpty, "is not empty"));
            }
            Some(Node::File(_)) if is_dir => {
                return Err(refused(to, io::ErrorKind::NotADirectory, "is a file"));
            }
            _ => {}
        }
        state.make(Change::Rename { from_dir, from_name, to_dir, to_name, node });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let node = state.find(path)?;
        state.content(node, path)?;
        let (dir, name) = state.place(path)?;
        state.make(Change::Unlink { dir, name });
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let node = state.find(path)?;
        state.names(node, path)?;
        let (dir, name) = state.place(path)?;
        state.remove_tree(dir, &name, node);
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let mut parent = ROOT;
        for name in steps(path)? {
            let node = match state.names(parent, path)?.get(&name) {
                Some(node) => *node,
                None => {
                    let node = state.add(Node::Dir { current: Names::new(), durable: Names::new() });
                    state.make(Change::Link { dir: parent, name, node });
                    node
                }
            };
            state.sync_names(parent);
            parent = node;
        }
        state.names(parent, path)?;
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.state.lock();
        let names = state.names(state.find(dir)?, dir)?;
        let entry = |(name, node): (&String, &NodeNumber)| match &state.nodes[node] {
            Node::File(content) => DirEntry { name: name.clone(), is_dir: false, length: content.len() },
            Node::Dir { .. } => DirEntry { name: name.clone(), is_dir: true, length: 0 },
        };
        Ok(names.iter().map(entry).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let node = state.find(dir)?;
        state.names(node, dir)?;
        state.sync_names(node);
        Ok(())
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let state = self.state.lock();
        state.find(path)?;
        Ok(Space { free: state.free(), total: state.total })
    }
}

impl DiskFile for SimulatedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut state = self.state.lock();
        let end = state.content(self.node, &self.path)?.len();
        state.write(self.node, &self.path, end, bytes)?;
        Ok(end)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.state.lock().write(self.node, &self.path, offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        if state.content(self.node, &self.path)?.read(offset, buffer) {
            return Ok(());
        }
        Err(refused(&self.path, io::ErrorKind::UnexpectedEof, "ends before what was asked for"))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        if length > FILE_BYTES_MAX {
            return Err(refused(&self.path, io::ErrorKind::FileTooLarge, "would be too large to simulate"));
        }
        self.state.lock().content_mut(self.node, &self.path)?.set_len(length);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.state.lock().content_mut(self.node, &self.path)?.sync();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().content(self.node, &self.path)?.len())
    }
}

#[cfg(test)]
mod tests;

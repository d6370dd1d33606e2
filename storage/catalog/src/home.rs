//! Directory of the catalog's store. `CURRENT` names the generation in use, and others are leftovers.
//!
//! The first start fills `g0001` with an empty catalog and then writes CURRENT. So without CURRENT there is nothing, or
//! one generation that never sealed anything. An install fills the next generation and takes effect when CURRENT is
//! replaced. The next start removes generations that CURRENT does not name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_storage_disk::{SharedDisk, read_whole, replace_whole};
use assay_storage_kv::{Kv, SledKv};

use crate::error::CatalogError;
use crate::hash::hash64;

const CURRENT: &str = "CURRENT";
const CURRENT_BYTES_MAX: u64 = 128;
const FIRST: u32 = 1;

#[derive(Debug)]
pub struct Home {
    disk: SharedDisk,
    dir: PathBuf,
    kv_cache_bytes: u64,
}

impl Home {
    pub fn new(disk: SharedDisk, dir: PathBuf, kv_cache_bytes: u64) -> Home {
        Home { disk, dir, kv_cache_bytes }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the generation that CURRENT names, or `None` at the first start.
    pub fn current(&self) -> Result<Option<u32>, CatalogError> {
        let path = self.dir.join(CURRENT);
        self.disk.create_dir_all(&self.dir).map_err(|source| io_error(&self.dir, source))?;
        let bytes = match read_whole(&*self.disk, &path, CURRENT_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error(&path, source)),
        };
        match parse_current(&bytes) {
            Some(generation) if self.generations()?.contains(&generation) => Ok(Some(generation)),
            Some(generation) => Err(damaged(&path, format!("it names {}, which is not there", name_of(generation)))),
            None => Err(damaged(&path, "it does not match its checksum".into())),
        }
    }

    /// Returns the first generation for a catalog without CURRENT. Fails if another generation exists.
    pub fn first(&self) -> Result<u32, CatalogError> {
        match self.generations()?.iter().find(|generation| **generation != FIRST) {
            Some(other) => {
                Err(damaged(&self.dir.join(CURRENT), format!("it is missing, but {} is there", name_of(*other))))
            }
            None => Ok(FIRST),
        }
    }

    pub fn missing_but_used(&self) -> CatalogError {
        damaged(&self.dir.join(CURRENT), format!("it is missing, but {} was in use", name_of(FIRST)))
    }

    pub fn open_kv(&self, generation: u32) -> Result<Arc<dyn Kv>, CatalogError> {
        let dir = self.dir.join(name_of(generation)).join("kv");
        self.disk.create_dir_all(&dir).map_err(|source| io_error(&dir, source))?;
        Ok(Arc::new(SledKv::open(&dir, self.kv_cache_bytes)?))
    }

    /// Makes a generation the current one.
    pub fn switch(&self, generation: u32) -> Result<(), CatalogError> {
        let path = self.dir.join(CURRENT);
        replace_whole(&*self.disk, &path, current_text(generation).as_bytes()).map_err(|source| io_error(&path, source))
    }

    /// Removes all other generations.
    pub fn keep_only(&self, generation: u32) -> Result<(), CatalogError> {
        for other in self.generations()?.into_iter().filter(|other| *other != generation) {
            self.remove(other)?;
        }
        Ok(())
    }

    /// Returns a free generation to be filled.
    pub fn next(&self, generation: u32) -> Result<u32, CatalogError> {
        let next = generation + 1;
        if self.generations()?.contains(&next) {
            self.remove(next)?;
        }
        Ok(next)
    }

    pub fn damaged(&self, generation: u32, what: String) -> CatalogError {
        damaged(&self.dir.join(name_of(generation)), what)
    }

    fn remove(&self, generation: u32) -> Result<(), CatalogError> {
        let path = self.dir.join(name_of(generation));
        let removed = self.disk.remove_dir_all(&path).and_then(|()| self.disk.sync_dir(&self.dir));
        removed.map_err(|source| io_error(&path, source))
    }

    fn generations(&self) -> Result<Vec<u32>, CatalogError> {
        let entries = self.disk.list(&self.dir).map_err(|source| io_error(&self.dir, source))?;
        Ok(entries.iter().filter(|entry| entry.is_dir).filter_map(|entry| generation_of(&entry.name)).collect())
    }
}

fn name_of(generation: u32) -> String {
    format!("g{generation:04}")
}

fn generation_of(name: &str) -> Option<u32> {
    let generation = name.strip_prefix('g')?.parse().ok()?;
    (name_of(generation) == name).then_some(generation)
}

fn current_text(generation: u32) -> String {
    let name = name_of(generation);
    format!("{name} {:016x}\n", hash64(name.as_bytes()))
}

fn parse_current(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    let generation = generation_of(text.split(' ').next()?)?;
    (current_text(generation) == text).then_some(generation)
}

fn damaged(path: &Path, what: String) -> CatalogError {
    CatalogError::Damaged { path: path.to_owned(), what }
}

fn io_error(path: &Path, source: io::Error) -> CatalogError {
    CatalogError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_reads_back_and_any_flipped_bit_is_seen() {
        let text = current_text(12);
        assert_eq!(text, "g0012 ca839323a580ad75\n", "golden");
        assert_eq!(parse_current(text.as_bytes()), Some(12));
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse_current(&bytes), None, "bit {bit}");
        }
        assert_eq!(parse_current(b""), None);
    }
}

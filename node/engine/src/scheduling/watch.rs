//! Watch over a query, which stops it if its caller is gone, its time is over, or it exceeds its memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use assay_node_expressions::{Bounds, Env, Stop};
use assay_node_running_queries::QueryProgress;

use crate::EngineError;
use crate::scheduling::workers::let_others;

/// Memory that all queries of a node share. Clones share one account.
#[derive(Clone, Debug)]
pub struct Memory(Arc<MemoryAccount>);

#[derive(Debug)]
struct MemoryAccount {
    taken: AtomicUsize,
    max: usize,
}

impl Memory {
    pub fn new(max: usize) -> Memory {
        Memory(Arc::new(MemoryAccount { taken: AtomicUsize::new(0), max }))
    }

    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }
}

/// Watch over one query, which all clones share.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    stopped: AtomicBool,
    until: Instant,
    bytes: AtomicUsize,
    bytes_max: usize,
    memory: Memory,
    progress: Arc<QueryProgress>,
}

/// Memory of a part of a query, released on drop.
#[derive(Debug)]
pub struct MemoryHold {
    watch: Watch,
    bytes: usize,
}

impl Watch {
    pub fn new(until: Instant, bytes_max: usize, memory: &Memory) -> Watch {
        Watch::counting(until, bytes_max, memory, Arc::default())
    }

    /// Creates a watch that notes the rows and the memory of the query in its progress.
    pub fn counting(until: Instant, bytes_max: usize, memory: &Memory, progress: Arc<QueryProgress>) -> Watch {
        let (stopped, bytes, memory) = (AtomicBool::new(false), AtomicUsize::new(0), memory.clone());
        Watch(Arc::new(Watched { stopped, until, bytes, bytes_max, memory, progress }))
    }

    pub(crate) fn scanned(&self, rows: usize) {
        self.0.progress.scanned(rows as u64);
    }

    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns an error if the query has to stop. It is called between short pieces of work, and may give the turn to
    /// other threads.
    pub fn check(&self) -> Result<(), EngineError> {
        let now = Instant::now();
        self.goes_on_at(now)?;
        let_others(now, &|| self.goes_on())
    }

    /// Returns an error if the query has to stop, without giving up the turn.
    pub(crate) fn goes_on(&self) -> Result<(), EngineError> {
        self.goes_on_at(Instant::now())
    }

    fn goes_on_at(&self, now: Instant) -> Result<(), EngineError> {
        if self.0.stopped.load(Ordering::Relaxed) {
            return Err(EngineError::Stopped);
        }
        if now >= self.0.until {
            return Err(EngineError::TooLate);
        }
        Ok(())
    }

    /// Returns the environment of the query's expressions, which applies the query's bounds.
    pub fn env(&self, tz_offset: i32) -> Env {
        Env { tz_offset, bounds: Some(Arc::new(self.clone())) }
    }

    /// Takes bytes, or none if there are too few, so that a failing query takes nothing from others.
    fn take(&self, more: usize) -> Result<(), EngineError> {
        let Watched { bytes, bytes_max, memory, progress, .. } = &*self.0;
        let taken = |of: &AtomicUsize, most: usize| {
            let grown = |now: usize| now.checked_add(more).filter(|grown| *grown <= most);
            of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
        };
        if !taken(bytes, *bytes_max) {
            return Err(EngineError::Memory(*bytes_max));
        }
        if !taken(&memory.0.taken, memory.0.max) {
            bytes.fetch_sub(more, Ordering::Relaxed);
            return Err(EngineError::Crowded(memory.0.max));
        }
        progress.holds(bytes.load(Ordering::Relaxed) as u64);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.0.memory.0.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub fn hold(&self) -> MemoryHold {
        MemoryHold { watch: self.clone(), bytes: 0 }
    }
}

impl MemoryHold {
    /// Sets the number of bytes held, more or fewer than before.
    pub fn now(&mut self, bytes: usize) -> Result<(), EngineError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.watch.take(more)?,
            None => self.watch.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Increases the number of bytes held.
    pub fn more(&mut self, bytes: usize) -> Result<(), EngineError> {
        self.now(self.bytes.saturating_add(bytes))
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        self.watch.give_back(self.bytes);
    }
}

impl Bounds for Watch {
    fn check(&self) -> Result<(), Stop> {
        Ok(Watch::check(self)?)
    }

    fn take(&self, bytes: usize) -> Result<(), Stop> {
        Ok(Watch::take(self, bytes)?)
    }

    fn give_back(&self, bytes: usize) {
        Watch::give_back(self, bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn memory_is_given_back_and_never_more_than_all() {
        let memory = Memory::new(150);
        let watch = Watch::new(Instant::now() + Duration::from_secs(60), 100, &memory);
        let (mut one, mut other) = (watch.hold(), watch.hold());
        assert!(one.now(60).is_ok() && other.now(40).is_ok());
        assert!(matches!(other.now(41), Err(EngineError::Memory(100))));
        assert!(matches!(other.now(usize::MAX), Err(EngineError::Memory(100))));
        assert_eq!(memory.taken(), 100, "what was wanted in vain is not taken");
        drop(other);
        assert!(one.now(100).is_ok());
        let another = Watch::new(Instant::now() + Duration::from_secs(60), 100, &memory);
        let mut third = another.hold();
        assert!(third.now(50).is_ok());
        assert!(matches!(third.now(51), Err(EngineError::Crowded(150))));
        drop(third);
        assert!(one.now(0).is_ok());
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn the_highest_memory_and_all_scanned_rows_are_in_the_progress() {
        let (memory, progress) = (Memory::new(150), Arc::new(QueryProgress::default()));
        let later = Instant::now() + Duration::from_secs(60);
        for bytes in [70, 40] {
            let watch = Watch::counting(later, 100, &memory, Arc::clone(&progress));
            assert!(watch.hold().now(bytes).is_ok());
            assert!(watch.hold().now(101).is_err());
            watch.scanned(5);
        }
        assert_eq!((progress.usage().rows_scanned, progress.usage().memory_bytes), (10, 70));
    }

    #[test]
    fn a_query_ends_when_it_is_stopped_or_late() {
        let memory = Memory::new(1);
        let watch = Watch::new(Instant::now() + Duration::from_secs(60), 1, &memory);
        assert!(watch.check().is_ok());
        watch.clone().stop();
        assert!(matches!(watch.check(), Err(EngineError::Stopped)));
        assert!(matches!(Watch::new(Instant::now(), 1, &memory).check(), Err(EngineError::TooLate)));
    }
}

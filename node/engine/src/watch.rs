//! What stops a query: whoever asked is gone, its time is over, or it takes more memory than it may.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crate::EngineError;

/// Cheap to clone: all clones watch one query.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    stopped: AtomicBool,
    until: Instant,
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// Memory that a part of a query takes, given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    watch: Watch,
    bytes: usize,
}

impl Watch {
    pub fn new(until: Instant, bytes_max: usize) -> Watch {
        Watch(Arc::new(Watched { stopped: AtomicBool::new(false), until, bytes: AtomicUsize::new(0), bytes_max }))
    }

    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    pub fn until(&self) -> Instant {
        self.0.until
    }

    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// Asked between pieces of work, none of which takes long.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.0.stopped.load(Ordering::Relaxed) {
            return Err(EngineError::Stopped);
        }
        if Instant::now() >= self.0.until {
            return Err(EngineError::TooLate);
        }
        Ok(())
    }

    pub fn hold(&self) -> Held {
        Held { watch: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// From now on it takes so many bytes, more or fewer than before.
    pub fn now(&mut self, bytes: usize) -> Result<(), EngineError> {
        let all = &self.watch.0.bytes;
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            all.fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let more = bytes - before;
        let max = self.watch.0.bytes_max;
        if all.fetch_add(more, Ordering::Relaxed) + more > max { Err(EngineError::Memory(max)) } else { Ok(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.watch.0.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn memory_is_given_back_and_never_more_than_all() {
        let watch = Watch::new(Instant::now() + Duration::from_secs(60), 100);
        let (mut one, mut other) = (watch.hold(), watch.hold());
        assert!(one.now(60).is_ok() && other.now(40).is_ok());
        assert!(matches!(other.now(41), Err(EngineError::Memory(100))));
        drop(other);
        assert!(one.now(100).is_ok());
        assert!(one.now(0).is_ok());
    }

    #[test]
    fn a_query_ends_when_it_is_stopped_or_late() {
        let watch = Watch::new(Instant::now() + Duration::from_secs(60), 1);
        assert!(watch.check().is_ok());
        watch.clone().stop();
        assert!(matches!(watch.check(), Err(EngineError::Stopped)));
        assert!(matches!(Watch::new(Instant::now(), 1).check(), Err(EngineError::TooLate)));
    }
}

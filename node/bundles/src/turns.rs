//! Bound of the bundles that are unpacked at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Upper bound of the bundles that are unpacked at a time. It bounds the disk space beyond the limit of the cache.
pub const UNPACKING_MAX: usize = 2;

/// Turns to unpack a bundle. A thread without one waits; callers bound the number of threads.
#[derive(Debug)]
pub(crate) struct UnpackTurns {
    free: Mutex<usize>,
    returned: Condvar,
}

/// Turn of one thread, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct UnpackTurn<'t> {
    turns: &'t UnpackTurns,
}

impl UnpackTurns {
    pub fn new() -> UnpackTurns {
        UnpackTurns { free: Mutex::new(UNPACKING_MAX), returned: Condvar::new() }
    }

    pub fn wait(&self) -> UnpackTurn<'_> {
        // A panic of another thread leaves a correct count, because it changes only in one step.
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.returned.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        UnpackTurn { turns: self }
    }
}

impl Drop for UnpackTurn<'_> {
    fn drop(&mut self) {
        *self.turns.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.turns.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn at_most_the_limit_has_a_turn_and_each_thread_gets_one() {
        let turns = UnpackTurns::new();
        let (active, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let _turn = turns.wait();
                    most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    active.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!((most.into_inner(), done.into_inner()), (UNPACKING_MAX, 16));
    }
}

//! How many bytes of request bodies this node holds at once, and how much room the parsed ones take. The first being full
//! is an answer, the second is waited for; what was taken comes back when its request ends, however it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub struct Budget {
    max: usize,
    taken: AtomicUsize,
}

/// Bytes taken from the budget; dropping it gives them back.
#[derive(Debug)]
pub struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub fn new(max: usize) -> Arc<Budget> {
        Arc::new(Budget { max, taken: AtomicUsize::new(0) })
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub fn hold(self: &Arc<Budget>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }
}

impl Held {
    /// Takes more; false if that much is not there, and then nothing was taken.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let max = self.budget.max;
        let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= max);
        let taken = self.budget.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if taken.is_ok() {
            self.bytes += bytes;
        }
        taken.is_ok()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Room is given in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 10;

/// Room for parsed bodies. Whoever asks first is served first, so that a large one is not passed by for ever.
#[derive(Clone, Debug)]
pub struct Turns {
    pieces: u32,
    free: Arc<Semaphore>,
}

/// Room that a parsed body has; given back when it is dropped.
#[derive(Debug)]
pub struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub fn new(bytes: usize) -> Turns {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX).min(Semaphore::MAX_PERMITS as u32);
        Turns { pieces, free: Arc::new(Semaphore::new(pieces as usize)) }
    }

    /// One that would take more than there is takes all of it.
    pub async fn wait(&self, bytes: usize) -> Turn {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX).min(self.pieces);
        // It fails only once it is closed, which nobody does.
        Turn { _permit: Arc::clone(&self.free).acquire_many_owned(pieces).await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn turns_are_given_in_order_and_a_large_one_takes_all_there_is() {
        let turns = Turns::new(10 * PIECE_BYTES);
        let first = turns.wait(6 * PIECE_BYTES).await;
        let (large, small) = (turns.wait(usize::MAX), turns.wait(1));
        let (mut large, mut small) = (std::pin::pin!(large), std::pin::pin!(small));
        assert!(large.as_mut().now_or_never().is_none() && small.as_mut().now_or_never().is_none(), "in their order");
        drop(first);
        let large = large.as_mut().now_or_never().expect("all is free");
        assert!(small.as_mut().now_or_never().is_none());
        drop(large);
        assert!(small.as_mut().now_or_never().is_some());
    }

    #[test]
    fn what_is_taken_comes_back_and_no_more_is_given_than_there_is() {
        let budget = Budget::new(10);
        let (mut first, mut second) = (budget.hold(), budget.hold());
        assert!(first.grow(6) && !second.grow(5) && second.grow(4));
        assert_eq!(budget.taken(), 10);
        drop(first);
        assert_eq!(budget.taken(), 4);
        assert!(!second.grow(usize::MAX), "no wrap-around");
        drop(second);
        assert_eq!(budget.taken(), 0);
    }
}

//! A count of bytes with an upper bound, for answers on their way. Bodies wait for budgets of `admission` instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

#[cfg(test)]
mod tests {
    use super::*;

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

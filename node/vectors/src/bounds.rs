//! What a computation may take, of memory and of time: whoever asks for it says so.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

use crate::Error;

/// Why a computation does not go on.
pub type Stop = Box<dyn std::error::Error + Send + Sync>;

/// What all computations of one query share.
pub trait Bounds: Debug + Send + Sync {
    /// Whether it may go on.
    fn check(&self) -> Result<(), Stop>;
    /// So many bytes more, until they are given back; none where there are not so many.
    fn take(&self, bytes: usize) -> Result<(), Stop>;
    fn give_back(&self, bytes: usize);
}

/// Bytes that were not yet taken, or looked at, until the bounds are asked: often enough, and not for every row.
const UNASKED_MAX: usize = 1 << 20;
/// Bytes that might be looked at in the time that a row takes whatever is computed of it.
const ROW_WORK: usize = 1 << 10;

/// What compiling a pattern takes, in bytes that might be looked at meanwhile.
pub(crate) const COMPILE_WORK: usize = 1 << 20;

/// What one computation has taken; it is given back in the end. Once it is over its bounds it stays so: what is computed
/// from then on is null, and of no use to anybody.
#[derive(Debug)]
pub(crate) struct Spent<'b> {
    bounds: Option<&'b dyn Bounds>,
    taken: Cell<usize>,
    untaken: Cell<usize>,
    work: Cell<usize>,
    stop: RefCell<Option<Stop>>,
}

impl<'b> Spent<'b> {
    pub fn new(bounds: Option<&'b dyn Bounds>) -> Spent<'b> {
        let (taken, untaken, work) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Spent { bounds, taken, untaken, work, stop: RefCell::new(None) }
    }

    /// Whether there are so many bytes more to have.
    pub fn take(&self, bytes: usize) -> bool {
        let untaken = self.untaken.get().saturating_add(bytes);
        if untaken < UNASKED_MAX {
            self.untaken.set(untaken);
            return self.goes_on();
        }
        self.untaken.set(0);
        if let Some(bounds) = self.bounds {
            let taken = bounds.take(untaken);
            if taken.is_ok() {
                self.taken.set(self.taken.get() + untaken);
            }
            self.asked(taken);
        }
        self.goes_on()
    }

    /// Whether there is time for more, so many bytes having been looked at.
    pub fn works(&self, bytes: usize) -> bool {
        let work = self.work.get().saturating_add(bytes);
        self.work.set(work);
        if work >= UNASKED_MAX {
            self.work.set(0);
            if let Some(bounds) = self.bounds {
                self.asked(bounds.check());
            }
        }
        self.goes_on()
    }

    pub fn works_on_row(&self) -> bool {
        self.works(ROW_WORK)
    }

    fn goes_on(&self) -> bool {
        self.stop.borrow().is_none()
    }

    fn asked(&self, answer: Result<(), Stop>) {
        if let Err(stop) = answer {
            self.stop.borrow_mut().get_or_insert(stop);
        }
    }

    /// What came of it, if it stayed within its bounds.
    pub fn end<T>(&self, of: T) -> Result<T, Error> {
        self.stop.take().map_or(Ok(of), |stop| Err(Error::Stopped(stop)))
    }
}

impl Drop for Spent<'_> {
    fn drop(&mut self) {
        if let Some(bounds) = self.bounds {
            bounds.give_back(self.taken.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// So many bytes, of which some are taken.
    #[derive(Debug)]
    struct Purse(usize, Mutex<usize>);

    impl Bounds for Purse {
        fn check(&self) -> Result<(), Stop> {
            Ok(())
        }

        fn take(&self, bytes: usize) -> Result<(), Stop> {
            let mut taken = self.1.lock().expect("no thread panics");
            if *taken + bytes > self.0 {
                return Err("no more".into());
            }
            *taken += bytes;
            Ok(())
        }

        fn give_back(&self, bytes: usize) {
            *self.1.lock().expect("no thread panics") -= bytes;
        }
    }

    #[test]
    fn what_is_over_its_bounds_stays_so_and_all_is_given_back() {
        let purse = Purse(4 * UNASKED_MAX, Mutex::new(0));
        let spent = Spent::new(Some(&purse));
        assert!(spent.take(3 * UNASKED_MAX) && spent.works(10 * UNASKED_MAX));
        assert!(!spent.take(2 * UNASKED_MAX) && !spent.take(1) && !spent.works_on_row());
        assert_eq!(*purse.1.lock().expect("no thread panics"), 3 * UNASKED_MAX);
        assert!(matches!(spent.end(()), Err(Error::Stopped(_))));
        drop(spent);
        assert_eq!(*purse.1.lock().expect("no thread panics"), 0);
        assert!(Spent::new(None).take(usize::MAX), "nobody bounds it");
    }
}

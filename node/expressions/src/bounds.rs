//! Limits of a computation's memory and time, which its caller sets.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

use crate::Error;

/// Reason to stop a computation.
pub type Stop = Box<dyn std::error::Error + Send + Sync>;

/// Memory and time that all computations of one query share.
pub trait Bounds: Debug + Send + Sync {
    /// Returns an error once the query has to stop.
    fn check(&self) -> Result<(), Stop>;
    /// Takes `bytes` until they are given back, or fails if fewer are left.
    fn take(&self, bytes: usize) -> Result<(), Stop>;
    fn give_back(&self, bytes: usize);
}

/// Bytes taken or read between two checks of the bounds: often enough, and not for every row.
const UNASKED_MAX: usize = 1 << 20;
/// Cost of a row whatever is computed, in bytes that could be read in that time.
const ROW_WORK: usize = 1 << 10;

/// Cost of compiling a pattern, in bytes that could be read in that time.
pub(crate) const COMPILE_WORK: usize = 1 << 20;

/// Account of what one computation has taken, which is given back on drop. Once a bound is exceeded it stays exceeded:
/// values computed after that are null and are discarded.
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

    /// Takes `bytes`; returns whether the computation may go on.
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

    /// Counts `bytes` as read; returns whether the computation may go on.
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

    /// Returns the result if the computation stayed within its bounds.
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

    /// Bounds with a fixed number of bytes, of which some are taken.
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

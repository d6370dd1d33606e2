//! The order of one object's writes: who comes next, with which id, and which requests were seen. Pure.
//!
//! ```text
//! enter ──> [ making | made | making | made ... ] ──front, once it is made──> submit ──> settled
//! ```
//! L1: writes are submitted in the order in which they entered, however long each takes to be made.
//! L2: an id is above all that were assigned before, above the shard's last, and not below the clock's second.
//! L3: a request that is known is answered with what became of it; one that still waits is let through, for the shard
//!     has the last word on requests and sees the two in this order.

use std::collections::{HashMap, VecDeque};

use assay_storage_model::Xact;
use assay_storage_model::command::RequestId;
use assay_storage_shard::REQUEST_AGE_SECONDS_MAX;

/// Requests that one object's actor remembers; the shard knows those that fell out.
pub const KNOWN_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// Has its place in the line.
    Go { number: u64, assigned: Xact },
    /// Was written before, with this id.
    Known { xact: Xact },
    /// Its key was used before for something else.
    Reused { xact: Xact },
}

/// `W` is a write that is ready to be submitted.
#[derive(Debug)]
pub struct Line<W> {
    assigned: Xact,
    /// The number of the write at the front.
    front: u64,
    /// None while it is being made.
    waiting: VecDeque<Option<W>>,
    known: Known,
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Line { assigned: Xact::ZERO, front: 0, waiting: VecDeque::new(), known: Known::default() }
    }
}

impl<W> Line<W> {
    /// A write comes in. `last` is the shard's last id.
    pub fn enter(&mut self, now_micros: i64, last: Xact, request: Option<&RequestId>) -> Entered {
        match request.and_then(|request| self.known.find(request, last)) {
            Some((true, xact)) => return Entered::Known { xact },
            Some((false, xact)) => return Entered::Reused { xact },
            None => {}
        }
        let clock = Xact::at_micros(u64::try_from(now_micros).unwrap_or(0));
        self.assigned = self.assigned.next().max(last.next()).max(clock);
        self.waiting.push_back(None);
        Entered::Go { number: self.front + self.waiting.len() as u64 - 1, assigned: self.assigned }
    }

    /// The write of this number can be submitted when its turn comes.
    pub fn made(&mut self, number: u64, write: W) {
        let place = number.checked_sub(self.front).and_then(|place| usize::try_from(place).ok());
        if let Some(slot) = place.and_then(|place| self.waiting.get_mut(place)) {
            *slot = Some(write);
        }
    }

    /// The front of the line, if it can be submitted.
    pub fn front(&self) -> Option<&W> {
        self.waiting.front()?.as_ref()
    }

    pub fn pop(&mut self) -> Option<W> {
        let write = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.front += 1;
        Some(write)
    }

    /// A request was written, now or before, with this id.
    pub fn settled(&mut self, request: &RequestId, xact: Xact) {
        self.known.remember(request, xact);
    }
}

/// Requests and what became of them: by count, and by the shard's window of time.
#[derive(Debug, Default)]
struct Known {
    by_key: HashMap<[u8; 16], ([u8; 16], Xact)>,
    /// Oldest first.
    order: VecDeque<[u8; 16]>,
}

impl Known {
    /// Whether the content is the same, and the id it got.
    fn find(&self, request: &RequestId, last: Xact) -> Option<(bool, Xact)> {
        let (content, xact) = self.by_key.get(&request.key)?;
        let age_seconds = last.seconds().saturating_sub(xact.seconds());
        (age_seconds <= REQUEST_AGE_SECONDS_MAX).then_some((*content == request.content, *xact))
    }

    fn remember(&mut self, request: &RequestId, xact: Xact) {
        if self.by_key.insert(request.key, (request.content, xact)).is_none() {
            self.order.push_back(request.key);
        }
        if self.order.len() > KNOWN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_key.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;

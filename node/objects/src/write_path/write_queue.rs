//! Queue of one object's writes: their order, their ids and recent request ids. Pure.
//!
//! ```text
//! enqueue ──> [ encoding | ready | encoding | ready ... ] ──front, once it is ready──> submit ──> note_written
//! ```
//! L1: writes are submitted in the order of `enqueue`, however long each takes to encode.
//! L2: an id is above all earlier ones and the shard's last one, and not below the second of the clock.
//! L3: a recent request gets its earlier result. A repeated request whose original still waits is let through. The
//!     shard decides on requests, and sees the two in this order.

use std::collections::{HashMap, VecDeque};

use assay_storage_model::Xact;
use assay_storage_model::command::RequestId;
use assay_storage_shard::REQUEST_AGE_SECONDS_MAX;

/// Upper bound of the remembered requests of one object. The shard knows older ones.
pub const RECENT_REQUESTS_MAX: usize = 1024;

/// Result of [`WriteQueue::enqueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The write was added to the queue.
    Queued { number: u64, assigned: Xact },
    /// The same request was written before with this id.
    Duplicate { xact: Xact },
    /// The idempotency key was used before with different content.
    KeyReused { xact: Xact },
}

/// Writes of one object in their order. `W` is a write that can be submitted.
#[derive(Debug)]
pub struct WriteQueue<W> {
    assigned: Xact,
    /// Number of the write at the front.
    front: u64,
    /// Writes from the front. `None` stands for a write that is being encoded.
    waiting: VecDeque<Option<W>>,
    recent: RecentRequests,
}

impl<W> Default for WriteQueue<W> {
    fn default() -> Self {
        WriteQueue { assigned: Xact::ZERO, front: 0, waiting: VecDeque::new(), recent: RecentRequests::default() }
    }
}

impl<W> WriteQueue<W> {
    /// Adds a write and assigns its id. `last` is the last id of the shard.
    pub fn enqueue(&mut self, now_micros: i64, last: Xact, request: Option<&RequestId>) -> Enqueued {
        match request.and_then(|request| self.recent.find(request, last)) {
            Some((true, xact)) => return Enqueued::Duplicate { xact },
            Some((false, xact)) => return Enqueued::KeyReused { xact },
            None => {}
        }
        let clock = Xact::at_micros(u64::try_from(now_micros).unwrap_or(0));
        self.assigned = self.assigned.next().max(last.next()).max(clock);
        self.waiting.push_back(None);
        Enqueued::Queued { number: self.front + self.waiting.len() as u64 - 1, assigned: self.assigned }
    }

    /// Adds the encoded write of this number.
    pub fn mark_ready(&mut self, number: u64, write: W) {
        let place = number.checked_sub(self.front).and_then(|place| usize::try_from(place).ok());
        if let Some(slot) = place.and_then(|place| self.waiting.get_mut(place)) {
            *slot = Some(write);
        }
    }

    /// Returns the first write, if it is ready.
    pub fn front(&self) -> Option<&W> {
        self.waiting.front()?.as_ref()
    }

    /// Removes and returns the first write, if it is ready.
    pub fn pop(&mut self) -> Option<W> {
        let write = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.front += 1;
        Some(write)
    }

    /// Remembers the id with which a request was written, now or before.
    pub fn note_written(&mut self, request: &RequestId, xact: Xact) {
        self.recent.remember(request, xact);
    }
}

/// Recent requests and their ids, bounded by count and by the shard's window of time.
#[derive(Debug, Default)]
struct RecentRequests {
    by_key: HashMap<[u8; 16], ([u8; 16], Xact)>,
    /// Oldest first.
    order: VecDeque<[u8; 16]>,
}

impl RecentRequests {
    /// Returns whether the content is the same, and the id of the write.
    fn find(&self, request: &RequestId, last: Xact) -> Option<(bool, Xact)> {
        let (content, xact) = self.by_key.get(&request.key)?;
        let age_seconds = last.seconds().saturating_sub(xact.seconds());
        (age_seconds <= REQUEST_AGE_SECONDS_MAX).then_some((*content == request.content, *xact))
    }

    fn remember(&mut self, request: &RequestId, xact: Xact) {
        if self.by_key.insert(request.key, (request.content, xact)).is_none() {
            self.order.push_back(request.key);
        }
        if self.order.len() > RECENT_REQUESTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_key.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;

//! Reservations of capacity for unanswered writes, by object, by lane and for the node. Pure.
//!
//! A lane is a resource that several objects share: the committer of a shard, or the connections to another node. This
//! module only counts reservations. The order of waiting calls is in `reservation_queue`.
//!
//! B1: a call gets all of its reservations, or none and nothing changes.
//! B2: a counter without reservations accepts any size, so that no write is too large forever. Otherwise the sums stay
//!     within the limits.
//! B3: an object with a reservation is not removed.
//! B4: after `close` there are no new reservations. Earlier ones stay until they are released.
//! B5: while other objects wait, an object with a reservation holds at most a quarter of its lane and of the node.
//!     Beyond that quarter it never takes the last eighth, so a new object finds capacity.

use std::collections::HashMap;
use std::hash::Hash;

use assay_storage_model::{NotWritten, ObjectKey, ShardId};

/// Divisor of the share of one object while others wait.
const OBJECT_SHARE: usize = 4;
/// Divisor of the reserve for objects that hold less than their share.
const RESERVE_SHARE: usize = 8;

/// Limit of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub writes: usize,
    pub bytes: usize,
}

impl Capacity {
    fn part(self, of: usize) -> Capacity {
        Capacity { writes: self.writes / of, bytes: self.bytes / of }
    }

    fn without(self, less: Capacity) -> Capacity {
        Capacity { writes: self.writes - less.writes, bytes: self.bytes - less.bytes }
    }
}

/// Limits of all counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationLimits {
    pub object: Capacity,
    pub lane: Capacity,
    pub node: Capacity,
    /// Objects with an actor.
    pub objects: usize,
}

/// Request of one write for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationRequest<L = ShardId> {
    pub object: ObjectKey,
    pub lane: L,
    pub bytes: usize,
}

/// Sum of reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    pub writes: usize,
    pub bytes: usize,
}

impl Reserved {
    pub(crate) fn plus(self, more: Reserved) -> Reserved {
        Reserved { writes: self.writes + more.writes, bytes: self.bytes.saturating_add(more.bytes) }
    }

    pub(crate) fn less(self, gone: Reserved) -> Reserved {
        Reserved { writes: self.writes.saturating_sub(gone.writes), bytes: self.bytes.saturating_sub(gone.bytes) }
    }

    fn is_within(self, limit: Capacity) -> bool {
        self.writes <= limit.writes && self.bytes <= limit.bytes
    }

    fn takes(self, more: Reserved, limit: Capacity) -> bool {
        self.writes == 0 || self.plus(more).is_within(limit)
    }
}

/// Requests of one call and their sums.
#[derive(Clone, Debug)]
pub(crate) struct Demand<L> {
    pub each: Vec<ReservationRequest<L>>,
    /// Objects in the order of their first request. An object is in one lane.
    pub objects: Vec<(ObjectKey, L, Reserved)>,
    pub lanes: Vec<(L, Reserved)>,
    pub all: Reserved,
}

impl<L: Copy + Eq> Demand<L> {
    pub fn of(each: Vec<ReservationRequest<L>>) -> Demand<L> {
        let mut demand = Demand { each: Vec::new(), objects: Vec::new(), lanes: Vec::new(), all: Reserved::default() };
        for want in &each {
            let one = Reserved { writes: 1, bytes: want.bytes };
            demand.all = demand.all.plus(one);
            match demand.objects.iter_mut().find(|(object, ..)| *object == want.object) {
                Some((_, _, sum)) => *sum = sum.plus(one),
                None => demand.objects.push((want.object, want.lane, one)),
            }
            match demand.lanes.iter_mut().find(|(lane, _)| *lane == want.lane) {
                Some((_, sum)) => *sum = sum.plus(one),
                None => demand.lanes.push((want.lane, one)),
            }
        }
        Demand { each, ..demand }
    }
}

#[derive(Debug)]
struct ObjectReservations<H> {
    held: Reserved,
    handle: H,
}

/// Counters of all reservations. `H` is the handle of an object's actor.
#[derive(Debug)]
pub struct Reservations<H, L = ShardId> {
    limits: ReservationLimits,
    node: Reserved,
    lanes: HashMap<L, Reserved>,
    objects: HashMap<ObjectKey, ObjectReservations<H>>,
    closed: bool,
}

impl<H: Clone, L: Copy + Eq + Hash> Reservations<H, L> {
    pub fn new(limits: ReservationLimits) -> Reservations<H, L> {
        Reservations {
            limits,
            node: Reserved::default(),
            lanes: HashMap::new(),
            objects: HashMap::new(),
            closed: false,
        }
    }

    /// Reserves capacity for all of `wanted` and returns their handles. `make` starts the actor of an object without
    /// one.
    pub fn reserve(
        &mut self,
        wanted: &[ReservationRequest<L>],
        make: impl FnMut(&ReservationRequest<L>) -> H,
    ) -> Result<Vec<H>, NotWritten> {
        if self.closed {
            return Err(NotWritten::Closing);
        }
        let demand = Demand::of(wanted.to_vec());
        if demand.objects.iter().any(|one| !self.object_takes(one, false)) {
            return Err(NotWritten::busy(OBJECT_FULL));
        }
        if demand.lanes.iter().any(|one| !self.lane_takes(one)) {
            return Err(NotWritten::busy(SHARD_FULL));
        }
        if let Some(why) = self.node_lacks(&demand) {
            return Err(NotWritten::busy(why));
        }
        Ok(self.reserve_unchecked(wanted, make)) // B1: nothing has changed up to here
    }

    /// Returns whether an object of a call has capacity.
    pub(crate) fn object_takes(&self, (object, lane, more): &(ObjectKey, L, Reserved), others_wait: bool) -> bool {
        let held = self.objects.get(object).map_or(Reserved::default(), |entry| entry.held);
        if held.writes == 0 {
            return true; // B2
        }
        let keeps_share = |all: Reserved, limit: Capacity| {
            let leaves_reserve = all.plus(*more).is_within(limit.without(limit.part(RESERVE_SHARE)));
            held.plus(*more).is_within(limit.part(OBJECT_SHARE)) || (!others_wait && leaves_reserve)
        };
        let lane = self.lanes.get(lane).copied().unwrap_or_default();
        held.plus(*more).is_within(self.limits.object)
            && keeps_share(lane, self.limits.lane)
            && keeps_share(self.node, self.limits.node) // B5
    }

    pub(crate) fn lane_takes(&self, (lane, more): &(L, Reserved)) -> bool {
        self.lanes.get(lane).copied().unwrap_or_default().takes(*more, self.limits.lane)
    }

    /// Returns the limit of the node that a call exceeds, if any.
    pub(crate) fn node_lacks(&self, demand: &Demand<L>) -> Option<&'static str> {
        if demand.each.is_empty() {
            return None;
        }
        if !self.node.takes(demand.all, self.limits.node) {
            return Some(NODE_FULL);
        }
        let is_new = |(object, ..): &&(ObjectKey, L, Reserved)| !self.objects.contains_key(object);
        let new = demand.objects.iter().filter(is_new).count();
        (new > 0 && !self.objects.is_empty() && self.objects.len() + new > self.limits.objects).then_some(OBJECTS_FULL)
    }

    /// Counts reservations without a check of the limits.
    pub(crate) fn reserve_unchecked(
        &mut self,
        wanted: &[ReservationRequest<L>],
        mut make: impl FnMut(&ReservationRequest<L>) -> H,
    ) -> Vec<H> {
        let each = wanted.iter().map(|want| {
            let one = Reserved { writes: 1, bytes: want.bytes };
            self.node = self.node.plus(one);
            let lane = self.lanes.entry(want.lane).or_default();
            *lane = lane.plus(one);
            let entry = self.objects.entry(want.object);
            let entry = entry.or_insert_with(|| ObjectReservations { held: Reserved::default(), handle: make(want) });
            entry.held = entry.held.plus(one);
            entry.handle.clone()
        });
        each.collect()
    }

    /// Releases one reservation.
    pub fn release(&mut self, given: &ReservationRequest<L>) {
        let one = Reserved { writes: 1, bytes: given.bytes };
        self.node = self.node.less(one);
        if let Some(lane) = self.lanes.get_mut(&given.lane) {
            *lane = lane.less(one);
        }
        if let Some(entry) = self.objects.get_mut(&given.object) {
            entry.held = entry.held.less(one);
        }
    }

    /// Removes an object without reservations. Returns whether it was removed.
    pub fn put_away(&mut self, object: &ObjectKey) -> bool {
        let idle = self.objects.get(object).is_some_and(|entry| entry.held.writes == 0); // B3
        idle && self.objects.remove(object).is_some()
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn is_idle(&self) -> bool {
        self.node.writes == 0
    }

    pub fn held(&self) -> Reserved {
        self.node
    }

    pub fn objects(&self) -> usize {
        self.objects.len()
    }
}

pub(crate) const OBJECT_FULL: &str = "too many writes are waiting for this object";
pub(crate) const SHARD_FULL: &str = "too many writes are waiting for this object's shard";
pub(crate) const NODE_FULL: &str = "too many writes are waiting on this node";
pub(crate) const OBJECTS_FULL: &str = "too many objects are being written at once";

#[cfg(test)]
mod tests;

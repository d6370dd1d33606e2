//! Counts of the writes that have a place: taken in and not yet answered, per object, per lane and in all. Pure.
//!
//! A lane is what writes of several objects share behind this book: the committer of a shard, or the connections to another
//! node. The book only counts; who waits for a place, and in which order, is in `waiting`.
//!
//! B1: a call gets all the places it asks for, or none and nothing changes.
//! B2: where nothing has a place a call gets its places whatever its size, so that no write is too large to ever be taken.
//!     Otherwise it gets them while the sums stay within the limits.
//! B3: an object that has a place is not put away.
//! B4: once closed, no call gets a place. Places given before are kept until they are given back.
//! B5: an object that has a place holds at most a quarter of its lane, and of the whole, while other objects wait; and
//!     never takes the last eighth beyond that quarter. So an object that comes new finds room.

use std::collections::HashMap;
use std::hash::Hash;

use assay_storage_model::{NotWritten, ObjectKey, ShardId};

/// An object holds one part in so many while others wait.
const OBJECT_SHARE: usize = 4;
/// One part in so many is left to objects that hold less than their share.
const RESERVE_SHARE: usize = 8;

/// What may have a place at one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub writes: usize,
    pub bytes: usize,
}

impl Room {
    fn part(self, of: usize) -> Room {
        Room { writes: self.writes / of, bytes: self.bytes / of }
    }

    fn without(self, less: Room) -> Room {
        Room { writes: self.writes - less.writes, bytes: self.bytes - less.bytes }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLimits {
    pub object: Room,
    pub lane: Room,
    pub node: Room,
    /// Objects with an actor.
    pub objects: usize,
}

/// One write that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<L = ShardId> {
    pub object: ObjectKey,
    pub lane: L,
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub writes: usize,
    pub bytes: usize,
}

impl Held {
    pub(crate) fn plus(self, more: Held) -> Held {
        Held { writes: self.writes + more.writes, bytes: self.bytes.saturating_add(more.bytes) }
    }

    pub(crate) fn less(self, gone: Held) -> Held {
        Held { writes: self.writes.saturating_sub(gone.writes), bytes: self.bytes.saturating_sub(gone.bytes) }
    }

    fn is_within(self, room: Room) -> bool {
        self.writes <= room.writes && self.bytes <= room.bytes
    }

    fn takes(self, more: Held, room: Room) -> bool {
        self.writes == 0 || self.plus(more).is_within(room)
    }
}

/// The places that one call wants, and their sums.
#[derive(Clone, Debug)]
pub(crate) struct Demand<L> {
    pub each: Vec<Wanted<L>>,
    /// In their first order; an object is in one lane.
    pub objects: Vec<(ObjectKey, L, Held)>,
    pub lanes: Vec<(L, Held)>,
    pub all: Held,
}

impl<L: Copy + Eq> Demand<L> {
    pub fn of(each: Vec<Wanted<L>>) -> Demand<L> {
        let mut demand = Demand { each: Vec::new(), objects: Vec::new(), lanes: Vec::new(), all: Held::default() };
        for want in &each {
            let one = Held { writes: 1, bytes: want.bytes };
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
struct Seat<H> {
    held: Held,
    handle: H,
}

/// `H` is how an object's actor is reached.
#[derive(Debug)]
pub struct Book<H, L = ShardId> {
    limits: BookLimits,
    node: Held,
    lanes: HashMap<L, Held>,
    objects: HashMap<ObjectKey, Seat<H>>,
    closed: bool,
}

impl<H: Clone, L: Copy + Eq + Hash> Book<H, L> {
    pub fn new(limits: BookLimits) -> Book<H, L> {
        Book { limits, node: Held::default(), lanes: HashMap::new(), objects: HashMap::new(), closed: false }
    }

    /// Places for all of `wanted`, and the handle of each; `make` makes the actor of an object that has none.
    pub fn reserve(&mut self, wanted: &[Wanted<L>], make: impl FnMut(&Wanted<L>) -> H) -> Result<Vec<H>, NotWritten> {
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
        Ok(self.place(wanted, make)) // B1: nothing has changed up to here
    }

    /// Whether one object of a call has room, beside others that wait or not.
    pub(crate) fn object_takes(&self, (object, lane, more): &(ObjectKey, L, Held), others_wait: bool) -> bool {
        let held = self.objects.get(object).map_or(Held::default(), |seat| seat.held);
        if held.writes == 0 {
            return true; // B2
        }
        let keeps_share = |all: Held, room: Room| {
            let leaves_reserve = all.plus(*more).is_within(room.without(room.part(RESERVE_SHARE)));
            held.plus(*more).is_within(room.part(OBJECT_SHARE)) || (!others_wait && leaves_reserve)
        };
        let lane = self.lanes.get(lane).copied().unwrap_or_default();
        held.plus(*more).is_within(self.limits.object)
            && keeps_share(lane, self.limits.lane)
            && keeps_share(self.node, self.limits.node) // B5
    }

    pub(crate) fn lane_takes(&self, (lane, more): &(L, Held)) -> bool {
        self.lanes.get(lane).copied().unwrap_or_default().takes(*more, self.limits.lane)
    }

    /// Why the node has no room for a call, where it has none.
    pub(crate) fn node_lacks(&self, demand: &Demand<L>) -> Option<&'static str> {
        if demand.each.is_empty() {
            return None;
        }
        if !self.node.takes(demand.all, self.limits.node) {
            return Some(NODE_FULL);
        }
        let is_new = |(object, ..): &&(ObjectKey, L, Held)| !self.objects.contains_key(object);
        let new = demand.objects.iter().filter(is_new).count();
        (new > 0 && !self.objects.is_empty() && self.objects.len() + new > self.limits.objects).then_some(OBJECTS_FULL)
    }

    /// Gives the places, without a look at the limits.
    pub(crate) fn place(&mut self, wanted: &[Wanted<L>], mut make: impl FnMut(&Wanted<L>) -> H) -> Vec<H> {
        let each = wanted.iter().map(|want| {
            let one = Held { writes: 1, bytes: want.bytes };
            self.node = self.node.plus(one);
            let lane = self.lanes.entry(want.lane).or_default();
            *lane = lane.plus(one);
            let seat = self.objects.entry(want.object);
            let seat = seat.or_insert_with(|| Seat { held: Held::default(), handle: make(want) });
            seat.held = seat.held.plus(one);
            seat.handle.clone()
        });
        each.collect()
    }

    /// Gives one place back.
    pub fn release(&mut self, given: &Wanted<L>) {
        let one = Held { writes: 1, bytes: given.bytes };
        self.node = self.node.less(one);
        if let Some(lane) = self.lanes.get_mut(&given.lane) {
            *lane = lane.less(one);
        }
        if let Some(seat) = self.objects.get_mut(&given.object) {
            seat.held = seat.held.less(one);
        }
    }

    /// Forgets an object that nothing waits for; whether it did.
    pub fn put_away(&mut self, object: &ObjectKey) -> bool {
        let idle = self.objects.get(object).is_some_and(|seat| seat.held.writes == 0); // B3
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

    pub fn held(&self) -> Held {
        self.node
    }

    pub fn objects(&self) -> usize {
        self.objects.len()
    }
}

pub(crate) const OBJECT_FULL: &str = "too many writes wait for this object";
pub(crate) const SHARD_FULL: &str = "too many writes wait for this object's shard";
pub(crate) const NODE_FULL: &str = "too many writes wait on this node";
pub(crate) const OBJECTS_FULL: &str = "too many objects are written to at once";

#[cfg(test)]
mod tests;

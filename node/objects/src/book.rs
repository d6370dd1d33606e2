//! Who has a place: writes taken in and not yet answered, counted for each object, each shard and the node. Pure.
//!
//! B1: a call gets all the places it asks for, or none and nothing changes.
//! B2: where nothing waits a call gets its places whatever its size, so that no write is too large to ever be taken;
//!     else it gets them while the sums stay within the limits.
//! B3: an object that has a place is not put away.
//! B4: once closed, no call gets a place; places given before are kept until they are given back.

use std::collections::HashMap;

use assay_storage_model::{ObjectKey, ShardId};

/// What may wait at one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub writes: usize,
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLimits {
    pub object: Room,
    pub shard: Room,
    pub node: Room,
    /// Objects with an actor.
    pub objects: usize,
}

/// One write that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub object: ObjectKey,
    pub shard: ShardId,
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Full(&'static str),
    Closed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub writes: usize,
    pub bytes: usize,
}

impl Held {
    fn plus(self, more: Held) -> Held {
        Held { writes: self.writes + more.writes, bytes: self.bytes.saturating_add(more.bytes) }
    }

    fn less(self, gone: Held) -> Held {
        Held { writes: self.writes.saturating_sub(gone.writes), bytes: self.bytes.saturating_sub(gone.bytes) }
    }

    fn takes(self, more: Held, room: Room) -> bool {
        let sum = self.plus(more);
        self.writes == 0 || (sum.writes <= room.writes && sum.bytes <= room.bytes)
    }
}

#[derive(Debug)]
struct Seat<H> {
    held: Held,
    handle: H,
}

/// `H` is how an object's actor is reached.
#[derive(Debug)]
pub struct Book<H> {
    limits: BookLimits,
    node: Held,
    shards: HashMap<ShardId, Held>,
    objects: HashMap<ObjectKey, Seat<H>>,
    closed: bool,
}

impl<H: Clone> Book<H> {
    pub fn new(limits: BookLimits) -> Book<H> {
        Book { limits, node: Held::default(), shards: HashMap::new(), objects: HashMap::new(), closed: false }
    }

    /// Places for all of `wanted`, and the handle of each; `make` makes the actor of an object that has none.
    pub fn reserve(&mut self, wanted: &[Wanted], mut make: impl FnMut(&Wanted) -> H) -> Result<Vec<H>, Refusal> {
        self.check(wanted)?; // B1: nothing has changed up to here
        let each = wanted.iter().map(|want| {
            let one = Held { writes: 1, bytes: want.bytes };
            self.node = self.node.plus(one);
            let shard = self.shards.entry(want.shard).or_default();
            *shard = shard.plus(one);
            let seat = self.objects.entry(want.object);
            let seat = seat.or_insert_with(|| Seat { held: Held::default(), handle: make(want) });
            seat.held = seat.held.plus(one);
            seat.handle.clone()
        });
        Ok(each.collect())
    }

    fn check(&self, wanted: &[Wanted]) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        let (mut all, mut new) = (Held::default(), 0);
        let mut shards: HashMap<ShardId, Held> = HashMap::new();
        let mut objects: HashMap<ObjectKey, Held> = HashMap::new();
        for want in wanted {
            let one = Held { writes: 1, bytes: want.bytes };
            all = all.plus(one);
            let shard = shards.entry(want.shard).or_default();
            *shard = shard.plus(one);
            let object = objects.entry(want.object).or_default();
            *object = object.plus(one);
        }
        for (object, more) in objects {
            match self.objects.get(&object) {
                Some(seat) if !seat.held.takes(more, self.limits.object) => {
                    return Err(Refusal::Full("too many writes wait for this object"));
                }
                Some(_) => {}
                None => new += 1,
            }
        }
        let full = |(shard, more): (ShardId, Held)| {
            !self.shards.get(&shard).copied().unwrap_or_default().takes(more, self.limits.shard)
        };
        if shards.into_iter().any(full) {
            return Err(Refusal::Full("too many writes wait for this object's shard"));
        }
        if !self.node.takes(all, self.limits.node) {
            return Err(Refusal::Full("too many writes wait on this node"));
        }
        if self.objects.len() + new > self.limits.objects {
            return Err(Refusal::Full("too many objects are written to at once"));
        }
        Ok(())
    }

    /// Gives one place back.
    pub fn release(&mut self, given: &Wanted) {
        let one = Held { writes: 1, bytes: given.bytes };
        self.node = self.node.less(one);
        if let Some(shard) = self.shards.get_mut(&given.shard) {
            *shard = shard.less(one);
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

#[cfg(test)]
mod tests;

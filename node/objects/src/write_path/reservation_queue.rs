//! Queue of calls that wait for reservations, with a fair order between organizations and credentials. Pure.
//!
//! ```text
//! enter ──> [ queue of each full object ] ──first in all queues, objects have capacity──> lanes and node ──> granted
//! ```
//! A call of several writes holds nothing while it waits (B1), so there are no circular waits.
//!
//! W1: calls to one object are granted in the order of their arrival, as long as each waits for that object.
//! W2: a call that lacks capacity at one object waits in the queue of that object only. It delays no other object, lane
//!     or organization. It keeps its position until it is granted, so a call over several objects does not starve.
//! W3: a call that lacks capacity at its lane or the node blocks later calls to that lane or the node. The next of
//!     these belongs to the organization, then the credential, with the fewest reserved bytes. Among equals, the oldest
//!     is next.
//! W4: a call that leaves gives up its position at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use assay_node_limits::Holder;
use assay_storage_model::{NodeId, NotWritten, ObjectKey, ShardId};
use uuid::Uuid;

use crate::write_path::reservations::{
    Demand, NODE_FULL, OBJECT_FULL, ReservationLimits, ReservationRequest, Reservations, Reserved, SHARD_FULL,
};

/// Upper bound of waiting calls, which limits the memory of the queues. The bodies of calls are counted where they are
/// read.
pub const CALLS_WAITING_MAX: usize = 65_536;

/// Call with its reservations, and the handles of its local objects in the order of its writes.
#[derive(Debug, PartialEq, Eq)]
pub struct Granted<H> {
    pub call: u64,
    pub handles: Vec<H>,
}

/// Key of an object's queue. The object is written on this node or on another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ObjectQueue {
    Local(ObjectKey),
    Remote(ObjectKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lane {
    Shard(ShardId),
    Peer(NodeId),
}

#[derive(Debug)]
struct QueuedCall {
    holder: Holder,
    here: Demand<ShardId>,
    there: Demand<NodeId>,
    queues: Vec<ObjectQueue>,
    lacks: &'static str,
}

impl QueuedCall {
    fn all(&self) -> Reserved {
        self.here.all.plus(self.there.all)
    }
}

/// Reserved bytes by organization and by credential.
#[derive(Debug, Default)]
struct Shares {
    organizations: HashMap<Uuid, usize>,
    holders: HashMap<Holder, usize>,
}

impl Shares {
    fn of(&self, holder: &Holder) -> (usize, usize) {
        let of_org = self.organizations.get(&holder.organization).copied().unwrap_or_default();
        (of_org, self.holders.get(holder).copied().unwrap_or_default())
    }

    fn add(&mut self, holder: &Holder, bytes: usize) {
        *self.organizations.entry(holder.organization).or_default() += bytes;
        *self.holders.entry(*holder).or_default() += bytes;
    }

    fn remove(&mut self, holder: &Holder, bytes: usize) {
        fn less<K: std::hash::Hash + Eq>(all: &mut HashMap<K, usize>, key: K, bytes: usize) {
            if let Some(held) = all.get_mut(&key) {
                *held = held.saturating_sub(bytes);
                if *held == 0 {
                    all.remove(&key);
                }
            }
        }
        less(&mut self.organizations, holder.organization, bytes);
        less(&mut self.holders, *holder, bytes);
    }
}

/// Calls that wait for reservations. `H` is the handle of an object's actor.
#[derive(Debug)]
pub struct ReservationQueue<H> {
    here: Reservations<H, ShardId>,
    there: Reservations<(), NodeId>,
    next: u64,
    calls: BTreeMap<u64, QueuedCall>,
    queues: HashMap<ObjectQueue, BTreeSet<u64>>,
    shares: Shares,
    waiting: Reserved,
}

impl<H: Clone> ReservationQueue<H> {
    pub fn new(here: ReservationLimits, there: ReservationLimits) -> ReservationQueue<H> {
        ReservationQueue {
            here: Reservations::new(here),
            there: Reservations::new(there),
            next: 0,
            calls: BTreeMap::new(),
            queues: HashMap::new(),
            shares: Shares::default(),
            waiting: Reserved::default(),
        }
    }

    /// Adds a call, which waits at least until the next [`ReservationQueue::advance`].
    pub fn enter(
        &mut self,
        holder: Holder,
        here: Vec<ReservationRequest<ShardId>>,
        there: Vec<ReservationRequest<NodeId>>,
    ) -> Result<u64, NotWritten> {
        if self.here.is_closed() {
            return Err(NotWritten::Closing);
        }
        if self.calls.len() >= CALLS_WAITING_MAX {
            return Err(NotWritten::busy(NODE_FULL));
        }
        let (here, there) = (Demand::of(here), Demand::of(there));
        let call = QueuedCall { holder, here, there, queues: Vec::new(), lacks: OBJECT_FULL };
        self.waiting = self.waiting.plus(call.all());
        let number = self.next;
        self.next += 1;
        self.calls.insert(number, call);
        self.queue_up(number);
        Ok(number)
    }

    /// Grants reservations to every call whose turn has come.
    pub fn advance(&mut self, mut make: impl FnMut(&ReservationRequest<ShardId>) -> H) -> Vec<Granted<H>> {
        let mut granted = Vec::new();
        if self.calls.is_empty() {
            return granted;
        }
        let fronts: BTreeSet<u64> = self.queues.values().filter_map(|queue| queue.first().copied()).collect();
        let mut ready: Vec<u64> = fronts.into_iter().filter(|number| self.queue_up(*number)).collect();
        let mut claimed: HashSet<Lane> = HashSet::new();
        while let Some(number) = self.take_next(&mut ready) {
            // Grants of this round may have filled its objects, or moved an older call in front of it.
            if !self.queue_up(number) {
                continue;
            }
            let Some(call) = self.calls.get_mut(&number) else { continue };
            let lacking = lacking_lanes(&self.here, &self.there, call, &claimed);
            if !lacking.is_empty() {
                call.lacks = SHARD_FULL;
                claimed.extend(lacking); // W3
                continue;
            }
            if let Some(why) = self.here.node_lacks(&call.here).or_else(|| self.there.node_lacks(&call.there)) {
                call.lacks = why;
                break; // W3
            }
            let Some(call) = self.remove(number) else { continue };
            self.shares.add(&call.holder, call.all().bytes);
            let handles = self.here.reserve_unchecked(&call.here.each, &mut make);
            self.there.reserve_unchecked(&call.there.each, |_| ());
            granted.push(Granted { call: number, handles });
            let behind = call.queues.iter().filter_map(|queue| self.queues.get(queue)?.first().copied());
            let behind: BTreeSet<u64> = behind.filter(|number| !ready.contains(number)).collect();
            ready.extend(behind.into_iter().filter(|number| self.queue_up(*number)));
        }
        granted
    }

    /// Removes and returns the first call in the order of W3.
    fn take_next(&self, ready: &mut Vec<u64>) -> Option<u64> {
        let order = |number: &u64| self.calls.get(number).map(|call| (self.shares.of(&call.holder), *number));
        let (place, _) = ready.iter().enumerate().min_by_key(|(_, number)| order(number))?;
        Some(ready.swap_remove(place))
    }

    /// Adds a call to the queues where it has to wait. Returns whether all of its objects have capacity and it is first
    /// in their queues.
    fn queue_up(&mut self, number: u64) -> bool {
        let Some(call) = self.calls.get_mut(&number) else { return false };
        let waits = |queue: ObjectQueue, takes: bool| {
            let is_behind = self.queues.get(&queue).and_then(BTreeSet::first).is_some_and(|front| *front < number);
            !takes || is_behind
        };
        let others = |queue: &ObjectQueue| {
            let mine = usize::from(self.queues.contains_key(queue));
            self.queues.len() > mine
        };
        let here = call.here.objects.iter().map(|one| {
            let queue = ObjectQueue::Local(one.0);
            (queue, waits(queue, self.here.object_takes(one, others(&queue))))
        });
        let there = call.there.objects.iter().map(|one| {
            let queue = ObjectQueue::Remote(one.0);
            (queue, waits(queue, self.there.object_takes(one, others(&queue))))
        });
        let all: Vec<(ObjectQueue, bool)> = here.chain(there).collect();
        let is_ready = all.iter().all(|(_, waits)| !waits);
        if !is_ready {
            call.lacks = OBJECT_FULL;
        }
        // A ready call is in all of its queues, so that no later call to its objects overtakes it at its lane.
        for (queue, _) in all.into_iter().filter(|(_, waits)| is_ready || *waits) {
            if self.queues.entry(queue).or_default().insert(number) {
                call.queues.push(queue);
            }
        }
        is_ready
    }

    fn remove(&mut self, number: u64) -> Option<QueuedCall> {
        let call = self.calls.remove(&number)?;
        self.waiting = self.waiting.less(call.all());
        for queue in &call.queues {
            if let Some(standing) = self.queues.get_mut(queue) {
                standing.remove(&number);
                if standing.is_empty() {
                    self.queues.remove(queue);
                }
            }
        }
        Some(call)
    }

    /// Removes a call. Returns the limit it waited for, if it waited.
    pub fn leave(&mut self, number: u64) -> Option<&'static str> {
        self.remove(number).map(|call| call.lacks)
    }

    /// Releases the reservation of one write on this node.
    pub fn release(&mut self, holder: &Holder, given: &ReservationRequest<ShardId>) {
        self.shares.remove(holder, given.bytes);
        self.here.release(given);
    }

    /// Releases the reservation of one write to another node.
    pub fn release_sent(&mut self, holder: &Holder, given: &ReservationRequest<NodeId>) {
        self.shares.remove(holder, given.bytes);
        self.there.release(given);
        self.there.put_away(&given.object);
    }

    /// Removes an object without reservations. Returns whether it was removed.
    pub fn put_away(&mut self, object: &ObjectKey) -> bool {
        self.here.put_away(object)
    }

    /// Stops granting reservations. Returns the calls that waited.
    pub fn close(&mut self) -> Vec<u64> {
        self.here.close();
        let waiting: Vec<u64> = self.calls.keys().copied().collect();
        for number in &waiting {
            self.remove(*number);
        }
        waiting
    }

    /// Returns whether there are no reservations on this node. Reservations for writes to other nodes do not count.
    pub fn is_idle(&self) -> bool {
        self.here.is_idle()
    }

    /// Returns the sum of reservations on this node.
    pub fn held(&self) -> Reserved {
        self.here.held()
    }

    /// Returns the sum of the writes that wait.
    pub fn waiting(&self) -> Reserved {
        self.waiting
    }

    pub fn calls_waiting(&self) -> usize {
        self.calls.len()
    }

    pub fn objects(&self) -> usize {
        self.here.objects()
    }
}

fn lacking_lanes<H: Clone>(
    here: &Reservations<H, ShardId>,
    there: &Reservations<(), NodeId>,
    call: &QueuedCall,
    claimed: &HashSet<Lane>,
) -> Vec<Lane> {
    let shards = call.here.lanes.iter().filter(|one| !here.lane_takes(one)).map(|one| Lane::Shard(one.0));
    let peers = call.there.lanes.iter().filter(|one| !there.lane_takes(one)).map(|one| Lane::Peer(one.0));
    let named = call.here.lanes.iter().map(|one| Lane::Shard(one.0));
    let named = named.chain(call.there.lanes.iter().map(|one| Lane::Peer(one.0)));
    shards.chain(peers).chain(named.filter(|lane| claimed.contains(lane))).collect()
}

#[cfg(test)]
mod tests;

//! The write queue: calls that wait for the places of their writes, and whose turn it is. Pure.
//!
//! ```text
//! enter ──> [ a line per object that lacks room ] ──front of all its lines, objects have room──> lanes and node ──> places
//! ```
//! A call of several writes waits until all of them have room, and holds nothing meanwhile (B1), so calls cannot wait for
//! each other in a circle.
//!
//! W1: calls to one object get their places in the order in which they came, for as long as each waits for that object.
//! W2: a call that lacks room at one of its objects stands in the line of that object only. It delays no other object,
//!     lane or organization, however long that line is. Once it stood in a line it stays there until it has its places:
//!     what drains meanwhile is kept for it, which is why a call over several objects is not passed for ever.
//! W3: a call whose objects have room, but not its lane or the node, holds later ones back from that lane or the node.
//!     Of several such calls the next is one of the organization that holds least, then of the credential that holds
//!     least, then the oldest.
//! W4: a call that leaves gives its turn up at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use assay_node_limits::Holder;
use assay_storage_model::{NodeId, NotWritten, ObjectKey, ShardId};
use uuid::Uuid;

use crate::book::{Book, BookLimits, Demand, Held, NODE_FULL, OBJECT_FULL, SHARD_FULL, Wanted};

/// Calls that wait at once. Their bodies are counted where they are read; this bounds what the lines themselves take.
pub const CALLS_WAITING_MAX: usize = 65_536;

/// A call that got its places: the handles of those on this node, in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Granted<H> {
    pub call: u64,
    pub handles: Vec<H>,
}

/// Where a call can stand in line: at an object that is written here, or at one that is written on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Line {
    Here(ObjectKey),
    There(ObjectKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lane {
    Shard(ShardId),
    Peer(NodeId),
}

#[derive(Debug)]
struct Call {
    holder: Holder,
    here: Demand<ShardId>,
    there: Demand<NodeId>,
    lines: Vec<Line>,
    lacks: &'static str,
}

impl Call {
    fn all(&self) -> Held {
        self.here.all.plus(self.there.all)
    }
}

/// Bytes that have a place, by whom.
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

/// `H` is how an object's actor is reached.
#[derive(Debug)]
pub struct WriteQueue<H> {
    here: Book<H, ShardId>,
    there: Book<(), NodeId>,
    next: u64,
    calls: BTreeMap<u64, Call>,
    lines: HashMap<Line, BTreeSet<u64>>,
    shares: Shares,
    waiting: Held,
}

impl<H: Clone> WriteQueue<H> {
    pub fn new(here: BookLimits, there: BookLimits) -> WriteQueue<H> {
        WriteQueue {
            here: Book::new(here),
            there: Book::new(there),
            next: 0,
            calls: BTreeMap::new(),
            lines: HashMap::new(),
            shares: Shares::default(),
            waiting: Held::default(),
        }
    }

    /// A call comes in and waits, at least until the next [`WriteQueue::advance`].
    pub fn enter(
        &mut self,
        holder: Holder,
        here: Vec<Wanted<ShardId>>,
        there: Vec<Wanted<NodeId>>,
    ) -> Result<u64, NotWritten> {
        if self.here.is_closed() {
            return Err(NotWritten::Closing);
        }
        if self.calls.len() >= CALLS_WAITING_MAX {
            return Err(NotWritten::busy(NODE_FULL));
        }
        let (here, there) = (Demand::of(here), Demand::of(there));
        let call = Call { holder, here, there, lines: Vec::new(), lacks: OBJECT_FULL };
        self.waiting = self.waiting.plus(call.all());
        let number = self.next;
        self.next += 1;
        self.calls.insert(number, call);
        self.stands(number);
        Ok(number)
    }

    /// Gives places to every call whose turn it is.
    pub fn advance(&mut self, mut make: impl FnMut(&Wanted<ShardId>) -> H) -> Vec<Granted<H>> {
        let mut granted = Vec::new();
        if self.calls.is_empty() {
            return granted;
        }
        let fronts: BTreeSet<u64> = self.lines.values().filter_map(|line| line.first().copied()).collect();
        let mut ready: Vec<u64> = fronts.into_iter().filter(|number| self.stands(*number)).collect();
        let mut claimed: HashSet<Lane> = HashSet::new();
        while let Some(number) = self.take_next(&mut ready) {
            // What was given since may have filled its objects, and an older call may stand before it by now.
            if !self.stands(number) {
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
            let handles = self.here.place(&call.here.each, &mut make);
            self.there.place(&call.there.each, |_| ());
            granted.push(Granted { call: number, handles });
            let behind = call.lines.iter().filter_map(|line| self.lines.get(line)?.first().copied());
            let behind: BTreeSet<u64> = behind.filter(|number| !ready.contains(number)).collect();
            ready.extend(behind.into_iter().filter(|number| self.stands(*number)));
        }
        granted
    }

    /// The one of these whose turn comes first.
    fn take_next(&self, ready: &mut Vec<u64>) -> Option<u64> {
        let order = |number: &u64| self.calls.get(number).map(|call| (self.shares.of(&call.holder), *number));
        let (place, _) = ready.iter().enumerate().min_by_key(|(_, number)| order(number))?;
        Some(ready.swap_remove(place))
    }

    /// Puts a call in line where it has to wait; whether all of its objects have room and it is first everywhere.
    fn stands(&mut self, number: u64) -> bool {
        let Some(call) = self.calls.get_mut(&number) else { return false };
        let waits = |line: Line, takes: bool| {
            let is_behind = self.lines.get(&line).and_then(BTreeSet::first).is_some_and(|front| *front < number);
            !takes || is_behind
        };
        let others = |line: &Line| {
            let mine = usize::from(self.lines.contains_key(line));
            self.lines.len() > mine
        };
        let here = call.here.objects.iter().map(|one| {
            let line = Line::Here(one.0);
            (line, waits(line, self.here.object_takes(one, others(&line))))
        });
        let there = call.there.objects.iter().map(|one| {
            let line = Line::There(one.0);
            (line, waits(line, self.there.object_takes(one, others(&line))))
        });
        let all: Vec<(Line, bool)> = here.chain(there).collect();
        let is_ready = all.iter().all(|(_, waits)| !waits);
        if !is_ready {
            call.lacks = OBJECT_FULL;
        }
        // Ready, it stands in all of its lines, so that none of its objects' later calls passes it at its lane.
        for (line, _) in all.into_iter().filter(|(_, waits)| is_ready || *waits) {
            if self.lines.entry(line).or_default().insert(number) {
                call.lines.push(line);
            }
        }
        is_ready
    }

    fn remove(&mut self, number: u64) -> Option<Call> {
        let call = self.calls.remove(&number)?;
        self.waiting = self.waiting.less(call.all());
        for line in &call.lines {
            if let Some(standing) = self.lines.get_mut(line) {
                standing.remove(&number);
                if standing.is_empty() {
                    self.lines.remove(line);
                }
            }
        }
        Some(call)
    }

    /// A call does not wait any more; what it lacked, if it waited.
    pub fn leave(&mut self, number: u64) -> Option<&'static str> {
        self.remove(number).map(|call| call.lacks)
    }

    /// Gives back the place of one write on this node.
    pub fn release(&mut self, holder: &Holder, given: &Wanted<ShardId>) {
        self.shares.remove(holder, given.bytes);
        self.here.release(given);
    }

    /// Gives back the place of one write that another node was sent.
    pub fn release_sent(&mut self, holder: &Holder, given: &Wanted<NodeId>) {
        self.shares.remove(holder, given.bytes);
        self.there.release(given);
        self.there.put_away(&given.object);
    }

    /// Forgets an object that nothing waits for; whether it did.
    pub fn put_away(&mut self, object: &ObjectKey) -> bool {
        self.here.put_away(object)
    }

    /// No call gets a place from here on. What waits is given up.
    pub fn close(&mut self) -> Vec<u64> {
        self.here.close();
        let waiting: Vec<u64> = self.calls.keys().copied().collect();
        for number in &waiting {
            self.remove(*number);
        }
        waiting
    }

    /// Whether nothing has a place on this node. Other nodes answer for what they were sent.
    pub fn is_idle(&self) -> bool {
        self.here.is_idle()
    }

    /// What has a place on this node.
    pub fn held(&self) -> Held {
        self.here.held()
    }

    /// What waits for one.
    pub fn waiting(&self) -> Held {
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
    here: &Book<H, ShardId>,
    there: &Book<(), NodeId>,
    call: &Call,
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

//! The table of connections, shared between threads.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use parking_lot::Mutex;

use crate::table::{Counts, Effect, Event, Id, Limits, Millis, Owner, Table};

/// Shortest time between two reports of moved bytes of a connection, since each takes a shared lock.
const MOVED_EVERY: Millis = 500;
/// Shortest time between two log lines about too few connections.
const SAID_EVERY: Millis = 10_000;

/// Decides about the connections of one listener.
#[derive(Debug)]
pub struct Gate {
    began: Instant,
    /// Networks whose addresses do not count.
    trusted: Vec<(IpAddr, u8)>,
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Names the listener in the log.
    listener: String,
    table: Table,
    /// Last logged counts and their time.
    said: Option<(Millis, Counts)>,
    next: Id,
    ends: HashMap<Id, Arc<End>>,
}

/// Signal to close a connection.
#[derive(Debug, Default)]
pub(crate) struct End {
    is_told: AtomicBool,
    waker: AtomicWaker,
}

impl End {
    fn tell(&self) {
        self.is_told.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns whether the connection has to close. The task is woken when that changes.
    pub(crate) fn is_told(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.is_told.load(Ordering::Acquire)
    }
}

/// An admitted connection. Dropping the last handle removes it from the table.
#[derive(Debug)]
pub struct Connection {
    gate: Arc<Gate>,
    id: Id,
    end: Arc<End>,
    is_reserve: bool,
    moved: AtomicU64,
}

/// A request under way on a connection.
#[derive(Debug)]
pub struct InUse(Arc<Connection>);

impl Gate {
    /// Creates a gate. `listener` is its name in the log. `trusted` are networks whose addresses do not count, as
    /// addresses and prefix lengths.
    pub fn new(listener: &str, limits: Limits, trusted: Vec<(IpAddr, u8)>) -> Arc<Gate> {
        let listener = listener.to_owned();
        let shared = Shared { listener, table: Table::new(limits), said: None, next: 0, ends: HashMap::new() };
        Arc::new(Gate { began: Instant::now(), trusted, shared: Mutex::new(shared) })
    }

    /// Decides about a connection that was just accepted; none where it has to be dropped at once.
    pub fn open(self: &Arc<Gate>, from: IpAddr) -> Option<Arc<Connection>> {
        let from = from.to_canonical();
        let address = (!is_within(&self.trusted, from)).then_some(from);
        let now = self.now();
        let mut shared = self.shared.lock();
        let id = shared.next;
        shared.next += 1;
        let end = Arc::new(End::default());
        let mut is_reserve = None;
        for effect in shared.table.step(now, Event::Opened { id, address }) {
            match effect {
                Effect::Admit(_) => is_reserve = Some(false),
                Effect::AdmitToReserve(_) => is_reserve = Some(true),
                effect => shared.carry_out(effect),
            }
        }
        shared.say(now);
        let is_reserve = is_reserve?;
        shared.ends.insert(id, Arc::clone(&end));
        drop(shared);
        Some(Arc::new(Connection { gate: Arc::clone(self), id, end, is_reserve, moved: AtomicU64::new(now) }))
    }

    /// Connections that there are at most, those in the reserve and on their way out with them.
    pub fn limit(&self) -> usize {
        self.shared.lock().table.limit()
    }

    pub fn counts(&self) -> Counts {
        self.shared.lock().table.counts()
    }

    fn now(&self) -> Millis {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    fn step(&self, event: Event) -> Vec<Effect> {
        let now = self.now();
        let mut shared = self.shared.lock();
        let effects = shared.table.step(now, event);
        effects.iter().for_each(|effect| shared.carry_out(*effect));
        if !effects.is_empty() {
            shared.say(now);
        }
        effects
    }
}

impl Shared {
    /// Logs closed and refused connections since the last line.
    fn say(&mut self, now: Millis) {
        let (counts, listener) = (self.table.counts(), &self.listener);
        let last = self.said.map(|(_, last)| last).unwrap_or_default();
        let since = |count: fn(&Counts) -> u64| count(&counts).saturating_sub(count(&last));
        let (closed, refused, turned_away) =
            (since(|counts| counts.closed), since(|counts| counts.refused), since(|counts| counts.turned_away));
        if closed + refused + turned_away == 0 || self.said.is_some_and(|(at, _)| now.saturating_sub(at) < SAID_EVERY) {
            return;
        }
        self.said = Some((now, counts));
        tracing::warn!(
            %listener, open = counts.open, closed, refused, turned_away,
            "too many connections: idle ones were closed for new ones"
        );
    }

    fn carry_out(&mut self, effect: Effect) {
        if let Effect::Close(id, _) = effect
            && let Some(end) = self.ends.get(&id)
        {
            end.tell();
        }
    }
}

/// Whether an address is within one of the networks.
fn is_within(networks: &[(IpAddr, u8)], address: IpAddr) -> bool {
    networks.iter().any(|(network, bits)| match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differ = u32::from(*network) ^ u32::from(address);
            differ.leading_zeros() >= u32::from(*bits)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differ = u128::from(*network) ^ u128::from(address);
            differ.leading_zeros() >= u32::from(*bits)
        }
        _ => false,
    })
}

impl Connection {
    /// Whether only health is answered on it.
    pub fn is_reserve(&self) -> bool {
        self.is_reserve
    }

    /// Starts a request, which lasts until the returned value is dropped.
    pub fn begin(self: &Arc<Connection>) -> InUse {
        self.gate.step(Event::Began(self.id));
        InUse(Arc::clone(self))
    }

    /// Reports the owner of a request. Returns false if the request has to be refused, because its owner holds its
    /// share and others need the rest.
    pub fn known(&self, owner: Owner) -> bool {
        let effects = self.gate.step(Event::Known { id: self.id, owner });
        !effects.contains(&Effect::TurnAway(self.id))
    }

    /// Closes it: its stream fails from here on.
    pub fn close(&self) {
        self.end.tell();
    }

    pub(crate) fn end(&self) -> &End {
        &self.end
    }

    pub(crate) fn moved(&self) {
        let now = self.gate.now();
        let before = self.moved.load(Ordering::Relaxed);
        if now.saturating_sub(before) >= MOVED_EVERY {
            self.moved.store(now, Ordering::Relaxed);
            self.gate.step(Event::Moved(self.id));
        }
    }

    /// Returns the time since bytes moved, to within half a second.
    pub fn idle(&self) -> Duration {
        Duration::from_millis(self.gate.now().saturating_sub(self.moved.load(Ordering::Relaxed)))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut shared = self.gate.shared.lock();
        shared.ends.remove(&self.id);
        let now = self.gate.now();
        shared.table.step(now, Event::Closed(self.id));
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.gate.step(Event::Ended(self.0.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_within_its_network() {
        let network = |text: &str, bits| [(text.parse().expect("an address"), bits)];
        let within = |network: &[(IpAddr, u8)], address: &str| is_within(network, address.parse().expect("an address"));
        assert!(within(&network("10.1.0.0", 16), "10.1.255.3") && !within(&network("10.1.0.0", 16), "10.2.0.0"));
        assert!(within(&network("::1", 128), "::1") && !within(&network("::1", 128), "::2"));
        assert!(within(&network("0.0.0.0", 0), "255.1.2.3") && !within(&network("0.0.0.0", 0), "::1"));
    }

    #[test]
    fn the_idlest_is_told_to_close_and_gives_its_place_back() {
        let gate = Gate::new("test", Limits { connections: 1, reserve: 1, per_address: 9 }, Vec::new());
        let from = "192.0.2.1".parse().expect("an address");
        let first = gate.open(from).expect("room");
        assert!(!first.end().is_told(Waker::noop()));
        let second = gate.open(from).expect("room");
        assert!(first.end().is_told(Waker::noop()) && !second.is_reserve());
        let in_use = second.begin();
        assert!(second.known(Owner { organization: uuid::Uuid::nil(), credential: uuid::Uuid::nil() }));
        let third = gate.open(from).expect("room");
        assert!(third.is_reserve(), "nothing is idle");
        assert!(gate.open(from).is_none(), "as many as may be on their way out are");
        drop((first, in_use));
        assert!(!gate.open(from).expect("room").is_reserve());
        drop((second, third));
        assert_eq!((gate.counts().open, gate.counts().reserve), (0, 0));
    }
}

//! The table of connections, as plain steps: an event comes in at a time, effects come out.

use std::collections::HashMap;
use std::net::IpAddr;

use uuid::Uuid;

/// Number of a connection, chosen by the caller and never used twice.
pub type Id = u64;
/// Milliseconds since some moment of the caller's.
pub type Millis = u64;

/// Share of the connections that one organization may hold while others wait, as a divisor.
const ORGANIZATION_SHARE: usize = 2;
/// Share of one credential.
const CREDENTIAL_SHARE: usize = 4;
/// Share that a holder of its whole share gets nothing of: it is there for the others.
const KEPT_FREE: usize = 8;
/// Time after which the connection of an unauthenticated request counts as idle. A login takes less.
const UNKNOWN_BUSY_MAX: Millis = 2_000;

/// Limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are served.
    pub connections: usize,
    /// More connections, from which only health is answered. As many again may be on their way out.
    pub reserve: usize,
    /// Connections of one address, where the address counts.
    pub per_address: usize,
}

impl Limits {
    /// Everything that may be open at once.
    pub fn all(&self) -> usize {
        self.connections + 2 * self.reserve
    }
}

/// Owner of a connection, by its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub organization: Uuid,
    pub credential: Uuid,
}

/// Event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was accepted; `address` is none where it does not count, as that of a trusted proxy.
    Opened { id: Id, address: Option<IpAddr> },
    /// Bytes came or went.
    Moved(Id),
    /// A request began.
    Began(Id),
    /// A request ended.
    Ended(Id),
    /// A request showed a credential.
    Known { id: Id, owner: Owner },
    /// The connection is gone.
    Closed(Id),
}

/// Effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Serve the connection.
    Admit(Id),
    /// Answer nothing but health on the connection.
    AdmitToReserve(Id),
    /// Close a connection that was admitted before.
    Close(Id, Why),
    /// Close a new connection, because too many are closing already.
    Refuse(Id),
    /// Refuse the request of this owner, who holds its share while others need the rest.
    TurnAway(Id),
}

/// Reason for closing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Its address has as many as it may.
    Address,
    /// Its owner holds more than its share.
    Share,
    /// The connection was the idlest.
    Idlest,
}

/// Counts of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are served.
    pub open: usize,
    /// Connections in the reserve.
    pub reserve: usize,
    /// Connections that closed for others.
    pub closed: u64,
    /// Connections that were refused for want of capacity.
    pub refused: u64,
    /// Requests of owners that hold their share.
    pub turned_away: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionClass {
    Main,
    Reserve,
    /// The connection is closing.
    Leaving,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    class: ConnectionClass,
    address: Option<IpAddr>,
    owner: Option<Owner>,
    /// Requests under way.
    busy: u32,
    /// Time of the last moved bytes, or of the last start or end of a request.
    moved: Millis,
    /// Start of the oldest running request.
    busy_since: Millis,
}

/// Order of closing, first variants first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Idle, of an owner over its share.
    OverShare,
    /// Idle, and no credential was shown.
    Unknown,
    /// An unauthenticated request takes long.
    UnknownBusy,
    /// Idle.
    Idle,
}

/// All connections of one listener.
#[derive(Debug)]
pub struct Table {
    limits: Limits,
    entries: HashMap<Id, Entry>,
    of_address: HashMap<IpAddr, usize>,
    of_organization: HashMap<Uuid, usize>,
    of_credential: HashMap<Uuid, usize>,
    counts: Counts,
}

impl Table {
    pub fn new(limits: Limits) -> Table {
        Table {
            limits,
            entries: HashMap::new(),
            of_address: HashMap::new(),
            of_organization: HashMap::new(),
            of_credential: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Connections that there are at most, those in the reserve and on their way out with them.
    pub fn limit(&self) -> usize {
        self.limits.all()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Processes an event. Events of unknown connections are ignored.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        match event {
            Event::Opened { id, address } => self.opened(now, id, address),
            Event::Moved(id) => self.change(id, |entry| entry.moved = now),
            Event::Began(id) => self.change(id, |entry| {
                if entry.busy == 0 {
                    entry.busy_since = now;
                }
                entry.busy += 1;
                entry.moved = now;
            }),
            Event::Ended(id) => self.change(id, |entry| {
                entry.busy = entry.busy.saturating_sub(1);
                entry.moved = now;
            }),
            Event::Known { id, owner } => self.known(now, id, owner),
            Event::Closed(id) => {
                if let Some(entry) = self.entries.get(&id).copied() {
                    self.uncount(&entry);
                    self.entries.remove(&id);
                }
                Vec::new()
            }
        }
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Entry)) -> Vec<Effect> {
        if let Some(entry) = self.entries.get_mut(&id) {
            change(entry);
        }
        Vec::new()
    }

    fn opened(&mut self, now: Millis, id: Id, address: Option<IpAddr>) -> Vec<Effect> {
        let Limits { connections, reserve, per_address } = self.limits;
        if self.entries.len() >= self.limits.all() {
            self.counts.refused += 1;
            return vec![Effect::Refuse(id)];
        }
        let mut effects = Vec::new();
        let crowded = address.is_some_and(|address| count(&self.of_address, &address) >= per_address);
        let has_room = if crowded {
            self.make_room(now, Why::Address, &mut effects, |entry| entry.address == address)
        } else if self.counts.open >= connections {
            self.make_room(now, Why::Idlest, &mut effects, |_| true)
        } else {
            true
        };
        let class = if has_room { ConnectionClass::Main } else { ConnectionClass::Reserve };
        if class == ConnectionClass::Reserve && self.counts.reserve >= reserve {
            let idlest = self.entries.iter().filter(|(_, entry)| entry.class == ConnectionClass::Reserve);
            let idlest = idlest.min_by_key(|(id, entry)| (entry.moved, **id)).map(|(id, _)| *id);
            idlest.into_iter().for_each(|idlest| self.close(idlest, Why::Idlest, &mut effects));
        }
        let entry = Entry { class, address, owner: None, busy: 0, moved: now, busy_since: now };
        self.count(&entry);
        self.entries.insert(id, entry);
        effects.push(if has_room { Effect::Admit(id) } else { Effect::AdmitToReserve(id) });
        effects
    }

    /// Closes the first connection in the order among those that `may`. Scans all of them, but only when the table is
    /// full.
    fn make_room(&mut self, now: Millis, why: Why, effects: &mut Vec<Effect>, may: impl Fn(&Entry) -> bool) -> bool {
        let candidates = self.entries.iter().filter(|(_, entry)| entry.class == ConnectionClass::Main && may(entry));
        let ranked = candidates.filter_map(|(id, entry)| Some((self.rank(now, entry)?, entry.moved, *id)));
        let Some((rank, _, id)) = ranked.min() else { return false };
        self.close(id, if rank == Rank::OverShare { Why::Share } else { why }, effects);
        true
    }

    /// Returns the rank of a connection; `None` if it must not close because of an authenticated request.
    fn rank(&self, now: Millis, entry: &Entry) -> Option<Rank> {
        match (entry.owner, entry.busy) {
            (Some(owner), 0) if self.is_over_share(owner, 0) => Some(Rank::OverShare),
            (Some(_), 0) => Some(Rank::Idle),
            (None, 0) => Some(Rank::Unknown),
            (None, _) if now.saturating_sub(entry.busy_since) >= UNKNOWN_BUSY_MAX => Some(Rank::UnknownBusy),
            _ => None,
        }
    }

    /// Whether an owner with `more` connections than it has would hold more than its share.
    fn is_over_share(&self, owner: Owner, more: usize) -> bool {
        let share = |divisor: usize| (self.limits.connections / divisor).max(1);
        count(&self.of_organization, &owner.organization) + more > share(ORGANIZATION_SHARE)
            || count(&self.of_credential, &owner.credential) + more > share(CREDENTIAL_SHARE)
    }

    fn known(&mut self, now: Millis, id: Id, owner: Owner) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(entry) = self.entries.get(&id).copied() else { return effects };
        if entry.owner == Some(owner) || entry.class != ConnectionClass::Main {
            return effects;
        }
        self.uncount(&entry);
        self.entries.remove(&id); // it is no candidate where room is made for it
        let is_crowded =
            self.limits.connections.saturating_sub(self.counts.open + 1) < self.limits.connections / KEPT_FREE;
        let mut owner = Some(owner);
        if let Some(wanted) = owner
            && is_crowded
            && self.is_over_share(wanted, 1)
        {
            let same = |other: &Entry| {
                other.owner.is_some_and(|other| {
                    other.credential == wanted.credential || other.organization == wanted.organization
                })
            };
            if !self.make_room(now, Why::Share, &mut effects, same) {
                self.counts.turned_away += 1;
                effects.push(Effect::TurnAway(id));
                owner = entry.owner;
            }
        }
        let entry = Entry { owner, ..entry };
        self.count(&entry);
        self.entries.insert(id, entry);
        effects
    }

    fn close(&mut self, id: Id, why: Why, effects: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get(&id).copied() else { return };
        self.uncount(&entry);
        self.entries.insert(id, Entry { class: ConnectionClass::Leaving, ..entry });
        self.counts.closed += 1;
        effects.push(Effect::Close(id, why));
    }

    fn count(&mut self, entry: &Entry) {
        match entry.class {
            ConnectionClass::Main => {
                self.counts.open += 1;
                entry.address.iter().for_each(|address| *self.of_address.entry(*address).or_default() += 1);
                entry.owner.iter().for_each(|owner| {
                    *self.of_organization.entry(owner.organization).or_default() += 1;
                    *self.of_credential.entry(owner.credential).or_default() += 1;
                });
            }
            ConnectionClass::Reserve => self.counts.reserve += 1,
            ConnectionClass::Leaving => {}
        }
    }

    fn uncount(&mut self, entry: &Entry) {
        match entry.class {
            ConnectionClass::Main => {
                self.counts.open -= 1;
                entry.address.iter().for_each(|address| less(&mut self.of_address, address));
                entry.owner.iter().for_each(|owner| {
                    less(&mut self.of_organization, &owner.organization);
                    less(&mut self.of_credential, &owner.credential);
                });
            }
            ConnectionClass::Reserve => self.counts.reserve -= 1,
            ConnectionClass::Leaving => {}
        }
    }
}

fn count<K: std::hash::Hash + Eq>(counts: &HashMap<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

/// A key that counts nothing is taken away, so that the map is as large as the table.
fn less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;

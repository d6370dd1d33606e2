//! Context shared by all clients: addresses of nodes, objects, and the current phase.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use crate::cluster::recording::event_log::Journal;
use crate::cluster::recording::events::{Phase, RunEvent, Workload};

/// Versions that can be read again; the oldest are forgotten.
const VERSIONS_MAX: usize = 4000;
/// Time limit of a request: longer than an election takes, shorter than a pause.
const WAIT: Duration = Duration::from_secs(3);
/// Marks the absence of a node.
const NOBODY: u8 = 0;

/// A node that takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAt {
    pub node: u8,
    pub address: SocketAddr,
}

/// Timeout and number of tries of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub wait: Duration,
    /// Tries of a write or read that fails. With more than one, clients are careful.
    pub tries: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { wait: WAIT, tries: 1 }
    }
}

impl Patience {
    /// Returns whether clients retry. Then they give every write a key, wait as long as `Retry-After` requests, and
    /// retry at a node that is not being restarted.
    pub fn careful(self) -> bool {
        self.tries > 1
    }
}

/// An object as its clients reach it.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    pub name: String,
    /// Path in front of `/insert` and `/fetch`.
    pub path: String,
}

/// One place for an object: when the one in it has enough, the next takes its place.
#[derive(Debug)]
pub struct Slot {
    pub workload: Workload,
    pub number: u32,
    live: Mutex<Live>,
}

#[derive(Clone, Debug)]
pub struct Live {
    pub object: Arc<Object>,
    pub generation: u32,
    writes: u32,
    rows: u32,
}

impl Slot {
    pub fn new(workload: Workload, number: u32, object: Arc<Object>) -> Slot {
        let live = Live { object, generation: 0, writes: 0, rows: 0 };
        Slot { workload, number, live: Mutex::new(live) }
    }

    pub fn live(&self) -> Live {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a write; whether the object has enough now and this caller is to make the next.
    pub fn wrote(&self, rows: usize, writes_max: u32, rows_max: u32) -> bool {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let before = live.writes >= writes_max || live.rows >= rows_max;
        live.writes += 1;
        live.rows += u32::try_from(rows).unwrap_or(u32::MAX);
        !before && (live.writes >= writes_max || live.rows >= rows_max)
    }

    fn take_next(&self, object: Arc<Object>) -> Arc<Object> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Live { object, generation: live.generation + 1, writes: 0, rows: 0 };
        std::mem::replace(&mut *live, next).object
    }
}

#[derive(Debug)]
pub struct ClientContext {
    pub journal: Journal,
    pub key: String,
    pub patience: Patience,
    nodes: RwLock<Vec<NodeAt>>,
    /// The node that is being restarted, or `NOBODY`.
    away: AtomicU8,
    /// The node that may accept no connections, or `NOBODY`.
    deaf: AtomicU8,
    slots: OnceLock<Vec<Slot>>,
    phase: Mutex<Phase>,
    stop: AtomicBool,
    versions: Mutex<Vec<(Arc<Object>, u64)>>,
    /// Every object that was ever made.
    objects: Mutex<Vec<Arc<Object>>>,
    /// Operations in a row that went as they should in this phase, by the object or key in use.
    streaks: Mutex<BTreeMap<String, u32>>,
}

impl ClientContext {
    pub fn new(journal: Journal, key: String, nodes: Vec<NodeAt>) -> ClientContext {
        ClientContext {
            journal,
            key,
            patience: Patience::default(),
            nodes: RwLock::new(nodes),
            away: AtomicU8::new(NOBODY),
            deaf: AtomicU8::new(NOBODY),
            slots: OnceLock::new(),
            phase: Mutex::new(Phase::Setup),
            stop: AtomicBool::new(false),
            versions: Mutex::new(Vec::new()),
            objects: Mutex::new(Vec::new()),
            streaks: Mutex::new(BTreeMap::new()),
        }
    }

    /// Made once, before clients start.
    pub fn set_slots(&self, slots: Vec<Slot>) {
        // Whoever was first has made them all.
        let _ = self.slots.set(slots);
    }

    pub fn slots(&self) -> &[Slot] {
        self.slots.get().map_or(&[], Vec::as_slice)
    }

    pub fn nodes(&self) -> Vec<NodeAt> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_nodes(&self, nodes: Vec<NodeAt>) {
        *self.nodes.write().unwrap_or_else(PoisonError::into_inner) = nodes;
    }

    /// The node that is being restarted. Careful clients do not retry there.
    pub fn away(&self) -> Option<u8> {
        Some(self.away.load(Ordering::Relaxed)).filter(|node| *node != NOBODY)
    }

    pub fn set_away(&self, node: Option<u8>) {
        self.away.store(node.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    /// The node that may accept no connections. A read that began elsewhere does not continue there.
    pub fn deaf(&self) -> Option<u8> {
        Some(self.deaf.load(Ordering::Relaxed)).filter(|node| *node != NOBODY)
    }

    pub fn set_deaf(&self, node: Option<u8>) {
        self.deaf.store(node.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    pub fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        self.journal.say(RunEvent::Phase { phase });
        self.streaks().values_mut().for_each(|streak| *streak = 0);
    }

    fn streaks(&self) -> MutexGuard<'_, BTreeMap<String, u32>> {
        self.streaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks this object or key as in use.
    pub fn uses(&self, name: &str) {
        self.streaks().insert(name.to_owned(), 0);
    }

    /// An operation on it ended. Of what is no longer in use nothing is wanted.
    pub fn went(&self, name: &str, well: bool) {
        if let Some(streak) = self.streaks().get_mut(name) {
            *streak = if well { *streak + 1 } else { 0 };
        }
    }

    pub fn streak(&self, name: &str) -> u32 {
        self.streaks().get(name).copied().unwrap_or(0)
    }

    /// Marks it as no longer in use.
    pub fn retire(&self, name: &str) {
        self.streaks().remove(name);
    }

    /// The shortest streak of all.
    pub fn lowest_streak(&self) -> u32 {
        self.lowest_streak_of("")
    }

    /// The shortest of those whose names begin so.
    pub fn lowest_streak_of(&self, start: &str) -> u32 {
        let streaks = self.streaks();
        let named = streaks.iter().filter(|(name, _)| name.starts_with(start));
        named.map(|(_, streak)| *streak).min().unwrap_or(0)
    }

    /// The next object takes its place.
    pub fn replace(&self, slot: &Slot, object: Arc<Object>) {
        self.uses(&object.name);
        self.retire(&slot.take_next(object).name);
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Records and registers a new object.
    pub fn made(&self, workload: Workload, object: &Arc<Object>) {
        let (object, path) = (Arc::clone(object), object.path.clone());
        self.journal.say(RunEvent::Object { object: object.name.clone(), workload, path });
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).push(object);
    }

    pub fn objects(&self) -> Vec<Arc<Object>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Someone read this object at this version.
    pub fn remember(&self, object: &Arc<Object>, version: u64) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if versions.len() == VERSIONS_MAX {
            versions.drain(..VERSIONS_MAX / 2);
        }
        versions.push((Arc::clone(object), version));
    }

    /// One of them; `pick` is below how many there are.
    pub fn remembered(&self, pick: impl FnOnce(usize) -> usize) -> Option<(Arc<Object>, u64)> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        match versions.len() {
            0 => None,
            count => versions.get(pick(count)).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_alone_makes_the_next_object() {
        let object = |name: &str| Arc::new(Object { name: name.into(), path: String::new() });
        let slot = Slot::new(Workload::Set, 0, object("a"));
        let full: Vec<bool> = (0..4).map(|_| slot.wrote(1, 2, 100)).collect();
        assert_eq!(full, [false, true, false, false]);
        slot.take_next(object("b"));
        assert_eq!((slot.live().object.name.as_str(), slot.live().generation), ("b", 1));
        assert!(slot.wrote(100, 2, 100), "by its rows");
    }

    #[test]
    fn a_failure_ends_a_streak_and_what_is_retired_has_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let stage = ClientContext::new(Journal::create(dir.path()).expect("a journal"), String::new(), Vec::new());
        ["a", "b"].into_iter().for_each(|name| stage.uses(name));
        [true, true, false, true].into_iter().for_each(|well| stage.went("a", well));
        [true, true].into_iter().for_each(|well| stage.went("b", well));
        assert_eq!((stage.streak("a"), stage.lowest_streak()), (1, 1));
        stage.retire("a");
        stage.went("a", true);
        assert_eq!(stage.lowest_streak(), 2);
        stage.enter(Phase::Calm);
        assert_eq!(stage.lowest_streak(), 0);
    }
}

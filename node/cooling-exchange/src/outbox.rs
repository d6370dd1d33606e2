//! Which states go to which node, and when. Pure: the time, the nodes and the states are given.
//!
//! A changed state goes to every live node with the next flush; flushes are [`FLUSH_EVERY`] apart. Once in [`ROUND_EVERY`]
//! a round sends states that did not change, so that lost messages do no lasting harm. While one node still receives,
//! what changes for it waits, and the other nodes are served.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use assay_node_models::cooling::{COOLING_STATES_MAX, CoolingKey, CoolingState, CoolingTable, FORGET_MS};
use assay_storage_model::NodeId;

use crate::wire::{KEY_BYTES_MAX, key_bytes};

/// Time between two flushes.
pub const FLUSH_EVERY: Duration = Duration::from_millis(50);
/// Time between two rounds.
pub const ROUND_EVERY: Duration = Duration::from_secs(10);
/// Upper bound of the states of one round. The next one goes on behind them.
pub const STATES_PER_ROUND_MAX: usize = 2_000;
/// Upper bound of the keys that wait for one node. A key beyond them waits for a round.
const PENDING_MAX: usize = COOLING_STATES_MAX;

/// States for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutgoingStates {
    pub node: NodeId,
    pub states: Vec<(CoolingKey, CoolingState)>,
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Keys of states that changed since the last flush.
    changed: BTreeSet<CoolingKey>,
    nodes: BTreeMap<NodeId, NodeOutbox>,
    /// Times since the start.
    next_flush: Duration,
    next_round: Duration,
    /// Key behind which the next round begins.
    round_end: Option<CoolingKey>,
}

#[derive(Debug, Default)]
struct NodeOutbox {
    pending: BTreeSet<CoolingKey>,
    is_receiving: bool,
}

impl Outbox {
    /// Notes that a state changed here.
    pub fn changed(&mut self, key: &CoolingKey) {
        if key_bytes(key) <= KEY_BYTES_MAX {
            insert(&mut self.changed, key);
        }
    }

    /// Notes that a node received what was sent to it, or failed to.
    pub fn finished(&mut self, node: NodeId) {
        if let Some(outbox) = self.nodes.get_mut(&node) {
            outbox.is_receiving = false;
        }
    }

    /// Returns the time of the next step.
    pub fn due(&self) -> Duration {
        if self.has_work() { self.next_flush.min(self.next_round) } else { self.next_round }
    }

    fn has_work(&self) -> bool {
        !self.changed.is_empty() || self.nodes.values().any(NodeOutbox::is_ready)
    }

    /// Returns what has to be sent now. `at` is the time since the start, and `alive` are the other live nodes.
    pub fn step(
        &mut self,
        at: Duration,
        alive: &[NodeId],
        table: &mut CoolingTable,
        now_ms: u64,
    ) -> Vec<OutgoingStates> {
        if at >= self.next_round {
            self.next_round = at + ROUND_EVERY;
            table.forget(now_ms);
            self.begin_round(table);
        }
        if at < self.next_flush || !self.has_work() {
            return Vec::new();
        }
        self.next_flush = at + FLUSH_EVERY;
        self.nodes.retain(|node, _| alive.contains(node));
        for node in alive {
            let outbox = self.nodes.entry(*node).or_default();
            self.changed.iter().for_each(|key| insert(&mut outbox.pending, key));
        }
        self.changed.clear();
        let ready = self.nodes.iter_mut().filter(|(_, outbox)| outbox.is_ready());
        ready.filter_map(|(node, outbox)| outbox.take(*node, table)).collect()
    }

    /// Marks the next states in the order of their keys.
    fn begin_round(&mut self, table: &CoolingTable) {
        let mut keys: Vec<&CoolingKey> = table.states().map(|(key, _)| key).collect();
        keys.sort_unstable();
        let begin = self.round_end.take().map_or(0, |end| keys.partition_point(|key| **key <= end));
        let rest = &keys[begin..];
        if rest.len() > STATES_PER_ROUND_MAX {
            self.round_end = Some(rest[STATES_PER_ROUND_MAX - 1].clone());
        }
        rest.iter().take(STATES_PER_ROUND_MAX).for_each(|key| self.changed(key));
    }
}

impl NodeOutbox {
    fn is_ready(&self) -> bool {
        !self.is_receiving && !self.pending.is_empty()
    }

    /// Takes what waits for the node. A state that was forgotten meanwhile is not sent.
    fn take(&mut self, node: NodeId, table: &CoolingTable) -> Option<OutgoingStates> {
        let pending = std::mem::take(&mut self.pending);
        let states = pending.into_iter().filter_map(|key| {
            let state = table.state(&key)?.clone();
            Some((key, state))
        });
        let states: Vec<_> = states.collect();
        self.is_receiving = !states.is_empty();
        self.is_receiving.then_some(OutgoingStates { node, states })
    }
}

fn insert(keys: &mut BTreeSet<CoolingKey>, key: &CoolingKey) {
    if keys.len() < PENDING_MAX {
        keys.insert(key.clone());
    }
}

/// Joins states of another node. Returns the number of those that changed anything here.
pub(crate) fn join(table: &mut CoolingTable, states: &[(CoolingKey, CoolingState)], now_ms: u64) -> usize {
    // One that is forgotten here would come back with every round of a node that still has it.
    let is_kept = |state: &CoolingState| state.last_ms().saturating_add(FORGET_MS) > now_ms;
    states.iter().filter(|(key, state)| is_kept(state) && table.join(key, state, now_ms)).count()
}

#[cfg(test)]
mod tests {
    use assay_node_models::cooling::UpstreamFailure;

    use super::*;

    const NOW: u64 = 1_795_737_600_000;
    const START: Duration = Duration::ZERO;

    fn key(model: &str) -> CoolingKey {
        CoolingKey { secret_id: "s".into(), model: model.into() }
    }

    fn fail(outbox: &mut Outbox, table: &mut CoolingTable, model: &str) {
        table.fail(&key(model), NOW, 1, UpstreamFailure::Unavailable);
        outbox.changed(&key(model));
    }

    fn models(outgoing: &[OutgoingStates]) -> Vec<(u64, Vec<&str>)> {
        let models = outgoing.iter().map(|OutgoingStates { node, states }| {
            (node.0, states.iter().map(|(key, _)| key.model.as_str()).collect())
        });
        models.collect()
    }

    fn owned(number: u64, models: &[&'static str]) -> (u64, Vec<&'static str>) {
        (number, models.to_vec())
    }

    #[test]
    fn a_change_goes_to_all_live_nodes_at_once_and_further_ones_together() {
        let (mut outbox, mut table) = (Outbox::default(), CoolingTable::new());
        let alive = [NodeId(2), NodeId(3)];
        fail(&mut outbox, &mut table, "a");
        assert_eq!(outbox.due(), START);
        assert_eq!(models(&outbox.step(START, &alive, &mut table, NOW)), [owned(2, &["a"]), owned(3, &["a"])]);
        alive.iter().for_each(|node| outbox.finished(*node));
        assert_eq!(outbox.due(), ROUND_EVERY);
        for model in ["b", "c", "b"] {
            fail(&mut outbox, &mut table, model);
            assert_eq!(outbox.step(FLUSH_EVERY / 2, &alive, &mut table, NOW), []);
        }
        assert_eq!(outbox.due(), FLUSH_EVERY);
        let flushed = outbox.step(FLUSH_EVERY, &alive, &mut table, NOW);
        assert_eq!(models(&flushed), [owned(2, &["b", "c"]), owned(3, &["b", "c"])]);
    }

    #[test]
    fn what_changes_while_a_node_receives_waits_for_that_node_alone() {
        let (mut outbox, mut table) = (Outbox::default(), CoolingTable::new());
        let alive = [NodeId(2), NodeId(3)];
        fail(&mut outbox, &mut table, "a");
        outbox.step(START, &alive, &mut table, NOW);
        outbox.finished(NodeId(3));
        fail(&mut outbox, &mut table, "b");
        assert_eq!(models(&outbox.step(FLUSH_EVERY, &alive, &mut table, NOW)), [owned(3, &["b"])]);
        outbox.finished(NodeId(3));
        fail(&mut outbox, &mut table, "c");
        assert_eq!(models(&outbox.step(FLUSH_EVERY * 2, &alive, &mut table, NOW)), [owned(3, &["c"])]);
        outbox.finished(NodeId(2));
        assert_eq!(outbox.due(), FLUSH_EVERY * 3);
        assert_eq!(models(&outbox.step(FLUSH_EVERY * 3, &alive, &mut table, NOW)), [owned(2, &["b", "c"])]);
        outbox.finished(NodeId(2));
        assert_eq!(outbox.due(), ROUND_EVERY);
        fail(&mut outbox, &mut table, "d");
        let flushed = outbox.step(FLUSH_EVERY * 4, &[NodeId(3)], &mut table, NOW);
        assert_eq!((flushed.len(), outbox.due()), (0, ROUND_EVERY), "node 3 receives, and node 2 is gone");
    }

    #[test]
    fn rounds_send_all_states_a_bounded_number_each() {
        let (mut outbox, mut table) = (Outbox::default(), CoolingTable::new());
        let number = STATES_PER_ROUND_MAX * 2 + 3;
        for at in 0..number {
            table.fail(&key(&format!("{at:06}")), NOW, 1, UpstreamFailure::Unavailable);
        }
        let mut sent = Vec::new();
        let mut lengths = Vec::new();
        for round in 0..3 {
            let outgoing = outbox.step(ROUND_EVERY * round, &[NodeId(2)], &mut table, NOW);
            lengths.push(outgoing[0].states.len());
            sent.extend(models(&outgoing).remove(0).1.into_iter().map(str::to_owned));
            outbox.finished(NodeId(2));
        }
        assert_eq!(lengths, [STATES_PER_ROUND_MAX, STATES_PER_ROUND_MAX, 3]);
        assert_eq!(sent, (0..number).map(|at| format!("{at:06}")).collect::<Vec<_>>());
        let again = outbox.step(ROUND_EVERY * 3, &[NodeId(2)], &mut table, NOW);
        assert_eq!(again[0].states[0].0, key("000000"), "it begins anew");
    }

    #[test]
    fn a_round_forgets_old_states_and_they_do_not_come_back() {
        let (mut outbox, mut table) = (Outbox::default(), CoolingTable::new());
        fail(&mut outbox, &mut table, "a");
        let old: Vec<_> = table.states().map(|(key, state)| (key.clone(), state.clone())).collect();
        let later = NOW + FORGET_MS;
        assert_eq!(join(&mut CoolingTable::new(), &old, NOW), 1);
        assert_eq!(outbox.step(START, &[NodeId(2)], &mut table, later), []);
        assert_eq!((table.states().count(), join(&mut table, &old, later), table.states().count()), (0, 0, 0));
    }

    #[test]
    fn a_node_alone_sends_nothing_and_keeps_nothing() {
        let (mut outbox, mut table) = (Outbox::default(), CoolingTable::new());
        fail(&mut outbox, &mut table, "a");
        assert_eq!(outbox.step(START, &[], &mut table, NOW), []);
        assert_eq!(outbox.due(), ROUND_EVERY);
        outbox.changed(&key(&"x".repeat(KEY_BYTES_MAX)));
        assert_eq!(outbox.due(), ROUND_EVERY, "a long key stays here");
    }
}

//! Simulated nodes whose messages are lost, doubled and reordered: once messages arrive, all tables agree.

use std::time::Duration;

use assay_node_models::cooling::{CoolingKey, CoolingTable, UpstreamFailure};
use assay_storage_model::NodeId;
use bytes::Bytes;
use proptest::prelude::*;

use crate::outbox::{FLUSH_EVERY, Outbox, ROUND_EVERY, join};
use crate::wire;

const NODES: usize = 4;
const MODELS: usize = 5;
const NOW: u64 = 1_795_737_600_000;

/// Change of one table, or what happens to a message.
#[derive(Clone, Copy, Debug)]
enum SimulatedEvent {
    Begin {
        node: usize,
        model: usize,
    },
    Fail {
        node: usize,
        model: usize,
        limited: bool,
    },
    Succeed {
        node: usize,
        model: usize,
        ago_ms: u64,
    },
    Deliver {
        message: prop::sample::Index,
    },
    Repeat {
        message: prop::sample::Index,
    },
    Lose {
        message: prop::sample::Index,
    },
    /// A node stops to hear and to be heard, or comes back.
    Cut {
        node: usize,
    },
    Wait {
        ms: u64,
    },
}

fn event() -> impl Strategy<Value = SimulatedEvent> {
    let (node, model) = (0..NODES, 0..MODELS);
    let message = any::<prop::sample::Index>();
    prop_oneof![
        1 => (node.clone(), model.clone()).prop_map(|(node, model)| SimulatedEvent::Begin { node, model }),
        1 => (node.clone(), model.clone(), any::<bool>())
            .prop_map(|(node, model, limited)| SimulatedEvent::Fail { node, model, limited }),
        1 => (node.clone(), model, 0..2_000_u64)
            .prop_map(|(node, model, ago_ms)| SimulatedEvent::Succeed { node, model, ago_ms }),
        2 => message.clone().prop_map(|message| SimulatedEvent::Deliver { message }),
        1 => message.clone().prop_map(|message| SimulatedEvent::Repeat { message }),
        1 => message.prop_map(|message| SimulatedEvent::Lose { message }),
        1 => node.prop_map(|node| SimulatedEvent::Cut { node }),
        2 => (0..3_000_u64).prop_map(|ms| SimulatedEvent::Wait { ms }),
    ]
}

#[derive(Default)]
struct SimulatedNode {
    table: CoolingTable,
    outbox: Outbox,
    is_cut: bool,
}

#[derive(Default)]
struct SimulatedCluster {
    nodes: Vec<SimulatedNode>,
    under_way: Vec<(NodeId, NodeId, Bytes)>,
    at: Duration,
    attempts: u64,
}

impl SimulatedCluster {
    fn new() -> SimulatedCluster {
        let nodes = (0..NODES).map(|_| SimulatedNode::default()).collect();
        SimulatedCluster { nodes, ..SimulatedCluster::default() }
    }

    fn now_ms(&self) -> u64 {
        NOW + u64::try_from(self.at.as_millis()).expect("a short time")
    }

    fn change(&mut self, node: usize, model: usize, change: impl FnOnce(&mut CoolingTable, &CoolingKey, u64, u64)) {
        self.attempts += 1;
        let (now, attempt) = (self.now_ms(), self.attempts);
        let key = CoolingKey { secret_id: "s".into(), model: model.to_string() };
        change(&mut self.nodes[node].table, &key, now, attempt);
        self.nodes[node].outbox.changed(&key);
    }

    fn happen(&mut self, event: SimulatedEvent) {
        match event {
            SimulatedEvent::Begin { node, model } => self.change(node, model, |table, key, now, attempt| {
                // A cooling upstream is called where nothing else is left.
                let _cooling = table.begin(key, now, attempt);
            }),
            SimulatedEvent::Fail { node, model, limited } => {
                let failure = match limited {
                    true => UpstreamFailure::RateLimited { retry_after_ms: None },
                    false => UpstreamFailure::Unavailable,
                };
                self.change(node, model, |table, key, now, attempt| {
                    table.fail(key, now, attempt, failure);
                });
            }
            SimulatedEvent::Succeed { node, model, ago_ms } => {
                self.change(node, model, |table, key, now, _| table.succeed(key, now - ago_ms));
            }
            SimulatedEvent::Deliver { message } => {
                if let Some(at) = self.pick(message) {
                    self.deliver(at);
                }
            }
            SimulatedEvent::Repeat { message } => {
                if let Some(at) = self.pick(message) {
                    let again = self.under_way[at].clone();
                    self.under_way.push(again);
                }
            }
            SimulatedEvent::Lose { message } => {
                if let Some(at) = self.pick(message) {
                    let (_, to, _) = self.under_way.swap_remove(at);
                    self.finish(to);
                }
            }
            SimulatedEvent::Cut { node } => self.nodes[node].is_cut = !self.nodes[node].is_cut,
            SimulatedEvent::Wait { ms } => self.at += Duration::from_millis(ms),
        }
        self.step();
    }

    fn pick(&self, message: prop::sample::Index) -> Option<usize> {
        (!self.under_way.is_empty()).then(|| message.index(self.under_way.len()))
    }

    fn step(&mut self) {
        let now = self.now_ms();
        for node in 0..NODES {
            let is_other = |other: &usize| *other != node && !self.nodes[node].is_cut && !self.nodes[*other].is_cut;
            let alive: Vec<NodeId> = (0..NODES).filter(is_other).map(|other| NodeId(other as u64)).collect();
            let SimulatedNode { table, outbox, .. } = &mut self.nodes[node];
            for outgoing in outbox.step(self.at, &alive, table, now) {
                let from = NodeId(node as u64);
                let messages = wire::encode(&outgoing.states).into_iter();
                self.under_way.extend(messages.map(|message| (from, outgoing.node, message)));
            }
        }
    }

    fn deliver(&mut self, at: usize) {
        let (from, to, message) = self.under_way.swap_remove(at);
        let (now, states) = (self.now_ms(), wire::decode(&message).expect("is readable"));
        let there = &mut self.nodes[to.0 as usize];
        if !there.is_cut {
            join(&mut there.table, &states, now);
        }
        self.nodes[from.0 as usize].outbox.finished(to);
    }

    fn finish(&mut self, to: NodeId) {
        self.nodes.iter_mut().for_each(|node| node.outbox.finished(to));
    }

    /// Lets all messages arrive, for as long as a round takes.
    fn settle(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.is_cut = false);
        let end = self.at + ROUND_EVERY + FLUSH_EVERY * 4;
        while self.at < end {
            while !self.under_way.is_empty() {
                self.deliver(self.under_way.len() - 1);
            }
            self.at += FLUSH_EVERY;
            self.step();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn all_tables_agree_once_messages_arrive_again(events in prop::collection::vec(event(), 0..120)) {
        let mut cluster = SimulatedCluster::new();
        events.into_iter().for_each(|event| cluster.happen(event));
        cluster.settle();
        for node in &cluster.nodes[1..] {
            prop_assert_eq!(&node.table, &cluster.nodes[0].table);
        }
    }
}

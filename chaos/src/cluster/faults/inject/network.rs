//! Network faults between nodes. Clients still reach every node, which reveals responses of old leaders.

use anyhow::Context;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::cluster::environment::network::Network;
use crate::cluster::faults::conductor::{Conductor, Injected};
use crate::cluster::faults::fault::Planned;

const LOSS_PERCENT: std::ops::RangeInclusive<u32> = 1..=30;
const SLOW_KBIT: std::ops::RangeInclusive<u32> = 500..=4000;

impl Conductor<'_> {
    fn net(&self) -> anyhow::Result<&Network> {
        self.world.network.as_ref().context("there is no network of our own")
    }

    /// The node and the others.
    fn apart_from(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<(u8, Vec<u8>)> {
        let node = self.choose(fault.who, rng)?;
        Ok((node, self.world.members().into_iter().filter(|other| *other != node).collect()))
    }

    pub(super) fn isolate(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let (node, others) = self.apart_from(fault, rng)?;
        for other in others {
            self.net()?.cut_both(node, other)?;
        }
        Ok(Injected::Installed(format!("node {node} ({:?}) is cut off from its peers", fault.who)))
    }

    pub(super) fn one_way(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let (node, mut others) = self.apart_from(fault, rng)?;
        let out = rng.random_bool(0.5);
        if rng.random_bool(0.3) {
            others.shuffle(rng);
            others.truncate(1);
        }
        for other in &others {
            let (from, to) = if out { (node, *other) } else { (*other, node) };
            self.net()?.cut(from, to)?;
        }
        let way = if out { "to" } else { "from" };
        Ok(Injected::Installed(format!("nothing gets from node {node} ({:?}) seen {way} {others:?}", fault.who)))
    }

    pub(super) fn bridge(&mut self, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let mut members = self.world.members();
        members.shuffle(rng);
        let [one, other, ..] = members[..] else { return Ok(Injected::Skipped("there are too few nodes".into())) };
        self.net()?.cut_both(one, other)?;
        Ok(Injected::Installed(format!("nodes {one} and {other} do not reach each other, the rest reaches both")))
    }

    pub(super) fn long_one_way(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let (node, mut others) = self.apart_from(fault, rng)?;
        others.shuffle(rng);
        let other = *others.first().context("there is no other node")?;
        self.net()?.cut(node, other)?;
        Ok(Injected::Installed(format!("nothing gets from node {node} ({:?}) to node {other} for long", fault.who)))
    }

    pub(super) fn loss(&mut self, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let percent = rng.random_range(LOSS_PERCENT);
        let members = self.world.members();
        for from in &members {
            for to in members.iter().filter(|to| *to != from) {
                self.net()?.lose(*from, *to, percent)?;
            }
        }
        Ok(Injected::Installed(format!("{percent} of 100 packets between nodes are lost")))
    }

    pub(super) fn slow(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let node = self.choose(fault.who, rng)?;
        let kbit = rng.random_range(SLOW_KBIT);
        self.net()?.slow(node, kbit)?;
        Ok(Injected::Installed(format!("node {node} ({:?}) sends {kbit} kbit a second", fault.who)))
    }
}

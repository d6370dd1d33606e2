//! Disk faults: power cuts and full disks.

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cluster::faults::conductor::{Conductor, Injected};
use crate::cluster::faults::fault::Planned;

/// Maximum time that processes may still run on a dead disk.
const AFTERLIFE_MS_MAX: u64 = 30;
/// Every other time a little space is left, so that refusals and not failures are tested.
const LEFT_MIB: std::ops::Range<u64> = 8..24;

impl Conductor<'_> {
    pub(super) fn power_cut(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let node = self.choose(fault.who, rng)?;
        self.cut(&[node], rng)?;
        Ok(Injected::Installed(format!("the power of node {node} ({:?}) is cut", fault.who)))
    }

    pub(super) fn power_cut_all(&mut self, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let all = self.world.up();
        self.cut(&all, rng)?;
        Ok(Injected::Installed(format!("the power of nodes {all:?} is cut")))
    }

    /// The disks first, at once; what runs on them goes a moment later.
    fn cut(&mut self, nodes: &[u8], rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
        for node in nodes {
            self.world.node(*node)?.cut_power()?;
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..=AFTERLIFE_MS_MAX)));
        for node in nodes {
            self.world.node(*node)?.kill()?;
        }
        for node in nodes {
            self.world.node(*node)?.unmount()?;
        }
        Ok(())
    }

    pub(super) fn disk_full(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let number = self.choose(fault.who, rng)?;
        let leave = if rng.random_bool(0.5) { rng.random_range(LEFT_MIB) } else { 0 };
        let node = self.world.node(number)?;
        node.excuse("its disk was full")?;
        node.fill(leave)?;
        Ok(Injected::Installed(format!("the disk of node {number} ({:?}) is full but for {leave} MiB", fault.who)))
    }
}

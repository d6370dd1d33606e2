//! Process faults: killed, paused, restarted one by one, outdated.

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cluster::faults::conductor::{Conductor, Injected};
use crate::cluster::faults::fault::{Planned, Who};

/// Time limit for a node to stop: requests in flight get 30 s.
const STOP_MAX: Duration = Duration::from_secs(40);
/// A node may be killed a second time while it comes up.
const AGAIN_SHARE: f64 = 0.3;
const AGAIN_AFTER_MS: std::ops::RangeInclusive<u64> = 20..=800;
/// Between two nodes of a rolling restart groups find their leaders.
const LED_MAX: Duration = Duration::from_secs(10);

impl Conductor<'_> {
    pub(super) fn kill(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let number = self.choose(fault.who, rng)?;
        self.world.node(number)?.kill()?;
        let again = rng.random_bool(AGAIN_SHARE);
        if again {
            self.hold(Duration::from_millis(fault.hold_ms))?;
            self.world.node(number)?.launch()?;
            self.hold(Duration::from_millis(rng.random_range(AGAIN_AFTER_MS)))?;
            self.world.node(number)?.kill()?;
        }
        let again = if again { " and once more while it recovers" } else { "" };
        Ok(Injected::Installed(format!("node {number} ({:?}) is killed{again}", fault.who)))
    }

    pub(super) fn kill_all(&mut self) -> anyhow::Result<Injected> {
        let all = self.world.up();
        for node in &all {
            self.world.node(*node)?.kill()?;
        }
        Ok(Injected::Installed(format!("nodes {all:?} are killed")))
    }

    pub(super) fn pause(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let node = self.choose(fault.who, rng)?;
        self.world.paused.insert(node);
        self.world.node(node)?.signal("STOP")?;
        Ok(Injected::Installed(format!("node {node} ({:?}) is held for {} ms", fault.who, fault.hold_ms)))
    }

    /// Stops and restarts every node, one after the other.
    pub(super) fn rolling(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let mut nodes = self.world.up();
        let first = rng.random_range(0..nodes.len().max(1));
        nodes.rotate_left(first);
        for number in &nodes {
            self.stop(*number, STOP_MAX)?;
            self.hold(Duration::from_millis(fault.hold_ms))?;
            self.world.node(*number)?.launch()?;
            self.await_ready(vec![*number])?;
            self.until_led(LED_MAX)?;
        }
        Ok(Injected::Installed(format!("nodes {nodes:?} are restarted one after the other")))
    }

    /// A node is away for so long that the others have thrown away what it lacks of the log.
    pub(super) fn outdate(&mut self, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let node = self.choose(Who::Follower, rng)?;
        self.world.node(node)?.kill()?;
        Ok(Injected::Installed(format!("node {node} is away while the others seal")))
    }
}

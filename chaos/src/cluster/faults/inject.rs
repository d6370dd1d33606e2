//! Injection of each fault. All are healed alike, by restoring everything in the world that is out of order.

mod disks;
mod members;
mod network;
mod operators;
mod processes;
mod resources;

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::conductor::{Conductor, Injected};
use super::fault::{Kind, Planned};
use crate::http_client::HttpClient as Connection;

/// A clock jumps by one of these, forwards or backwards; the last by more than requests are remembered for.
const JUMPS_SECONDS: [i64; 5] = [3, 8, 60, 300, 26 * 3600];
/// A node looks at its clock's file about once a second.
const JUMP_WAIT: Duration = Duration::from_secs(4);
const JUMP_POLL: Duration = Duration::from_millis(200);
const DAY_SECONDS: i64 = 86_400;

impl Conductor<'_> {
    pub fn install(&mut self, fault: &Planned) -> anyhow::Result<Injected> {
        let mut rng = ChaCha8Rng::seed_from_u64(fault.salt);
        match fault.kind {
            Kind::Kill => self.kill(fault, &mut rng),
            Kind::KillAll => self.kill_all(),
            Kind::Pause => self.pause(fault, &mut rng),
            Kind::Rolling => self.rolling(fault, &mut rng),
            Kind::Snapshot => self.outdate(&mut rng),
            Kind::Isolate => self.isolate(fault, &mut rng),
            Kind::OneWay => self.one_way(fault, &mut rng),
            Kind::Bridge | Kind::Ring => self.bridge(&mut rng),
            Kind::Loss => self.loss(&mut rng),
            Kind::Slow => self.slow(fault, &mut rng),
            Kind::PowerCut => self.power_cut(fault, &mut rng),
            Kind::PowerCutAll => self.power_cut_all(&mut rng),
            Kind::DiskFull => self.disk_full(fault, &mut rng),
            Kind::Add => self.add_node(),
            Kind::Replace => self.replace_node(&mut rng),
            Kind::Clock => self.clock(fault, &mut rng),
            Kind::OldCopy => self.old_copy(fault, &mut rng, false),
            Kind::HotOldCopy => self.old_copy(fault, &mut rng, true),
            Kind::EmptyDir => self.empty_directory(fault, &mut rng),
            Kind::MovedAddress => self.moved_address(fault, &mut rng),
            Kind::Files => self.files(fault, &mut rng),
            Kind::SlowDisk => self.slow_disk(fault, &mut rng),
            Kind::FlippedSegment => self.flipped_segment(fault, &mut rng),
            Kind::LongOneWay => self.long_one_way(fault, &mut rng),
        }
    }

    /// Moves the clock of a node. Installed once the node itself reports the changed time.
    fn clock(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let node = self.choose(fault.who, rng)?;
        let jump = JUMPS_SECONDS[rng.random_range(0..JUMPS_SECONDS.len())];
        let jump = if rng.random_bool(0.5) { jump } else { -jump };
        let (before, since) = (self.time_at(node)?, Instant::now());
        self.world.node(node)?.set_clock(jump)?;
        while since.elapsed() < JUMP_WAIT {
            self.hold(JUMP_POLL)?;
            let passed = i64::try_from(since.elapsed().as_secs())?;
            let moved = (self.time_at(node)? - before - passed).rem_euclid(DAY_SECONDS);
            if (moved - jump.rem_euclid(DAY_SECONDS)).abs() <= 1 {
                return Ok(Injected::Installed(format!("the clock of node {node} jumps by {jump} s")));
            }
        }
        anyhow::bail!("the clock of node {node} does not jump by {jump} s")
    }

    fn time_at(&mut self, node: u8) -> anyhow::Result<i64> {
        let address = self.world.node(node)?.http;
        Connection::connect(address, "", JUMP_WAIT)?.time_of_day()
    }
}

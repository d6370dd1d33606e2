//! Operator mistakes: a directory restored from an older copy, an empty one, another address.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use rand_chacha::ChaCha8Rng;

use crate::cluster::environment::status::Status;
use crate::cluster::faults::conductor::{Conductor, Injected};
use crate::cluster::faults::fault::Planned;
use crate::directory_copies::copy;

/// Time limit for a node to stop.
const STOP_MAX: Duration = Duration::from_secs(40);
/// Time after which every other node has seen a start.
const SEEN_AFTER: Duration = Duration::from_secs(3);
/// Time in which the node and one other acknowledge writes that the third one lacks.
const QUORUM_MOVED: Duration = Duration::from_secs(4);
/// Time limit for a node that must not start to report it.
const REFUSED_AFTER: Duration = Duration::from_secs(20);
/// Time limit after a start for another node to learn a node's new address.
const KNOWN_AFTER: Duration = Duration::from_secs(20);
/// Prefix of the setting of a node's address.
const PEER_ADDRESS: &str = "cluster.peer_address=";
const POLL: Duration = Duration::from_millis(250);

impl Conductor<'_> {
    /// One node has an older copy of its directory, and the only other one that runs lacks what was acknowledged since.
    /// The two must not serve until the third is back.
    pub(super) fn old_copy(&mut self, fault: &Planned, rng: &mut ChaCha8Rng, hot: bool) -> anyhow::Result<Injected> {
        // With less than all replicas in place this would be the loss of a majority.
        self.world.settle()?;
        let number = self.choose(fault.who, rng)?;
        let others: Vec<u8> = self.world.members().into_iter().filter(|other| *other != number).collect();
        let [behind, ahead, rest @ ..] = &others[..] else {
            return Ok(Injected::Skipped("there are too few nodes".into()));
        };
        let node = self.world.node(number)?;
        let (data, aside) = (node.data_dir(), node.aside());
        if hot {
            node.signal("STOP")?;
            let copied = copy(&data, &aside);
            node.signal("CONT")?;
            copied.context("copying the directory")?;
            node.kill()?;
        } else {
            node.terminate(STOP_MAX)?;
            copy(&data, &aside).context("copying the directory")?;
        }
        self.world.node(number)?.launch()?;
        self.await_ready(vec![number])?;
        self.hold(SEEN_AFTER)?;
        self.apart(*behind, &others, number)?;
        self.hold(QUORUM_MOVED)?;
        self.world.node(number)?.kill()?;
        std::fs::remove_dir_all(&data).context("taking the directory away")?;
        std::fs::rename(&aside, &data).context("putting the copy back")?;
        self.world.network.as_ref().context("there is no network of our own")?.heal(true)?;
        for other in std::iter::once(ahead).chain(rest) {
            self.apart(*other, &others, number)?;
        }
        let node = self.world.node(number)?;
        node.excuse("its directory is an older copy")?;
        node.launch()?;
        self.world.started.insert(number);
        let how = if hot { "ran" } else { "was stopped" };
        Ok(Injected::Installed(format!(
            "node {number} ({:?}) has the copy of its directory that was made while it {how}; node {behind} lacks what \
             was acknowledged since",
            fault.who
        )))
    }

    /// Cuts a node off from all others.
    fn apart(&self, node: u8, others: &[u8], one_more: u8) -> anyhow::Result<()> {
        let network = self.world.network.as_ref().context("there is no network of our own")?;
        let others = others.iter().copied().chain([one_more]).filter(|other| *other != node);
        others.into_iter().try_for_each(|other| network.cut_both(node, other))
    }

    /// The disk of a node is not mounted: it must not found a cluster of its own at its address.
    pub(super) fn empty_directory(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        let number = self.choose(fault.who, rng)?;
        let node = self.world.node(number)?;
        let (data, aside, arguments) = (node.data_dir(), node.aside(), node.arguments.clone());
        node.kill()?;
        std::fs::rename(&data, &aside).context("taking the directory away")?;
        node.arguments.extend(["--set".to_owned(), format!("{PEER_ADDRESS}{}", node.peer)]);
        node.excuse("its directory was empty")?;
        node.launch()?;
        let ready = node.await_ready(Instant::now() + REFUSED_AFTER);
        let wrong = match ready {
            Ok(true) => Some("it is ready"),
            Err(_) => Some("it neither ended nor became ready"),
            Ok(false) => None,
        };
        node.kill()?;
        node.arguments = arguments;
        let left = std::fs::read_dir(&data).into_iter().flatten().count();
        if data.exists() {
            std::fs::remove_dir_all(&data).context("removing what it made")?;
        }
        std::fs::rename(&aside, &data).context("putting the directory back")?;
        if let Some(why) = wrong {
            self.broken(fault, format!("node {number} was started on an empty directory, and {why}"));
        } else if left > 0 {
            self.broken(fault, format!("node {number} refused an empty directory, and left {left} files in it"));
        }
        Ok(Injected::Installed(format!("node {number} ({:?}) is started on an empty directory", fault.who)))
    }

    /// Restarts a node at another address. If no other node learns it, the node goes back to the old one.
    pub(super) fn moved_address(&mut self, fault: &Planned, rng: &mut ChaCha8Rng) -> anyhow::Result<Injected> {
        self.world.settle()?;
        let number = self.choose(fault.who, rng)?;
        let id = self.world.id_of(number)?;
        let old = self.world.node(number)?.peer;
        // Back and forth between two ports.
        let new = SocketAddr::new(old.ip(), old.port() ^ 1);
        self.restart_at(number, new)?;
        let since = Instant::now();
        while !self.others_know(number, id)? {
            if since.elapsed() >= KNOWN_AFTER {
                let after = format!("{KNOWN_AFTER:?} after node {number} was started at {new}");
                self.broken(fault, format!("{after} no other node knows it there"));
                self.restart_at(number, old)?;
                break;
            }
            self.hold(POLL)?;
        }
        self.await_ready(vec![number])?;
        Ok(Injected::Installed(format!("node {number} ({:?}) moves from {old} to {new}", fault.who)))
    }

    /// Kills the node and starts it with another address. It may take a while until it is ready.
    fn restart_at(&mut self, number: u8, peer: SocketAddr) -> anyhow::Result<()> {
        let node = self.world.node(number)?;
        node.kill()?;
        node.peer = peer;
        // Each setting has a word in front of it.
        if let Some(at) = node.arguments.iter().position(|word| word.starts_with(PEER_ADDRESS)) {
            node.arguments.drain(at - 1..=at);
        }
        node.arguments.extend(["--set".to_owned(), format!("{PEER_ADDRESS}{peer}")]);
        node.launch()
    }

    /// Returns whether another node has this one's current address under its id.
    fn others_know(&mut self, number: u8, id: u64) -> anyhow::Result<bool> {
        let peer = self.world.node(number)?.peer.to_string();
        let others = self.world.up().into_iter().filter(|other| *other != number);
        let mut statuses = others.filter_map(|other| Status::of(&self.world.status_of(other).ok()?));
        Ok(statuses.any(|status| status.id_at(&peer) == Some(id)))
    }
}

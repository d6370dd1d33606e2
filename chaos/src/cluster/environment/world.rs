//! World of a cluster run: all nodes, the network between them, and the directory of everything that a run leaves
//! behind.
//!
//! As root each node has a network namespace and a disk of its own; otherwise a loopback address and a directory.
//! Processes are removed first, then disks, then the network; nothing created elsewhere is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use super::fault_support::FaultSupport;
use super::network::{HARNESS, Network};
use super::node::{Home, Node, READY_MAX};
use super::status::Status;
use super::tracer::Tracer;
use crate::child_process;
use crate::cluster::workload::shared::NodeAt;
use crate::loop_image::LoopImage;

pub const API_KEY: &str = "sk-cluster-storm-0001";
const HTTP_PORT: u16 = 8000;
const METRICS_PORT: u16 = 8001;
const PEER_PORT: u16 = 7400;
const DISK_BYTES: u64 = 512 << 20;
/// A command of the product's takes no longer, unless it waits for something.
const COMMAND_WAIT: Duration = Duration::from_secs(10);
/// Replicas moving to a new node, or a cluster finding together.
const SETTLE_WAIT: Duration = Duration::from_secs(60);
const SETTLE_PAUSE: Duration = Duration::from_millis(250);
const REPLICAS: u8 = 3;
/// Shards that are hardly written to seal as well, so that their logs are thrown away while a node is gone.
const SEAL_AGE_SECONDS: u32 = 2;

/// Composition of a world.
#[derive(Clone, Debug)]
pub struct Plan {
    pub nodes: u8,
    pub shards: u16,
    /// So small that a second of writing seals several times.
    pub memory_budget_bytes: u64,
}

#[derive(Debug)]
pub struct World {
    plan: Plan,
    pub means: FaultSupport,
    // Processes and disks before the network they are in.
    pub nodes: BTreeMap<u8, Node>,
    pub network: Option<Network>,
    dir: PathBuf,
    pub paused: BTreeSet<u8>,
    /// Nodes that a fault started itself and that are not ready yet.
    pub started: BTreeSet<u8>,
    /// Nodes that may open no more files, with the limit they had.
    pub starved: BTreeMap<u8, String>,
    /// Tracers that slow a node down.
    pub tracers: BTreeMap<u8, Tracer>,
    /// Whether nodes run with a clock that can be moved.
    clocks: bool,
}

/// A node that did not come up, and why.
#[derive(Clone, Debug)]
pub struct NotReady {
    pub node: u8,
    pub excuse: Option<String>,
    pub why: String,
}

impl World {
    /// Makes the nodes; none runs. `means` loses what turns out not to work.
    pub fn create(dir: &Path, plan: Plan, mut means: FaultSupport) -> anyhow::Result<World> {
        let network = match &means.network {
            Some(_) => None,
            None => Network::create().map_err(|why| means.network = Some(format!("{why:#}"))).ok(),
        };
        if means.network.is_some() {
            means.rules = means.rules.or(means.network.clone());
        }
        std::fs::create_dir_all(dir.join("logs"))?;
        let nodes = BTreeMap::new();
        let mut world = World {
            plan,
            means,
            nodes,
            network,
            dir: dir.to_path_buf(),
            paused: BTreeSet::new(),
            started: BTreeSet::new(),
            starved: BTreeMap::new(),
            tracers: BTreeMap::new(),
            clocks: false,
        };
        for number in 1..=world.plan.nodes {
            world.make(number)?;
        }
        if let Some(network) = &world.network
            && world.means.rules.is_none()
            && let Err(why) = network.rules_work()
        {
            world.means.rules = Some(format!("{why:#}"));
        }
        Ok(world)
    }

    /// A place for a node, with what it will be started with.
    fn make(&mut self, number: u8) -> anyhow::Result<()> {
        let ip = match &mut self.network {
            Some(network) => {
                network.add(number)?;
                network.address(number)
            }
            None => loopback(std::process::id(), number),
        };
        let home = if self.means.disk.is_none() {
            Home::Disk(LoopImage::create(DISK_BYTES)?)
        } else {
            let path = self.dir.join(format!("node-{number}"));
            std::fs::create_dir(&path)?;
            Home::Directory(path)
        };
        let addresses = [HTTP_PORT, METRICS_PORT, PEER_PORT].map(|port| SocketAddr::new(IpAddr::V4(ip), port));
        let mut node = Node::new(number, addresses, home, &self.dir.join("logs"));
        node.through = self.network.as_ref().map(|network| network.enter(number)).unwrap_or_default();
        let mut settings = vec![
            format!("store.memory_budget_bytes={}", self.plan.memory_budget_bytes),
            "store.log_budget_bytes=67108864".to_owned(),
            format!("store.seal_age_seconds={SEAL_AGE_SECONDS}"),
        ];
        if self.plan.nodes == 1 {
            settings.push(format!("store.shards={}", self.plan.shards));
        }
        node.set(settings);
        if number == 1 {
            node.environment.push(("ASSAY_API_KEY".into(), API_KEY.into()));
        }
        self.nodes.insert(number, node);
        if self.clocks { self.show_clock(number) } else { Ok(()) }
    }

    /// Gives nodes a movable clock from their next start on. Only done if it will be moved: its library is one more
    /// thing that can fail.
    pub fn show_clocks(&mut self) -> anyhow::Result<()> {
        self.clocks = true;
        self.members().into_iter().try_for_each(|number| self.show_clock(number))
    }

    fn show_clock(&mut self, number: u8) -> anyhow::Result<()> {
        let library = self.means.fake_time.clone();
        let node = self.node(number)?;
        node.fake_time = library;
        node.set_clock(0)
    }

    /// The address of this process in the network of the nodes.
    pub fn own_address(&self) -> Ipv4Addr {
        match &self.network {
            Some(network) => network.address(HARNESS),
            None => loopback(std::process::id(), HARNESS),
        }
    }

    pub fn clustered(&self) -> bool {
        self.plan.nodes > 1
    }

    /// Returns the members that may be queried.
    pub fn members(&self) -> Vec<u8> {
        self.nodes.values().filter(|node| !node.gone).map(|node| node.number).collect()
    }

    pub fn shards(&self) -> u16 {
        self.plan.shards
    }

    /// Those whose process runs and is not held.
    pub fn up(&self) -> Vec<u8> {
        let up = |node: &&Node| node.runs() && !self.paused.contains(&node.number);
        self.nodes.values().filter(up).map(|node| node.number).collect()
    }

    pub fn nodes_at(&self) -> Vec<NodeAt> {
        let live = self.nodes.values().filter(|node| !node.gone);
        live.map(|node| NodeAt { node: node.number, address: node.http }).collect()
    }

    pub fn node(&mut self, number: u8) -> anyhow::Result<&mut Node> {
        self.nodes.get_mut(&number).with_context(|| format!("there is no node {number}"))
    }

    /// The first start of everything.
    pub fn found(&mut self) -> anyhow::Result<()> {
        self.found_within(SETTLE_WAIT)
    }

    /// Founds the cluster like `found`, with another time limit for the placement of replicas.
    pub fn found_within(&mut self, settle: Duration) -> anyhow::Result<()> {
        if self.clustered() {
            let (shards, replicas) = (self.plan.shards.to_string(), REPLICAS.to_string());
            let peer = self.node(1)?.peer.to_string();
            let words = ["init", "--peer-address", &peer, "--shards", &shards, "--replicas", &replicas];
            self.cluster(1, &words, COMMAND_WAIT)?;
        }
        self.start(1)?;
        for number in 2..=self.plan.nodes {
            self.join(number)?;
        }
        self.settle_within(settle)
    }

    fn start(&mut self, number: u8) -> anyhow::Result<()> {
        let node = self.node(number)?;
        node.launch()?;
        if !node.await_ready(Instant::now() + READY_MAX)? {
            let why = node.exited()?.unwrap_or_default();
            bail!("node {number} ended before it was ready: {why}");
        }
        Ok(())
    }

    /// A node that never belonged to the cluster does now.
    fn join(&mut self, number: u8) -> anyhow::Result<()> {
        let peer = self.node(number)?.peer.to_string();
        let until = Instant::now() + COMMAND_WAIT;
        loop {
            // A token is as old as the clock of the node that it is shown to says, and a clock may have jumped a moment ago.
            let token = self.cluster_anywhere(&["token"], COMMAND_WAIT)?;
            match self.cluster(number, &["join", token.trim(), "--peer-address", &peer], COMMAND_WAIT) {
                Ok(_) => return self.start(number),
                Err(why) if Instant::now() >= until => return Err(why),
                Err(_) => std::thread::sleep(SETTLE_PAUSE),
            }
        }
    }

    /// One more node, and its number.
    pub fn add(&mut self) -> anyhow::Result<u8> {
        let number = self.nodes.keys().max().copied().unwrap_or(0) + 1;
        self.make(number)?;
        self.join(number)?;
        Ok(number)
    }

    /// Its process is ended for good.
    pub fn bury(&mut self, number: u8) -> anyhow::Result<()> {
        let node = self.node(number)?;
        node.kill()?;
        node.gone = true;
        Ok(())
    }

    /// Returns the cluster's id of this node.
    pub fn id_of(&mut self, number: u8) -> anyhow::Result<u64> {
        let peer = self.node(number)?.peer.to_string();
        let status = self.any_status().context("no node says what the cluster is")?.1;
        let status = Status::of(&status).context("the status cannot be decoded")?;
        status.id_at(&peer).with_context(|| format!("the cluster knows no node at {peer}"))
    }

    /// Returns our number for an id of the cluster.
    pub fn number_of(&self, status: &Status, id: u64) -> Option<u8> {
        let address = status.nodes.iter().find(|member| member.id == id)?.address.as_ref()?;
        self.nodes.values().find(|node| node.peer.to_string() == *address).map(|node| node.number)
    }

    /// `assay cluster ...`, on this node's directory.
    pub fn cluster(&mut self, number: u8, words: &[&str], wait: Duration) -> anyhow::Result<String> {
        let node = self.node(number)?;
        let mut all = node.through.clone();
        all.push(node.program()?.to_string_lossy().into_owned());
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).arg("cluster").args(words).arg("--data-dir").arg(node.data_dir());
        let said = child_process::output(command, &node.file("command.stderr"), wait);
        said.with_context(|| format!("assay cluster {} on node {number}", words.first().unwrap_or(&"")))
    }

    /// The same, on the first node that can do it.
    pub fn cluster_anywhere(&mut self, words: &[&str], wait: Duration) -> anyhow::Result<String> {
        let mut last = None;
        for number in self.up() {
            match self.cluster(number, words, wait) {
                Ok(said) => return Ok(said),
                Err(why) => last = Some(why),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no node runs")))
    }

    /// The same again until it is done: what is refused now may be allowed once the others have caught up.
    pub fn cluster_insisting(&mut self, words: &[&str], wait: Duration) -> anyhow::Result<String> {
        let until = Instant::now() + wait;
        loop {
            match self.cluster_anywhere(words, wait) {
                Ok(said) => return Ok(said),
                Err(why) if Instant::now() >= until => return Err(why),
                Err(_) => std::thread::sleep(SETTLE_PAUSE),
            }
        }
    }

    pub fn status_of(&mut self, number: u8) -> anyhow::Result<Value> {
        let text = self.cluster(number, &["status", "--json"], COMMAND_WAIT)?;
        serde_json::from_str(&text).with_context(|| format!("the status of node {number}"))
    }

    /// Returns the status from the first node that responds.
    pub fn any_status(&mut self) -> Option<(u8, Value)> {
        if !self.clustered() {
            return None;
        }
        self.up().into_iter().find_map(|number| Some((number, self.status_of(number).ok()?)))
    }

    /// Waits until every group has its voters and a leader.
    pub fn settle(&mut self) -> anyhow::Result<()> {
        self.settle_within(SETTLE_WAIT)
    }

    fn settle_within(&mut self, wait: Duration) -> anyhow::Result<()> {
        if !self.clustered() {
            return Ok(());
        }
        let until = Instant::now() + wait;
        loop {
            let status = self.any_status().and_then(|(_, status)| Status::of(&status));
            let unsettled = match status {
                Some(status) if status.settled => return Ok(()),
                Some(status) => status.unsettled.join("; "),
                None => "no node says how it is".to_owned(),
            };
            anyhow::ensure!(Instant::now() < until, "the cluster has not settled within {wait:?}: {unsettled}");
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// Nothing is in any node's way any more, and those that are down are started. They are not yet ready.
    pub fn heal(&mut self) -> anyhow::Result<Vec<u8>> {
        if let Some(network) = &self.network {
            network.heal(self.means.rules.is_none())?;
        }
        for number in std::mem::take(&mut self.paused) {
            self.node(number)?.signal("CONT")?;
        }
        self.tracers.clear();
        for (number, limit) in std::mem::take(&mut self.starved) {
            self.node(number)?.limit_files(&limit)?;
        }
        let mut launched: Vec<u8> = std::mem::take(&mut self.started).into_iter().collect();
        launched.retain(|number| self.nodes.get(number).is_some_and(Node::runs));
        for node in self.nodes.values_mut().filter(|node| !node.gone) {
            node.remount()?;
            node.empty()?;
            if self.clocks {
                node.set_clock(0)?;
            }
            if !node.runs() {
                node.answer_for_itself();
                node.launch()?;
                launched.push(node.number);
            }
        }
        Ok(launched)
    }

    /// Waits for nodes that were started; those that did not come up.
    pub fn await_ready(&mut self, launched: &[u8]) -> anyhow::Result<Vec<NotReady>> {
        let deadline = Instant::now() + READY_MAX;
        let mut not_ready = Vec::new();
        for number in launched {
            let node = self.node(*number)?;
            let why = match node.await_ready(deadline) {
                Ok(true) => continue,
                // Its output has ended; so has it, a moment later.
                Ok(false) => {
                    std::thread::sleep(SETTLE_PAUSE);
                    node.exited()?.unwrap_or_else(|| "it closed its output and goes on".into())
                }
                Err(why) => {
                    node.autopsy()?;
                    format!("{why:#}")
                }
            };
            node.kill()?;
            not_ready.push(NotReady { node: *number, excuse: node.excused(), why });
        }
        Ok(not_ready)
    }

    /// Data of disks is copied out before they go.
    pub fn keep(&mut self) {
        for node in self.nodes.values_mut() {
            let to = self.dir.join(format!("node-{}", node.number));
            let done = node.kill().and_then(|()| node.keep(&to));
            if let Err(why) = done {
                eprintln!("the data of node {} is not kept: {why:#}", node.number);
            }
        }
    }
}

/// Every process has a network of loopback addresses to itself, or nearly.
fn loopback(pid: u32, node: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 64 + (pid / 256 % 128) as u8, (pid % 256) as u8, node)
}

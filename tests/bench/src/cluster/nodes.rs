//! A cluster as run by its operators, on this machine: every node is a process of `assay serve` on a directory of its
//! own, and everything else goes through `assay cluster`.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use assay_cluster::ClusterStatus;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::http::client::{Connection, Target};
use crate::http::server_process::ServerProcess;
use crate::process::Process;

/// Below the ports that the system gives to connections, or one of these might hold a stopped node's address.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// Offset of the first port that this process tries: other processes may search as well.
const PORTS_APART: u32 = 37;
/// Interval of readiness checks: shortly after its ready line a node reports ready to load balancers as well.
const READY_LOOK: Duration = Duration::from_millis(5);
const READY_WAIT_MAX: Duration = Duration::from_secs(120);
/// Leads have found their places when none moved for so long; they move every half a second until then.
const BALANCED_QUIET: Duration = Duration::from_secs(3);
const BALANCED_LOOK: Duration = Duration::from_millis(300);
const BALANCED_WAIT_MAX: Duration = Duration::from_secs(120);

/// A node, running or not. The cluster counts from 1, so its place here is its number less one.
#[derive(Debug)]
struct Node {
    number: u64,
    data_dir: PathBuf,
    listen: SocketAddr,
    server: Option<ServerProcess>,
}

/// Processes that are stopped on drop.
#[derive(Debug)]
pub struct Nodes {
    program: PathBuf,
    dir: PathBuf,
    nodes: Vec<Node>,
    next_port: u16,
}

#[derive(Deserialize)]
struct AddedNode {
    node: u64,
}

impl Nodes {
    /// A new cluster below `dir`, with all its replicas where they belong.
    pub fn found(program: &Path, dir: &Path, count: usize, shards: u16) -> anyhow::Result<Nodes> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let first = u32::from(PORTS.start) + std::process::id() * PORTS_APART % u32::from(PORTS.end - PORTS.start);
        let next_port = u16::try_from(first).unwrap_or(PORTS.start);
        let mut nodes = Nodes { program: program.to_owned(), dir: dir.to_owned(), nodes: Vec::new(), next_port };
        let (data_dir, peer) = (nodes.dir_of(1), nodes.free_address()?.to_string());
        let shards = shards.to_string();
        let made = nodes.operate(&data_dir, &["init", "--peer-address", &peer, "--shards", &shards])?;
        nodes.add(made, data_dir)?;
        for _ in 1..count {
            nodes.join()?;
        }
        nodes.settle()?;
        nodes.balance()?;
        Ok(nodes)
    }

    /// Waits until no group's lead goes to another node any more: a new cluster hands them over one by one.
    fn balance(&self) -> anyhow::Result<()> {
        let leaders = |status: ClusterStatus| status.groups.iter().map(|group| group.leader).collect::<Vec<_>>();
        let (began, mut last, mut since) = (Instant::now(), leaders(self.status()?), Instant::now());
        while since.elapsed() < BALANCED_QUIET && began.elapsed() < BALANCED_WAIT_MAX {
            std::thread::sleep(BALANCED_LOOK);
            let now = leaders(self.status()?);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// One more node, which runs when this returns. Its place.
    pub fn join(&mut self) -> anyhow::Result<usize> {
        let token: Value = self.operate(&self.asked()?.data_dir, &["token"])?;
        let token = token["token"].as_str().context("no token")?;
        let (data_dir, peer) = (self.dir_of(self.nodes.len() + 1), self.free_address()?.to_string());
        let made = self.operate(&data_dir, &["join", token, "--peer-address", &peer])?;
        self.add(made, data_dir)
    }

    fn dir_of(&self, number: usize) -> PathBuf {
        self.dir.join(format!("node-{number}"))
    }

    fn add(&mut self, made: AddedNode, data_dir: PathBuf) -> anyhow::Result<usize> {
        let place = self.nodes.len();
        ensure!(made.node == place as u64 + 1, "the cluster's node {place} has the number {}", made.node);
        let listen = self.free_address()?;
        self.nodes.push(Node { number: made.node, data_dir, listen, server: None });
        self.start(place)?;
        Ok(place)
    }

    fn free_address(&mut self) -> anyhow::Result<SocketAddr> {
        for _ in PORTS {
            let address = SocketAddr::from(([127, 0, 0, 1], self.next_port));
            self.next_port = if self.next_port + 1 < PORTS.end { self.next_port + 1 } else { PORTS.start };
            if TcpListener::bind(address).is_ok() {
                return Ok(address);
            }
        }
        bail!("no port is free among {PORTS:?}")
    }

    /// Returns the cluster's number of a node.
    pub fn number(&self, place: usize) -> u64 {
        self.nodes[place].number
    }

    pub fn place(&self, number: u64) -> anyhow::Result<usize> {
        let found = self.nodes.iter().position(|node| node.number == number);
        found.with_context(|| format!("there is no node {number}"))
    }

    /// Process of every node that runs, with its place.
    pub fn processes(&self) -> Vec<(usize, Process)> {
        let running = self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.server.as_ref()?)));
        running.map(|(place, server)| (place, server.process())).collect()
    }

    /// Returns the addresses of all nodes, running or not.
    pub fn targets(&self) -> Vec<Target> {
        let key =
            self.nodes.iter().find_map(|node| node.server.as_ref()).and_then(|server| server.target().key.clone());
        self.nodes.iter().map(|node| Target { address: node.listen, key: key.clone() }).collect()
    }

    /// Starts a node and returns the seconds until it reported ready.
    pub fn start(&mut self, place: usize) -> anyhow::Result<f64> {
        let node = &mut self.nodes[place];
        ensure!(node.server.is_none(), "node {} runs already", node.number);
        let began = Instant::now();
        let server = ServerProcess::assay_at(&self.program, &node.data_dir, node.listen)?;
        let target = server.target().clone();
        node.server = Some(server);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = Connection::new(&target);
            while connection.get("/readyz").await?.status != 200 {
                ensure!(began.elapsed() < READY_WAIT_MAX, "not ready after {} s", READY_WAIT_MAX.as_secs());
                tokio::time::sleep(READY_LOOK).await;
            }
            Ok(began.elapsed().as_secs_f64())
        })
    }

    /// `kill -9`.
    pub fn kill(&mut self, place: usize) -> anyhow::Result<()> {
        self.taken(place)?.kill()
    }

    /// SIGTERM; returns when it has ended, with the seconds that took.
    pub fn stop(&mut self, place: usize) -> anyhow::Result<f64> {
        let began = Instant::now();
        self.taken(place)?.stop()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn taken(&mut self, place: usize) -> anyhow::Result<ServerProcess> {
        let node = &mut self.nodes[place];
        node.server.take().with_context(|| format!("node {} does not run", node.number))
    }

    /// Any node that runs.
    fn asked(&self) -> anyhow::Result<&Node> {
        self.nodes.iter().find(|node| node.server.is_some()).context("no node runs")
    }

    pub fn status(&self) -> anyhow::Result<ClusterStatus> {
        self.operate(&self.asked()?.data_dir, &["status"])
    }

    /// Waits until every replica is where it is to be.
    pub fn settle(&self) -> anyhow::Result<ClusterStatus> {
        self.operate(&self.asked()?.data_dir, &["status", "--wait"])
    }

    /// Runs an operation on a node, such as `drain`, through a running one; returns the seconds until it was done.
    pub fn on_node(&self, operation: &str, place: usize) -> anyhow::Result<f64> {
        let began = Instant::now();
        let number = self.number(place).to_string();
        let _: Value = self.operate(&self.asked()?.data_dir, &[operation, &number])?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Replaces node `old` by node `new`, which has joined.
    pub fn replace(&self, old: usize, new: usize) -> anyhow::Result<()> {
        let (old, by) = (self.number(old).to_string(), self.number(new).to_string());
        let _: Value = self.operate(&self.nodes[new].data_dir, &["replace", &old, &by])?;
        Ok(())
    }

    fn operate<T: DeserializeOwned>(&self, data_dir: &Path, words: &[&str]) -> anyhow::Result<T> {
        let mut command = Command::new(&self.program);
        command.args(["cluster", "--json", "--data-dir"]).arg(data_dir).args(words).stdin(Stdio::null());
        let asked = || format!("assay cluster {}", words[0]);
        let output = command.output().with_context(asked)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", asked(), said.trim());
        serde_json::from_slice(&output.stdout).with_context(asked)
    }
}

//! A cluster on this machine, started with `assay dev`: three or more nodes, each a process of its own below the
//! started one.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{Process, STOP_MAX, command, program, signal};
use crate::server::{ADMIN, OTLP, TEST_KEY};

pub const NODES: usize = 3;
/// Fewer than the default of 16: each group is founded on every node and wakes there, which a test on a busy machine pays
/// for. Storms and the machines of the README have the default.
const SHARDS: u16 = 4;

/// Time after a SIGKILL until the system has removed the processes.
const GONE_MAX: Duration = Duration::from_secs(20);
const GONE_POLL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Dev {
    process: Process,
    /// Pids of nodes 1, 2 and so on, once they are ready.
    nodes: Vec<u32>,
    /// Addresses of nodes 1, 2 and so on.
    pub urls: Vec<String>,
    pub key: String,
    /// Addresses of the administrators' listeners, in the order of the nodes, if there are any.
    pub admin_urls: Vec<String>,
    /// Addresses of the gRPC listeners for exporters, in the order of the nodes.
    pub otlp_urls: Vec<String>,
    /// Time until it was ready, on a new directory including bootstrap, joins and replica moves.
    pub ready_after: Duration,
}

impl Dev {
    pub fn start(data_dir: &Path) -> Result<Dev> {
        Dev::start_with(data_dir, &[])
    }

    /// Starts it with environment variables, such as `ASSAY_HTTP_LISTEN` and its value.
    pub fn start_with(data_dir: &Path, environment: &[(&str, &str)]) -> Result<Dev> {
        Dev::start_nodes(NODES, data_dir, environment)
    }

    pub fn start_nodes(nodes: usize, data_dir: &Path, environment: &[(&str, &str)]) -> Result<Dev> {
        let mut command = command(&program()?);
        command.env("ASSAY_STORE_SHARDS", SHARDS.to_string());
        command.env("ASSAY_API_KEY", TEST_KEY).envs(environment.iter().copied());
        command.args(["dev", "--nodes", &nodes.to_string(), "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir);
        let begun = Instant::now();
        let process = Process::start(&mut command, &data_dir.with_extension("log"))?;
        // From here on whatever runs is ended with this.
        let mut dev = Dev {
            process,
            nodes: Vec::new(),
            urls: Vec::new(),
            key: TEST_KEY.into(),
            admin_urls: vec![String::new(); nodes],
            otlp_urls: vec![String::new(); nodes],
            ready_after: Duration::ZERO,
        };
        let ready = format!("A cluster of {nodes} is ready: ");
        let (admin_urls, otlp_urls) = (&mut dev.admin_urls, &mut dev.otlp_urls);
        let urls = dev.process.until(|line| {
            for (said, urls) in [(ADMIN, &mut *admin_urls), (OTLP, &mut *otlp_urls)] {
                if let Some((node, url)) = said_by(line, said)
                    && let Some(known) = node.checked_sub(1).and_then(|place| urls.get_mut(place))
                {
                    *known = url.to_owned();
                }
            }
            line.strip_prefix(&ready).map(str::to_owned)
        })?;
        dev.urls = urls.split_whitespace().map(|url| url.trim_end_matches('/').to_owned()).collect();
        dev.ready_after = begun.elapsed();
        dev.nodes = (1..=nodes).map(|node| node_below(dev.process.id(), data_dir, node)).collect::<Result<_>>()?;
        if dev.urls.len() != nodes {
            bail!("it named not {nodes} addresses but: {urls}");
        }
        Ok(dev)
    }

    /// SIGKILL to all of it; what is on the disk stays.
    pub fn kill_all(self) {
        drop(self);
    }

    /// Sends SIGKILL to one node; they count from 1. Its files are unused when this returns.
    pub fn kill(&self, node: usize) -> Result<()> {
        let process = self.nodes[node - 1];
        if !self.runs(process) {
            bail!("node {node} does not run");
        }
        signal("KILL", process)?;
        let deadline = Instant::now() + GONE_MAX;
        while self.runs(process) {
            if Instant::now() > deadline {
                bail!("node {node} still runs {GONE_MAX:?} after SIGKILL");
            }
            std::thread::sleep(GONE_POLL);
        }
        Ok(())
    }

    /// Returns whether the process runs until its last thread is gone: the first may have ended while others still hold
    /// the files.
    fn runs(&self, node: u32) -> bool {
        stat_of(node)
            .is_some_and(|stat| stat.parent == self.process.id() && (stat.state != ENDED || threads_of(node) > 1))
    }

    /// SIGTERM to the one process that was started; an error where a node is left behind.
    pub fn stop(mut self) -> Result<ExitStatus> {
        // One node after the other, and each has its time.
        let status = self.process.stop(STOP_MAX * u32::try_from(self.nodes.len())?)?;
        let left: Vec<u32> = self.nodes.iter().copied().filter(|node| stat_of(*node).is_some()).collect();
        if !left.is_empty() {
            bail!("it ended ({status}), and left {left:?} running");
        }
        Ok(status)
    }

    /// Returns the pids of nodes 1, 2 and so on.
    pub fn processes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns whether all of it still runs.
    pub fn lives(&mut self) -> bool {
        self.process.lives() && self.nodes.iter().all(|node| self.runs(*node))
    }

    /// The end of what the nodes wrote to their error output.
    pub fn log(&self) -> String {
        self.process.log()
    }
}

impl Drop for Dev {
    /// Its nodes are not this one's children: they are found, and ended, before the process that started them. That one
    /// is held still meanwhile, so that it starts no other and the numbers stay those of its children.
    fn drop(&mut self) {
        if !self.process.lives() || signal("STOP", self.process.id()).is_err() {
            return;
        }
        let nodes = children_of(self.process.id()).unwrap_or_default();
        for node in &nodes {
            let _ = signal("KILL", *node); // it may have ended by itself
        }
        let deadline = Instant::now() + GONE_MAX;
        while nodes.iter().any(|node| self.runs(*node)) && Instant::now() < deadline {
            std::thread::sleep(GONE_POLL);
        }
        let _ = self.process.kill();
    }
}

/// `node 2 | Administrators are answered at http://127.0.0.1:1234`
fn said_by<'l>(line: &'l str, words: &str) -> Option<(usize, &'l str)> {
    let (node, said) = line.strip_prefix("node ")?.split_once(" | ")?;
    Some((node.parse().ok()?, said.strip_prefix(words)?))
}

/// The process of a node, found by the directory it was started on.
fn node_below(parent: u32, data_dir: &Path, node: usize) -> Result<u32> {
    let dir = data_dir.join(format!("node-{node}"));
    let dir = dir.to_str().context("a directory that is text")?;
    let found = children_of(parent)?.into_iter().find(|child| arguments_of(*child).iter().any(|word| word == dir));
    found.with_context(|| format!("no process runs on {dir}"))
}

fn children_of(parent: u32) -> Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").context("/proc, where processes are listed")?;
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.filter(|id| stat_of(*id).is_some_and(|stat| stat.parent == parent)).collect())
}

/// The state of a process that ended and that its parent did not ask about yet.
const ENDED: &str = "Z";

struct Stat {
    state: String,
    parent: u32,
}

fn stat_of(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before them stands in brackets and may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(Stat { state: fields.next()?.to_owned(), parent: fields.next()?.parse().ok()? })
}

fn threads_of(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count)
}

fn arguments_of(process: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

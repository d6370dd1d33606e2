//! `assay dev`: a cluster on one machine, for trying it out. Each node is a process of its own, started from this very
//! program, on a directory of its own; what they say goes to one log, each line behind the number of its node.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use crate::config::Config;
use crate::operate::{self, Wanted};
use crate::secrets::{self, MASTER_KEY_FILE, MASTER_KEY_VARIABLE};
use crate::{desk, hardening};

/// More would only share the same disk and cores.
const NODES_MAX: usize = 9;
/// A node that does not say that it is ready within this time does not start.
const READY_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
const READY: &str = "Assay is ready at ";

#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// How many nodes
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Where the first node listens; the ports of the others count up from it
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = "./assay-dev")]
    data_dir: PathBuf,
}

/// A node that runs. It is ended with this.
struct Node {
    process: Child,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill(); // it may have ended by itself
        let _ = self.process.wait();
    }
}

impl Node {
    /// Asks it to stop as an operator would.
    fn ask_to_stop(&self) {
        let id = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM); // it may have ended by itself
    }
}

/// What the nodes are started with beside `args` they take from the same places as any node.
pub fn run(args: &DevArgs, config: &Config) -> anyhow::Result<()> {
    let DevArgs { nodes, listen, data_dir } = args;
    anyhow::ensure!((1..=NODES_MAX).contains(nodes), "--nodes {nodes}: between 1 and {NODES_MAX} nodes");
    let asked_to_stop = Arc::new(AtomicBool::new(false));
    heed_signals(Arc::clone(&asked_to_stop))?;
    let first = operate::dev_dir(data_dir, 1);
    if !is_prepared(&first) {
        operate::init(
            &first,
            Wanted { peer_address: &free_address()?, shards: Some(config.store.shards), replicas: None },
        )?;
    }
    let key = master_key(data_dir, config)?;
    let start = |number: usize| {
        let key = key.iter().map(|key| format!("secrets.master_key_file={}", key.display()));
        // The first has the port that exporters know.
        let is_apart = number > 1 && config.http.otlp_address().is_some();
        let otlp = is_apart.then(|| format!("http.otlp_listen={}", SocketAddr::new(listen.ip(), 0)));
        let settings: Vec<String> = key.chain(otlp).collect();
        start(number, &operate::dev_dir(data_dir, number), port_of(*listen, number), &settings)
    };
    let mut running = Vec::new();
    let (prepared, missing): (Vec<usize>, Vec<usize>) =
        (1..=*nodes).partition(|number| is_prepared(&operate::dev_dir(data_dir, *number)));
    for number in prepared {
        running.push(start(number)?);
    }
    let asked = || asked_to_stop.load(Ordering::Relaxed);
    // Another one is let in by a majority of those that are in, so all of them are started, and waited for, first.
    if !missing.is_empty() && !asked() {
        running.iter_mut().try_for_each(|node| wait_ready(node).map(drop))?;
    }
    for number in missing {
        if asked() {
            break;
        }
        let dir = operate::dev_dir(data_dir, number);
        operate::join(&dir, &operate::token(&first)?, &free_address()?)?;
        running.push(start(number)?);
    }
    if asked() {
        return stop(running);
    }
    running.sort_by_key(|started| started.number);
    let mut addresses = Vec::new();
    for node in &mut running {
        addresses.push(wait_ready(node)?);
    }
    operate::settled(&first)?;
    println!("A cluster of {nodes} is ready: {}", addresses.join(" "));
    std::io::stdout().flush()?;
    while !asked() {
        thread::sleep(LOOK);
    }
    stop(running)
}

/// The file with the master key of secrets that all nodes share; none where the settings name one.
fn master_key(data_dir: &Path, config: &Config) -> anyhow::Result<Option<PathBuf>> {
    if config.secrets.master_key_file.is_some() || desk::variable(MASTER_KEY_VARIABLE)?.is_some() {
        return Ok(None);
    }
    let file = data_dir.join(MASTER_KEY_FILE);
    secrets::made_once(&file)?;
    Ok(Some(file))
}

/// Whether the directory is a node's, so that it only has to be started.
fn is_prepared(dir: &Path) -> bool {
    dir.join("FORMAT").exists()
}

fn port_of(listen: SocketAddr, number: usize) -> SocketAddr {
    let port = match listen.port() {
        0 => 0,
        first => first.saturating_add(u16::try_from(number - 1).unwrap_or(0)),
    };
    SocketAddr::new(listen.ip(), port)
}

/// For other nodes, on this machine only. It is written down with the node, which keeps it.
fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.to_string())
}

/// A node and the line with which it will say that it is ready.
struct Started {
    number: usize,
    node: Node,
    ready: mpsc::Receiver<String>,
    address: Option<String>,
}

fn start(number: usize, dir: &Path, listen: SocketAddr, settings: &[String]) -> anyhow::Result<Started> {
    let mut command = Command::new(std::env::current_exe().context("finding this program")?);
    command.args(["serve", "--listen", &listen.to_string(), "--data-dir"]).arg(dir);
    for setting in settings {
        command.args(["--set", setting]);
    }
    hardening::hand_on(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().context("starting a node")?;
    let (sender, ready) = mpsc::channel();
    let (out, err) = (process.stdout.take().context("its output")?, process.stderr.take().context("its log")?);
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            println!("node {number} | {line}");
            if let Some(address) = line.strip_prefix(READY) {
                let _ = sender.send(address.to_owned()); // nobody waits any more for who started before
            }
        }
    });
    thread::spawn(move || {
        for line in BufReader::new(err).lines().map_while(Result::ok) {
            eprintln!("node {number} | {line}");
        }
    });
    Ok(Started { number, node: Node { process }, ready, address: None })
}

fn wait_ready(started: &mut Started) -> anyhow::Result<String> {
    if let Some(address) = &started.address {
        return Ok(address.clone());
    }
    let address = started.ready.recv_timeout(READY_MAX);
    let address =
        address.with_context(|| format!("node {} did not become ready; see its lines above", started.number))?;
    started.address = Some(address.clone());
    Ok(address)
}

/// One after the other, so that what each leads is handed over while others are there to take it.
fn stop(running: Vec<Started>) -> anyhow::Result<()> {
    for mut started in running.into_iter().rev() {
        started.node.ask_to_stop();
        started.node.process.wait().with_context(|| format!("waiting for node {}", started.number))?;
    }
    Ok(())
}

/// The nodes hear Ctrl-C as well, from the terminal; they are waited for all the same.
fn heed_signals(asked: Arc<AtomicBool>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("assay-signals".into()).spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let (Ok(mut terminate), Ok(mut interrupt)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            asked.store(true, Ordering::Relaxed);
        });
    })?;
    Ok(())
}

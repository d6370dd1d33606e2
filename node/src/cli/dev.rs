//! `assay dev`: a cluster on one machine, for trials. Each node is a process of this program on a directory of its own.
//! Their output goes to one log, with the number of the node in front of each line.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_node_secrets::{MASTER_KEY_FILE, MASTER_KEY_VARIABLE, ensure_key_file};
use assay_storage_disk::RealDisk;
use clap::Args;
use parking_lot::Mutex;
use uuid::Uuid;

use super::cluster::{self, InitRequest};
use super::output;
use crate::config::Config;
use crate::process::{hardening, secret_variable};

/// More would only share the same disk and cores.
const NODES_MAX: usize = 9;
/// Time within which a node has to report that it is ready.
const READY_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// Nodes that have not stopped by then, counted from the first signal, are killed. It is as safe as a crash.
const STOP_MAX: Duration = Duration::from_secs(8);
const READY: &str = "Assay is ready at ";
/// Default address of the first node.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);
/// Step to other ports where some are in use, and the number of such steps.
const PORTS_APART: u16 = 10;
const PORTS_TRIED: u16 = 10;

/// Ports for other nodes. Systems give higher ones to outgoing connections, which could take one before its node listens.
const PEER_PORTS: Range<u16> = 20_000..32_000;
const PEER_PORTS_TRIED_MAX: usize = 100;
/// Upper bound of starts of one node, where another program took its port between the check and the start.
const STARTS_MAX: usize = 3;

#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Number of nodes
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Address of the first node; the others use the next ports [default: 127.0.0.1:8000, or the next free ports]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Directory that contains the data directories of all nodes
    #[arg(long, value_name = "DIR", default_value = "./assay-dev")]
    data_dir: PathBuf,
    /// Any setting, for all nodes, such as queries.seconds_max=5; may be repeated. `assay config` prints all of them
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
}

/// The processes of nodes by number. They are ended with this.
#[derive(Clone, Debug, Default)]
struct Processes(Arc<Mutex<Vec<(usize, Child)>>>);

impl Processes {
    fn keep(&self, number: usize, process: Child) {
        self.0.lock().push((number, process));
    }

    /// Stops the last started node with a signal and waits for it. Returns false if there is none.
    fn stop_last(&self) -> bool {
        let Some(number) = self.0.lock().last().map(|(number, process)| {
            let id = rustix::process::Pid::from_child(process);
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM); // it may have ended by itself
            *number
        }) else {
            return false;
        };
        loop {
            let mut all = self.0.lock();
            let Some(at) = all.iter().position(|(found, _)| *found == number) else { return true };
            // A process that cannot be waited for is not there.
            if !matches!(all[at].1.try_wait(), Ok(None)) {
                all.remove(at);
                return true;
            }
            drop(all);
            thread::sleep(LOOK);
        }
    }

    /// SIGKILL to all that are left; returns their numbers.
    fn kill(&self) -> Vec<usize> {
        let mut all = self.0.lock();
        for (_, process) in all.iter_mut() {
            let _ = process.kill(); // it may have ended by itself
            let _ = process.wait();
        }
        all.drain(..).map(|(number, _)| number).collect()
    }

    /// Waits for a node that has closed its output, and forgets it.
    fn reap(&self, number: usize) {
        let mut all = self.0.lock();
        let Some(at) = all.iter().position(|(found, _)| *found == number) else { return };
        let _ = all.remove(at).1.wait(); // a process that cannot be waited for is not there
    }
}

/// Ends the nodes of a cluster that could not be started.
struct Ending<'p>(&'p Processes);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Returns the data directory of a node.
fn node_dir(data_dir: &Path, node: usize) -> PathBuf {
    data_dir.join(format!("node-{node}"))
}

/// Starts the nodes with the usual settings, and runs them until a signal.
pub fn run(args: &DevArgs, config: &Config) -> anyhow::Result<()> {
    let DevArgs { nodes, listen, data_dir, settings } = args;
    anyhow::ensure!((1..=NODES_MAX).contains(nodes), "--nodes {nodes}: it must be between 1 and {NODES_MAX}");
    let processes = Processes::default();
    let _ending = Ending(&processes);
    let asked = heed_signals(processes.clone())?;
    let asked = || asked.load(Ordering::Relaxed);
    let listen = free_listen(*listen, *nodes)?;
    let first = node_dir(data_dir, 1);
    if !is_prepared(&first) {
        cluster::init(
            &first,
            InitRequest { peer_address: &free_address()?, shards: Some(config.store.shards), replicas: None },
        )?;
    }
    let launcher = Launcher {
        processes: &processes,
        data_dir,
        listen,
        settings,
        key: master_key(data_dir, config)?,
        has_otlp: config.http.otlp_address().is_some(),
        operators: operators(config),
    };
    let mut running = Vec::new();
    let (prepared, missing): (Vec<usize>, Vec<usize>) =
        (1..=*nodes).partition(|number| is_prepared(&node_dir(data_dir, *number)));
    for number in prepared {
        running.push(launcher.start(number)?);
    }
    // Another one is let in by a majority of those that are in, so all of them are started, and waited for, first.
    if !missing.is_empty() {
        running.iter_mut().try_for_each(|node| launcher.wait_ready(node, &asked).map(drop))?;
    }
    for number in missing {
        if asked() {
            break;
        }
        let dir = node_dir(data_dir, number);
        cluster::join(&dir, &cluster::token(&first)?, &free_address()?)?;
        running.push(launcher.start(number)?);
    }
    running.sort_by_key(|started| started.number);
    let mut addresses = Vec::new();
    for node in &mut running {
        addresses.extend(launcher.wait_ready(node, &asked)?);
    }
    if !asked() && cluster::settled(&first, &asked)?.is_some() {
        output::line(format_args!("A cluster of {nodes} is ready: {}", addresses.join(" ")))?;
    }
    while !asked() {
        thread::sleep(LOOK);
    }
    // One after the other, so that what each leads is handed over while others are there to take it.
    while processes.stop_last() {}
    Ok(())
}

/// Returns the setting that lets the owner of the first organization see the cluster in the console; none if the settings
/// name operators.
fn operators(config: &Config) -> Option<String> {
    let owner = &config.founding.owner_email;
    config.console.operators.is_empty().then(|| format!("console.operators=[{owner:?}]"))
}

/// The file with the master key of secrets that all nodes share; none where the settings name one.
fn master_key(data_dir: &Path, config: &Config) -> anyhow::Result<Option<PathBuf>> {
    if config.secrets.master_key_file.is_some() || secret_variable(MASTER_KEY_VARIABLE)?.is_some() {
        return Ok(None);
    }
    let file = data_dir.join(MASTER_KEY_FILE);
    ensure_key_file(&file)?;
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

/// Address for other nodes, on this machine only. It is written down with the node, which keeps it.
fn free_address() -> anyhow::Result<String> {
    let count = u128::from(PEER_PORTS.end - PEER_PORTS.start);
    let random = || u16::try_from(Uuid::new_v4().as_u128() % count).unwrap_or_default();
    let mut listeners =
        (0..PEER_PORTS_TRIED_MAX).map(|_| TcpListener::bind(("127.0.0.1", PEER_PORTS.start + random())));
    let listener = listeners.find_map(Result::ok);
    let listener =
        listener.with_context(|| format!("none of {PEER_PORTS_TRIED_MAX} ports in {PEER_PORTS:?} is free"))?;
    Ok(listener.local_addr()?.to_string())
}

/// A started node and the line by which it reports that it is ready.
struct Started {
    number: usize,
    /// Address for other nodes.
    peer_address: String,
    ready: mpsc::Receiver<String>,
    address: Option<String>,
}

/// Starts the nodes of the cluster, each as a process.
struct Launcher<'c> {
    processes: &'c Processes,
    data_dir: &'c Path,
    listen: SocketAddr,
    settings: &'c [String],
    /// File with the master key.
    key: Option<PathBuf>,
    has_otlp: bool,
    operators: Option<String>,
}

impl Launcher<'_> {
    /// Starts a node at its known address for other nodes, or at another one if that is in use.
    fn start(&self, number: usize) -> anyhow::Result<Started> {
        let dir = node_dir(self.data_dir, number);
        let node = assay_cluster::read_node(Arc::new(RealDisk), &dir)?;
        let is_free = |address: &String| TcpListener::bind(address).is_ok();
        let peer_address = match node.address {
            Some(recorded) if is_free(&recorded) => recorded,
            recorded => {
                let other = free_address()?;
                if let Some(recorded) = recorded {
                    output::note(format_args!(
                        "{recorded} is in use: node {number} now listens on {other} for other nodes"
                    ));
                }
                other
            }
        };
        let ready = self.spawn(number, &dir, &peer_address)?;
        Ok(Started { number, peer_address, ready, address: None })
    }

    fn spawn(&self, number: usize, dir: &Path, peer_address: &str) -> anyhow::Result<mpsc::Receiver<String>> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["serve", "--listen", &port_of(self.listen, number).to_string(), "--data-dir"]).arg(dir);
        let key = self.key.iter().map(|key| format!("secrets.master_key_file={}", key.display()));
        // The first has the port that exporters know.
        let is_apart = number > 1 && self.has_otlp;
        let otlp = is_apart.then(|| format!("http.otlp_listen={}", SocketAddr::new(self.listen.ip(), 0)));
        let peer = format!("cluster.peer_address={peer_address}");
        // What the command line says comes later and wins.
        let operators = self.operators.iter().cloned();
        for setting in operators.chain(self.settings.iter().cloned()).chain(key).chain(otlp).chain([peer]) {
            command.args(["--set", &setting]);
        }
        hardening::hand_on(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot start a node")?;
        let (sender, ready) = mpsc::channel();
        let pipes = (process.stdout.take(), process.stderr.take());
        self.processes.keep(number, process);
        let (out, err) = (pipes.0.context("its output")?, pipes.1.context("its log")?);
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = output::line(format_args!("node {number} | {line}")); // the node goes on where nobody reads
                if let Some(address) = line.strip_prefix(READY) {
                    let _ = sender.send(address.to_owned()); // nobody waits any more for who started before
                }
            }
        });
        thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                output::note(format_args!("node {number} | {line}"));
            }
        });
        Ok(ready)
    }

    /// The address of a node once it is ready; none where a signal came first. A node that ended because another program
    /// took its port for other nodes is started again, at another address.
    fn wait_ready(&self, started: &mut Started, asked: &dyn Fn() -> bool) -> anyhow::Result<Option<String>> {
        let (number, mut until, mut starts) = (started.number, Instant::now() + READY_MAX, 1);
        while started.address.is_none() && !asked() {
            match started.ready.recv_timeout(LOOK) {
                Ok(address) => started.address = Some(address),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(why) => {
                    // Ctrl-C in a terminal goes to the nodes as well, and may end one before it is heard here.
                    thread::sleep(LOOK);
                    if asked() {
                        break;
                    }
                    let has_ended = why == RecvTimeoutError::Disconnected;
                    let is_taken = has_ended && TcpListener::bind(&started.peer_address).is_err();
                    anyhow::ensure!(
                        is_taken && starts < STARTS_MAX,
                        "node {number} did not become ready; see its output above"
                    );
                    self.processes.reap(number);
                    *started = self.start(number)?;
                    (until, starts) = (Instant::now() + READY_MAX, starts + 1);
                }
            }
        }
        Ok(started.address.clone())
    }
}

/// Returns the first address with free ports for all nodes. A requested address is not replaced.
fn free_listen(asked: Option<SocketAddr>, nodes: usize) -> anyhow::Result<SocketAddr> {
    let taken = |listen: SocketAddr| {
        let all = (1..=nodes).map(|number| port_of(listen, number));
        all.into_iter().find(|address| address.port() != 0 && TcpListener::bind(address).is_err())
    };
    let listen = asked.unwrap_or(LISTEN);
    let Some(busy) = taken(listen) else { return Ok(listen) };
    let on = |tries: u16| SocketAddr::new(listen.ip(), listen.port().saturating_add(PORTS_APART * tries));
    let free = (1..=PORTS_TRIED).map(on).find(|listen| taken(*listen).is_none());
    match (asked, free) {
        (None, Some(free)) => {
            output::note(format_args!("{busy} is in use: the nodes listen on {free} and the ports after it"));
            Ok(free)
        }
        (Some(_), Some(free)) => {
            anyhow::bail!(
                "cannot listen on {busy}: it is in use, or not an address of this machine; try --listen {free}"
            )
        }
        (_, None) => anyhow::bail!(
            "cannot listen on {busy}: it is in use, or not an address of this machine; name another address with \
             --listen"
        ),
    }
}

/// Returns a flag that a signal sets. Nodes get Ctrl-C from the terminal, too, and are waited for up to `STOP_MAX` or a
/// second signal.
fn heed_signals(processes: Processes) -> anyhow::Result<Arc<AtomicBool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let asked = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&asked);
    thread::Builder::new().name("assay-signals".into()).spawn(move || {
        let mut signalled = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        runtime.block_on(async {
            signalled().await;
            told.store(true, Ordering::Relaxed);
            let _ = tokio::time::timeout(STOP_MAX, signalled()).await; // either ends the wait
        });
        let killed = processes.kill();
        if !killed.is_empty() {
            output::note(format_args!(
                "nodes {killed:?} did not stop in time and were killed; no acknowledged write is lost"
            ));
        }
        std::process::exit(0);
    })?;
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_listen_where_ports_are_free() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let busy = taken.local_addr().unwrap();
        let refused = free_listen(Some(busy), 1).unwrap_err().to_string();
        assert!(refused.contains(&busy.to_string()) && refused.contains("--listen"), "{refused}");
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        assert_eq!(free_listen(Some(any), 3).unwrap(), any);
        assert!(free_listen(None, 1).is_ok());
    }

    #[test]
    fn outgoing_connections_do_not_take_ports_of_nodes() {
        let address: SocketAddr = free_address().unwrap().parse().unwrap();
        assert!(PEER_PORTS.contains(&address.port()), "{address}");
    }
}

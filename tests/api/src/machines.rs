//! Virtual machines for commands: each is a network namespace with the address 10.0.0.N on one bridge, with a
//! `/var/lib` of its own.
//!
//! The bridge is in a namespace as well, so that the network of this machine is unaffected, whatever it uses of
//! 10.0.0.0/24. Names contain this process's id. Everything is removed on drop; machines before the network.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::http::{self, HttpResponse, Request, SILENCE_MAX};
use crate::process::{Process, command, program};

/// A command that is not `assay serve` ends within this time, also one that waits for replicas to be moved.
const COMMAND_MAX: Duration = Duration::from_secs(180);
/// Besides the shell: what is called here.
const PROGRAMS: [&str; 6] = ["ip", "nsenter", "unshare", "mount", "bash", "timeout"];
/// Number of the bridge; machines count from 1.
const BRIDGE: usize = 0;

/// Returns what this machine lacks for creating virtual ones; none if nothing is missing.
pub fn lacking() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    if ids.is_none_or(|ids| ids.split_ascii_whitespace().nth(1) != Some("0")) {
        return Some("this needs root".into());
    }
    if let Some(missing) = PROGRAMS.iter().find(|name| path_of(name).is_none()) {
        return Some(format!("the program {missing} is missing"));
    }
    // Root of a container may have been forbidden to.
    let tried = tool("unshare", &["--net", "--mount", "true"]);
    tried.err().map(|error| format!("namespaces cannot be made: {error:#}"))
}

#[derive(Debug)]
pub struct Network {
    /// Among those of this process.
    number: usize,
    /// Namespaces in the order of their creation.
    namespaces: Vec<String>,
}

/// Networks that this process made.
static NETWORKS: AtomicUsize = AtomicUsize::new(0);
/// Unused hardware address for packets that are to be lost.
const NOWHERE: &str = "02:00:00:00:00:01";

impl Network {
    pub fn create(machines: usize) -> Result<Network> {
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let mut network = Network { number, namespaces: Vec::new() };
        let bridge = network.add(BRIDGE)?;
        tool("ip", &["-n", &bridge, "link", "add", "bridge", "type", "bridge"])?;
        tool("ip", &["-n", &bridge, "link", "set", "bridge", "up"])?;
        for number in 1..=machines {
            let own = network.add(number)?;
            let (outer, address) = (format!("machine{number}"), format!("{}/24", address_of(number)));
            tool("ip", &["-n", &bridge, "link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", &own])?;
            tool("ip", &["-n", &bridge, "link", "set", &outer, "master", "bridge", "up"])?;
            tool("ip", &["-n", &own, "addr", "add", &address, "dev", "eth0"])?;
            tool("ip", &["-n", &own, "link", "set", "eth0", "up"])?;
            tool("ip", &["-n", &own, "link", "set", "lo", "up"])?;
        }
        Ok(network)
    }

    /// Drops all packets from machine `from` to machine `to` from here on, silently.
    pub fn cut(&self, from: usize, to: usize) -> Result<()> {
        let (own, address) = (&self.namespaces[from], address_of(to).to_string());
        let nowhere = ["lladdr", NOWHERE, "dev", "eth0", "nud", "permanent"];
        tool("ip", &[&["-n", own, "neigh", "replace", &address], &nowhere[..]].concat())
    }

    /// Ends a cut.
    pub fn mend(&self, from: usize, to: usize) -> Result<()> {
        let (own, address) = (&self.namespaces[from], address_of(to).to_string());
        tool("ip", &["-n", own, "neigh", "del", &address, "dev", "eth0"])
    }

    fn add(&mut self, number: usize) -> Result<String> {
        let name = format!("assay-test-{}-{}-{number}", std::process::id(), self.number);
        tool("ip", &["netns", "add", &name])?;
        self.namespaces.push(name.clone());
        Ok(name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.namespaces {
            if let Err(error) = tool("ip", &["netns", "del", name]) {
                eprintln!("the network namespace {name} stays: {error:#}");
            }
        }
    }
}

/// A shell's worth of a machine.
#[derive(Debug)]
pub struct Machine<'n> {
    pub number: usize,
    /// It has to be there as long as something runs here.
    network: &'n Network,
    folder: PathBuf,
}

impl Machine<'_> {
    /// Machine `number` of the network; what it keeps is in `folder`.
    pub fn new<'n>(network: &'n Network, number: usize, folder: &Path) -> Result<Machine<'n>> {
        ensure!((1..network.namespaces.len()).contains(&number), "there is no machine {number}");
        fs::create_dir_all(folder.join("lib"))?;
        fs::create_dir_all(folder.join("bin"))?;
        symlink(fs::canonicalize(program()?)?, folder.join("bin/assay"))?;
        Ok(Machine { number, network, folder: folder.to_owned() })
    }

    /// Types a line, and returns what is printed when it has ended; an error where it does not end well.
    pub fn run(&self, line: &str) -> Result<Vec<String>> {
        self.start(line)?.finish(COMMAND_MAX).with_context(|| format!("`{line}` on machine {}", self.number))
    }

    /// Types a line that goes on.
    pub fn start(&self, line: &str) -> Result<Process> {
        let mut command = self.inside("unshare");
        // Told of mounts that go, so that what others unmount meanwhile is not held here.
        command.args(["--mount", "--propagation", "slave", "sh", "-c"]);
        // The line is the program in the end, with the process that was started here: what ends it ends the program.
        command.arg(r#"mount --bind "$1" /var/lib && eval "exec $2""#).arg("sh").arg(self.folder.join("lib")).arg(line);
        // A program that goes on keeps its log while others are run.
        let log = format!("{}.log", line.split(' ').nth(1).unwrap_or_default());
        Process::start(&mut command, &self.folder.join(log))
    }

    /// Sends a request to `http://ADDRESS:PORT` from here.
    pub fn ask(&self, url: &str, request: &Request) -> Result<HttpResponse> {
        let host = url.strip_prefix("http://").with_context(|| format!("{url} is no http:// address"))?;
        let (address, port) = host.split_once(':').with_context(|| format!("{url} names no port"))?;
        let mut command = self.inside("bash");
        command.args(["-c", r#"exec 3<>"/dev/tcp/$1/$2" && cat >&3 && timeout "$3" cat <&3"#, "bash", address, port]);
        command.arg(SILENCE_MAX.as_secs().to_string());
        let mut asking = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut sends = asking.stdin.take().context("its input")?;
        // Where there is no connection this fails, and what was said about it is more to the point.
        let sent = sends.write_all(&http::request_bytes(host, request));
        drop(sends);
        let output = asking.wait_with_output()?;
        match (sent, http::parse(&output.stdout)) {
            (Ok(()), Ok(Some(answer))) => Ok(answer),
            _ => bail!("{url}: no answer ({}): {}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// A command in the machine's network, with the built program first on its path.
    fn inside(&self, name: &str) -> Command {
        let mut command = command(&path_of("nsenter").unwrap_or_else(|| "nsenter".into()));
        let mut folders = vec![self.folder.join("bin")];
        folders.extend(search_path());
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        command.arg(format!("--net=/run/netns/{}", self.network.namespaces[self.number])).args(["--", name]);
        command
    }
}

/// The address of a machine, as the README has it.
pub fn address_of(machine: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(machine).unwrap_or(u8::MAX))
}

/// Returns the directories of programs, including those for root, which not every shell has in its path.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect()
}

fn path_of(program: &str) -> Option<PathBuf> {
    search_path().into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn tool(name: &str, arguments: &[&str]) -> Result<()> {
    let path = path_of(name).with_context(|| format!("the program {name} is missing"))?;
    let output = Command::new(path).args(arguments).output().with_context(|| format!("{name} does not run"))?;
    if !output.status.success() {
        bail!("`{name} {}`: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

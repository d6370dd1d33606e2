//! Programs of other projects: installed ones, or packages of Debian extracted into the run's own directory, without
//! services. Their processes are stopped on drop.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::process::Process;

/// Lines of a failed program's output that are shown.
const LINES_SHOWN: usize = 5;

/// Returns the path of `name`; if it is not installed, its package is downloaded and extracted below `dir`.
pub fn program(name: &str, package: &str, dir: &Path) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Programs for root are not on everybody's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    if let Some(found) = folders.map(|folder| folder.join(name)).find(|file| file.is_file()) {
        return Ok(found);
    }
    fetched(name, package, dir).with_context(|| format!("{name} is not here: apt-get install {package}"))
}

fn fetched(name: &str, package: &str, dir: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    run(Command::new("apt-get").args(["download", package]).current_dir(dir))?;
    let files = std::fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path()));
    let file = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    run(Command::new("dpkg-deb").arg("-x").arg(file.context("no package came")?).arg(dir))?;
    let places = ["usr/bin", "usr/sbin"].map(|place| dir.join(place).join(name));
    places.into_iter().find(|file| file.is_file()).with_context(|| format!("{package} has no {name}"))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{name} does not run"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The first line in which it names its version.
pub fn version(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program).arg("--version").output().context("its version")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let word =
        said.split_whitespace().find(|word| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()));
    Ok(word.context("it names no version")?.trim_start_matches('v').to_owned())
}

/// Ports that are free now; all are held while they are looked for, so that no two are the same.
pub fn free_ports<const N: usize>() -> anyhow::Result<[SocketAddr; N]> {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind("127.0.0.1:0").context("looking for a free port")?);
    }
    let addresses: Vec<SocketAddr> = held.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
    <[SocketAddr; N]>::try_from(addresses).map_err(|_| anyhow::anyhow!("{N} ports"))
}

/// A server of others. It is ended with this.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub fn start(command: &mut Command, log: &Path) -> anyhow::Result<Running> {
        let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        let child = child.with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Running { child, log: log.to_owned() })
    }

    pub fn process(&self) -> Process {
        Process::of(&self.child)
    }

    /// The end of what it wrote.
    pub fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

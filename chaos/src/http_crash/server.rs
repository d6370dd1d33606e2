//! The released program, in a process of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::capabilities;
use crate::child_process::{Child, Next};

pub const API_KEY: &str = "sk-http-crash-storm-0001";
/// Address of the first start. Outgoing connections use 127.0.0.1, so that none of them can take the port while the
/// server is down: later starts need it again.
const FIRST_ADDRESS: &str = "127.0.0.2:0";
const READY_WAIT: Duration = Duration::from_secs(60);
/// So small that a second of writing seals several times.
const SETTINGS: [&str; 4] =
    ["store.memory_budget_bytes=1000000", "store.log_budget_bytes=67108864", "store.shards=4", "http.otlp_listen=off"];

#[derive(Debug)]
pub struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts the program. Returns when it reports ready, at the address of an earlier one.
    pub fn start(dir: &Path, again_at: Option<SocketAddr>) -> anyhow::Result<Server> {
        let listen = again_at.map_or_else(|| FIRST_ADDRESS.to_owned(), |address| address.to_string());
        let mut command = Command::new(capabilities::program()?);
        command.args(["serve", "--listen", &listen, "--data-dir"]).arg(dir.join("data"));
        for setting in SETTINGS {
            command.args(["--set", setting]);
        }
        command.env("ASSAY_API_KEY", API_KEY);
        let mut process = Child::start(command, &dir.join("stderr"))?;
        let deadline = Instant::now() + READY_WAIT;
        loop {
            match process.next(deadline) {
                Next::Line(line) => {
                    if let Some(address) = line.strip_prefix("Assay is ready at http://") {
                        return Ok(Server { process, address: address.parse().context("an address")? });
                    }
                }
                Next::Late => anyhow::bail!("the server was not ready in time: {}", process.last_words()),
                Next::Ended => anyhow::bail!("the server ended before it was ready: {}", process.last_words()),
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill().map(drop)
    }

    pub fn last_words(&self) -> String {
        self.process.last_words()
    }
}

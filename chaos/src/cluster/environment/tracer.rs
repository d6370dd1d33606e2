//! Tracer that delays the syncs of a node.

use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// Calls that wait for a disk.
const CALLS: &str = "fsync,fdatasync,sync_file_range";

/// Detached when it goes.
#[derive(Debug)]
pub struct Tracer(Child);

impl Tracer {
    /// Delays each call of the process that waits for its disk.
    pub fn slow_down(pid: u32, micros: u32) -> anyhow::Result<Tracer> {
        let (trace, inject) = (format!("trace={CALLS}"), format!("inject={CALLS}:delay_enter={micros}"));
        let mut command = Command::new("strace");
        command.args(["-f", "-qqq", "-o", "/dev/null", "-e", &trace, "-e", &inject, "-p", &pid.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Tracer(child.context("starting strace")?))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It lets the process go on TERM; on KILL the kernel does.
        if let Err(why) = crate::child_process::tool("kill", &["-TERM", &self.0.id().to_string()]) {
            eprintln!("a tracer is not told to end: {why:#}");
            drop(self.0.kill());
        }
        drop(self.0.wait());
    }
}

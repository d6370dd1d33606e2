//! `found`: how long `assay dev` takes until three nodes have founded a cluster, elected leaders and serve.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::report::{Report, Threshold, median};

/// Median that users of `assay dev` are promised, on an idle machine.
const FOUNDED_SECONDS_MAX: f64 = 1.5;
/// How the program says that the cluster has settled, and that one node serves.
const CLUSTER_READY: &str = "A cluster of ";
const NODE_READY: &str = "Assay is ready at ";
const STOP_MAX: Duration = Duration::from_secs(30);

/// Founds a cluster `runs` times, and a single node beside it in turns, each on a directory without data.
pub fn run(program: &Path, runs: usize, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut report = Report::new("found");
    let (mut clusters, mut nodes) = (Vec::new(), Vec::new());
    for number in 0..runs {
        let dir = |name: &str| dir.join(format!("{name}-{number}"));
        let listen = ["--listen", "127.0.0.1:0", "--set", "http.otlp_listen=off", "--data-dir"];
        let node = until_said(program, &["serve"], &listen, &dir("node"), NODE_READY)?;
        let cluster = until_said(program, &["dev", "--nodes", "3"], &listen, &dir("cluster"), CLUSTER_READY)?;
        eprintln!("run {}: cluster {cluster:.2} s, one node {node:.2} s", number + 1);
        clusters.push(cluster);
        nodes.push(node);
    }
    let slowest = clusters.iter().copied().fold(0.0, f64::max);
    let (cluster, node) = (median(clusters.clone()), median(nodes.clone()));
    report.promised("a cluster of three serves, median", cluster, "s", Threshold::AtMost(FOUNDED_SECONDS_MAX));
    report.figure("a cluster of three serves, slowest", slowest, "s");
    report.figure("one node serves, median", node, "s");
    report.figure("cluster / one node", cluster / node, "");
    report.detail("clusters", &clusters)?;
    report.detail("nodes", &nodes)?;
    report.finish(json_file)
}

/// Seconds from the start of the program until it prints a line that begins so. Ends it afterwards.
fn until_said(program: &Path, command: &[&str], flags: &[&str], dir: &PathBuf, ready: &str) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let mut process = Command::new(program);
    process.args(command).args(flags).arg(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = process.spawn().with_context(|| format!("starting {}", program.display()))?;
    let lines = BufReader::new(process.stdout.take().context("the output of the program")?).lines();
    let said = lines.map_while(Result::ok).any(|line| line.starts_with(ready));
    let took = begun.elapsed().as_secs_f64();
    stop(&mut process)?;
    ensure!(said, "`{}` ended without the line `{ready}...`", command.join(" "));
    Ok(took)
}

fn stop(process: &mut Child) -> anyhow::Result<()> {
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw).context("the id of the process")?;
    if process.try_wait()?.is_none() {
        kill_process(id, Signal::INT).context("asking the program to stop")?;
    }
    let until = Instant::now() + STOP_MAX;
    while process.try_wait()?.is_none() {
        if Instant::now() >= until {
            process.kill().context("ending the program")?;
            process.wait()?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

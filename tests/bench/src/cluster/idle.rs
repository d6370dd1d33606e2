//! `idle`: resources that three idle nodes use, although they hold shards, objects and connections.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::ensure;
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use super::nodes::Nodes;
use crate::http::client::{Connection, Target};
use crate::http::client_runtime;
use crate::process::{CpuSeconds, Memory, Process, cpu_between};
use crate::report::{Report, Threshold};

pub const NODES: usize = 3;
/// Shards of the two clusters that are measured one after the other, and the share of one core that a node may use.
const CLUSTERS: [(u16, f64); 2] = [(16, 3.0), (64, 10.0)];
const RESIDENT_MIB_MAX: f64 = 120.0;
/// Time until written data is at rest: actors are removed after a minute without work.
const REST: Duration = Duration::from_secs(75);

#[derive(Clone, Debug)]
pub struct IdleOptions {
    pub program: PathBuf,
    pub objects: usize,
    /// Rest before the measurement, if not the default.
    pub rest: Option<Duration>,
    pub seconds: u64,
}

/// One node at rest.
#[derive(Debug, Serialize)]
struct Rest {
    node: u64,
    /// Percentage of one core.
    cpu_percent: f64,
    memory: Memory,
    /// CPU time by kind of work.
    cpu: CpuSeconds,
}

#[derive(Debug, Serialize)]
struct IdleMeasurement {
    shards: u16,
    objects: usize,
    seconds: f64,
    nodes: Vec<Rest>,
}

pub fn run(options: &IdleOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let mut report = Report::new("idle");
    let mut all = Vec::new();
    for (shards, cpu_percent_max) in CLUSTERS {
        let measured = one_cluster(options, &dir.join(format!("shards-{shards}")), shards)?;
        figures(&mut report, &measured, cpu_percent_max);
        all.push(measured);
    }
    report.figure("idle objects", options.objects as f64, "");
    report.detail("clusters", &all)?;
    report.finish(json_file)
}

fn figures(report: &mut Report, measured: &IdleMeasurement, cpu_percent_max: f64) {
    let shards = measured.shards;
    for rest in &measured.nodes {
        report.figure(format!("{shards} shards, node {}, of one core", rest.node), rest.cpu_percent, "%");
        let mib = rest.memory.resident_bytes as f64 / f64::from(1 << 20);
        report.figure(format!("{shards} shards, node {}, resident", rest.node), mib, "MiB");
    }
    let most = |get: fn(&Rest) -> f64| measured.nodes.iter().map(get).fold(0.0, f64::max);
    let cpu = most(|rest| rest.cpu_percent);
    report.promised(format!("{shards} shards, a node, of one core"), cpu, "%", Threshold::AtMost(cpu_percent_max));
    let resident = most(|rest| rest.memory.resident_bytes as f64 / f64::from(1 << 20));
    report.promised(format!("{shards} shards, a node, resident"), resident, "MiB", Threshold::AtMost(RESIDENT_MIB_MAX));
}

fn one_cluster(options: &IdleOptions, dir: &Path, shards: u16) -> anyhow::Result<IdleMeasurement> {
    let nodes = Nodes::found(&options.program, dir, NODES, shards)?;
    client_runtime()?.block_on(touch(&nodes.targets(), options.objects))?;
    nodes.settle()?;
    let rest = options.rest.unwrap_or(REST);
    eprintln!("{shards} shards: {} objects are written; {} s of rest", options.objects, rest.as_secs());
    std::thread::sleep(rest);
    let processes: Vec<Process> = nodes.processes().into_iter().map(|(_, process)| process).collect();
    let began = Instant::now();
    let before: Vec<CpuSeconds> = processes.iter().map(Process::cpu).collect::<anyhow::Result<_>>()?;
    std::thread::sleep(Duration::from_secs(options.seconds.max(1)));
    let seconds = began.elapsed().as_secs_f64();
    let mut measured = IdleMeasurement { shards, objects: options.objects, seconds, nodes: Vec::new() };
    for (place, (process, before)) in processes.iter().zip(&before).enumerate() {
        let cpu = cpu_between(before, &process.cpu()?);
        let cpu_percent = cpu.values().sum::<f64>() / seconds * 100.0;
        let rest = Rest { node: nodes.number(place), cpu_percent, memory: process.memory()?, cpu };
        eprintln!("{shards} shards, node {}: {cpu_percent:.1} % of one core, {:?}", rest.node, rest.cpu);
        measured.nodes.push(rest);
    }
    ensure!(nodes.status()?.settled, "the cluster at rest is not settled");
    Ok(measured)
}

/// Makes the objects, over all nodes in turn, and writes a row to each.
async fn touch(targets: &[Target], objects: usize) -> anyhow::Result<()> {
    let mut connections: Vec<Connection> = targets.iter().map(Connection::new).collect();
    for number in 0..objects {
        let at = number % targets.len();
        let body = Bytes::from(json!({ "name": format!("idle-{number}") }).to_string());
        let project = connections[at].post("/v1/project", &body).await?;
        let project: serde_json::Value = project.json("POST /v1/project")?;
        let path = format!("/v1/project_logs/{}/insert", project["id"].as_str().unwrap_or_default());
        let body = Bytes::from(json!({ "events": [{ "id": "row", "input": "at rest" }] }).to_string());
        connections[at].post(&path, &body).await?.ok(&path)?;
    }
    Ok(())
}

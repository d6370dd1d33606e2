//! `overload`: SDK processes offer several times the server's capacity, while light clients of another organization
//! write.
//!
//! ```text
//! light clients alone ──► a few connections, as fast as it goes ──► SDK processes, several times that ──► what was sent is counted
//!   their p99                what the server takes                   beside the light clients
//! ```
//! Each process works like an SDK: it makes batches of rows at its rate, keeps unsent ones in a bounded buffer, and
//! sends with a few threads. A batch that is refused or fails three times, with 1 s and 2 s between, is dropped. While
//! the buffer is full the process makes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use assay_bench::generate::{GeneratedEvents, Profile, Workload};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::client::{Connection, Target};
use super::request_driver::{Bodies, Driven, DriverLane, Pace, drive};
use super::server_process::ServerProcess;
use super::{client_runtime, object_of_lane};
use crate::process::Process;
use crate::report::{Report, Threshold, median, percentile};
use crate::store::disk_limits::SyncProbe;

/// Offered load as a multiple of the capacity.
const FACTOR: f64 = 4.0;
/// Connections that find out what it takes.
const PEAK_CONNECTIONS: usize = 8;
const PEAK_TIME: Duration = Duration::from_secs(5);
/// Threads with which one process sends.
const SENDERS: usize = 8;
/// Threads of all processes together, and their niceness.
const SDK_THREADS: usize = 2;
const SDK_NICENESS: i32 = 10;
/// Tries of one batch, and the wait before the second; it doubles.
const TRIES: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Batches of each process that are made beforehand; later ones are these with other ids.
const BATCHES_MADE: usize = 16;
/// All rows are to be there so long after the first was offered.
const ARRIVED_WITHIN: Duration = Duration::from_secs(300);
/// Light clients of another organization, and how often each of them writes a row.
const LIGHT_CLIENTS: usize = 4;
const LIGHT_EVERY: Duration = Duration::from_millis(100);
const LIGHT_ALONE: Duration = Duration::from_secs(10);
const LIGHT_SLOWER_MAX: f64 = 3.0;
const RESIDENT_MIB_MAX: f64 = 1024.0;
const MEMORY_EVERY: Duration = Duration::from_millis(100);
/// Unit of space in a buffer.
const BUFFER_UNIT_BYTES: usize = 1 << 10;

#[derive(Clone, Debug)]
pub struct OverloadOptions {
    pub program: PathBuf,
    pub processes: usize,
    pub rows_per_request: usize,
    /// Buffer space of all processes together.
    pub buffer_bytes: u64,
    pub seconds: u64,
    pub seed: u64,
}

/// Results of all processes.
#[derive(Debug, Default)]
struct Sending {
    offered_bytes: AtomicU64,
    offered_rows: AtomicU64,
    acknowledged_rows: AtomicU64,
    /// Rows of batches that were dropped.
    lost_rows: AtomicU64,
    /// Answers other than 200, and failures.
    refusals: AtomicU64,
}

/// Results of the light clients.
#[derive(Debug, Default, Serialize)]
struct Light {
    refused: u64,
    answer_ms: Vec<f64>,
}

pub fn run(options: &OverloadOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let data_dir = dir.join("assay");
    let server = ServerProcess::assay(&options.program, &data_dir)?;
    let runtime = client_runtime()?;
    let other = Target { key: Some(key_of_another(&options.program, &data_dir)?), ..server.target().clone() };
    let bench = OverloadRun { options, server: &server, runtime: &runtime, sdk_runtime: &sdk_runtime()? };

    let probe = SyncProbe::start(dir)?;
    let alone = bench.light_alone(&other)?;
    let synced_alone = probe.end()?;
    let peak = bench.peak()?;
    let rate = FACTOR * peak.bytes as f64 / peak.seconds;
    eprintln!("it takes {:.1} MB/s; offering {:.1} MB/s for {} s", peak.mb_per_second(), rate / 1e6, options.seconds);
    let probe = SyncProbe::start(dir)?;
    let Overloaded { sending, light, projects, offered_for, arrived_after, resident } = bench.overload(&other, rate)?;
    let synced = [&synced_alone, &probe.end()?];
    let there = runtime.block_on(rows_there(server.target(), &projects))?;

    let mut report = Report::new("overload");
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    report.figure("it takes", peak.mb_per_second(), "MB/s");
    report.figure("offered", read(&sending.offered_bytes) / 1e6, "MB");
    report.figure(
        "offered, of what it takes in that time",
        read(&sending.offered_bytes) / offered_for / (rate / FACTOR),
        "times",
    );
    report.figure("refused or failed, and sent again", read(&sending.refusals), "");
    report.promised("rows dropped", read(&sending.lost_rows), "", Threshold::AtMost(0.0));
    let missing = read(&sending.offered_rows) - there as f64;
    report.promised("rows offered that are not there", missing, "", Threshold::AtMost(0.0));
    report.promised("all there after", arrived_after, "s", Threshold::AtMost(ARRIVED_WITHIN.as_secs_f64()));
    let memory = server.process().memory()?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report.promised("resident, peak", mib(memory.peak_bytes), "MiB", Threshold::AtMost(RESIDENT_MIB_MAX));
    report.promised("refusals of light clients", light.refused as f64, "", Threshold::AtMost(0.0));
    let slower = report_slowdown(&mut report, "a light client", [&alone.answer_ms, &light.answer_ms]);
    report.promised("light clients, p99 beside it / alone", slower, "times", Threshold::AtMost(LIGHT_SLOWER_MAX));
    let slower = report_slowdown(&mut report, "a page synced to a bare file", synced);
    report.figure("bare file, p99 beside it / alone", slower, "times");
    report.detail("light", &light)?;
    report.detail("resident_bytes", &resident)?;
    report.finish(json_file)
}

/// A runtime for the SDK processes, of a low priority: elsewhere they run on other machines, and here they would take
/// the processors from the server and from the light clients.
fn sdk_runtime() -> anyhow::Result<Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(SDK_THREADS).thread_name("bench-sdk").enable_all().on_thread_start(|| {
        if let Err(error) = rustix::process::nice(SDK_NICENESS) {
            eprintln!("the SDK processes have the priority of the others: {error}");
        }
    });
    runtime.build().context("starting the threads of the SDK processes")
}

/// Reports durations alone and during the overload; returns the ratio of the 99th percentiles.
fn report_slowdown(report: &mut Report, name: &str, [alone, beside]: [&Vec<f64>; 2]) -> f64 {
    let p99 = |times: &[f64]| percentile(times.iter().copied(), 0.99);
    for (times, when) in [(alone, "alone"), (beside, "beside it")] {
        report.figure(format!("{name} {when}, p50"), median(times.iter().copied()), "ms");
        report.figure(format!("{name} {when}, p99"), p99(times), "ms");
    }
    p99(beside) / p99(alone)
}

struct Overloaded {
    sending: Arc<Sending>,
    light: Light,
    projects: Vec<String>,
    offered_for: f64,
    arrived_after: f64,
    resident: Vec<u64>,
}

struct OverloadRun<'a> {
    options: &'a OverloadOptions,
    server: &'a ServerProcess,
    /// Threads of the light clients, and of all that is measured before the overload.
    runtime: &'a Runtime,
    /// Threads of the SDK processes.
    sdk_runtime: &'a Runtime,
}

impl OverloadRun<'_> {
    fn bodies(&self, lane: usize, count: usize) -> Vec<GeneratedEvents> {
        let mut workload = Workload::new(self.options.seed, Profile::Even, 0.0);
        workload.rows_per_write = self.options.rows_per_request;
        let mut stream = workload.stream(object_of_lane(lane));
        (0..count).map(|_| stream.next_events()).collect()
    }

    fn peak(&self) -> anyhow::Result<Driven> {
        const BODIES_EACH: usize = 400;
        let bodies: Bodies = Arc::new((0..PEAK_CONNECTIONS).map(|lane| self.bodies(lane, BODIES_EACH)).collect());
        let (lanes, _) = self.runtime.block_on(DriverLane::open(self.server.target(), PEAK_CONNECTIONS, 1))?;
        let driven = self.runtime.block_on(drive(lanes, &bodies, Pace { every: None, upto: Some(PEAK_TIME) }))?;
        ensure!(driven.requests > 0, "the server acknowledged nothing");
        Ok(driven)
    }

    fn light_alone(&self, target: &Target) -> anyhow::Result<Light> {
        let ends = Arc::new(AtomicBool::new(false));
        self.runtime.block_on(async {
            let light = tokio::spawn(light_clients(target.clone(), "alone", Arc::clone(&ends)));
            sleep(LIGHT_ALONE).await;
            ends.store(true, Ordering::Relaxed);
            light.await?
        })
    }

    /// Runs the processes and the light clients, and measures the server's memory meanwhile.
    fn overload(&self, other: &Target, rate: f64) -> anyhow::Result<Overloaded> {
        let (sending, ends) = (Arc::new(Sending::default()), Arc::new(AtomicBool::new(false)));
        let processes = self.options.processes;
        let buffer = usize::try_from(self.options.buffer_bytes)? / processes / BUFFER_UNIT_BYTES;
        let began = Instant::now();
        let until = began + Duration::from_secs(self.options.seconds);
        let light = self.runtime.spawn(light_clients(other.clone(), "beside", Arc::clone(&ends)));
        let mut projects = Vec::new();
        let mut tasks = JoinSet::new();
        for number in 0..processes {
            let id = self.runtime.block_on(project(self.server.target(), &format!("process-{number}")))?;
            let process = SdkProcess {
                path: Arc::from(format!("/v1/project_logs/{id}/insert")),
                target: self.server.target().clone(),
                batches: self.bodies(number, BATCHES_MADE).into_iter().map(Batch::new).collect(),
                bytes_a_second: rate / processes as f64,
                buffer,
                sending: Arc::clone(&sending),
            };
            projects.push(id);
            tasks.spawn_on(process.run(until), self.sdk_runtime.handle());
        }
        let sent = self.runtime.spawn(async move {
            let mut offered_for = Duration::ZERO;
            while let Some(done) = tasks.join_next().await {
                offered_for = offered_for.max(done.context("a process panicked")??);
            }
            anyhow::Ok((offered_for.as_secs_f64(), began.elapsed().as_secs_f64()))
        });
        let (process, mut resident): (Process, _) = (self.server.process(), Vec::new());
        while !sent.is_finished() {
            std::thread::sleep(MEMORY_EVERY);
            resident.push(process.memory().context("the server has ended")?.resident_bytes);
        }
        ends.store(true, Ordering::Relaxed);
        let (offered_for, arrived_after) = self.runtime.block_on(sent)??;
        let light = self.runtime.block_on(light)??;
        Ok(Overloaded { sending, light, projects, offered_for, arrived_after, resident })
    }
}

/// A batch that can be sent again and again as other rows.
struct Batch {
    body: Bytes,
    rows: u64,
    /// Places of all ids in the body, those of rows and others.
    ids: Vec<usize>,
}

impl Batch {
    /// Hexadecimal digits at the start of an id.
    const DIGITS: usize = 8;

    fn new(events: GeneratedEvents) -> Batch {
        const BEFORE: &[u8] = b"\"id\":\"";
        let body = events.body;
        let places = body.windows(BEFORE.len()).enumerate().filter(|(_, text)| *text == BEFORE);
        let ids = places.map(|(place, _)| place + BEFORE.len()).collect();
        Batch { body, rows: events.ids.len() as u64, ids }
    }

    fn numbered(&self, number: u32) -> Bytes {
        let mut body = self.body.to_vec();
        let digits = format!("{number:0width$x}", width = Batch::DIGITS);
        for place in &self.ids {
            body[*place..place + Batch::DIGITS].copy_from_slice(digits.as_bytes());
        }
        Bytes::from(body)
    }
}

/// A batch in the buffer, with its space.
struct Buffered {
    body: Bytes,
    rows: u64,
    _room: OwnedSemaphorePermit,
}

struct SdkProcess {
    path: Arc<str>,
    target: Target,
    batches: Vec<Batch>,
    bytes_a_second: f64,
    buffer: usize,
    sending: Arc<Sending>,
}

impl SdkProcess {
    /// Returns when all that it offered was sent or dropped; for how long it offered.
    async fn run(self, until: Instant) -> anyhow::Result<Duration> {
        let (sender, receiver) = mpsc::channel(self.buffer.clamp(1, Semaphore::MAX_PERMITS));
        let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
        let mut senders = JoinSet::new();
        for _ in 0..SENDERS {
            let (receiver, path) = (Arc::clone(&receiver), Arc::clone(&self.path));
            let (connection, sending) = (Connection::new(&self.target), Arc::clone(&self.sending));
            senders.spawn(async move { send_all(connection, &path, &receiver, &sending).await });
        }
        let began = Instant::now();
        self.offer(sender, until).await?;
        let offered_for = began.elapsed();
        while let Some(done) = senders.join_next().await {
            done.context("a sender panicked")?;
        }
        Ok(offered_for)
    }

    async fn offer(&self, sender: mpsc::Sender<Buffered>, until: Instant) -> anyhow::Result<()> {
        let room = Arc::new(Semaphore::new(self.buffer));
        let mut due = Instant::now();
        for number in 0_u32.. {
            let batch = &self.batches[number as usize % self.batches.len()];
            let units = u32::try_from(batch.body.len().div_ceil(BUFFER_UNIT_BYTES).min(self.buffer))?;
            sleep_until(due).await;
            let Ok(place) = timeout_at(until, Arc::clone(&room).acquire_many_owned(units)).await else { break };
            if Instant::now() >= until {
                break;
            }
            let rows = batch.rows;
            self.sending.offered_rows.fetch_add(rows, Ordering::Relaxed);
            self.sending.offered_bytes.fetch_add(batch.body.len() as u64, Ordering::Relaxed);
            let buffered = Buffered { body: batch.numbered(number), rows, _room: place? };
            if sender.send(buffered).await.is_err() {
                bail!("the senders have ended");
            }
            // While its buffer was full it made nothing, and does not catch up.
            let takes = Duration::from_secs_f64(batch.body.len() as f64 / self.bytes_a_second);
            due = (due + takes).max(Instant::now() - takes);
        }
        Ok(())
    }
}

async fn send_all(
    mut connection: Connection,
    path: &str,
    batches: &tokio::sync::Mutex<mpsc::Receiver<Buffered>>,
    sending: &Sending,
) {
    loop {
        let next = batches.lock().await.recv().await;
        let Some(Buffered { body, rows, _room }) = next else { return };
        let mut wait = FIRST_WAIT;
        let mut acknowledged = false;
        for attempt in 1..=TRIES {
            acknowledged = connection.post(path, &body).await.is_ok_and(|answer| answer.status == 200);
            if acknowledged {
                break;
            }
            sending.refusals.fetch_add(1, Ordering::Relaxed);
            if attempt < TRIES {
                sleep(wait).await;
                wait *= 2;
            }
        }
        let counter = if acknowledged { &sending.acknowledged_rows } else { &sending.lost_rows };
        counter.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Each writes one row at a time, when it is due, until the end.
async fn light_clients(target: Target, name: &'static str, ends: Arc<AtomicBool>) -> anyhow::Result<Light> {
    let id = project(&target, &format!("light-{name}")).await?;
    let mut tasks = JoinSet::new();
    for client in 0..LIGHT_CLIENTS {
        let (mut connection, ends) = (Connection::new(&target), Arc::clone(&ends));
        let path = format!("/v1/project_logs/{id}/insert");
        tasks.spawn(async move {
            let (mut light, mut due) = (Light::default(), Instant::now());
            let mut number = 0_u64;
            while !ends.load(Ordering::Relaxed) {
                sleep_until(due).await;
                let row = json!({"events": [{"id": format!("{client}-{number}"), "input": "light"}]});
                let from = Instant::now();
                let answer = connection.post(&path, &Bytes::from(row.to_string())).await?;
                light.answer_ms.push(from.elapsed().as_secs_f64() * 1e3);
                light.refused += u64::from(answer.status != 200);
                (number, due) = (number + 1, (due + LIGHT_EVERY).max(Instant::now()));
            }
            anyhow::Ok(light)
        });
    }
    let mut all = Light::default();
    while let Some(done) = tasks.join_next().await {
        let light = done.context("a light client panicked")??;
        all.refused += light.refused;
        all.answer_ms.extend(light.answer_ms);
    }
    Ok(all)
}

async fn project(target: &Target, name: &str) -> anyhow::Result<String> {
    let body = Bytes::from(json!({ "name": name }).to_string());
    let made: Value = Connection::new(target).post("/v1/project", &body).await?.json("POST /v1/project")?;
    made["id"].as_str().map(str::to_owned).context("the id of a project")
}

async fn rows_there(target: &Target, projects: &[String]) -> anyhow::Result<u64> {
    let (mut connection, mut rows) = (Connection::new(target), 0);
    for id in projects {
        let query = json!({ "query": format!("SELECT count(1) AS n FROM project_logs('{id}')") }).to_string();
        let found: Value = connection.post("/btql", &Bytes::from(query)).await?.json("POST /btql")?;
        rows += found["data"][0]["n"].as_u64().context("a count")?;
    }
    Ok(rows)
}

/// Creates another organization and returns a token of it.
fn key_of_another(program: &Path, data_dir: &Path) -> anyhow::Result<String> {
    let admin = |words: &[&str]| {
        let output = Command::new(program).arg("admin").args(words).arg("--data-dir").arg(data_dir).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "assay admin {}: {said}", words.join(" "));
        Ok(output.stdout)
    };
    admin(&["create-organization", "light", "--owner", "light@localhost"])?;
    let made = admin(&["create-service-account", "light", "--organization", "light"])?;
    let made: Value = serde_json::from_slice(&made).context("what `assay admin` made")?;
    made["service_token"].as_str().map(str::to_owned).context("a service token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_other_rows_each_time_and_is_otherwise_the_same() {
        let mut workload = Workload::new(1, Profile::Even, 0.0);
        workload.rows_per_write = 5;
        let events = workload.stream(0).next_events();
        let (length, ids) = (events.body.len(), events.ids.clone());
        let batch = Batch::new(events);
        assert_eq!(batch.rows, ids.len() as u64);
        let ids_of = |body: &Bytes| {
            let parsed: Value = serde_json::from_slice(body).expect("JSON");
            let events = parsed["events"].as_array().expect("events");
            events.iter().map(|event| event["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        let (first, second) = (batch.numbered(1), batch.numbered(0xabcd));
        assert!(first.len() == length && second.len() == length);
        let mut all = [ids_of(&first), ids_of(&second)].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10);
    }
}

//! `overload`: what a server does that is asked for several times what it can take, and how soon it is itself again.
//!
//! ```text
//! as fast as it goes ──► what it can take     a tenth of that ──► calm     several times that ──► storm     calm again?
//! ```
//! In the storm nobody waits: a request is due when it is due, and one that is refused is not sent again. A connection
//! whose answer is late sends the next request at once, so that many connections are needed to ask for that much.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use assay_bench::generate::{Profile, Workload};
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::drive::{Bodies, Driven, Lane, Pace, drive};
use super::server_process::ServerProcess;
use super::{client_runtime, object_of_lane};
use crate::process::Process;
use crate::report::{Report, Wanted, median, percentile};

/// How often what the server can take is asked for.
const FACTOR: f64 = 4.0;
/// Connections that find out what it can take: enough to keep it busy, few enough that nothing is refused.
const PEAK_CONNECTIONS: usize = 8;
const PEAK_TIME: Duration = Duration::from_secs(5);
/// The calm load is this part of the peak, on one connection.
const CALM_PART: f64 = 0.1;
const CALM_TIME: Duration = Duration::from_secs(4);
/// Bodies of each connection of the storm, sent again and again: a row that comes again replaces itself.
const STORM_BODIES_EACH: usize = 4;
const RECOVERY_SECONDS_MAX: f64 = 5.0;
/// For so long it is looked whether it recovers.
const RECOVERY_WATCHED: Duration = Duration::from_secs(20);
/// It has recovered when the middle of so many acknowledgements in a row is calm: at most twice as slow as before, or
/// by less than anyone notices.
const RECOVERED_IN_A_ROW: usize = 10;
const CALM_SLOWER_MAX: f64 = 2.0;
const CALM_SLOWER_MS: f64 = 10.0;
const RESIDENT_MIB_MAX: f64 = 1024.0;
const MEMORY_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Options {
    pub program: PathBuf,
    pub connections: usize,
    pub projects: usize,
    pub rows_per_request: usize,
    pub seconds: u64,
    pub seed: u64,
}

/// What came of the storm.
#[derive(Debug, Default, Serialize)]
struct Storm {
    seconds: f64,
    requests: u64,
    by_status: BTreeMap<u16, u64>,
    /// Answers 429 and 503 that do not say when to come again.
    without_retry_after: u64,
    /// Of what was answered 200.
    rows: u64,
    answer_ms: Vec<f64>,
    refusal_ms: Vec<f64>,
    /// What another status said: the first of each.
    others: BTreeMap<u16, String>,
}

impl Storm {
    fn join(&mut self, other: Storm) {
        self.requests += other.requests;
        self.without_retry_after += other.without_retry_after;
        self.rows += other.rows;
        self.answer_ms.extend(other.answer_ms);
        self.refusal_ms.extend(other.refusal_ms);
        self.others.extend(other.others);
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
    }

    fn count(&self, wanted: impl Fn(u16) -> bool) -> u64 {
        self.by_status.iter().filter(|(status, _)| wanted(**status)).map(|(_, count)| count).sum()
    }
}

pub fn run(options: &Options, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let server = ServerProcess::assay(&options.program, &dir.join("assay"))?;
    let runtime = client_runtime()?;
    let bench = Bench { options, server: &server, runtime: &runtime };

    let peak = bench.driven(PEAK_CONNECTIONS, Pace { every: None, upto: Some(PEAK_TIME) })?;
    let peak_rate = peak.requests as f64 / peak.seconds;
    let calm_pace = Pace { every: Some(Duration::from_secs_f64(1.0 / (peak_rate * CALM_PART))), upto: Some(CALM_TIME) };
    let calm = bench.driven(1, calm_pace)?;
    eprintln!("it takes {peak_rate:.0} requests/s; asking for {:.0} for {} s", FACTOR * peak_rate, options.seconds);
    let (storm, resident) = bench.storm(FACTOR * peak_rate)?;
    let recovered = bench.recovered(&calm)?;

    let mut report = Report::new("overload");
    report.figure("can take", peak.operations_per_second(), "rows/s");
    report.figure("calm, an acknowledgement, p50", percentile(calm.answer_ms.iter().copied(), 0.5), "ms");
    figures(&mut report, &storm, peak_rate, peak.operations_per_second());
    let memory = server.process().memory()?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report.promised("resident, peak", mib(memory.peak_bytes), "MiB", Wanted::AtMost(RESIDENT_MIB_MAX));
    report.promised("calm again after", recovered, "s", Wanted::AtMost(RECOVERY_SECONDS_MAX));
    report.detail("storm", &storm)?;
    report.detail("resident_bytes", &resident)?;
    report.finish(json_file)
}

fn figures(report: &mut Report, storm: &Storm, peak_rate: f64, peak_rows: f64) {
    report.figure("asked for, of what it can take", storm.requests as f64 / storm.seconds / peak_rate, "times");
    report.figure("taken in the storm, of what it can take", storm.rows as f64 / storm.seconds / peak_rows, "times");
    report.figure("answered 200", storm.count(|status| status == 200) as f64, "");
    let refused = storm.count(|status| matches!(status, 429 | 503)) as f64;
    report.promised("answered 429 or 503", refused, "", Wanted::AtLeast(1.0));
    let others = storm.count(|status| !matches!(status, 200 | 429 | 503)) as f64;
    report.promised("answered anything else, or not at all", others, "", Wanted::AtMost(0.0));
    report.promised("without Retry-After", storm.without_retry_after as f64, "", Wanted::AtMost(0.0));
    report.figure("storm, an acknowledgement, p50", median(storm.answer_ms.iter().copied()), "ms");
    report.figure("storm, an acknowledgement, p99", percentile(storm.answer_ms.iter().copied(), 0.99), "ms");
    report.figure("storm, a refusal, p50", median(storm.refusal_ms.iter().copied()), "ms");
}

struct Bench<'a> {
    options: &'a Options,
    server: &'a ServerProcess,
    runtime: &'a Runtime,
}

impl Bench<'_> {
    /// Lanes and as many bodies for each as fit into the time; a lane's rows are its own.
    fn lanes(&self, count: usize, bodies_each: usize) -> anyhow::Result<(Vec<Lane>, Bodies)> {
        let mut workload = Workload::new(self.options.seed, Profile::Even, 0.0);
        workload.rows_per_write = self.options.rows_per_request;
        let bodies = (0..count).map(|lane| {
            let mut stream = workload.stream(object_of_lane(lane));
            (0..bodies_each).map(|_| stream.next_events()).collect()
        });
        let bodies = Arc::new(bodies.collect());
        let (lanes, _) = self.runtime.block_on(Lane::open(self.server.target(), count, self.options.projects))?;
        Ok((lanes, bodies))
    }

    fn driven(&self, connections: usize, pace: Pace) -> anyhow::Result<Driven> {
        const BODIES_EACH: usize = 400;
        let (lanes, bodies) = self.lanes(connections, BODIES_EACH)?;
        let driven = self.runtime.block_on(drive(lanes, &bodies, pace))?;
        ensure!(driven.requests > 0, "the server acknowledged nothing");
        Ok(driven)
    }

    /// Also the server's resident memory over time.
    fn storm(&self, rate: f64) -> anyhow::Result<(Storm, Vec<u64>)> {
        let (lanes, bodies) = self.lanes(self.options.connections, STORM_BODIES_EACH)?;
        let (began, time) = (Instant::now(), Duration::from_secs(self.options.seconds));
        let every = Duration::from_secs_f64(lanes.len() as f64 / rate);
        let storm = self.runtime.spawn(async move {
            let mut tasks = JoinSet::new();
            for (at, lane) in lanes.into_iter().enumerate() {
                let bodies = Arc::clone(&bodies);
                let first = began + every.mul_f64(at as f64 / bodies.len() as f64);
                tasks.spawn(async move { one_lane(lane, &bodies[at], first, every, began + time).await });
            }
            let mut storm = Storm::default();
            while let Some(done) = tasks.join_next().await {
                storm.join(done.context("a lane panicked")?);
            }
            storm.seconds = began.elapsed().as_secs_f64();
            anyhow::Ok(storm)
        });
        let (process, mut resident): (Process, _) = (self.server.process(), Vec::new());
        while !storm.is_finished() {
            std::thread::sleep(MEMORY_EVERY);
            resident.push(process.memory().context("the server has ended")?.resident_bytes);
        }
        Ok((self.runtime.block_on(storm)??, resident))
    }

    /// Seconds until acknowledgements come as they did when it was calm.
    fn recovered(&self, calm: &Driven) -> anyhow::Result<f64> {
        let began = Instant::now();
        let calm = median(calm.answer_ms.iter().copied());
        let calm_again = (calm * CALM_SLOWER_MAX).max(calm + CALM_SLOWER_MS);
        while began.elapsed() < RECOVERY_WATCHED {
            let (lanes, bodies) = self.lanes(1, RECOVERED_IN_A_ROW)?;
            let look = self.runtime.block_on(drive(lanes, &bodies, Pace { every: None, upto: None }))?;
            if median(look.answer_ms.iter().copied()) <= calm_again && look.refused == 0 {
                break;
            }
        }
        Ok(began.elapsed().as_secs_f64())
    }
}

async fn one_lane(
    mut lane: Lane,
    bodies: &[assay_bench::generate::GeneratedEvents],
    first: Instant,
    every: Duration,
    end: Instant,
) -> Storm {
    let mut storm = Storm::default();
    let mut due = first;
    for events in bodies.iter().cycle() {
        sleep_until(due).await;
        due = (due + every).max(Instant::now() - every); // what it is late it does not send all at once later
        if Instant::now() >= end {
            break;
        }
        let from = Instant::now();
        storm.requests += 1;
        let (status, retry_after, said) = match lane.offer(events).await {
            Ok(answer) => (answer.status, answer.retry_after.is_some(), answer.body),
            Err(error) => (0, true, format!("{error:#}").into_bytes()),
        };
        *storm.by_status.entry(status).or_default() += 1;
        let took = from.elapsed().as_secs_f64() * 1e3;
        match status {
            200 => {
                storm.rows += events.operations();
                storm.answer_ms.push(took);
            }
            429 | 503 => {
                storm.without_retry_after += u64::from(!retry_after);
                storm.refusal_ms.push(took);
            }
            _ => {
                storm.others.entry(status).or_insert_with(|| String::from_utf8_lossy(&said).into_owned());
            }
        }
    }
    storm
}

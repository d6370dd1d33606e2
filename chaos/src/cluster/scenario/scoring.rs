//! Scenario of online scoring: clients log spans, and rules score them, while nodes are killed, paused and cut off from
//! each other.
//!
//! Afterwards every span that a rule selects has exactly one result of it, and caps have held.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::scored_rows::{CAPPED, Checked, EVERY, HALF, LogRows, RUNS_PER_MINUTE, check};
use super::{Opening, Scenario};
use crate::cluster::environment::world::Plan;
use crate::cluster::faults::conductor::Conductor;
use crate::cluster::faults::fault::{CALM_SECONDS, Kind, Planned, WARM_MS, promised, schedule};
use crate::cluster::recording::events::Phase;
use crate::cluster::workload::client::{Called, Client, message};
use crate::cluster::workload::shared::{ClientContext, Patience};
use crate::cluster::workload::workloads;
use crate::cluster::{conclude, possible};
use crate::report::Report;

const NODES: u8 = 3;
const SHARDS: u16 = 4;
const MEMORY_BUDGET_BYTES: u64 = 16 << 20;
/// Projects with rules: so many that every node scores the logs of some.
const PROJECTS: u32 = 4;
/// Spans in one write.
const BATCH_SPANS: u32 = 25;
const FAULTS: [Kind; 5] = [Kind::Kill, Kind::KillAll, Kind::Pause, Kind::Isolate, Kind::Bridge];
/// Share of the storm in which clients write.
const WRITING_SHARE: f64 = 0.9;
/// Time limit for all results, from the last fault on: two minutes, and a second for so many spans.
const SCORED_MAX: Duration = Duration::from_secs(120);
const SPANS_PER_SECOND_MIN: u32 = 100;
/// Time limit for a write, over all faults.
const WRITTEN_MAX: Duration = Duration::from_secs(60);
/// Time limit for a read of a log once all nodes are up.
const READ_MAX: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);
/// Rows of a page.
const PAGE_ROWS: u64 = 500;
/// Findings of each log that are reported.
const TOLD_MAX: usize = 10;
const SCORED: &str = "spans scored";
const SKIPPED: &str = "runs that a cap refused";

/// Options of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct ScoringOptions {
    pub seed: u64,
    /// Seconds with faults.
    pub seconds: u64,
    pub spans: u32,
}

/// Project whose log is scored.
#[derive(Clone, Debug)]
struct ScoredProject {
    number: u32,
    /// Path in front of `/insert` and `/fetch`.
    path: String,
    rules: Vec<String>,
    spans: BTreeSet<String>,
}

/// Results of the checks, by projects.
#[derive(Debug, Default)]
struct ScoredOutcome {
    checked: Vec<(u32, Checked)>,
    skipped: u64,
    /// Time from the last fault until the checks found all results.
    scored_after: Duration,
}

/// Runs it; what is to be looked at afterwards.
pub fn run(options: ScoringOptions, interrupted: &AtomicBool, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let ScoringOptions { seed, seconds, spans } = options;
    let plan = Plan { nodes: NODES, shards: SHARDS, memory_budget_bytes: MEMORY_BUDGET_BYTES };
    let opening = Opening { seed, seconds, plan, need: None, patience: Patience::default() };
    let Some(story) = Scenario::open(opening, interrupted, report)? else { return Ok(Vec::new()) };
    let kinds = possible(&FAULTS.into(), NODES, &story.conductor.world.means, report);
    let planned = schedule(seed, seconds + CALM_SECONDS, &kinds);
    for fault in promised(&planned, seconds + CALM_SECONDS) {
        report.coverage.want(&format!("fault {}", fault.kind.name()), 1);
    }
    report.coverage.want("leader changes", 1);
    report.coverage.want(SCORED, u64::from(spans / PROJECTS * PROJECTS));
    report.coverage.want(SKIPPED, 1);
    let outcome = RefCell::new(ScoredOutcome::default());
    let play = |conductor: &mut Conductor<'_>| {
        *outcome.borrow_mut() = play(conductor, options, &planned)?;
        Ok(())
    };
    let further = |_: &Path, report: &mut Report| {
        outcome.borrow().tell(report);
        Ok(())
    };
    Ok(story.tell(report, play, further))
}

fn play(conductor: &mut Conductor<'_>, options: ScoringOptions, planned: &[Planned]) -> anyhow::Result<ScoredOutcome> {
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    conductor.world.found().context("founding the cluster")?;
    let mut reader = Client::new(0, Arc::clone(&conductor.stage), rng.random());
    let projects = (0..PROJECTS).map(|number| ScoredProject::create(&mut reader, number, options.spans / PROJECTS));
    let projects = projects.collect::<anyhow::Result<Vec<_>>>()?;
    let storm = Duration::from_secs(options.seconds);
    let pause = storm.mul_f64(WRITING_SHARE) / (options.spans / PROJECTS / BATCH_SPANS).max(1);
    let until = Instant::now() + storm;
    conductor.stage.enter(Phase::Storm);
    conductor.sample();
    let writers = projects.iter().map(|project| project.start_writer(&conductor.stage, pause, rng.random()));
    let writers = writers.collect::<anyhow::Result<Vec<_>>>()?;
    let attacked = conductor.hold(Duration::from_millis(WARM_MS)).and_then(|()| conductor.storm(planned, until));
    let launched = conductor.world.heal()?;
    conductor.stage.enter(Phase::Calm);
    conductor.await_ready(launched)?;
    conductor.stage.set_nodes(conductor.world.nodes_at());
    if attacked.is_err() {
        conductor.stage.stop();
    }
    attacked.and(join(writers))?;
    let outcome = await_results(conductor, &mut reader, &projects)?;
    conclude(conductor)?;
    Ok(outcome)
}

fn join(writers: Vec<JoinHandle<anyhow::Result<()>>>) -> anyhow::Result<()> {
    let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
    ends.into_iter().try_for_each(|end| end.map_err(|_| anyhow!("a client panicked"))?)
}

/// Waits until no trigger is open and no result is missing, up to a limit.
fn await_results(
    conductor: &mut Conductor<'_>,
    reader: &mut Client,
    projects: &[ScoredProject],
) -> anyhow::Result<ScoredOutcome> {
    let begun = Instant::now();
    let spans: usize = projects.iter().map(|project| project.spans.len()).sum();
    let scored_max = SCORED_MAX + Duration::from_secs(spans as u64 / u64::from(SPANS_PER_SECOND_MIN));
    let mut outcome = ScoredOutcome::default();
    loop {
        let is_late = begun.elapsed() >= scored_max;
        let states = projects.iter().flat_map(|project| &project.rules);
        let states = states.map(|rule| reader.rule_state(rule)).collect::<anyhow::Result<Vec<_>>>()?;
        let is_open = |state: &Value| state["pending"] != 0 || state["running"] != 0;
        if is_late || !states.iter().any(is_open) {
            outcome.skipped = states.iter().filter_map(|state| state["skipped"].as_u64()).sum();
            let checked = projects.iter().map(|one| Ok((one.number, check(&one.spans, &reader.rows(&one.path)?))));
            outcome.checked = checked.collect::<anyhow::Result<_>>()?;
            outcome.scored_after = begun.elapsed();
            if is_late || outcome.checked.iter().all(|(_, checked)| checked.missing.is_empty()) {
                return Ok(outcome);
            }
        }
        conductor.hold(PAUSE)?;
    }
}

impl ScoredProject {
    /// Makes the project and its rules.
    fn create(client: &mut Client, number: u32, spans: u32) -> anyhow::Result<ScoredProject> {
        let id = workloads::made(client, "/v1/project", &json!({ "name": format!("scored {number}") }))?;
        let mut rules = Vec::new();
        for (name, more) in [
            (EVERY, json!({"sampling_rate": 1})),
            (HALF, json!({"sampling_rate": 0.5})),
            (CAPPED, json!({"sampling_rate": 1, "max_runs_per_minute": RUNS_PER_MINUTE})),
        ] {
            let mut online = more;
            online["scorers"] = json!([{"type": "global", "name": name, "function_type": "scorer"}]);
            let rule = json!({"project_id": id, "name": name, "score_type": "online", "config": {"online": online}});
            rules.push(workloads::made(client, "/v1/project_score", &rule)?);
        }
        let spans = (0..spans).map(|place| format!("span-{number}-{place}")).collect();
        Ok(ScoredProject { number, path: format!("/v1/project_logs/{id}"), rules, spans })
    }

    /// Starts a client that writes the spans, and writes each again until it is acknowledged.
    fn start_writer(
        &self,
        stage: &Arc<ClientContext>,
        pause: Duration,
        seed: u64,
    ) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
        let mut client = Client::new(1 + self.number, Arc::clone(stage), seed);
        let (path, spans) = (format!("{}/insert", self.path), self.spans.iter().cloned().collect::<Vec<_>>());
        let thread = std::thread::Builder::new().name(format!("client-{}", client.number));
        let write_all = move || {
            for batch in spans.chunks(BATCH_SPANS as usize) {
                let next = Instant::now() + pause;
                if client.stage.stopped() {
                    break;
                }
                let events: Vec<Value> = batch.iter().map(|id| span(id, &mut client.rng)).collect();
                client.insist(("POST", &path), &json!({ "events": events }), WRITTEN_MAX)?;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            Ok(())
        };
        thread.spawn(write_all).context("starting a client")
    }
}

/// Returns a finished span that exactly matches in half of the cases.
fn span(id: &str, rng: &mut ChaCha8Rng) -> Value {
    let (output, expected) = (rng.random_range(0..2), rng.random_range(0..2));
    json!({"id": id, "span_id": id, "root_span_id": id, "input": format!("input of {id}"), "output": output,
        "expected": expected, "metrics": {"start": 1, "end": 2}})
}

impl Client {
    /// Sends a request to one node after the other until it is answered with 200.
    fn insist(&mut self, (method, path): (&str, &str), body: &Value, within: Duration) -> anyhow::Result<Value> {
        let until = Instant::now() + within;
        loop {
            let at = self.another()?;
            let why = match self.call(at, method, path, &[], body) {
                Called::Answered(answer) if answer.status == 200 => return Ok(answer.body),
                Called::Answered(answer) => format!("{} {}", answer.status, message(&answer)),
                Called::NotSent(why) | Called::Broken(why) => why,
            };
            ensure!(Instant::now() < until, "{method} {path} within {within:?}: {why}");
            std::thread::sleep(PAUSE / 5);
        }
    }

    fn rule_state(&mut self, rule: &str) -> anyhow::Result<Value> {
        let path = format!("/v1/project_score/{rule}/status");
        self.insist(("GET", &path), &Value::Null, READ_MAX)
    }

    /// Reads the whole log.
    fn rows(&mut self, path: &str) -> anyhow::Result<LogRows> {
        let (path, mut rows, mut cursor) = (format!("{path}/fetch"), LogRows::new(), Value::Null);
        loop {
            let asked = json!({"limit": PAGE_ROWS, "cursor": cursor});
            let mut page = self.insist(("POST", &path), &asked, READ_MAX)?;
            let Value::Array(events) = page["events"].take() else { return Err(anyhow!("a page without rows")) };
            if events.is_empty() {
                return Ok(rows);
            }
            for row in events {
                let id = row["id"].as_str().context("a row without an id")?.to_owned();
                ensure!(rows.insert(id.clone(), row).is_none(), "the row {id} is on two pages");
            }
            cursor = page["cursor"].take();
            if cursor.is_null() {
                return Ok(rows);
            }
        }
    }
}

impl ScoredOutcome {
    fn tell(&self, report: &mut Report) {
        let mut results: BTreeMap<&str, u64> = BTreeMap::new();
        let mut spans = 0;
        for (number, checked) in &self.checked {
            let found = checked.findings.iter().chain(&checked.missing).take(TOLD_MAX);
            report.findings.extend(found.map(|finding| format!("project {number}: {finding}")));
            spans += checked.counts.spans;
            for (name, count) in &checked.counts.results {
                *results.entry(name).or_default() += count;
            }
        }
        report.coverage.add(SCORED, results.get(EVERY).copied().unwrap_or_default());
        report.coverage.add(SKIPPED, self.skipped);
        let after = self.scored_after.as_secs_f64();
        let skipped = self.skipped;
        report.notes.push(format!(
            "{spans} spans, {results:?}, {skipped} refused by caps; all scored {after:.1} s after the last fault"
        ));
        let figures = json!({"spans": spans, "results": results, "skipped": skipped, "scored_after_s": after});
        report.details.insert("scoring".into(), figures);
    }
}

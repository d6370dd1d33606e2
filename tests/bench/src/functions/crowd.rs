//! Many calls at the same time, each with a worker and memory of its own. Some take more than they may.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::interpreter::{BareInterpreter, HandlerLanguage};
use super::server::{CodeServer, INVOKE};
use crate::http::client::{Connection, HttpResponse, Target};

/// Memory that a call may have.
pub const LIMIT_BYTES: u64 = 128 << 20;
/// Memory that a call holds.
const HELD_BYTES: u64 = 16 << 20;
/// One greedy call for so many others.
const CALLS_PER_GREEDY: usize = 10;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time before the end in which nothing happens but waiting.
const REST: Duration = Duration::from_secs(8);
/// End of that time before the calls end.
const REST_ENDS_BEFORE: Duration = Duration::from_secs(1);

/// Result of the calls, and what the processes used.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrowdOutcome {
    pub calls: usize,
    pub greedy: usize,
    /// Calls that were answered with their value.
    pub answered: usize,
    /// Answers of calls that should have had a value, by status and text.
    pub failures: BTreeMap<String, usize>,
    /// Names of the errors of greedy calls; `value` where one had a value.
    pub greedy_ends: BTreeMap<String, usize>,
    pub workers_most: usize,
    pub worker_bytes_most: u64,
    /// The same without the greedy calls.
    pub modest_bytes_most: u64,
    pub all_bytes_most: u64,
    /// Processors in use while all calls wait: the server alone, and all workers.
    pub resting_server: f64,
    pub resting_workers: f64,
}

/// Processor seconds at a moment.
#[derive(Clone, Copy, Debug)]
struct CrowdReading {
    at: Instant,
    all: f64,
    server: f64,
}

/// Runs `calls` at once until `time` has passed.
pub fn run(
    runtime: &Runtime,
    program: &Path,
    interpreters: &[BareInterpreter],
    (calls, time): (usize, Duration),
    dir: &Path,
) -> anyhow::Result<CrowdOutcome> {
    let greedy = calls.div_ceil(CALLS_PER_GREEDY);
    // An organization has at most half of the slots.
    let (slots, bytes) = ((2 * (calls + greedy)).to_string(), LIMIT_BYTES.to_string());
    let settings = [("ASSAY_FUNCTIONS_RUNNING_MAX", slots.as_str()), ("ASSAY_FUNCTIONS_MEMORY_BYTES_MAX", &bytes)];
    let server = CodeServer::start(runtime, program, interpreters, &settings, dir)?;
    let languages: Vec<HandlerLanguage> = interpreters.iter().map(|interpreter| interpreter.language).collect();
    for language in &languages {
        // The trial of the sandbox is none of the measured calls.
        let first = runtime.block_on(sent(server.target().clone(), body(*language, 0, false)))?;
        first.ok(INVOKE).with_context(|| language.to_string())?;
    }
    let until = Instant::now() + time;
    let until_ms = (SystemTime::now() + time).duration_since(UNIX_EPOCH)?.as_millis() as u64;
    let start = |greedy: bool, at: usize| {
        let body = body(languages[at % languages.len()], until_ms, greedy);
        runtime.spawn(sent(server.target().clone(), body))
    };
    let modest: Vec<_> = (0..calls).map(|at| start(false, at)).collect();
    let greedy: Vec<_> = (0..greedy).map(|at| start(true, at)).collect();
    let mut outcome = CrowdOutcome { calls: modest.len(), greedy: greedy.len(), ..CrowdOutcome::default() };
    let is_running = || modest.iter().chain(&greedy).any(|call| !call.is_finished());
    watch(&server, until, is_running, &mut outcome)?;
    runtime.block_on(settle(modest, greedy, &mut outcome))?;
    Ok(outcome)
}

fn body(language: HandlerLanguage, until_ms: u64, greedy: bool) -> Bytes {
    let input = json!({ "bytes": HELD_BYTES, "until": until_ms, "greedy": greedy });
    CodeServer::inline_call(language, language.holder(), &input)
}

async fn sent(target: Target, body: Bytes) -> anyhow::Result<HttpResponse> {
    Connection::new(&target).post(INVOKE, &body).await
}

/// Looks at the processes until all calls have ended.
fn watch(
    server: &CodeServer,
    until: Instant,
    is_running: impl Fn() -> bool,
    outcome: &mut CrowdOutcome,
) -> anyhow::Result<()> {
    let mut readings = Vec::new();
    while is_running() {
        let workers = server.group().worker_bytes();
        let now = Instant::now();
        let most = workers.values().copied().max().unwrap_or(0);
        outcome.workers_most = outcome.workers_most.max(workers.len());
        outcome.worker_bytes_most = outcome.worker_bytes_most.max(most);
        outcome.all_bytes_most = outcome.all_bytes_most.max(workers.values().sum());
        if now + REST > until && now + REST_ENDS_BEFORE < until {
            // Greedy calls have ended by now.
            outcome.modest_bytes_most = outcome.modest_bytes_most.max(most);
            readings.push(CrowdReading {
                at: now,
                all: server.group().cpu_seconds()?,
                server: server.own_cpu_seconds()?,
            });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    if let (Some(first), Some(last)) = (readings.first(), readings.last()) {
        let seconds = (last.at - first.at).as_secs_f64().max(LOOK_EVERY.as_secs_f64());
        outcome.resting_server = (last.server - first.server) / seconds;
        outcome.resting_workers = (last.all - first.all) / seconds - outcome.resting_server;
    }
    Ok(())
}

type CrowdCalls = Vec<JoinHandle<anyhow::Result<HttpResponse>>>;

async fn settle(modest: CrowdCalls, greedy: CrowdCalls, outcome: &mut CrowdOutcome) -> anyhow::Result<()> {
    for call in modest {
        let response = call.await.context("a client panicked")??;
        if response.status == 200 && response.body == HELD_BYTES.to_string().as_bytes() {
            outcome.answered += 1;
        } else {
            let text = format!("{}: {}", response.status, String::from_utf8_lossy(&response.body));
            *outcome.failures.entry(text).or_default() += 1;
        }
    }
    for call in greedy {
        let response = call.await.context("a client panicked")??;
        let end = match response.status {
            200 => "value".to_owned(),
            500 => {
                let error: Value = serde_json::from_slice(&response.body).context("an error that is no JSON")?;
                error["FunctionError"]["name"].as_str().unwrap_or("500 without a name").to_owned()
            }
            status => status.to_string(),
        };
        *outcome.greedy_ends.entry(end).or_default() += 1;
    }
    Ok(())
}

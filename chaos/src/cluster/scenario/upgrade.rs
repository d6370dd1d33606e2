//! Upgrade scenario: a cluster of an earlier version is upgraded to this one, node after node, under load.
//!
//! Each node is stopped and started again on the same directory; the next follows when `/readyz` of this one succeeds.
//! Clients are careful: they give each write a key, and retry failed requests. One retry has to be enough, and only a
//! 503 or a connection to the restarting node may require it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::request_outcomes;
use super::request_outcomes::Requests;
use super::{Opening, Scenario};
use crate::cluster::environment::node::READY_MAX;
use crate::cluster::environment::world::{API_KEY, Plan};
use crate::cluster::faults::conductor::Conductor;
use crate::cluster::faults::fault::CALM_SECONDS;
use crate::cluster::recording::events::{Outcome, Phase, RunEvent};
use crate::cluster::workload::shared::Patience;
use crate::cluster::workload::workloads;
use crate::cluster::{STOP_MAX, WRITES_PER_SECOND_MIN, under_load};
use crate::http_client::HttpClient as Connection;
use crate::report::Report;
use crate::{capabilities, child_process};

const NODES: u8 = 3;
const SHARDS: u16 = 8;
/// So small that both programs seal, and read what the other sealed.
const MEMORY_BUDGET_BYTES: u64 = 2 << 20;
/// A node searches for a leader for 25 s. Several tries distinguish a request that failed twice from one that never
/// succeeds.
const PATIENCE: Patience = Patience { wait: Duration::from_secs(30), tries: 5 };
/// The share of the time before the first node is stopped.
const BEFORE_SHARE: u32 = 4;
/// Between two nodes clients use a cluster of both programs for so long.
const MIXED: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);
const ASK_WAIT: Duration = Duration::from_secs(5);
/// The kind of fault under which the history has the restart of a node. Its number is the node's.
const UPGRADE: &str = "upgrade";

/// Options of the scenario.
#[derive(Clone, Debug)]
pub struct UpgradeOptions {
    pub seed: u64,
    pub seconds: u64,
    /// The earlier program.
    pub from: PathBuf,
    /// Whether the nodes are started with the earlier program again in the end, one after the other.
    pub back: bool,
}

/// Runs it; what is to be looked at afterwards.
pub fn run(options: &UpgradeOptions, interrupted: &AtomicBool, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let UpgradeOptions { seed, seconds, from, back } = options;
    let from = from.canonicalize().with_context(|| format!("the program {}", from.display()))?;
    let programs = [version_of(&from)?, version_of(&capabilities::program()?)?];
    let plan = Plan { nodes: NODES, shards: SHARDS, memory_budget_bytes: MEMORY_BUDGET_BYTES };
    let opening = Opening { seed: *seed, seconds: *seconds, plan, need: None, patience: PATIENCE };
    let Some(mut story) = Scenario::open(opening, interrupted, report)? else { return Ok(Vec::new()) };
    for node in story.conductor.world.nodes.values_mut() {
        node.program = Some(from.clone());
    }
    let coverage = &mut report.coverage;
    // A node that goes back is the same one.
    coverage.want("fault upgrade", u64::from(NODES));
    coverage.want("writes acknowledged", seconds * WRITES_PER_SECOND_MIN);
    for (what, at_least) in [("reads", 2), ("reads at a version", 4), ("asks answered", 2)] {
        coverage.want(what, seconds / at_least);
    }
    coverage.want("retries that were one write", 1);
    let back = back.then_some(from);
    let play = |conductor: &mut Conductor<'_>| play(conductor, *seed, Duration::from_secs(*seconds), back);
    Ok(story.tell(report, play, |dir, report| further(dir, &programs, report)))
}

fn play(conductor: &mut Conductor<'_>, seed: u64, time: Duration, back: Option<PathBuf>) -> anyhow::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    conductor.world.found().context("founding the cluster")?;
    under_load(conductor, &workloads::ALL, &mut rng, |conductor| {
        let until = Instant::now() + time;
        conductor.stage.enter(Phase::Storm);
        conductor.sample();
        conductor.hold(time / BEFORE_SHARE)?;
        for number in conductor.world.members() {
            restart_with(conductor, number, None)?;
            conductor.hold(MIXED)?;
        }
        for number in conductor.world.members().into_iter().filter(|_| back.is_some()) {
            restart_with(conductor, number, back.clone())?;
            conductor.hold(MIXED)?;
        }
        let left = until.saturating_duration_since(Instant::now());
        conductor.calm(left.max(Duration::from_secs(CALM_SECONDS)))
    })
}

/// Stops the node, and starts it with a program; none is the program under trial.
fn restart_with(conductor: &mut Conductor<'_>, number: u8, program: Option<PathBuf>) -> anyhow::Result<()> {
    let say = |conductor: &Conductor<'_>, what: &str, outcome| {
        conductor.say(RunEvent::Fault {
            number: number.into(),
            kind: UPGRADE.into(),
            what: what.to_owned(),
            majority: true,
            deaf: None,
            outcome,
        });
    };
    let before = version_at(conductor, number);
    say(conductor, "", Outcome::Begun);
    conductor.stage.set_away(Some(number));
    let began = Instant::now();
    conductor.stop(number, STOP_MAX)?;
    let stopped = began.elapsed().as_secs_f64();
    let node = conductor.world.node(number)?;
    node.program = program;
    node.launch()?;
    conductor.await_ready(vec![number])?;
    await_readyz(conductor, number)?;
    let ready = began.elapsed().as_secs_f64() - stopped;
    conductor.stage.set_away(None);
    let after = version_at(conductor, number);
    let what = format!("node {number} from {before} to {after}: stopped in {stopped:.1} s, ready in {ready:.1} s");
    eprintln!("upgrade: {what}");
    say(conductor, &what, Outcome::Installed);
    say(conductor, &what, Outcome::Healed);
    Ok(())
}

/// Waits until the node reports ready. Reaching the limit is a finding.
fn await_readyz(conductor: &mut Conductor<'_>, number: u8) -> anyhow::Result<()> {
    let until = Instant::now() + READY_MAX;
    while let Some(why) = conductor.not_ready(number)? {
        if Instant::now() >= until {
            conductor.say(RunEvent::Broken { fault: UPGRADE.into(), why });
            break;
        }
        conductor.hold(POLL)?;
    }
    Ok(())
}

/// Returns the version that a running node reports, or the reason for its absence.
fn version_at(conductor: &mut Conductor<'_>, number: u8) -> String {
    let mut asked = || {
        let address = conductor.world.node(number)?.http;
        let mut connection = Connection::connect(address, API_KEY, ASK_WAIT)?;
        let answer = connection.send("GET", "/version", &[], b"")?;
        answer.body["version"].as_str().map(str::to_owned).ok_or_else(|| anyhow!("it answers {}", answer.status))
    };
    asked().unwrap_or_else(|why| format!("an unknown version ({why:#})"))
}

/// A program's file and what it answers to `--version`.
fn version_of(program: &Path) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.arg("--version");
    let errors = tempfile::NamedTempFile::new().context("making a file")?;
    let said = child_process::output(command, errors.path(), ASK_WAIT);
    let said = said.with_context(|| format!("{} --version", program.display()))?;
    Ok(format!("{} ({})", said.trim(), program.display()))
}

/// Holds the requests of clients against what a restart may cost them.
fn further(dir: &Path, programs: &[String; 2], report: &mut Report) -> anyhow::Result<()> {
    let events = request_outcomes::events(dir)?;
    let requests = Requests::of(&events, &request_outcomes::restarts(&events, UPGRADE));
    report.findings.extend(findings(&requests));
    let [from, to] = programs;
    report.notes.push(format!("from {from} to {to}"));
    report.notes.push(format!(
        "requests: {} answered, {} of them at the second try; {} needed more than one retry",
        requests.answered, requests.retried_once, requests.retried_more
    ));
    let told = json!({ "from": from, "to": to, "requests": requests.figures() });
    report.details.insert("upgrade".into(), told);
    Ok(())
}

fn findings(requests: &Requests) -> Vec<String> {
    let failures = || requests.failures.iter();
    let mut findings = request_outcomes::findings("a request failed", failures().filter(|failure| !failure.expected));
    if requests.retried_more > 0 {
        findings.push(format!("{} requests needed more than one retry", requests.retried_more));
        findings.extend(request_outcomes::findings("a retry failed", failures().filter(|failure| failure.again)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::request_outcomes::Failure;
    use super::*;

    fn with(retried_more: u64, expected: bool, again: bool) -> Requests {
        let failure = Failure {
            t: 1_500_000,
            client: 4,
            node: 2,
            kind: "write",
            status: Some(503),
            why: "no leader".into(),
            expected,
            again,
        };
        Requests { answered: 9, retried_once: 1, retried_more, failures: vec![failure] }
    }

    #[test]
    fn one_retry_that_was_to_be_expected_is_no_finding() {
        assert_eq!(findings(&with(0, true, false)), Vec::<String>::new());
        assert_eq!(
            findings(&with(0, false, false)),
            ["a request failed: write of client 4 at node 2, 1.5 s: 503: no leader"]
        );
        let twice = findings(&with(1, true, true));
        assert_eq!(twice[0], "1 requests needed more than one retry");
        assert_eq!(twice[1], "a retry failed: write of client 4 at node 2, 1.5 s: 503: no leader");
    }
}

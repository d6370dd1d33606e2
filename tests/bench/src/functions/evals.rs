//! One evaluation twice: run by the server, and run by the Python SDK beside it, with the same code and the same rows.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::interpreter::HandlerLanguage;
use super::server::{CodeServer, context, post};

/// Program that runs the evaluation with the SDK.
const SDK_PROGRAM: &str = include_str!("programs/evaluation.py");
/// Task and scorers, each a function named `handler`.
const TASK: &str = include_str!("programs/eval_task.py");
const SCORERS: [(&str, &str); 3] = [
    ("exact", include_str!("programs/eval_exact.py")),
    ("length", include_str!("programs/eval_length.py")),
    ("words", include_str!("programs/eval_words.py")),
];
/// Cases under way at once, on both sides.
const CONCURRENCY: usize = 10;
/// Difference of two means that comes from the order of additions.
const ROUNDING: f64 = 1e-9;

/// Both runs of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct EvalCosts {
    pub rows: usize,
    pub server: EvalCost,
    pub sdk: EvalCost,
    /// Part of the SDK's run that its own process took.
    pub sdk_client_cpu_seconds: f64,
}

/// Time of one run, with the processor time of the server, its workers and the client.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EvalCost {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

/// Last line of the SDK's program.
#[derive(Debug, Deserialize)]
struct SdkReport {
    seconds: f64,
    /// Processor seconds since everything was imported.
    cpu_seconds: f64,
    scores: Map<String, Value>,
}

impl EvalCosts {
    pub fn rows_per_cpu_second(&self, cost: &EvalCost) -> f64 {
        self.rows as f64 / cost.cpu_seconds
    }
}

/// Runs the evaluation on the server, then with the SDK.
pub fn run(runtime: &Runtime, server: &CodeServer, python: &Path, rows: usize) -> anyhow::Result<EvalCosts> {
    // Starts the workers of a first run, which the SDK does not have either.
    by_server(runtime, server, &cases(1))?;
    server.quiet()?;
    let cases = cases(rows);
    let (own, own_scores) = by_server(runtime, server, &cases)?;
    server.quiet()?;
    let (sdk, sdk_client_cpu_seconds, sdk_scores) = by_sdk(server, python, &cases)?;
    for (name, score) in &sdk_scores {
        let ours = own_scores.get(name).and_then(|summary| summary["score"].as_f64());
        let (ours, theirs) = (ours.with_context(|| format!("the server has no score {name}"))?, score.as_f64());
        let difference = (ours - theirs.context("a score of the SDK")?).abs();
        ensure!(difference < ROUNDING, "the means of {name} differ: {ours} and {score}");
    }
    ensure!(sdk_scores.len() == SCORERS.len(), "the SDK reports {} scores", sdk_scores.len());
    Ok(EvalCosts { rows, server: own, sdk, sdk_client_cpu_seconds })
}

/// Returns cases of sixty words each. The task answers every second one exactly.
fn cases(rows: usize) -> Value {
    let case = |row: usize| {
        let words: Vec<String> = (0..60).map(|word| format!("word{}", (row * 7 + word * word) % 100)).collect();
        let expected: Vec<String> = words.iter().rev().skip(row % 2).cloned().collect();
        json!({ "input": words.join(" "), "expected": expected.join(" ") })
    };
    (0..rows).map(case).collect()
}

fn by_server(runtime: &Runtime, server: &CodeServer, cases: &Value) -> anyhow::Result<(EvalCost, Map<String, Value>)> {
    let function = |name: &str, kind: &str, code: &str| json!({ "inline_context": context(HandlerLanguage::Python), "code": code, "name": name, "function_type": kind });
    let body = json!({
        "project_id": server.project(), "data": { "data": cases }, "max_concurrency": CONCURRENCY,
        "task": function("task", "task", TASK),
        "scores": SCORERS.map(|(name, code)| function(name, "scorer", code)),
    });
    let (before, began) = (server.group().cpu_seconds()?, Instant::now());
    let summary = runtime.block_on(post(server.target(), "/v1/eval", &body))?;
    let cost = EvalCost { seconds: began.elapsed().as_secs_f64(), cpu_seconds: server.group().cpu_seconds()? - before };
    let scores = summary["scores"].as_object().context("the scores of the evaluation")?.clone();
    Ok((cost, scores))
}

fn by_sdk(server: &CodeServer, python: &Path, cases: &Value) -> anyhow::Result<(EvalCost, f64, Map<String, Value>)> {
    let scorers = SCORERS.map(|(name, code)| json!({ "name": name, "code": code }));
    let order = json!({ "task": TASK, "scorers": scorers, "cases": cases, "concurrency": CONCURRENCY });
    let url = format!("http://{}", server.target().address);
    let mut command = Command::new(python);
    command.args(["-c", SDK_PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("BRAINTRUST_APP_URL", &url).env("BRAINTRUST_API_URL", &url);
    command.env("BRAINTRUST_API_KEY", server.target().key.as_deref().unwrap_or_default());
    let before = server.group().cpu_seconds()?;
    let mut child = command.spawn().context("starting the SDK")?;
    serde_json::to_writer(child.stdin.take().context("its input")?, &order)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "the SDK's evaluation failed: {}", String::from_utf8_lossy(&output.stderr));
    let served = server.group().cpu_seconds()? - before;
    let text = String::from_utf8(output.stdout)?;
    let report: SdkReport =
        serde_json::from_str(text.trim().lines().last().unwrap_or_default()).context("the report of the SDK")?;
    let cost = EvalCost { seconds: report.seconds, cpu_seconds: served + report.cpu_seconds };
    Ok((cost, report.cpu_seconds, report.scores))
}

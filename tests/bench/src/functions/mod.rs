//! `functions`: cost of code functions in a node, beside the bare interpreters that run them.
//!
//! ```text
//! this process: clients ──► `assay serve` ──► sandboxed workers
//!             └───────────► the same interpreter, over a pipe or started for each call
//! ```
//! The sides take turns within each round, so that what else the machine does meets all of them. Processor time is that
//! of the server and of all its workers, those that have ended included.

pub mod command;
mod crowd;
mod evals;
mod figures;
mod group;
mod interpreter;
mod load;
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::http::client_runtime;
use crate::python::{PythonEnvironment, folder_beside};
use crate::report::{Latency, Report};
use crowd::CrowdOutcome;
use evals::EvalCosts;
use interpreter::{BareInterpreter, HandlerLanguage};
use load::{CallCost, ColdStarts};
use server::CodeServer;

/// Packages of the tests of clients, which have the SDK.
const REQUIREMENTS: &str = include_str!("../../../clients/python/requirements.lock");

#[derive(Clone, Debug)]
pub struct FunctionsOptions {
    pub program: PathBuf,
    pub node: PathBuf,
    pub python: PathBuf,
    pub connections: usize,
    /// Time of each measurement.
    pub time: Duration,
    pub rounds: usize,
    /// Cold starts of each language.
    pub starts: usize,
    /// Calls at the same time, or 0.
    pub crowd: usize,
    pub crowd_time: Duration,
    /// Rows of the evaluation, or 0.
    pub rows: usize,
    /// Python environment of the SDK, or the default one.
    pub environment: Option<PathBuf>,
}

/// Measurements of a language in one round.
#[derive(Clone, Debug, Serialize)]
struct LanguageRound {
    pipe: Latency,
    warm: Latency,
    load: CallCost,
    spawned: CallCost,
    spawned_latency: Latency,
}

/// All measurements of a run.
#[derive(Debug, Default, Serialize)]
struct FunctionMeasurements {
    rounds: BTreeMap<HandlerLanguage, Vec<LanguageRound>>,
    starts: BTreeMap<HandlerLanguage, ColdStarts>,
    crowd: Option<CrowdOutcome>,
    evals: Option<EvalCosts>,
}

pub fn run(options: &FunctionsOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let runtime = client_runtime()?;
    let interpreters = HandlerLanguage::ALL.map(|language| {
        let named = match language {
            HandlerLanguage::JavaScript => &options.node,
            HandlerLanguage::Python => &options.python,
        };
        BareInterpreter::new(language, named, dir)
    });
    let interpreters: Vec<BareInterpreter> = interpreters.into_iter().collect::<Result<_, _>>()?;
    let bench = FunctionsBench { options, runtime: &runtime, interpreters: &interpreters };
    let mut found = FunctionMeasurements::default();
    bench.with_default_settings(&dir.join("assay"), &mut found)?;
    bench.starts(&dir.join("starts"), &mut found)?;
    if options.crowd > 0 {
        let calls = (options.crowd, options.crowd_time);
        let crowd = crowd::run(&runtime, &options.program, &interpreters, calls, &dir.join("crowd"))?;
        eprintln!("{} of {} calls at once were answered", crowd.answered, crowd.calls);
        found.crowd = Some(crowd);
    }
    let mut report = Report::new("functions");
    figures::add(&mut report, &found);
    report.detail("interpreters", interpreters.iter().map(|one| one.path.clone()).collect::<Vec<_>>())?;
    report.detail("connections", options.connections)?;
    report.detail("measured", &found)?;
    report.finish(json_file)
}

struct FunctionsBench<'a> {
    options: &'a FunctionsOptions,
    runtime: &'a Runtime,
    interpreters: &'a [BareInterpreter],
}

impl FunctionsBench<'_> {
    /// Measures starts on a node that keeps no worker.
    fn starts(&self, dir: &Path, found: &mut FunctionMeasurements) -> anyhow::Result<()> {
        let server = self.server(&[("ASSAY_FUNCTIONS_IDLE_MAX", "0")], dir)?;
        for interpreter in self.interpreters {
            let language = interpreter.language;
            let body = CodeServer::stored_call(language.runtime());
            // The trial of the sandbox, and files that nobody has read yet.
            load::starts(self.runtime, &server, &body, 1)?;
            let starts = load::starts(self.runtime, &server, &body, self.options.starts)?;
            eprintln!("{language}: a cold start takes {:.1} ms", Latency::of(&starts.ms).p50);
            found.starts.insert(language, starts);
        }
        Ok(())
    }

    /// Starts a node that has a scorer of each language, named after its runtime.
    fn server(&self, settings: &[(&str, &str)], dir: &Path) -> anyhow::Result<CodeServer> {
        let server = CodeServer::start(self.runtime, &self.options.program, self.interpreters, settings, dir)?;
        for interpreter in self.interpreters {
            let language = interpreter.language;
            server.store(self.runtime, language, language.runtime(), language.handler())?;
        }
        Ok(server)
    }

    /// Measures everything that needs no settings of its own.
    fn with_default_settings(&self, dir: &Path, found: &mut FunctionMeasurements) -> anyhow::Result<()> {
        let server = self.server(&[], dir)?;
        for round in 0..self.options.rounds {
            for at in 0..self.interpreters.len() {
                let interpreter = &self.interpreters[(at + round) % self.interpreters.len()];
                let measured = self.round(&server, interpreter);
                let measured = measured.with_context(|| interpreter.language.to_string())?;
                found.rounds.entry(interpreter.language).or_default().push(measured);
            }
        }
        if self.options.rows > 0 {
            let folder = folder_beside(self.options.environment.clone(), "functions-sdk")?;
            let environment = PythonEnvironment { requirements: REQUIREMENTS, programs: "the Python SDK" };
            let python = environment.made(&folder)?;
            found.evals = Some(evals::run(self.runtime, &server, &python, self.options.rows)?);
        }
        Ok(())
    }

    fn round(&self, server: &CodeServer, interpreter: &BareInterpreter) -> anyhow::Result<LanguageRound> {
        let time = self.options.time;
        let body = CodeServer::stored_call(interpreter.language.runtime());
        let pipe = Latency::of(&interpreter.piped_calls(time)?);
        let warm = Latency::of(&load::one_by_one(self.runtime, server.target(), &body, time)?);
        let load = load::at_once(self.runtime, server, &body, self.options.connections, time)?;
        let began = Instant::now();
        let spawned_calls = interpreter.spawned_calls(time)?;
        let spawned = CallCost {
            calls: spawned_calls.ms.len() as u64,
            seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: spawned_calls.cpu_seconds,
        };
        let times = load.per_cpu_second() / spawned.per_cpu_second();
        eprintln!(
            "{}: a warm call takes {:.2} ms, a pipe {:.3}; {:.0} calls a processor second, {times:.1} times those \
             with an interpreter each",
            interpreter.language,
            warm.p50,
            pipe.p50,
            load.per_cpu_second()
        );
        Ok(LanguageRound { pipe, warm, load, spawned, spawned_latency: Latency::of(&spawned_calls.ms) })
    }
}

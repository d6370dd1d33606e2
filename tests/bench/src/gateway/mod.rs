//! `gateway`: what a model call costs through `assay serve`, beside a bare proxy and LiteLLM's proxy.
//!
//! ```text
//! this process: clients     processes of their own
//!                        ┌─► bare proxy ───────┐
//! the same conversation ─┼─► `assay serve` ────┼─► scripted model server, which answers at once
//!                        └─► LiteLLM's proxy ──┘
//! ```
//! The sides take turns within each round, so that what else the machine does meets all of them, and a ratio is of one
//! round. Latencies are added ones: those through a side less those of the model server at the same rate.

mod bare_proxy;
pub mod command;
mod figures;
mod listener;
mod litellm;
mod load;
mod model_server;
mod scripts;
mod sides;
mod streams;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::http::client_runtime;
use crate::report::{Latency, Report, median};
use load::{ClosedLoad, closed, paced};
use scripts::{PACED, WHOLE};
use sides::{Call, GatewaySide, Sides, Translation};
use streams::{OpenStreams, allow_files, event_delays, open_streams};

/// Streams read at the same time while the delay of their events is measured.
const DELAYED_STREAMS: usize = 16;
/// Calls a second while hits of the cache are measured: low, so that nothing waits.
const HITS_PER_SECOND: f64 = 200.0;
/// Time of each side before the first round.
const WARM_UP: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct GatewayOptions {
    pub program: PathBuf,
    pub connections: usize,
    /// Time of each measurement.
    pub time: Duration,
    /// Measurements of each side.
    pub rounds: usize,
    pub streams: usize,
    /// Python environment of LiteLLM's proxy, if it is measured; an inner `None` is the default one.
    pub litellm: Option<Option<PathBuf>>,
}

/// Latencies through a side, and without one at the same time.
#[derive(Clone, Copy, Debug, Serialize)]
struct AddedLatency {
    through: Latency,
    direct: Latency,
}

impl AddedLatency {
    fn p50(&self) -> f64 {
        self.through.p50 - self.direct.p50
    }

    fn p99(&self) -> f64 {
        self.through.p99 - self.direct.p99
    }
}

/// Measurements of every call by its name, one a round.
type Rounds<T> = BTreeMap<String, Vec<T>>;

/// All measurements of a run.
#[derive(Debug, Default, Serialize)]
struct GatewayMeasurements {
    closed: Rounds<ClosedLoad>,
    /// At half of each side's own peak.
    paced: Rounds<AddedLatency>,
    events: Rounds<AddedLatency>,
    hits: Rounds<Latency>,
    open: BTreeMap<String, OpenStreams>,
}

pub fn run(options: &GatewayOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    allow_files(options.streams.max(options.connections))?;
    let runtime = client_runtime()?;
    let sides = Sides::start(&runtime, &options.program, options.litellm.clone(), dir)?;
    let bench = GatewayBench { options, runtime: &runtime, sides: &sides };
    let calls = bench.calls();
    let mut found = GatewayMeasurements::default();
    bench.warm_up(&calls)?;
    bench.closed_rounds(&calls, &mut found)?;
    bench.paced_rounds(&calls, &mut found)?;
    bench.event_rounds(&calls, &mut found)?;
    bench.hit_rounds(&mut found)?;
    for logged in [false, true] {
        let call = Call::new(GatewaySide::Assay, Translation::None, logged);
        let node = dir.join(if logged { "open-logged" } else { "open" });
        let place = (&*options.program, sides.upstream(), &*node);
        found.open.insert(call.name(), open_streams(&runtime, place, call, options.streams)?);
    }
    let mut report = Report::new("gateway");
    figures::add(&mut report, &found)?;
    report.detail("connections", options.connections)?;
    report.detail("litellm", options.litellm.as_ref().map(|_| litellm::version()))?;
    report.detail("measured", &found)?;
    report.finish(json_file)
}

struct GatewayBench<'a> {
    options: &'a GatewayOptions,
    runtime: &'a Runtime,
    sides: &'a Sides,
}

impl GatewayBench<'_> {
    /// Returns the measured calls.
    fn calls(&self) -> Vec<Call> {
        let mut calls = vec![Call::new(GatewaySide::Bare, Translation::None, false)];
        for translation in [Translation::None, Translation::MessagesToChat, Translation::ChatToMessages] {
            calls.extend([false, true].map(|logged| Call::new(GatewaySide::Assay, translation, logged)));
        }
        if self.options.litellm.is_some() {
            let translations = [Translation::None, Translation::ChatToMessages];
            calls.extend(translations.map(|translation| Call::new(GatewaySide::LiteLlm, translation, false)));
        }
        calls
    }

    /// Looks at an answer of each side, and calls each for a while.
    fn warm_up(&self, calls: &[Call]) -> anyhow::Result<()> {
        for call in calls {
            let request = self.sides.request(*call, WHOLE, false)?;
            self.runtime.block_on(request.check()).with_context(|| call.name())?;
            let process = self.sides.process(call.side)?;
            closed(self.runtime, &request, &process, self.options.connections, WARM_UP)?;
        }
        Ok(())
    }

    /// Runs `measure` with every call in every round; a round begins with another call than the one before.
    fn rounds<T>(
        &self,
        calls: &[Call],
        mut measure: impl FnMut(Call) -> anyhow::Result<T>,
    ) -> anyhow::Result<Rounds<T>> {
        let mut rounds = Rounds::new();
        for round in 0..self.options.rounds {
            for at in 0..calls.len() {
                let call = calls[(at + round) % calls.len()];
                let found = measure(call).with_context(|| call.name())?;
                rounds.entry(call.name()).or_default().push(found);
                if call.logged {
                    // What it left behind is not the next one's.
                    self.sides.quiet()?;
                }
            }
        }
        Ok(rounds)
    }

    fn closed_rounds(&self, calls: &[Call], found: &mut GatewayMeasurements) -> anyhow::Result<()> {
        found.closed = self.rounds(calls, |call| {
            let (request, process) = (self.sides.request(call, WHOLE, false)?, self.sides.process(call.side)?);
            let load = closed(self.runtime, &request, &process, self.options.connections, self.options.time)?;
            let (second, cpu_second) = (load.per_second(), load.per_cpu_second());
            eprintln!("{}: {second:.0} calls a second, {cpu_second:.0} a processor second", call.name());
            Ok(load)
        })?;
        Ok(())
    }

    /// Measures each side at half of its own peak, beside the model server alone at the same rate.
    fn paced_rounds(&self, calls: &[Call], found: &mut GatewayMeasurements) -> anyhow::Result<()> {
        let peaks: BTreeMap<String, f64> = found
            .closed
            .iter()
            .map(|(name, loads)| (name.clone(), median(loads.iter().map(ClosedLoad::per_second))))
            .collect();
        let measured = self.rounds(calls, |call| {
            let rate = peaks.get(&call.name()).context("a peak")? / 2.0;
            let at_rate = |side| -> anyhow::Result<Latency> {
                let request = self.sides.request(Call { side, ..call }, WHOLE, false)?;
                Ok(Latency::of(&paced(&request, self.options.connections, rate, self.options.time)?))
            };
            let direct = self.direct(call);
            let request = self.sides.request(direct, WHOLE, false)?;
            let direct = Latency::of(&paced(&request, self.options.connections, rate, self.options.time)?);
            let added = AddedLatency { through: at_rate(call.side)?, direct };
            let (p50, p99) = (added.p50(), added.p99());
            eprintln!("{}: {rate:.0} calls a second take {p50:.3} ms more, p99 {p99:.3}", call.name());
            Ok(added)
        })?;
        found.paced = measured;
        Ok(())
    }

    /// Returns the call of the model server alone that the model server gets from a side.
    fn direct(&self, call: Call) -> Call {
        Call { side: GatewaySide::Direct, logged: false, ..call }
    }

    fn event_rounds(&self, calls: &[Call], found: &mut GatewayMeasurements) -> anyhow::Result<()> {
        // LiteLLM is configured with one paced model.
        let is_paced = |call: &&Call| call.side != GatewaySide::LiteLlm || call.translation == Translation::None;
        let calls: Vec<Call> = calls.iter().filter(is_paced).copied().collect();
        found.events = self.rounds(&calls, |call| {
            let delays = |call| -> anyhow::Result<Latency> {
                let request = self.sides.request(call, PACED, true)?;
                Ok(Latency::of(&event_delays(self.runtime, &request, DELAYED_STREAMS)?))
            };
            let added = AddedLatency { direct: delays(self.direct(call))?, through: delays(call)? };
            eprintln!("{}: events come {:.3} ms later, p99 {:.3}", call.name(), added.p50(), added.p99());
            Ok(added)
        })?;
        Ok(())
    }

    fn hit_rounds(&self, found: &mut GatewayMeasurements) -> anyhow::Result<()> {
        let calls = [false, true].map(|logged| Call::new(GatewaySide::Assay, Translation::None, logged));
        found.hits = self.rounds(&calls, |call| {
            let request = self.sides.request(call, WHOLE, false)?.cached();
            self.runtime.block_on(request.check())?;
            let before = self.runtime.block_on(self.sides.conversations())?;
            let hits = Latency::of(&paced(&request, 1, HITS_PER_SECOND, self.options.time)?);
            let asked = self.runtime.block_on(self.sides.conversations())? - before;
            ensure!(asked == 0, "{asked} calls went to the model server, and the cache should have answered");
            eprintln!("{}: a hit of the cache takes {:.3} ms, p99 {:.3}", call.name(), hits.p50, hits.p99);
            Ok(hits)
        })?;
        Ok(())
    }
}

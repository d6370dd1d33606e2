//! Figures of `functions`, from the measurements of all rounds.

use super::crowd::{CrowdOutcome, LIMIT_BYTES};
use super::evals::EvalCosts;
use super::interpreter::HandlerLanguage;
use super::{FunctionMeasurements, LanguageRound};
use crate::report::{Report, Threshold, median, percentile};

const WARM_MS_MAX: f64 = 3.0;
/// Share of a bare pipe's time that Python may take in addition.
const PIPE_TIMES_MAX: f64 = 1.5;
/// Calls a processor second, as a multiple of those with an interpreter each.
const SPAWNED_TIMES_MIN: f64 = 30.0;
const MEBIBYTE: f64 = (1 << 20) as f64;

pub fn add(report: &mut Report, found: &FunctionMeasurements) {
    for (language, rounds) in &found.rounds {
        warm(report, *language, rounds);
        costs(report, *language, rounds);
    }
    for (language, starts) in &found.starts {
        let ms = |share| percentile(starts.ms.iter().copied(), share);
        report.figure(format!("{language}: a cold start, p50"), ms(0.5), "ms");
        report.figure(format!("{language}: a cold start, p99"), ms(0.99), "ms");
        let cpu_ms = starts.cpu_seconds * 1e3 / starts.ms.len() as f64;
        report.figure(format!("{language}: a cold start, CPU"), cpu_ms, "ms");
    }
    if let Some(crowd) = &found.crowd {
        crowded(report, crowd);
    }
    if let Some(evals) = &found.evals {
        evaluated(report, evals);
    }
}

fn warm(report: &mut Report, language: HandlerLanguage, rounds: &[LanguageRound]) {
    let of = |get: fn(&LanguageRound) -> f64| median(rounds.iter().map(get));
    let pipe = of(|round| round.pipe.p50);
    report.figure(format!("{language}: a bare pipe, p50"), pipe, "ms");
    let most = match language {
        HandlerLanguage::JavaScript => WARM_MS_MAX,
        HandlerLanguage::Python => WARM_MS_MAX + PIPE_TIMES_MAX * pipe,
    };
    let name = format!("{language}: a warm call, p50");
    report.promised(name, of(|round| round.warm.p50), "ms", Threshold::AtMost(most));
    report.figure(format!("{language}: a warm call, p99"), of(|round| round.warm.p99), "ms");
}

fn costs(report: &mut Report, language: HandlerLanguage, rounds: &[LanguageRound]) {
    let of = |get: fn(&LanguageRound) -> f64| median(rounds.iter().map(get));
    report.figure(format!("{language}: calls"), of(|round| round.load.per_second()), "/s");
    report.figure(format!("{language}: calls a CPU second"), of(|round| round.load.per_cpu_second()), "/CPU s");
    let spawned = of(|round| round.spawned.per_cpu_second());
    report.figure(format!("{language}: an interpreter each, calls a CPU second"), spawned, "/CPU s");
    report.figure(format!("{language}: an interpreter each, p50"), of(|round| round.spawned_latency.p50), "ms");
    let times = of(|round| round.load.per_cpu_second() / round.spawned.per_cpu_second());
    let name = format!("{language}: calls a CPU second / an interpreter each");
    report.promised(name, times, "", Threshold::AtLeast(SPAWNED_TIMES_MIN));
}

fn crowded(report: &mut Report, crowd: &CrowdOutcome) {
    let (calls, greedy) = (crowd.calls as f64, crowd.greedy as f64);
    let name = |what: &str| format!("{} calls at once: {what}", crowd.calls);
    report.promised(name("answered"), crowd.answered as f64, "", Threshold::AtLeast(calls));
    let limited = crowd.greedy_ends.get("LimitError").copied().unwrap_or(0) as f64;
    report.promised(name("greedy ones ended by their limit"), limited, "", Threshold::AtLeast(greedy));
    report.figure(name("workers, most"), crowd.workers_most as f64, "");
    let limit = Threshold::AtMost(LIMIT_BYTES as f64 / MEBIBYTE);
    report.promised(name("memory of a worker, most"), crowd.modest_bytes_most as f64 / MEBIBYTE, "MiB", limit);
    report.figure(name("memory of a greedy worker, most seen"), crowd.worker_bytes_most as f64 / MEBIBYTE, "MiB");
    report.figure(name("memory of all workers, most"), crowd.all_bytes_most as f64 / MEBIBYTE, "MiB");
    report.figure(name("processors of the server while they wait"), crowd.resting_server, "");
    report.figure(name("processors of the workers while they wait"), crowd.resting_workers, "");
}

fn evaluated(report: &mut Report, evals: &EvalCosts) {
    let (server, sdk) = (evals.rows_per_cpu_second(&evals.server), evals.rows_per_cpu_second(&evals.sdk));
    report.figure("evaluation by the server: rows", evals.rows as f64 / evals.server.seconds, "/s");
    report.figure("evaluation by the server: rows a CPU second", server, "/CPU s");
    report.figure("evaluation by the SDK: rows", evals.rows as f64 / evals.sdk.seconds, "/s");
    report.figure("evaluation by the SDK: rows a CPU second", sdk, "/CPU s");
    let own_share = evals.sdk_client_cpu_seconds / evals.sdk.cpu_seconds;
    report.figure("evaluation by the SDK: share of its own process", own_share, "");
    report.figure("evaluation: rows a CPU second, server / SDK", server / sdk, "");
}

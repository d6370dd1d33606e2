//! Figures of `gateway`, from the measurements of all rounds.

use anyhow::Context;

use super::load::ClosedLoad;
use super::sides::{Call, GatewaySide, Translation};
use super::{AddedLatency, GatewayMeasurements, Rounds};
use crate::report::{Report, Threshold, median};

/// Calls a processor second, as a share of those of the bare proxy.
const PASSED_MIN: f64 = 0.5;
const TRANSLATED_MIN: f64 = 0.25;
/// The same as a multiple of those of LiteLLM's proxy.
const LITELLM_TIMES_MIN: f64 = 20.0;
const ADDED_P50_MS_MAX: f64 = 0.3;
const ADDED_P99_MS_MAX: f64 = 5.0;
const ADDED_EVENT_MS_MAX: f64 = 1.0;
const OPEN_MIB_MAX: f64 = 300.0;
const HIT_MS_MAX: f64 = 1.0;

pub fn add(report: &mut Report, found: &GatewayMeasurements) -> anyhow::Result<()> {
    for (name, loads) in &found.closed {
        report.figure(format!("{name}: calls"), median(loads.iter().map(ClosedLoad::per_second)), "/s");
        let per_cpu = median(loads.iter().map(ClosedLoad::per_cpu_second));
        report.figure(format!("{name}: calls a CPU second"), per_cpu, "/CPU s");
    }
    ratios(report, &found.closed)?;
    let with_median = |of: fn(&AddedLatency) -> f64, rounds: &[AddedLatency]| median(rounds.iter().map(of));
    for (name, rounds) in &found.paced {
        let (p50, p99) = (with_median(AddedLatency::p50, rounds), with_median(AddedLatency::p99, rounds));
        added(report, &format!("{name}: added at half load, p50"), p50, ADDED_P50_MS_MAX);
        added(report, &format!("{name}: added at half load, p99"), p99, ADDED_P99_MS_MAX);
    }
    for (name, rounds) in &found.events {
        let (p50, p99) = (with_median(AddedLatency::p50, rounds), with_median(AddedLatency::p99, rounds));
        added(report, &format!("{name}: added to an event, p50"), p50, ADDED_EVENT_MS_MAX);
        added(report, &format!("{name}: added to an event, p99"), p99, ADDED_EVENT_MS_MAX);
    }
    for (name, rounds) in &found.hits {
        for (share, ms) in [
            ("p50", median(rounds.iter().map(|latency| latency.p50))),
            ("p99", median(rounds.iter().map(|latency| latency.p99))),
        ] {
            report.promised(format!("{name}: a cache hit, {share}"), ms, "ms", Threshold::AtMost(HIT_MS_MAX));
        }
    }
    for (name, open) in &found.open {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let streams = open.streams;
        report.figure(format!("{name}: resident before streams"), mib(open.before_bytes), "MiB");
        let name = format!("{name}: resident with {streams} open streams");
        report.promised(name, mib(open.open_bytes), "MiB", Threshold::AtMost(OPEN_MIB_MAX));
    }
    Ok(())
}

/// Adds a latency, which only ours is held to.
fn added(report: &mut Report, name: &str, ms: f64, ms_max: f64) {
    if name.starts_with("assay") {
        report.promised(name, ms, "ms", Threshold::AtMost(ms_max));
    } else {
        report.figure(name, ms, "ms");
    }
}

/// Adds the ratios to the bare proxy and to LiteLLM's, each of one round.
fn ratios(report: &mut Report, closed: &Rounds<ClosedLoad>) -> anyhow::Result<()> {
    let bare = Call::new(GatewaySide::Bare, Translation::None, false);
    for translation in [Translation::None, Translation::MessagesToChat, Translation::ChatToMessages] {
        for logged in [false, true] {
            let call = Call::new(GatewaySide::Assay, translation, logged);
            let least = if translation == Translation::None { PASSED_MIN } else { TRANSLATED_MIN };
            let ratio = ratio(closed, call, bare)?.context("the bare proxy is always measured")?;
            report.promised(format!("{} / bare, a CPU second", call.name()), ratio, "", Threshold::AtLeast(least));
            let litellm = Call::new(GatewaySide::LiteLlm, translation, false);
            if let Some(ratio) = self::ratio(closed, call, litellm)? {
                let name = format!("{} / LiteLLM, a CPU second", call.name());
                report.promised(name, ratio, "times", Threshold::AtLeast(LITELLM_TIMES_MIN));
            }
        }
    }
    Ok(())
}

/// Returns the median of the ratios of all rounds; none if the other side was not measured.
fn ratio(closed: &Rounds<ClosedLoad>, ours: Call, other: Call) -> anyhow::Result<Option<f64>> {
    let ours = closed.get(&ours.name()).with_context(|| format!("{} was not measured", ours.name()))?;
    let Some(other) = closed.get(&other.name()) else { return Ok(None) };
    let rounds = ours.iter().zip(other);
    Ok(Some(median(rounds.map(|(ours, other)| ours.per_cpu_second() / other.per_cpu_second()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_rounds() {
        let load = |calls, cpu_seconds| ClosedLoad { calls, seconds: 1.0, cpu_seconds };
        let (ours, bare) = (
            Call::new(GatewaySide::Assay, Translation::None, false),
            Call::new(GatewaySide::Bare, Translation::None, false),
        );
        let closed = Rounds::from([
            (ours.name(), vec![load(100, 1.0), load(100, 2.0), load(100, 4.0)]),
            (bare.name(), vec![load(200, 1.0), load(100, 1.0), load(100, 1.0)]),
        ]);
        assert_eq!(ratio(&closed, ours, bare).expect("measured"), Some(0.5));
        let litellm = Call::new(GatewaySide::LiteLlm, Translation::None, false);
        assert_eq!(ratio(&closed, ours, litellm).expect("measured"), None);
    }
}

//! A well-behaved function of another organization, called all the time: how long it takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::http::Request;
use serde_json::json;

use crate::attempt::{Caller, Language, StepProject};
use crate::world::{World, runtime};

/// Pause between two calls.
const PAUSE: Duration = Duration::from_millis(8);
/// Calls of a window, of each of which a p99 is taken.
const WINDOW: usize = 100;
/// Code that tells how many calls its worker has served.
const CODE: &str = "let calls = 0;\nconst handler = ({ value }) => { calls += 1; return [value + 1, calls]; };";

/// Times of calls, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times(pub Vec<f64>);

/// Times of a neighbour. A call that starts a worker is another thing than one that finds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeighbourTimes {
    pub warm: Times,
    pub cold: Times,
    /// Call that failed, which ends the series.
    pub failure: Option<String>,
}

impl Times {
    /// Returns the time below which a share of the calls lies, by the nearest rank.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// Returns the median over windows of the p99 of each.
    ///
    /// Whatever else this machine does disturbs some windows, and the attempts all of them.
    pub fn typical_p99(&self) -> f64 {
        let windows = self.0.chunks(WINDOW).filter(|window| window.len() == WINDOW || self.0.len() < WINDOW);
        Times(windows.map(|window| Times(window.to_vec()).quantile(0.99)).collect()).quantile(0.5)
    }
}

impl NeighbourTimes {
    pub fn line(&self) -> String {
        format!(
            "{} warm calls, p50 {:.1} ms, p99 {:.1} ms, typical p99 {:.1} ms; {} starts of workers, median {:.0} ms",
            self.warm.0.len(),
            self.warm.quantile(0.5),
            self.warm.quantile(0.99),
            self.warm.typical_p99(),
            self.cold.0.len(),
            self.cold.quantile(0.5),
        )
    }

    pub fn extend(&mut self, other: NeighbourTimes) {
        self.warm.0.extend(other.warm.0);
        self.cold.0.extend(other.cold.0);
        self.failure = self.failure.take().or(other.failure);
    }
}

/// Calls the function of the neighbour until a time is over, it is told to stop, or a call fails.
pub fn call_until(world: &World, is_over: &AtomicBool, time_max: Duration) -> NeighbourTimes {
    let body = json!({"inline_context": runtime(Language::Javascript), "code": CODE, "input": {"value": 1}});
    let request = world.invocation(Caller::Victim, StepProject::Own, &body);
    let began = Instant::now();
    let mut times = NeighbourTimes::default();
    while !is_over.load(Ordering::Relaxed) && began.elapsed() < time_max {
        let sent = Instant::now();
        match called(world, &request) {
            Ok(1) => times.cold.0.push(sent.elapsed().as_secs_f64() * 1_000.0),
            Ok(_) => times.warm.0.push(sent.elapsed().as_secs_f64() * 1_000.0),
            Err(why) => {
                times.failure = Some(format!("a call of the neighbour failed: {why:#}"));
                break;
            }
        }
        std::thread::sleep(PAUSE);
    }
    times
}

/// Calls the function once. Returns how many calls its worker has served.
fn called(world: &World, request: &Request) -> Result<u32> {
    let answer = world.send(request)?;
    let text = answer.text();
    ensure!(answer.status == 200, "{} {text}", answer.status);
    let (value, calls): (u32, u32) = serde_json::from_str(&text).with_context(|| format!("answer {text}"))?;
    ensure!(value == 2, "answer {text}");
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_the_nearest_rank() {
        let times = Times((1..=200).rev().map(f64::from).collect());
        assert_eq!([0.5, 0.99, 1.0].map(|share| times.quantile(share)), [100.0, 198.0, 200.0]);
        assert!(Times::default().quantile(0.5).is_nan());
    }

    #[test]
    fn one_disturbed_window_does_not_change_the_typical_p99() {
        let calm = (0..500).map(|number| f64::from(number % 100));
        let disturbed = (0..100).map(|_| 5_000.0);
        assert_eq!(Times(calm.clone().collect()).typical_p99(), 98.0);
        assert_eq!(Times(calm.chain(disturbed).collect()).typical_p99(), 98.0);
        assert_eq!(Times(vec![1.0, 2.0]).typical_p99(), 2.0);
    }
}

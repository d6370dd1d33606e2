//! Clients that put values for a while, each the next one when the previous is acknowledged.

use std::time::Duration;

use anyhow::{Context, ensure};
use assay_bench::generate::dice::Dice;
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::process::{CpuSeconds, Process, cpu_between};
use crate::report::percentile;

pub const VALUE_BYTES: usize = 1024;
/// Values are cut from one text of this size.
const TEXT_BYTES: usize = 1 << 20;
/// Connections are made and caches filled before it counts.
const WARM_UP: Duration = Duration::from_secs(2);

/// Text that does not compress much, and needs no escapes in JSON.
#[derive(Debug)]
pub struct Values(Vec<u8>);

impl Values {
    pub fn new(seed: u64) -> Values {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut dice = Dice::new(seed);
        Values((0..TEXT_BYTES + VALUE_BYTES).map(|_| LETTERS[dice.below(64) as usize]).collect())
    }

    /// Other bytes for another number.
    pub fn value(&self, number: u64) -> &[u8] {
        let from = (number.wrapping_mul(0x9e37_79b9) % TEXT_BYTES as u64) as usize;
        &self.0[from..from + VALUE_BYTES]
    }
}

/// One client of a server.
pub trait Putter: Send + 'static {
    /// Returns when the server has acknowledged it; how many values that was.
    fn put(&mut self, number: u64) -> impl Future<Output = anyhow::Result<u64>> + Send;
}

#[derive(Debug, Default, Serialize)]
pub struct PutMeasurement {
    pub seconds: f64,
    pub requests: u64,
    /// Bytes of values alone.
    pub bytes: u64,
    /// CPU seconds of all servers.
    pub cpu_seconds: f64,
    #[serde(skip)]
    answer_ms: Vec<f64>,
}

impl PutMeasurement {
    pub fn mb_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    pub fn p(&self, share: f64) -> f64 {
        percentile(self.answer_ms.iter().copied(), share)
    }
}

/// Puts for `time`, after a warm-up that does not count.
pub fn drive<P: Putter>(
    runtime: &Runtime,
    putters: Vec<P>,
    time: Duration,
    servers: &[Process],
) -> anyhow::Result<PutMeasurement> {
    let (begin, end) = (Instant::now() + WARM_UP, Instant::now() + WARM_UP + time);
    let mut tasks = JoinSet::new();
    for (client, putter) in putters.into_iter().enumerate() {
        tasks.spawn_on(one(putter, client as u64, begin, end), runtime.handle());
    }
    std::thread::sleep(begin.saturating_duration_since(Instant::now()));
    let before = cpu_of(servers)?;
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    let cpu_seconds =
        before.iter().zip(cpu_of(servers)?).map(|(before, after)| sum(&cpu_between(before, &after))).sum();
    let mut measured = PutMeasurement { seconds: time.as_secs_f64(), cpu_seconds, ..PutMeasurement::default() };
    while let Some(done) = runtime.block_on(tasks.join_next()) {
        let (requests, values, answer_ms) = done.context("a client panicked")??;
        measured.requests += requests;
        measured.bytes += values * VALUE_BYTES as u64;
        measured.answer_ms.extend(answer_ms);
    }
    ensure!(measured.requests > 0, "nothing was acknowledged");
    Ok(measured)
}

fn cpu_of(servers: &[Process]) -> anyhow::Result<Vec<CpuSeconds>> {
    servers.iter().map(Process::cpu).collect()
}

fn sum(cpu: &CpuSeconds) -> f64 {
    cpu.values().sum()
}

/// Returns the values acknowledged between `begin` and `end`.
async fn one<P: Putter>(
    mut putter: P,
    client: u64,
    begin: Instant,
    end: Instant,
) -> anyhow::Result<(u64, u64, Vec<f64>)> {
    const NUMBERS_EACH: u64 = 1 << 40;
    let (mut requests, mut values, mut answer_ms) = (0, 0, Vec::new());
    for number in client * NUMBERS_EACH.. {
        let from = Instant::now();
        if from >= end {
            break;
        }
        let put = putter.put(number).await.with_context(|| format!("client {client}"))?;
        let at = Instant::now();
        if at >= begin && at < end {
            requests += 1;
            values += put;
            answer_ms.push(at.duration_since(from).as_secs_f64() * 1e3);
        }
    }
    Ok((requests, values, answer_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct SlowPut;

    impl Putter for SlowPut {
        async fn put(&mut self, _: u64) -> anyhow::Result<u64> {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(3)
        }
    }

    #[test]
    fn only_what_is_acknowledged_in_time_counts() {
        let runtime = crate::http::client_runtime().expect("a runtime");
        let measured = drive(&runtime, vec![SlowPut, SlowPut], Duration::from_millis(300), &[Process::myself()]);
        let measured = measured.expect("it ran");
        assert!((1..=60).contains(&measured.requests), "{measured:?}");
        assert_eq!(measured.bytes, measured.requests * 3 * VALUE_BYTES as u64);
        assert!(measured.p(0.5) >= 10.0);
    }

    #[test]
    fn values_differ_and_are_plain_text() {
        let values = Values::new(1);
        assert_ne!(values.value(1), values.value(2));
        assert!(values.value(7).iter().all(u8::is_ascii_graphic) && !values.value(7).contains(&b'"'));
    }
}

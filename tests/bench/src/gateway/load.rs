//! Load of calls: as fast as they are answered, for calls a processor second; and at a fixed rate, for latencies.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::sides::CallRequest;
use crate::client_threads::{join, spawn};
use crate::http::client::Connection;
use crate::process::{Process, cpu_between};

/// Calls for a time, each sent when the one before on its connection was answered.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedLoad {
    pub calls: u64,
    pub seconds: f64,
    /// Processor seconds of the server meanwhile.
    pub cpu_seconds: f64,
}

impl ClosedLoad {
    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    pub fn per_cpu_second(&self) -> f64 {
        self.calls as f64 / self.cpu_seconds
    }
}

/// Calls as fast as `connections` take them.
pub fn closed(
    runtime: &Runtime,
    request: &CallRequest,
    process: &Process,
    connections: usize,
    time: Duration,
) -> anyhow::Result<ClosedLoad> {
    runtime.block_on(async {
        let mut open = Vec::new();
        for _ in 0..connections {
            let mut connection = request.connection();
            connection.open().await?;
            open.push(connection);
        }
        let (before, began) = (process.cpu()?, Instant::now());
        let mut lanes = JoinSet::new();
        for connection in open {
            let request = request.clone();
            lanes.spawn(async move { one_after_another(connection, &request, began + time).await });
        }
        let mut calls = 0;
        while let Some(lane) = lanes.join_next().await {
            calls += lane.context("a client panicked")??;
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu_seconds = cpu_between(&before, &process.cpu()?).values().sum();
        Ok(ClosedLoad { calls, seconds, cpu_seconds })
    })
}

async fn one_after_another(mut connection: Connection, request: &CallRequest, until: Instant) -> anyhow::Result<u64> {
    let mut calls = 0;
    while Instant::now() < until {
        call(&mut connection, request).await?;
        calls += 1;
    }
    Ok(calls)
}

async fn call(connection: &mut Connection, request: &CallRequest) -> anyhow::Result<()> {
    let body = connection.post(request.path, &request.body).await?.ok(request.path)?;
    ensure!(!body.is_empty(), "an empty answer");
    Ok(())
}

/// Calls at a fixed rate; returns the milliseconds that each took.
///
/// Each connection has a thread, since the threads' sleep is finer than the runtime's timer. The clock of a call starts
/// when it is due, even if its connection still waits for the previous answer.
pub fn paced(request: &CallRequest, connections: usize, rate: f64, time: Duration) -> anyhow::Result<Vec<f64>> {
    ensure!(rate > 0.0 && rate.is_finite(), "a rate of {rate} calls a second");
    let between = Duration::from_secs_f64(connections as f64 / rate);
    // Time to start all threads.
    let began = Instant::now() + Duration::from_millis(100);
    let mut lanes = Vec::new();
    for lane in 0..connections {
        let (request, first) = (request.clone(), between.mul_f64(lane as f64 / connections as f64));
        lanes.push(spawn("bench-client", move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            paced_lane(&runtime, &request, began + first, between, began + time)
        })?);
    }
    let mut ms = Vec::new();
    for lane in lanes {
        ms.extend(join(lane)?);
    }
    Ok(ms)
}

fn paced_lane(
    runtime: &Runtime,
    request: &CallRequest,
    first: Instant,
    between: Duration,
    until: Instant,
) -> anyhow::Result<Vec<f64>> {
    let mut connection = request.connection();
    runtime.block_on(connection.open())?;
    let (mut due, mut ms) = (first, Vec::new());
    while due < until {
        let wait = due.saturating_duration_since(Instant::now());
        let from = if wait.is_zero() {
            due
        } else {
            std::thread::sleep(wait);
            // The lateness of the thread is not the server's.
            Instant::now()
        };
        runtime.block_on(call(&mut connection, request))?;
        ms.push(from.elapsed().as_secs_f64() * 1e3);
        due += between;
    }
    Ok(ms)
}

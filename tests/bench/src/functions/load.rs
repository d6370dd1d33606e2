//! Calls of functions through the server: one after the other for latencies, several at once for their cost, and of new
//! code for starts.

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::interpreter::check;
use super::server::{CodeServer, INVOKE};
use crate::http::client::{Connection, Target};

/// Time of calls before those that are measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Time after the last call in which its worker ends, too.
const LAST_ENDS_IN: Duration = Duration::from_millis(500);

/// Number of calls, and the processor time of all processes that took part in them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CallCost {
    pub calls: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
}

impl CallCost {
    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    pub fn per_cpu_second(&self) -> f64 {
        self.calls as f64 / self.cpu_seconds
    }
}

/// Calls that each start a worker.
#[derive(Clone, Debug, Serialize)]
pub struct ColdStarts {
    /// Milliseconds of each call.
    pub ms: Vec<f64>,
    pub cpu_seconds: f64,
}

/// Calls a function for a time over one connection. Returns the milliseconds of each call.
pub fn one_by_one(runtime: &Runtime, target: &Target, body: &Bytes, time: Duration) -> anyhow::Result<Vec<f64>> {
    runtime.block_on(async {
        let mut connection = Connection::new(target);
        // The call that may start the worker is none of the warm ones.
        call(&mut connection, body).await?;
        let (until, mut ms) = (Instant::now() + time, Vec::new());
        while Instant::now() < until {
            let began = Instant::now();
            call(&mut connection, body).await?;
            ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(ms)
    })
}

/// Calls a function for a time over several connections, as fast as each is answered.
pub fn at_once(
    runtime: &Runtime,
    server: &CodeServer,
    body: &Bytes,
    connections: usize,
    time: Duration,
) -> anyhow::Result<CallCost> {
    // Starts the workers.
    runtime.block_on(lanes(server.target(), body, connections, WARM_UP))?;
    let (before, began) = (server.group().cpu_seconds()?, Instant::now());
    let calls = runtime.block_on(lanes(server.target(), body, connections, time))?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(CallCost { calls, seconds, cpu_seconds: server.group().cpu_seconds()? - before })
}

async fn lanes(target: &Target, body: &Bytes, connections: usize, time: Duration) -> anyhow::Result<u64> {
    let began = Instant::now();
    let mut lanes = JoinSet::new();
    for _ in 0..connections {
        let (mut connection, body) = (Connection::new(target), body.clone());
        lanes.spawn(async move {
            let mut calls = 0;
            while began.elapsed() < time {
                call(&mut connection, &body).await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        });
    }
    let mut calls = 0;
    while let Some(lane) = lanes.join_next().await {
        calls += lane.context("a client panicked")??;
    }
    Ok(calls)
}

/// Calls a function of a node that keeps no worker.
pub fn starts(runtime: &Runtime, server: &CodeServer, body: &Bytes, count: usize) -> anyhow::Result<ColdStarts> {
    let before = server.group().cpu_seconds()?;
    let ms = runtime.block_on(async {
        let (mut connection, mut ms) = (Connection::new(server.target()), Vec::new());
        for _ in 0..count {
            let began = Instant::now();
            call(&mut connection, body).await?;
            ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        anyhow::Ok(ms)
    })?;
    std::thread::sleep(LAST_ENDS_IN);
    Ok(ColdStarts { ms, cpu_seconds: server.group().cpu_seconds()? - before })
}

async fn call(connection: &mut Connection, body: &Bytes) -> anyhow::Result<()> {
    check(&connection.post(INVOKE, body).await?.ok(INVOKE)?)
}

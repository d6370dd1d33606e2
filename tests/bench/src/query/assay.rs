//! Assay's side: rows inserted over HTTP like a client's, queries over one persistent connection.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use assay_bench::generate::GeneratedEvents;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::concurrent_inserts::ConcurrentInserts;
use super::event_feed::{Feed, next_body};
use super::measurements::{Runs, Times};
use super::query_result::QueryResult;
use crate::client_threads::{join, spawn};
use crate::http::client::{Connection, Target};
use crate::http::client_runtime;
use crate::http::request_driver::DriverLane;
use crate::http::server_process::ServerProcess;

const PATH: &str = "/btql";
/// Connections that insert. Few: rows then arrive about in the order of their time, as an application's do.
const LANES: usize = 4;
/// Bodies that wait for a connection.
const WAITING_MAX: usize = 16;
/// Rows go to segments soon: questions are about those, and not about the last minutes' rows in memory.
const SEALS: (&str, &str) = ("ASSAY_STORE_SEAL_AGE_SECONDS", "5");
const SEALED_LOOK: Duration = Duration::from_secs(1);
const SEALED_LOOKS_MAX: u32 = 3_600;
/// Pages of one export.
const PAGES_MAX: usize = 100_000;

/// Objects named by queries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Objects {
    pub log: String,
    pub events: String,
    pub experiments: [String; 2],
}

#[derive(Debug)]
pub struct Ours {
    runtime: Runtime,
    server: ServerProcess,
    connection: Connection,
    pub objects: Objects,
}

#[derive(Deserialize)]
struct Record {
    id: String,
}

#[derive(Deserialize)]
struct QueryPage {
    data: Vec<Value>,
}

impl Ours {
    /// A server on a directory: one that has these objects, or a new one that gets two projects and two experiments.
    pub fn start(program: &Path, dir: &Path, known: Option<&Objects>) -> anyhow::Result<Ours> {
        let server = ServerProcess::assay_with(program, dir, &[SEALS])?;
        let runtime = client_runtime()?;
        let mut connection = Connection::new(server.target());
        if let Some(objects) = known.cloned() {
            return Ok(Ours { runtime, server, connection, objects });
        }
        let mut ids = Vec::new();
        for name in ["spans", "events"] {
            ids.push(runtime.block_on(made(&mut connection, "/v1/project", &json!({ "name": name })))?);
        }
        for name in ["a", "b"] {
            let asked = json!({ "name": name, "project_id": ids[0] });
            ids.push(runtime.block_on(made(&mut connection, "/v1/experiment", &asked))?);
        }
        let ids: [String; 4] = ids.try_into().ok().context("four objects")?;
        let [log, events, a, b] = ids;
        Ok(Ours { runtime, server, connection, objects: Objects { log, events, experiments: [a, b] } })
    }

    pub fn server(&self) -> &ServerProcess {
        &self.server
    }

    /// Waits until all rows are in segments, and segments are as they are to be.
    pub fn settled(&mut self) -> anyhow::Result<()> {
        for _ in 0..SEALED_LOOKS_MAX {
            let metrics = self.runtime.block_on(self.connection.get("/metrics"))?.ok("/metrics")?;
            let metrics = String::from_utf8(metrics)?;
            let gauge = |name: &str| {
                let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                line.with_context(|| format!("no {name}"))?.parse::<f64>().context("a number")
            };
            if gauge("assay_memory_table_bytes")? + gauge("assay_sealing")? + gauge("assay_segments_whole")? == 0.0 {
                return self.server.quiet();
            }
            std::thread::sleep(SEALED_LOOK);
        }
        bail!("rows are still in memory, or in segments without columns")
    }

    pub fn stop(self) -> anyhow::Result<()> {
        self.server.stop()
    }

    /// Inserts all of a feed into an object of a kind such as `project_logs`.
    pub fn insert<F: Feed + Send + 'static>(&self, kind: &str, object: &str, feed: F) -> anyhow::Result<Inserted<F>> {
        insert(&self.runtime, self.server.target(), &format!("/v1/{kind}/{object}/insert"), feed)
    }

    /// Begins to insert into a new project, at so many bytes a second.
    pub fn insert_beside<F: Feed + Send + 'static>(
        &mut self,
        feed: F,
        bytes_per_second: f64,
    ) -> anyhow::Result<ConcurrentInserts> {
        let asked = json!({ "name": "beside" });
        let project = self.runtime.block_on(made(&mut self.connection, "/v1/project", &asked))?;
        ConcurrentInserts::start(self.server.target(), &project, feed, bytes_per_second)
    }

    /// Runs each text in turn, repeatedly; returns the times to the last byte, and each result.
    pub fn ask(&mut self, texts: &[String], runs: Runs) -> anyhow::Result<(Times, Vec<QueryResult>)> {
        let asked: Vec<Bytes> = texts.iter().map(|text| Bytes::from(json!({ "query": text }).to_string())).collect();
        let mut answers = Vec::new();
        for asked in &asked {
            let page: QueryPage = self.runtime.block_on(self.connection.post(PATH, asked))?.json(PATH)?;
            answers.push(QueryResult::of_objects(page.data));
        }
        let (mut times, began) = (Times::default(), Instant::now());
        for asked in asked.iter().cycle() {
            if runs.are_over(times.0.len(), began) {
                break;
            }
            let before = Instant::now();
            let answer = self.runtime.block_on(self.connection.post(PATH, asked))?;
            times.0.push(before.elapsed().as_secs_f64() * 1e3);
            answer.ok(PATH)?;
        }
        Ok((times, answers))
    }

    /// Has all rows written to files `file.0`, `file.1` and so on, as many as there are pages, again and again.
    pub fn export(&mut self, text: &str, file: &Path, runs: Runs) -> anyhow::Result<(Times, Vec<PathBuf>)> {
        let (mut times, mut files) = (Times::default(), Vec::new());
        for _ in 0..runs.least {
            let began = Instant::now();
            files = self.pages(text, file)?;
            times.0.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok((times, files))
    }

    fn pages(&mut self, text: &str, file: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let (mut files, mut cursor): (Vec<PathBuf>, Option<String>) = (Vec::new(), None);
        for number in 0..PAGES_MAX {
            let mut asked = json!({ "query": text, "fmt": "parquet", "disable_limit": true });
            if let Some(cursor) = &cursor {
                asked["cursor"] = cursor.as_str().into();
            }
            let path = file.with_extension(number.to_string());
            let mut sink = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
            let asked = Bytes::from(asked.to_string());
            cursor = self.runtime.block_on(self.connection.post_into(PATH, &asked, &mut sink))?;
            files.push(path);
            if cursor.is_none() {
                return Ok(files);
            }
        }
        bail!("an export of more than {PAGES_MAX} pages")
    }
}

async fn made(connection: &mut Connection, path: &str, asked: &Value) -> anyhow::Result<String> {
    Ok(connection.post(path, &Bytes::from(asked.to_string())).await?.json::<Record>(path)?.id)
}

/// A feed that was inserted, and the bytes of its rows.
#[derive(Debug)]
pub struct Inserted<F> {
    pub feed: F,
    pub bytes: u64,
}

/// Sends all rows of a feed, as bodies of inserts.
pub fn insert<F: Feed + Send + 'static>(
    runtime: &Runtime,
    target: &Target,
    path: &str,
    feed: F,
) -> anyhow::Result<Inserted<F>> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let maker = spawn("bench-maker", move || Ok(all_bodies(feed, &sender)))?;
    let sent = runtime.block_on(send(target, path, receiver));
    let made = join(maker)?;
    sent?;
    Ok(made)
}

fn all_bodies<F: Feed>(mut feed: F, sender: &mpsc::Sender<GeneratedEvents>) -> Inserted<F> {
    let mut bytes = 0;
    while let Some((events, rows_bytes)) = next_body(&mut feed) {
        bytes += rows_bytes;
        // Those who send have given up; they say why.
        if sender.blocking_send(events).is_err() {
            break;
        }
    }
    Inserted { feed, bytes }
}

async fn send(target: &Target, path: &str, receiver: mpsc::Receiver<GeneratedEvents>) -> anyhow::Result<()> {
    let receiver = Arc::new(Mutex::new(receiver));
    let mut lanes = JoinSet::new();
    for _ in 0..LANES {
        let (mut lane, receiver) = (DriverLane::new(target, path), Arc::clone(&receiver));
        lanes.spawn(async move {
            loop {
                let events = receiver.lock().await.recv().await;
                let Some(events) = events else { return anyhow::Ok(()) };
                lane.deliver(&events).await?;
            }
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.context("a lane panicked")??;
    }
    ensure!(receiver.lock().await.is_empty(), "some bodies were not sent");
    Ok(())
}

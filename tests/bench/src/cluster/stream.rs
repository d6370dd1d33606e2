//! Heavy load during another activity: clients insert traces at full speed, each into a project of its own, and
//! afterwards read all of them from every node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};
use assay_bench::generate::{ObjectStream, Profile, Workload};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::readback::page;
use super::roamer::{Roamer, Troubles};
use crate::http::client::{Connection, Target};
use crate::http::object_of_lane;

/// One client's part: what it wrote is rows 0 to `rows` of object `object` of the workload.
#[derive(Debug)]
pub struct SentRows {
    path: String,
    object: u64,
    pub rows: u64,
    pub troubles: Troubles,
    pub told: Vec<String>,
}

/// Clients that run until they are stopped.
#[derive(Debug)]
pub struct Stream {
    runtime: Runtime,
    stop: Arc<AtomicBool>,
    /// Bytes of bodies that were acknowledged.
    bytes: Arc<AtomicU64>,
    clients: Vec<JoinHandle<anyhow::Result<SentRows>>>,
}

#[derive(Deserialize)]
struct StreamProject {
    id: String,
}

impl Stream {
    pub fn start(
        runtime: Runtime,
        targets: &Arc<Vec<Target>>,
        clients: usize,
        rows_per_request: usize,
        seed: u64,
    ) -> anyhow::Result<Stream> {
        let paths = runtime.block_on(projects(&targets[0], clients))?;
        let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (workload, began) = (workload(seed, rows_per_request), Instant::now());
        let mut handles = Vec::new();
        for (place, path) in paths.into_iter().enumerate() {
            let mut client = StreamClient {
                roamer: Roamer::new(targets, place, began),
                stream: workload.stream(object_of_lane(place)),
                path,
                troubles: Troubles::default(),
            };
            let (stop, bytes) = (Arc::clone(&stop), Arc::clone(&bytes));
            handles.push(runtime.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    bytes.fetch_add(client.insert().await?, Ordering::Relaxed);
                }
                let (object, rows) = (client.stream.number(), client.stream.rows());
                let told = client.roamer.told();
                anyhow::Ok(SentRows { path: client.path, object, rows, troubles: client.troubles, told })
            }));
        }
        Ok(Stream { runtime, stop, bytes, clients: handles })
    }

    /// Bytes of bodies acknowledged so far; an error when a client gave up.
    pub fn bytes(&self) -> anyhow::Result<u64> {
        ensure!(!self.clients.iter().any(JoinHandle::is_finished), "a client gave up");
        Ok(self.bytes.load(Ordering::Relaxed))
    }

    pub fn end(self) -> anyhow::Result<(Runtime, Vec<SentRows>)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut sent = Vec::new();
        for client in self.clients {
            sent.push(self.runtime.block_on(client).context("a client panicked")??);
        }
        Ok((self.runtime, sent))
    }
}

fn workload(seed: u64, rows_per_request: usize) -> Workload {
    let mut workload = Workload::new(seed, Profile::Even, 0.0);
    workload.rows_per_write = rows_per_request;
    workload
}

async fn projects(target: &Target, count: usize) -> anyhow::Result<Vec<String>> {
    let mut connection = Connection::new(target);
    let mut paths = Vec::new();
    for number in 0..count {
        let body = Bytes::from(json!({ "name": format!("stream-{number}") }).to_string());
        let project: StreamProject = connection.post("/v1/project", &body).await?.json("POST /v1/project")?;
        paths.push(format!("/v1/project_logs/{}", project.id));
    }
    Ok(paths)
}

struct StreamClient {
    roamer: Roamer,
    stream: ObjectStream,
    path: String,
    troubles: Troubles,
}

impl StreamClient {
    /// The next body, until it is acknowledged; its size.
    async fn insert(&mut self) -> anyhow::Result<u64> {
        let events = self.stream.next_events();
        let (_, troubles) = self.roamer.deliver(&format!("{}/insert", self.path), &events.body).await?;
        self.troubles.join(troubles);
        Ok(events.body.len() as u64)
    }
}

/// Content of one node, out of all sent rows.
#[derive(Debug, Default, Serialize)]
pub struct NodeContents {
    pub node: u64,
    pub rows: u64,
    pub missing: u64,
    /// Rows that were never sent, or duplicates.
    pub strange: u64,
}

#[derive(Deserialize)]
struct StreamPage {
    events: Vec<StreamEvent>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct StreamEvent {
    id: String,
    span_attributes: Attributes,
}

#[derive(Deserialize)]
struct Attributes {
    exec_counter: u64,
}

/// Reads all sent rows from one node, several projects at a time.
pub async fn find(target: &Target, node: u64, sent: &Arc<Vec<SentRows>>, seed: u64) -> anyhow::Result<NodeContents> {
    const AT_ONCE: usize = 4;
    let mut found = NodeContents { node, ..NodeContents::default() };
    let (mut tasks, mut left) = (JoinSet::new(), 0..sent.len());
    loop {
        while tasks.len() < AT_ONCE
            && let Some(place) = left.next()
        {
            let (target, sent) = (target.clone(), Arc::clone(sent));
            tasks.spawn(async move { of_client(&target, &sent[place], seed).await });
        }
        let Some(done) = tasks.join_next().await else { return Ok(found) };
        let (rows, missing, strange) = done.context("a reader panicked")?.with_context(|| format!("node {node}"))?;
        found.rows += rows;
        found.missing += missing;
        found.strange += strange;
    }
}

/// Rows found, missing and strange.
async fn of_client(target: &Target, sent: &SentRows, seed: u64) -> anyhow::Result<(u64, u64, u64)> {
    let workload = workload(seed, 1);
    let (mut connection, path) = (Connection::new(target), format!("{}/fetch", sent.path));
    let mut seen = vec![false; usize::try_from(sent.rows)?];
    let (mut rows, mut strange, mut cursor) = (0, 0, None::<String>);
    loop {
        let page: StreamPage = page(&mut connection, &path, cursor.as_deref()).await?;
        for event in &page.events {
            rows += 1;
            let number = event.span_attributes.exec_counter;
            let place = usize::try_from(number).ok().and_then(|number| seen.get_mut(number));
            match place {
                Some(seen) if !*seen && workload.row(sent.object, number).id() == event.id => *seen = true,
                _ => strange += 1,
            }
        }
        if strange > sent.rows {
            bail!("pages without an end");
        }
        cursor = page.cursor.filter(|cursor| !cursor.is_empty());
        if cursor.is_none() || page.events.is_empty() {
            return Ok((rows, seen.iter().filter(|seen| !**seen).count() as u64, strange));
        }
    }
}

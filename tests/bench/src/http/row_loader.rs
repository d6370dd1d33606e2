//! Loader of rows over HTTP, generated as they are sent: the first part of `fetch` and `restart`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use assay_bench::generate::words::Vocabulary;
use assay_bench::generate::{ObjectStream, Part, Profile, Row, Workload};
use serde_json::Value;
use tokio::task::JoinSet;

use super::client::Target;
use super::object_of_lane;
use super::request_driver::DriverLane;

/// Rows between two words about how far it is.
const MARK_ROWS: u64 = 100_000;

#[derive(Clone, Debug)]
pub struct RowLoaderOptions {
    pub program: PathBuf,
    pub rows: u64,
    pub connections: usize,
    pub seed: u64,
}

impl RowLoaderOptions {
    fn workload(&self) -> Workload {
        Workload::new(self.seed, Profile::Even, 0.0)
    }
}

/// Writes rows to one project, and goes on where it stopped.
#[derive(Debug)]
pub struct Loader {
    workload: Workload,
    lanes: Vec<(DriverLane, ObjectStream)>,
    project: String,
    rows: u64,
}

impl Loader {
    pub async fn new(target: &Target, options: &RowLoaderOptions) -> anyhow::Result<Loader> {
        let (lanes, projects) = DriverLane::open(target, options.connections.max(1), 1).await?;
        let workload = options.workload();
        let streams = (0..).map(|lane| workload.stream(object_of_lane(lane)));
        let lanes = lanes.into_iter().zip(streams).collect();
        let project = projects.into_iter().next().context("a project")?;
        Ok(Loader { workload, lanes, project, rows: 0 })
    }

    /// The same rows' continuation at the server that was started in place of the first.
    pub async fn moved_to(self, target: &Target) -> anyhow::Result<Loader> {
        let (lanes, projects) = DriverLane::open(target, self.lanes.len(), 1).await?;
        ensure!(projects == [self.project.as_str()], "the project has another id after the restart");
        let streams = self.lanes.into_iter().map(|(_, stream)| stream);
        Ok(Loader { lanes: lanes.into_iter().zip(streams).collect(), ..self })
    }

    pub fn fetch_path(&self) -> String {
        format!("/v1/project_logs/{}/fetch", self.project)
    }

    /// Rows acknowledged so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns when at least `rows` more are acknowledged; the seconds it took.
    pub async fn load(&mut self, rows: u64) -> anyhow::Result<f64> {
        let (began, sent) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for (at, (mut lane, mut stream)) in std::mem::take(&mut self.lanes).into_iter().enumerate() {
            let sent = Arc::clone(&sent);
            tasks.spawn(async move {
                while sent.load(Ordering::Relaxed) < rows {
                    let events = stream.next_events();
                    let before = sent.fetch_add(events.operations(), Ordering::Relaxed);
                    lane.deliver(&events).await?;
                    if before / MARK_ROWS < (before + events.operations()) / MARK_ROWS {
                        eprintln!("{} rows after {:.1} s", before + events.operations(), began.elapsed().as_secs_f64());
                    }
                }
                anyhow::Ok((at, lane, stream))
            });
        }
        let mut lanes = Vec::new();
        while let Some(done) = tasks.join_next().await {
            lanes.push(done.context("a lane panicked")??);
        }
        lanes.sort_by_key(|(at, ..)| *at);
        self.lanes = lanes.into_iter().map(|(_, lane, stream)| (lane, stream)).collect();
        self.rows += sent.load(Ordering::Relaxed);
        Ok(began.elapsed().as_secs_f64())
    }

    /// Checks that a fetched event equals the sent one; an event that was never sent is an error too.
    pub fn check(&self, event: &Value) -> anyhow::Result<()> {
        let row = self.row_of(event).with_context(|| format!("nobody sent the row {}", event["id"]))?;
        let mut sent = Vec::new();
        row.render_event(Part::Whole, Vocabulary::shared(), &mut sent);
        let sent: Value = serde_json::from_slice(&sent)?;
        for (name, value) in sent.as_object().context("an event is an object")? {
            // A time may be written in another form.
            let found = event.get(name).unwrap_or(&Value::Null);
            if name != "created" && found != value {
                bail!("row {}: `{name}` is {found}, and {value} was sent", row.id());
            }
        }
        Ok(())
    }

    /// Returns the row of an event, from the number in it; only its own lane has its id there.
    fn row_of(&self, event: &Value) -> Option<Row> {
        let number = event["span_attributes"]["exec_counter"].as_u64()?;
        let of_lane = |(_, stream): &(DriverLane, ObjectStream)| self.workload.row(stream.number(), number);
        self.lanes.iter().map(of_lane).find(|row| event["id"] == row.id())
    }
}

//! Driver that sends prepared bodies: at the rate of responses, or at a fixed rate.
//!
//! At a fixed rate the clock of a request starts when it is due, even if its connection still waits for the previous
//! response: a stalled server is charged for all requests due meanwhile.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use assay_bench::generate::GeneratedEvents;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::client::{Connection, HttpResponse, Target};

/// Pause after a refusal without a retry time.
const RETRY_WAIT: Duration = Duration::from_millis(20);
/// Number of refusals of one request after which the benchmark fails.
const REFUSALS_MAX: u32 = 1000;

/// Bodies by lane; made once, sent to every server.
pub type Bodies = Arc<Vec<Vec<GeneratedEvents>>>;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two requests of all lanes together; none: each as soon as the one before is answered.
    pub every: Option<Duration>,
    /// Nothing is begun after this; none: until the bodies are sent.
    pub upto: Option<Duration>,
}

/// Results of the driver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Driven {
    /// From the first request to the last response.
    pub seconds: f64,
    pub requests: u64,
    /// Events acknowledged, merges among them.
    pub operations: u64,
    pub merges: u64,
    pub bytes: u64,
    /// Answers 429 and 503, each sent again.
    pub refused: u64,
    pub answer_ms: Vec<f64>,
}

impl Driven {
    pub fn operations_per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }

    pub fn mb_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    fn join(&mut self, other: Driven) {
        self.requests += other.requests;
        self.operations += other.operations;
        self.merges += other.merges;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.answer_ms.extend(other.answer_ms);
    }
}

/// One connection that inserts into one project.
#[derive(Debug)]
pub struct DriverLane {
    connection: Connection,
    path: String,
}

#[derive(Deserialize)]
struct DriverProject {
    id: String,
}

#[derive(Deserialize)]
struct DriverInserted {
    row_ids: Vec<String>,
}

impl DriverLane {
    /// Creates a lane to a path that takes events.
    pub fn new(target: &Target, path: &str) -> DriverLane {
        DriverLane { connection: Connection::new(target), path: path.to_owned() }
    }

    /// Lanes over as many new projects, in turn. Returns the projects' ids as well.
    pub async fn open(
        target: &Target,
        lanes: usize,
        projects: usize,
    ) -> anyhow::Result<(Vec<DriverLane>, Vec<String>)> {
        DriverLane::spread(std::slice::from_ref(target), lanes, projects).await
    }

    /// The same over the nodes of a cluster, in turn as well.
    pub async fn spread(
        targets: &[Target],
        lanes: usize,
        projects: usize,
    ) -> anyhow::Result<(Vec<DriverLane>, Vec<String>)> {
        let mut connection = Connection::new(targets.first().context("no node to write to")?);
        let mut ids = Vec::new();
        for number in 0..projects.clamp(1, lanes.max(1)) {
            let body = serde_json::json!({ "name": format!("bench-{number}") }).to_string();
            let answer = connection.post("/v1/project", &Bytes::from(body)).await?;
            ids.push(answer.json::<DriverProject>("POST /v1/project")?.id);
        }
        let lanes = (0..lanes).map(|lane| DriverLane {
            connection: Connection::new(&targets[lane % targets.len()]),
            path: format!("/v1/project_logs/{}/insert", ids[lane % ids.len()]),
        });
        Ok((lanes.collect(), ids))
    }

    /// Sends the events once, whatever the response.
    pub async fn offer(&mut self, events: &GeneratedEvents) -> anyhow::Result<HttpResponse> {
        self.connection.post(&self.path, &events.body).await
    }

    /// Returns once the events are acknowledged; how often they were refused before.
    pub async fn deliver(&mut self, events: &GeneratedEvents) -> anyhow::Result<u64> {
        for refused in 0..REFUSALS_MAX {
            let answer = self.offer(events).await?;
            if matches!(answer.status, 429 | 503) {
                sleep(answer.retry_after.unwrap_or(RETRY_WAIT)).await;
                continue;
            }
            let inserted: DriverInserted = answer.json(&self.path)?;
            ensure!(inserted.row_ids == events.ids, "the answer names other rows than were sent");
            return Ok(u64::from(refused));
        }
        bail!("an insert was refused {REFUSALS_MAX} times")
    }
}

/// Sends each lane its bodies in their order, all lanes at once.
pub async fn drive(lanes: Vec<DriverLane>, bodies: &Bodies, pace: Pace) -> anyhow::Result<Driven> {
    let count = lanes.len();
    ensure!(count == bodies.len(), "{count} lanes for the bodies of {}", bodies.len());
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    for (at, lane) in lanes.into_iter().enumerate() {
        let bodies = Arc::clone(bodies);
        tasks.spawn(async move { one_lane(lane, &bodies[at], (at, count), pace, began).await });
    }
    let mut driven = Driven::default();
    while let Some(done) = tasks.join_next().await {
        driven.join(done.context("a lane panicked")??);
    }
    driven.seconds = began.elapsed().as_secs_f64();
    Ok(driven)
}

async fn one_lane(
    mut lane: DriverLane,
    bodies: &[GeneratedEvents],
    place: (usize, usize),
    pace: Pace,
    began: Instant,
) -> anyhow::Result<Driven> {
    let mut driven = Driven::default();
    for (number, events) in bodies.iter().enumerate() {
        let due = pace.every.map(|every| began + every.mul_f64((number * place.1 + place.0) as f64));
        if pace.upto.is_some_and(|upto| due.unwrap_or_else(Instant::now) >= began + upto) {
            break;
        }
        let from = match due {
            Some(due) if due > Instant::now() => {
                sleep_until(due).await;
                // The timer's own lateness is not the server's.
                Instant::now()
            }
            Some(due) => due,
            None => Instant::now(),
        };
        driven.refused += lane.deliver(events).await?;
        driven.answer_ms.push(from.elapsed().as_secs_f64() * 1e3);
        driven.requests += 1;
        driven.operations += events.operations();
        driven.merges += u64::from(events.merges);
        driven.bytes += events.body.len() as u64;
    }
    Ok(driven)
}

#[cfg(test)]
mod tests {
    use assay_bench::generate::{Profile, Workload};

    use super::super::bare_server::tests::{started, written};
    use super::super::client::tests::scripted;
    use super::*;

    fn bodies(lanes: u64, each: usize) -> Bodies {
        let workload = Workload::new(3, Profile::Even, 0.5);
        let of_lane = |n| {
            let mut stream = workload.stream(n);
            (0..each).map(|_| stream.next_events()).collect()
        };
        Arc::new((0..lanes).map(of_lane).collect())
    }

    const FAST: Pace = Pace { every: None, upto: None };

    #[tokio::test]
    async fn every_body_reaches_the_file_of_the_bare_pipeline_once_and_in_its_lanes_order() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = started(dir.path());
        let bodies = bodies(4, 5);
        let (lanes, projects) = DriverLane::open(&target, 4, 2).await.expect("lanes");
        assert_eq!(projects.len(), 2);
        let driven = drive(lanes, &bodies, FAST).await.expect("all acknowledged");
        assert_eq!((driven.requests, driven.operations, driven.answer_ms.len()), (20, 2000, 20));
        assert!(driven.merges > 0 && driven.refused == 0 && driven.seconds > 0.0);
        let file = written(dir.path());
        assert_eq!(driven.bytes, file.len() as u64);
        let file = String::from_utf8(file).expect("text");
        let starts: Vec<usize> = file.match_indices("{\"events\":[").map(|(at, _)| at).collect();
        let is_at = |at: usize, events: &GeneratedEvents| file.as_bytes()[at..].starts_with(&events.body);
        for of_lane in bodies.iter() {
            let place = |events| starts.iter().position(|at| is_at(*at, events)).expect("in the file");
            let places: Vec<usize> = of_lane.iter().map(place).collect();
            assert!(places.is_sorted(), "{places:?}");
        }
        assert_eq!(starts.len(), 20);
    }

    #[tokio::test]
    async fn a_fixed_rate_is_kept_and_ends_in_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = started(dir.path());
        let (lanes, _) = DriverLane::open(&target, 2, 1).await.expect("lanes");
        let pace = Pace { every: Some(Duration::from_millis(20)), upto: Some(Duration::from_millis(200)) };
        let driven = drive(lanes, &bodies(2, 20), pace).await.expect("all acknowledged");
        assert_eq!(driven.requests, 10);
        assert!(driven.seconds >= 0.18, "{}", driven.seconds);
    }

    #[tokio::test]
    async fn a_refusal_is_sent_again_and_a_wrong_answer_ends_the_run() {
        let target = scripted(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{\"id\":\"p\"}",
            "HTTP/1.1 429 Later\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"row_ids\":[\"a\"]}",
            "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"row_ids\":[\"b\"]}",
        ])
        .await;
        let events = GeneratedEvents { body: Bytes::from_static(b"{}"), ids: vec!["a".into()], merges: 0 };
        let mut lane = DriverLane::open(&target, 1, 1).await.expect("a lane").0.remove(0);
        assert_eq!(lane.deliver(&events).await.expect("acknowledged"), 1);
        assert!(lane.deliver(&events).await.is_err(), "another row is named");
    }
}

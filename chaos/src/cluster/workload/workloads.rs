//! Workloads: the turns of a client, until it is stopped.

mod compose;
mod control;
mod names;
mod retries;
mod versions;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::client::{Called, Client, Ended, Sending};
use super::shared::{ClientContext, Object, Slot};
use crate::cluster::faults::conductor::STREAK;
use crate::cluster::recording::events::{Phase, Workload};

/// Writes and rows after which an object has enough, so that reading it whole stays cheap.
const WRITES_MAX: u32 = 700;
const ROWS_MAX: u32 = 2500;
/// Number of writes of a workload with rows a thousand times larger.
const LARGE_WRITES_MAX: u32 = 120;
/// Between two turns of a client, under attack and after it.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 20..=120;
const CALM_PAUSE: Duration = Duration::from_millis(2);
const CALM_ROWS_MAX: usize = 3;
/// Percentage of turns that read.
const READS_PERCENT: u32 = 8;
/// Percentage of reads if they are slow, or time is short.
const FEW_READS_PERCENT: u32 = 2;
/// An object that cannot be made for so long is a cluster that does not serve.
const MAKE_WAIT: Duration = Duration::from_secs(90);
const MAKE_PAUSE: Duration = Duration::from_millis(200);

/// The clients of a run.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadMix {
    /// Objects to write to: workload, objects, clients.
    rows: &'static [(Workload, u32, u32)],
    readers: u32,
    control_clients: u32,
    name_clients: u32,
}

/// Clients of every kind.
pub const ALL: WorkloadMix = WorkloadMix {
    rows: &[
        (Workload::Append, 3, 3),
        (Workload::Large, 1, 2),
        (Workload::Retries, 1, 1),
        (Workload::Set, 1, 2),
        (Workload::Register, 1, 2),
        (Workload::Transfer, 1, 2),
    ],
    readers: 1,
    control_clients: 2,
    name_clients: 2,
};

/// A few clients that write small rows and read, for times that compare.
pub const FEW: WorkloadMix = WorkloadMix {
    rows: &[(Workload::Append, 2, 3), (Workload::Set, 1, 1), (Workload::Register, 1, 1), (Workload::Transfer, 1, 1)],
    readers: 1,
    control_clients: 0,
    name_clients: 0,
};

/// Something to do again and again. An error is the harness's.
trait Work: Send {
    /// Returns the prefix of the names it works on; none if it works on nothing.
    fn works_on(&self) -> Option<String>;

    fn turn(&mut self, client: &mut Client) -> anyhow::Result<()>;
}

/// Makes the objects, then starts the clients; each ends when the stage is over.
pub fn start(
    stage: &Arc<ClientContext>,
    mix: &WorkloadMix,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<Vec<JoinHandle<anyhow::Result<()>>>> {
    let mut maker = Client::new(0, Arc::clone(stage), rng.random());
    let project: Arc<str> = made(&mut maker, "/v1/project", &json!({ "name": "storm" }))?.into();
    let mut slots = Vec::new();
    for &(workload, objects, _) in mix.rows {
        for number in 0..objects {
            let object = object(&mut maker, &project, workload, number, 0)?;
            stage.uses(&object.name);
            slots.push(Slot::new(workload, number, object));
        }
    }
    stage.set_slots(slots);
    let mut works: Vec<Box<dyn Work>> = Vec::new();
    for &(workload, _, clients) in mix.rows {
        for _ in 0..clients {
            works.push(match workload {
                Workload::Retries => Box::new(retries::Retries::new(stage, &project, rng)),
                _ => Box::new(Writer { workload, project: Arc::clone(&project) }),
            });
        }
    }
    works.extend((0..mix.readers).map(|_| Box::new(versions::Versions) as Box<dyn Work>));
    if mix.control_clients > 0 {
        let registers = control::SettingRegisters::make(&mut maker)?;
        works.extend((0..mix.control_clients).map(|_| Box::new(registers.client()) as Box<dyn Work>));
    }
    if mix.name_clients > 0 {
        let names = names::NamePool::new(stage, &project);
        works.extend((0..mix.name_clients).map(|_| Box::new(names.client()) as Box<dyn Work>));
    }
    let numbered = (1..).zip(works);
    numbered
        .map(|(number, work)| {
            let client = Client::new(number, Arc::clone(stage), rng.random());
            let thread = std::thread::Builder::new().name(format!("client-{number}"));
            thread.spawn(move || live(client, work)).context("starting a client")
        })
        .collect()
}

fn live(mut client: Client, mut work: Box<dyn Work>) -> anyhow::Result<()> {
    while !client.stage.stopped() {
        work.turn(&mut client)?;
        let hurry = |own: String| client.stage.lowest_streak_of(&own) < STREAK;
        let pause = match client.stage.phase() {
            // Until what it works on has shown that it serves.
            Phase::Calm if work.works_on().is_some_and(hurry) => CALM_PAUSE,
            _ => Duration::from_millis(client.rng.random_range(PAUSE_MS)),
        };
        std::thread::sleep(pause);
    }
    Ok(())
}

/// Composes writes of one workload, and reads its objects now and then.
#[derive(Debug)]
struct Writer {
    workload: Workload,
    project: Arc<str>,
}

impl Work for Writer {
    fn works_on(&self) -> Option<String> {
        Some(format!("{}-", self.workload.name()))
    }

    fn turn(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let stage = Arc::clone(&client.stage);
        let Some(slot) = pick(&stage, self.workload, &mut client.rng) else { return Ok(()) };
        let object = slot.live().object;
        let large = self.workload == Workload::Large;
        let calm = stage.phase() == Phase::Calm;
        let reads = if large || calm { FEW_READS_PERCENT } else { READS_PERCENT };
        if client.rng.random_range(0..100) < reads {
            let read = client.read(&object, None)?;
            stage.went(&object.name, read.is_some());
            return Ok(());
        }
        let write = stage.journal.operation();
        // After the storm many small writes show more than a few large ones.
        let small = large && calm;
        let workload = if small { Workload::Append } else { self.workload };
        let mut rows = compose::rows(workload, write, &mut client.rng);
        if workload == Workload::Append && calm {
            rows.truncate(CALM_ROWS_MAX);
        }
        let ended = client.write(&Sending { object: &object, write, key: None, rows: &rows })?;
        stage.went(&object.name, ended == Ended::Ok);
        counted(client, slot, &self.project, rows.len())
    }
}

/// One of the workload's objects: the first most often; after the storm the one that waits most.
fn pick<'a>(stage: &'a ClientContext, workload: Workload, rng: &mut ChaCha8Rng) -> Option<&'a Slot> {
    let calm = stage.phase() == Phase::Calm;
    let slots = stage.slots().iter().filter(|slot| slot.workload == workload);
    if calm {
        return slots.min_by_key(|slot| stage.streak(&slot.live().object.name));
    }
    let slots: Vec<&Slot> = slots.collect();
    let weights: Vec<f64> = (1..=slots.len()).map(|rank| 1.0 / rank as f64).collect();
    let mut at = rng.random_range(0.0..weights.iter().sum::<f64>().max(f64::MIN_POSITIVE));
    let place = weights.iter().position(|weight| {
        at -= weight;
        at < 0.0
    });
    slots.get(place.unwrap_or(0)).copied()
}

/// Counts a write; where the object has enough, the next is made. Not after the storm: what is in use then has to show
/// that it serves.
fn counted(client: &mut Client, slot: &Slot, project: &str, rows: usize) -> anyhow::Result<()> {
    let writes_max = if slot.workload == Workload::Large { LARGE_WRITES_MAX } else { WRITES_MAX };
    if client.stage.phase() != Phase::Storm || !slot.wrote(rows, writes_max, ROWS_MAX) {
        return Ok(());
    }
    let next = object(client, project, slot.workload, slot.number, slot.live().generation + 1)?;
    client.stage.replace(slot, next);
    Ok(())
}

/// Kinds of objects take turns, so that each kind is written to by some workload.
pub fn object(
    client: &mut Client,
    project: &str,
    workload: Workload,
    number: u32,
    generation: u32,
) -> anyhow::Result<Arc<Object>> {
    let name = format!("{}-{number}-{generation}", workload.name());
    let path = match (workload as u32 + number) % 3 {
        0 => {
            let id = made(client, "/v1/project", &json!({ "name": format!("storm {name}") }))?;
            format!("/v1/project_logs/{id}")
        }
        1 => {
            let id = made(client, "/v1/experiment", &json!({ "project_id": project, "name": name }))?;
            format!("/v1/experiment/{id}")
        }
        _ => {
            let id = made(client, "/v1/dataset", &json!({ "project_id": project, "name": name }))?;
            format!("/v1/dataset/{id}")
        }
    };
    let object = Arc::new(Object { name, path });
    client.stage.made(workload, &object);
    Ok(object)
}

/// Creates a record, or finds it under its name: safe to try until it is answered.
pub fn made(client: &mut Client, path: &str, body: &Value) -> anyhow::Result<String> {
    let until = Instant::now() + MAKE_WAIT;
    loop {
        let at = client.another()?;
        let why = match client.call(at, "POST", path, &[], body) {
            Called::Answered(answer) if answer.status == 200 => {
                return answer.body["id"].as_str().map(str::to_owned).context("a record without an id");
            }
            Called::Answered(answer) => format!("{} {}", answer.status, answer.body),
            Called::NotSent(why) | Called::Broken(why) => why,
        };
        anyhow::ensure!(Instant::now() < until, "POST {path} {body} within {MAKE_WAIT:?}: {why}");
        std::thread::sleep(MAKE_PAUSE);
    }
}

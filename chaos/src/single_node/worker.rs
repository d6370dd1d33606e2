//! Worker process that is killed: clients that read and write through the shards, and report each step on stdout.
//!
//! A line goes out whole, in one write, before the step it announces; the parent reads the pipe after our death too.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use assay_storage_model::Xact;
use parking::WorkerClients;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::single_node::documents::{RowSpec, large_write, random_write, write_command};
use crate::single_node::dump::digest;
use crate::single_node::store::{OBJECTS, Store, StoreReply};
use crate::single_node::worker_history::{self, WorkerEvent, WorkerHistory};

/// Lifetime of a worker that is not killed.
const LIFE_MAX: Duration = Duration::from_secs(600);
/// Keyed requests remembered for sending again.
const KEYED_MAX: usize = 400;
/// A write that was refused is not followed at once by the next.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, clap::Args)]
pub struct WorkerArgs {
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    seed: u64,
    /// The number of this life; makes its operations' names unlike those of others.
    #[arg(long)]
    run: u32,
    /// Earlier history; its keyed requests are sent again.
    #[arg(long)]
    history: Option<PathBuf>,
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Stop cleanly after so many operations.
    #[arg(long)]
    ops: Option<u32>,
    /// Force a seal and a compaction so long after the start.
    #[arg(long)]
    upkeep_after_ms: Option<u64>,
}

/// A keyed request that may be sent again.
#[derive(Clone, Debug)]
struct KeyedWrite {
    name: String,
    object: u8,
    rows: Vec<RowSpec>,
    acknowledged: bool,
}

#[derive(Debug)]
struct WorkerState {
    store: Store,
    args: WorkerArgs,
    keyed: WorkerClients<Vec<KeyedWrite>>,
    /// Versions that were acknowledged or read.
    versions: WorkerClients<Vec<(u8, u64)>>,
    operations: AtomicU32,
    started: Instant,
}

/// A lock that is never held across an await.
mod parking {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    #[derive(Debug, Default)]
    pub struct WorkerClients<T>(Mutex<T>);

    impl<T> WorkerClients<T> {
        pub fn new(value: T) -> WorkerClients<T> {
            WorkerClients(Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

pub async fn run(args: WorkerArgs) -> anyhow::Result<()> {
    let started = Instant::now();
    let before = match &args.history {
        Some(path) => WorkerHistory::of(&worker_history::load(path)?),
        None => WorkerHistory::default(),
    };
    let store = Store::open(&args.dir).await?;
    say(&WorkerEvent::Ready { run: args.run, micros: started.elapsed().as_micros() as u64 })?;
    let (keyed, versions) = (WorkerClients::new(keyed_of(&before)), WorkerClients::new(versions_of(&before)));
    let clients = args.clients;
    let world = Arc::new(WorkerState { store, args, keyed, versions, operations: AtomicU32::new(0), started });
    let mut tasks = Vec::new();
    for client in 0..clients {
        let world = Arc::clone(&world);
        tasks.push(tokio::spawn(async move { world.client(client).await }));
    }
    if let Some(after) = world.args.upkeep_after_ms {
        let world = Arc::clone(&world);
        tasks.push(tokio::spawn(async move { world.upkeep(Duration::from_millis(after)).await }));
    }
    for task in tasks {
        task.await.context("a client's task")??;
    }
    if world.args.ops.is_some() {
        world.last_write().await?;
    }
    say(&WorkerEvent::Stopping)?;
    let world = Arc::into_inner(world).context("a client still holds the store")?;
    world.store.close().await
}

/// One line, complete before this returns.
fn say(said: &WorkerEvent) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(said)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn keyed_of(before: &WorkerHistory) -> Vec<KeyedWrite> {
    let mut keyed: Vec<(usize, KeyedWrite)> = Vec::new();
    for (name, write) in before.writes.iter().filter(|(_, write)| write.keyed && !write.refused()) {
        let acknowledged = write.xacts().next().is_some();
        let (object, rows) = (write.object, write.rows.clone());
        keyed.push((write.invoked, KeyedWrite { name: name.clone(), object, rows, acknowledged }));
    }
    keyed.sort_by_key(|(invoked, _)| *invoked);
    let old = keyed.len().saturating_sub(KEYED_MAX);
    keyed.into_iter().skip(old).map(|(_, keyed)| keyed).collect()
}

fn versions_of(before: &WorkerHistory) -> Vec<(u8, u64)> {
    before.reads.iter().map(|read| (read.object, read.version)).collect()
}

impl WorkerState {
    fn more(&self) -> bool {
        let done = self.operations.fetch_add(1, Ordering::Relaxed);
        self.args.ops.is_none_or(|most| done < most) && self.started.elapsed() < LIFE_MAX
    }

    async fn client(&self, client: u32) -> anyhow::Result<()> {
        let seed = self.args.seed ^ u64::from(self.args.run) << 32 ^ u64::from(client) << 48;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut count = 0;
        while self.more() {
            count += 1;
            let op = format!("{}.{client}.{count}", self.args.run);
            match rng.random_range(0..100) {
                0..70 => self.write_new(client, op, &mut rng).await?,
                70..84 => self.write_again(client, op, &mut rng).await?,
                84..94 => self.read_newest(client, &mut rng).await?,
                _ => self.read_again(client, &mut rng)?,
            }
        }
        Ok(())
    }

    /// A large write as the last of all, so that a stopped directory has its blob.
    async fn last_write(&self) -> anyhow::Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.seed);
        let op = format!("{}.last", self.args.run);
        self.write(0, &op, 0, None, false, &large_write(&mut rng)).await.map(drop)
    }

    async fn write_new(&self, client: u32, op: String, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
        let object = rng.random_range(0..OBJECTS);
        let rows = random_write(rng);
        let keyed = rng.random_bool(0.4);
        if keyed {
            let (name, rows) = (op.clone(), rows.clone());
            self.keyed.lock().push(KeyedWrite { name, object, rows, acknowledged: false });
        }
        let request = keyed.then(|| op.clone());
        let written = self.write(client, &op, object, request, false, &rows).await?;
        if written && keyed {
            let mut known = self.keyed.lock();
            if let Some(known) = known.iter_mut().rev().find(|known| known.name == op) {
                known.acknowledged = true;
            }
        }
        Ok(())
    }

    /// A keyed request once more; now and then with other content, which must be refused.
    async fn write_again(&self, client: u32, op: String, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
        let known = {
            let keyed = self.keyed.lock();
            if keyed.is_empty() {
                return Ok(());
            }
            keyed[rng.random_range(0..keyed.len())].clone()
        };
        let other = known.acknowledged && rng.random_bool(0.2);
        let rows = if other { random_write(rng) } else { known.rows };
        self.write(client, &op, known.object, Some(known.name), other, &rows).await.map(drop)
    }

    /// Returns whether it was acknowledged.
    async fn write(
        &self,
        client: u32,
        op: &str,
        object: u8,
        request: Option<String>,
        other: bool,
        rows: &[RowSpec],
    ) -> anyhow::Result<bool> {
        let name = if other { op } else { request.as_deref().unwrap_or(op) };
        let command = write_command(self.store.key(object), now()?, request.as_deref(), name, rows);
        say(&WorkerEvent::Invoke { op: op.into(), client, object, request, other, rows: rows.to_vec() })?;
        let (op, told) = (op.to_owned(), self.store.write(object, command).await);
        let written = matches!(told, StoreReply::Written { .. });
        let refused = matches!(told, StoreReply::Refused { .. });
        say(&match told {
            StoreReply::Written { xact, again } => {
                self.versions.lock().push((object, xact.0));
                WorkerEvent::Ok { op, xact: xact.0, again }
            }
            StoreReply::Reused { xact } => WorkerEvent::Reused { op, xact: xact.0 },
            StoreReply::Refused { why } => WorkerEvent::Refused { op, why },
            StoreReply::Unknown { why } => WorkerEvent::Unknown { op, why },
        })?;
        if refused {
            tokio::time::sleep(REFUSED_PAUSE).await;
        }
        Ok(written)
    }

    async fn read_newest(&self, client: u32, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
        let object = rng.random_range(0..OBJECTS);
        say(&WorkerEvent::Asks { client, object })?;
        self.store.fence(object).await?;
        let view = self.store.view(object)?;
        let rows = view.all(&self.store.key(object), view.version())?;
        let version = view.version().0;
        self.versions.lock().push((object, version));
        say(&WorkerEvent::Read { client, object, version, digest: digest(&rows), asked: false })
    }

    /// A version that was read or acknowledged before, once more.
    fn read_again(&self, client: u32, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
        let (object, version) = {
            let versions = self.versions.lock();
            if versions.is_empty() {
                return Ok(());
            }
            versions[rng.random_range(0..versions.len())]
        };
        let rows = self.store.view(object)?.all(&self.store.key(object), Xact(version))?;
        say(&WorkerEvent::Read { client, object, version, digest: digest(&rows), asked: true })
    }

    async fn upkeep(&self, after: Duration) -> anyhow::Result<()> {
        tokio::time::sleep(after).await;
        for object in 0..OBJECTS {
            say(&WorkerEvent::Upkeep { what: format!("seal of object {object}'s shard") })?;
            self.store.seal(object).await?;
            say(&WorkerEvent::Upkeep { what: format!("compaction of object {object}'s shard") })?;
            self.store.compact(object).await?;
        }
        say(&WorkerEvent::Upkeep { what: "done".into() })
    }
}

/// Returns a client's current time as an id.
fn now() -> anyhow::Result<Xact> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(Xact::at_micros(u64::try_from(now.as_micros())?))
}

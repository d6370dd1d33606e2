//! Clients of a simulated cluster: each reads and writes through any node, one operation after the other, and records
//! each step in the history.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{NodeId, Xact};
use parking_lot::Mutex;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tokio::time::{Instant, sleep};

use super::large_writes::INLINE_BYTES_MAX;
use super::object_access::{OBJECTS, SimWrite, key_of};
use super::randomness::Dice;
use super::registers::CatalogRegisters;
use super::world::SimWorld;
use crate::single_node::documents::{RowSpec, large_write, random_write};
use crate::single_node::dump::digest;
use crate::single_node::store::StoreReply;
use crate::single_node::worker_history::WorkerEvent;

/// Longer texts of rows are cut to this: simulations are many and small.
const TEXT_MAX: u32 = 600;
/// One write in this many travels as a blob: who has one, and for how long, is worth more tries than it gets elsewhere.
const LARGE_ONE_IN: u32 = 10;
/// Operations of one client: what there is to check grows with their square.
const OPERATIONS_MAX: u32 = 150;

/// A keyed request that may be sent again.
#[derive(Clone, Debug)]
struct SimKeyedWrite {
    wanted: SimWrite,
    acknowledged: bool,
}

/// Shared memory of all clients.
#[derive(Debug, Default)]
pub struct SimClients {
    keyed: Mutex<Vec<SimKeyedWrite>>,
    versions: Mutex<Vec<(u8, u64)>>,
    pub registers: CatalogRegisters,
}

impl SimClients {
    /// Versions of an object that were read or acknowledged.
    pub fn versions_of(&self, object: u8) -> Vec<u64> {
        let mut versions: Vec<u64> =
            self.versions.lock().iter().filter(|(of, _)| *of == object).map(|(_, version)| *version).collect();
        versions.sort_unstable();
        versions.dedup();
        versions
    }
}

#[derive(Debug)]
pub struct SimClient {
    pub number: u32,
    pub world: Arc<SimWorld>,
    pub shared: Arc<SimClients>,
    pub dice: Dice,
}

impl SimClient {
    pub async fn run(self, until: Instant) {
        for count in 0..OPERATIONS_MAX {
            if Instant::now() >= until {
                break;
            }
            let op = format!("{}.{count}", self.number);
            match self.dice.below(100) {
                0..55 => self.write_new(op).await,
                55..70 => self.write_again(op).await,
                70..84 => self.read_newest().await,
                84..90 => self.read_again(),
                _ => self.use_register().await,
            }
            sleep(self.dice.micros(&self.world.plan.rest)).await;
        }
    }

    fn node(&self) -> NodeId {
        self.dice.pick(&self.world.nodes()).unwrap_or(NodeId(1))
    }

    async fn write_new(&self, op: String) {
        let (object, rows, keyed) =
            self.dice.with(|rng| (rng.random_range(0..OBJECTS), small_write(rng), rng.random_bool(0.5)));
        let wanted = SimWrite { object, request: keyed.then(|| op.clone()), name: op.clone(), rows };
        if keyed {
            self.shared.keyed.lock().push(SimKeyedWrite { wanted: wanted.clone(), acknowledged: false });
        }
        if self.write(&op, wanted, false).await && keyed {
            let mut known = self.shared.keyed.lock();
            if let Some(known) = known.iter_mut().find(|known| known.wanted.name == op) {
                known.acknowledged = true;
            }
        }
    }

    /// A keyed request once more; now and then with other content, which must be refused.
    async fn write_again(&self, op: String) {
        let known = {
            let keyed = self.shared.keyed.lock();
            let place = usize::try_from(self.dice.below(keyed.len() as u64)).unwrap_or(0);
            keyed.get(place).cloned()
        };
        let Some(SimKeyedWrite { wanted, acknowledged }) = known else { return };
        if acknowledged && self.dice.one_in(5) {
            let rows = self.dice.with(small_write);
            self.write(&op, SimWrite { name: op.clone(), rows, ..wanted }, true).await;
        } else {
            self.write(&op, wanted, false).await;
        }
    }

    /// Returns whether it was acknowledged.
    async fn write(&self, op: &str, wanted: SimWrite, other: bool) -> bool {
        let SimWrite { object, request, rows, .. } = wanted.clone();
        let client = self.number;
        self.world.say(WorkerEvent::Invoke { op: op.into(), client, object, request, other, rows });
        let told = self.world.write(self.node(), &wanted).await;
        let (op, written) = (op.to_owned(), matches!(told, StoreReply::Written { .. }));
        self.world.trace.say(format_args!("client {client}: {op} {told:?}"));
        self.world.say(match told {
            StoreReply::Written { xact, again } => {
                self.shared.versions.lock().push((object, xact.0));
                WorkerEvent::Ok { op, xact: xact.0, again }
            }
            StoreReply::Reused { xact } => WorkerEvent::Reused { op, xact: xact.0 },
            StoreReply::Refused { why } => WorkerEvent::Refused { op, why },
            StoreReply::Unknown { why } => WorkerEvent::Unknown { op, why },
        });
        written
    }

    async fn read_newest(&self) {
        let (client, object) = (self.number, u8::try_from(self.dice.below(OBJECTS.into())).unwrap_or(0));
        self.world.say(WorkerEvent::Asks { client, object });
        let Ok(view) = self.world.view(self.node(), object).await else { return };
        let version = view.version();
        match view.all(&key_of(object), version) {
            Ok(rows) => {
                self.shared.versions.lock().push((object, version.0));
                let said =
                    WorkerEvent::Read { client, object, version: version.0, digest: digest(&rows), asked: false };
                self.world.trace.say(format_args!("{said:?}"));
                self.world.say(said);
            }
            Err(error) => self.world.facts.find(format!("object {object} at {version}: {error}")),
        }
    }

    /// A version that was read or acknowledged before, once more, wherever it has been applied.
    fn read_again(&self) {
        let known = self.dice.pick(&self.shared.versions.lock());
        let Some((object, version)) = known else { return };
        let Some(view) = self.world.stale_view(self.node(), object) else { return };
        if view.version() < Xact(version) {
            return;
        }
        match view.all(&key_of(object), Xact(version)) {
            Ok(rows) => {
                let client = self.number;
                self.world.say(WorkerEvent::Read { client, object, version, digest: digest(&rows), asked: true });
            }
            Err(error) => self.world.facts.find(format!("object {object} at {version}: {error}")),
        }
    }

    async fn use_register(&self) {
        let number = self.dice.below(super::registers::REGISTERS);
        self.shared.registers.step(&self.world, self.node(), number, u64::from(self.number)).await;
        sleep(Duration::from_millis(1)).await;
    }
}

fn small_write(rng: &mut ChaCha8Rng) -> Vec<RowSpec> {
    let large = rng.random_ratio(1, LARGE_ONE_IN);
    let mut rows = if large { large_write(rng) } else { random_write(rng) };
    for row in &mut rows {
        row.pad = match row.pad {
            // A large write is one that travels as a blob, however small that is here.
            large if large > 100_000 => INLINE_BYTES_MAX as u32 + 100,
            text => text.min(TEXT_MAX),
        };
    }
    rows
}

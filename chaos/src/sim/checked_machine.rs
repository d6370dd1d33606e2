//! State machine of a group under observation: every applied entry is compared with those applied by others, and with
//! the durable ones at that time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Weak};

use assay_cluster_raft::{BadSnapshot, Export, Machine, MachineError};
use assay_storage_catalog::Catalog;
use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, GroupId, LogPosition, ReplicaId};
use assay_storage_shard::Shard;
use bytes::Bytes;

use super::process::SimProcess;
use super::world::SimWorld;

/// Content of a group's state machine.
#[derive(Clone, Debug)]
pub enum MachineState {
    Catalog(Arc<Catalog>),
    Shard(Arc<Shard>),
}

impl MachineState {
    pub fn machine(&self) -> Arc<dyn Machine> {
        match self {
            MachineState::Catalog(catalog) => Arc::clone(catalog) as _,
            MachineState::Shard(shard) => Arc::clone(shard) as _,
        }
    }

    pub fn digest(&self) -> u128 {
        match self {
            MachineState::Catalog(catalog) => catalog.read().digest(),
            MachineState::Shard(shard) => u128::from(shard.digest().digest),
        }
    }
}

#[derive(Debug)]
pub struct Watched {
    pub world: Weak<SimWorld>,
    pub life: Weak<SimProcess>,
    pub group: GroupId,
    pub replica: ReplicaId,
    pub state: MachineState,
    pub inner: Arc<dyn Machine>,
}

/// Returns a hash of an entry's content, without its position.
fn content(kind: u8, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, bytes).hash(&mut hasher);
    hasher.finish()
}

impl Watched {
    /// Checks an entry before it is applied. Actions of a dead process are ignored.
    fn before(&self, position: LogPosition, content: u64) {
        let (Some(world), Some(life)) = (self.world.upgrade(), self.life.upgrade()) else { return };
        if life.is_dead() {
            return;
        }
        world.trace.say(format_args!("{} {} applies {position} {content:x}", life.node, self.group));
        if world.facts.applied(self.group, position, content, self.replica) {
            world.check_quorum(&life, self.group, position);
        }
    }

    fn after(&self, position: LogPosition) {
        let (Some(world), Some(life)) = (self.world.upgrade(), self.life.upgrade()) else { return };
        if !life.is_dead() {
            world.facts.state(self.group, position.index, self.state.digest(), self.replica);
        }
    }
}

impl Machine for Watched {
    fn applied(&self) -> Applied {
        self.inner.applied()
    }

    fn sealed(&self) -> Applied {
        self.inner.sealed()
    }

    fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError> {
        self.before(position, content(0, entry));
        let outcomes = self.inner.apply(position, entry)?;
        self.after(position);
        Ok(outcomes)
    }

    fn apply_blank(&self, position: LogPosition) -> Result<(), MachineError> {
        self.before(position, content(1, &[]));
        self.inner.apply_blank(position)
    }

    fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), MachineError> {
        self.before(position, content(2, membership));
        self.inner.apply_membership(position, membership)
    }

    fn seal(&self) -> Result<Applied, MachineError> {
        self.inner.seal()
    }

    fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    fn export(&self) -> Result<Export, MachineError> {
        self.inner.export()
    }

    fn check(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), BadSnapshot> {
        self.inner.check(kept, incoming)
    }

    fn install(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), MachineError> {
        let before = self.inner.applied().position;
        self.inner.install(kept, incoming)?;
        let after = self.inner.applied().position;
        if let Some(world) = self.world.upgrade() {
            if after < before {
                world.facts.find(format!("group {}: a snapshot took replica {} back", self.group, self.replica));
            }
            if let Some(position) = after {
                world.trace.say(format_args!("{} {} installs {position}", self.replica, self.group));
                self.after(position);
            }
        }
        Ok(())
    }
}

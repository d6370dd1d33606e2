//! Smallest machine that satisfies M1 to M4: it counts commands in memory.
//!
//! Its `Sealed` part represents the disk, so that a test can lose the memory and restart from the seal.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assay_storage_model::command::Outcome;
use assay_storage_model::entry::Entry;
use assay_storage_model::{Applied, LogPosition, Xact};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{BadSnapshot, Export, Machine, MachineError};

#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryState {
    pub applied: Applied,
    pub commands: Vec<Bytes>,
}

/// Durable state of a [`MemoryMachine`].
pub(crate) type Sealed = Arc<Mutex<MemoryState>>;

/// Interval at which a blocked apply checks whether it may continue.
const BLOCKED_POLL: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(crate) struct MemoryMachine {
    state: Mutex<MemoryState>,
    sealed: Sealed,
    blocks_applies: AtomicBool,
}

impl MemoryMachine {
    /// Starts a machine from the sealed state, as after a crash.
    pub fn open(sealed: Sealed) -> MemoryMachine {
        let state = sealed.lock().clone();
        MemoryMachine { state: Mutex::new(state), sealed, blocks_applies: AtomicBool::new(false) }
    }

    /// Blocks or unblocks every apply, as a lack of file descriptors does.
    pub fn block_applies(&self, blocks: bool) {
        self.blocks_applies.store(blocks, Ordering::SeqCst);
    }

    pub fn commands(&self) -> Vec<Bytes> {
        self.state.lock().commands.clone()
    }
}

impl Machine for MemoryMachine {
    fn applied(&self) -> Applied {
        self.state.lock().applied.clone()
    }

    fn sealed(&self) -> Applied {
        self.sealed.lock().applied.clone()
    }

    fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError> {
        while self.blocks_applies.load(Ordering::SeqCst) {
            thread::sleep(BLOCKED_POLL);
        }
        let mut state = self.state.lock();
        let commands = match Entry::decode(entry).map_err(MachineError::fatal)? {
            Entry::Commands(commands) => commands,
            Entry::Blob { hash, .. } => vec![Bytes::copy_from_slice(&hash)],
        };
        if commands.iter().any(|command| &command[..] == b"panic") {
            panic!("as the test asked");
        }
        if commands.iter().any(|command| &command[..] == b"damage") {
            return Err(MachineError::fatal("as the test asked"));
        }
        state.applied.position = Some(position);
        let outcomes = commands.into_iter().map(|command| {
            state.commands.push(command);
            Outcome::Written { xact: Xact(state.commands.len() as u64) }
        });
        Ok(outcomes.collect())
    }

    fn apply_blank(&self, position: LogPosition) -> Result<(), MachineError> {
        self.state.lock().applied.position = Some(position);
        Ok(())
    }

    fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), MachineError> {
        self.state.lock().applied = Applied { position: Some(position), membership: membership.to_vec() };
        Ok(())
    }

    fn seal(&self) -> Result<Applied, MachineError> {
        let state = self.state.lock();
        *self.sealed.lock() = state.clone();
        Ok(state.applied.clone())
    }

    fn memory_bytes(&self) -> usize {
        let kept = self.sealed.lock().commands.len();
        self.state.lock().commands[kept..].iter().map(Bytes::len).sum()
    }

    fn export(&self) -> Result<Export, MachineError> {
        let sealed = self.sealed.lock();
        let commands = sealed.commands.iter().map(|command| command.to_vec()).collect();
        let kept = MemorySnapshot {
            position: sealed.applied.position,
            membership: sealed.applied.membership.clone(),
            commands,
        };
        let kept = serde_json::to_vec(&kept).map_err(MachineError::fatal)?.into();
        Ok(Export { applied: sealed.applied.clone(), kept, ..Export::default() })
    }

    fn check(&self, kept: &[u8], _incoming: Option<&Path>) -> Result<(), BadSnapshot> {
        let read = serde_json::from_slice::<MemorySnapshot>(kept);
        read.map(drop).map_err(|error| BadSnapshot::Damaged(error.to_string()))
    }

    fn install(&self, kept: &[u8], _incoming: Option<&Path>) -> Result<(), MachineError> {
        let MemorySnapshot { position, membership, commands } =
            serde_json::from_slice(kept).map_err(MachineError::fatal)?;
        let commands = commands.into_iter().map(Bytes::from).collect();
        let state = MemoryState { applied: Applied { position, membership }, commands };
        *self.sealed.lock() = state.clone();
        *self.state.lock() = state;
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct MemorySnapshot {
    position: Option<LogPosition>,
    membership: Vec<u8>,
    commands: Vec<Vec<u8>>,
}

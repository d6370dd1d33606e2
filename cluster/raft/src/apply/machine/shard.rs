//! Adapter of a shard to consensus.
//!
//! A seal that lacked space or file descriptors for a segment has changed nothing and is retried. After a failed change
//! of the keyed store its content is unknown, so the node stops. A damaged file ends only this replica.

use std::path::Path;

use assay_storage_model::command::Outcome;
use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{Applied, LogPosition};
use assay_storage_shard::{Shard, ShardError, SnapshotError};
use bytes::Bytes;

use super::{BadSnapshot, Export, ExportFile, Hold, Machine, MachineError, disk_was_full, files_ran_out};

impl Machine for Shard {
    fn applied(&self) -> Applied {
        Shard::applied(self)
    }

    fn sealed(&self) -> Applied {
        Shard::sealed(self)
    }

    fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError> {
        // A merge reads the sealed row that it changes.
        Shard::apply(self, position, entry).map_err(failed)
    }

    fn apply_blank(&self, position: LogPosition) -> Result<(), MachineError> {
        Shard::apply_blank(self, position);
        Ok(())
    }

    fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), MachineError> {
        Shard::apply_membership(self, position, membership);
        Ok(())
    }

    fn seal(&self) -> Result<Applied, MachineError> {
        Shard::seal(self).map_err(|error| match &error {
            ShardError::Kv(_) => failed(error),
            _ if disk_was_full(&error) || files_ran_out(&error) => MachineError::no_space(error),
            // A seal reads a new segment back.
            _ => failed(error),
        })
    }

    fn memory_bytes(&self) -> usize {
        Shard::memory_bytes(self)
    }

    fn export(&self) -> Result<Export, MachineError> {
        let export = Shard::export(self).map_err(MachineError::fatal)?;
        let file = |file: &assay_storage_shard::ExportFile| ExportFile {
            name: file.name.clone(),
            path: file.path.clone(),
            length: file.length,
        };
        let (applied, kept) = (export.applied.clone(), Bytes::copy_from_slice(&export.kept));
        Ok(Export { applied, kept, files: export.files.iter().map(file).collect(), hold: Hold::of(export) })
    }

    fn check(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), BadSnapshot> {
        Shard::check_snapshot(self, kept, incoming.unwrap_or(Path::new(""))).map_err(|error| match error {
            SnapshotError::Damaged(what) => BadSnapshot::Damaged(what),
            SnapshotError::Newer(what) => BadSnapshot::Unusable(what),
        })
    }

    fn install(&self, kept: &[u8], incoming: Option<&Path>) -> Result<(), MachineError> {
        Shard::install(self, kept, incoming.unwrap_or(Path::new(""))).map_err(MachineError::fatal)
    }
}

fn failed(error: ShardError) -> MachineError {
    let is_damage = error.is_damage() && !sabotage::is(Sabotage::RotInCompactionIsFatal);
    if is_damage { MachineError::damaged(error) } else { MachineError::fatal(error) }
}

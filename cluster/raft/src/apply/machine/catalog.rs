//! Adapter of the catalog to consensus.
//!
//! Its snapshot is one byte string without files. After a failed seal the content of its store is unknown, so the node
//! ends.

use std::path::Path;

use assay_storage_catalog::Catalog;
use assay_storage_model::command::Outcome;
use assay_storage_model::{Applied, LogPosition};
use bytes::Bytes;

use super::{BadSnapshot, Export, Machine, MachineError};

impl Machine for Catalog {
    fn applied(&self) -> Applied {
        Catalog::applied(self)
    }

    fn sealed(&self) -> Applied {
        Catalog::sealed(self)
    }

    fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, MachineError> {
        Catalog::apply(self, position, entry).map_err(MachineError::fatal)
    }

    fn apply_blank(&self, position: LogPosition) -> Result<(), MachineError> {
        Catalog::apply_blank(self, position).map_err(MachineError::fatal)
    }

    fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), MachineError> {
        Catalog::apply_membership(self, position, membership).map_err(MachineError::fatal)
    }

    fn seal(&self) -> Result<Applied, MachineError> {
        Catalog::seal(self).map_err(MachineError::fatal)
    }

    fn memory_bytes(&self) -> usize {
        Catalog::memory_bytes(self)
    }

    fn export(&self) -> Result<Export, MachineError> {
        let export = Catalog::export(self).map_err(MachineError::fatal)?;
        Ok(Export { applied: export.applied, kept: export.bytes, ..Export::default() })
    }

    fn check(&self, kept: &[u8], _incoming: Option<&Path>) -> Result<(), BadSnapshot> {
        // No scrub reads a catalog, so the sender has nothing to examine.
        Catalog::check_export(kept).map_err(|error| BadSnapshot::Unusable(error.to_string()))
    }

    fn install(&self, kept: &[u8], _incoming: Option<&Path>) -> Result<(), MachineError> {
        Catalog::install(self, kept).map(|_| ()).map_err(MachineError::fatal)
    }
}

//! One command at a time: dispatch only; each command is a file.

mod advance;
mod drop_object;
mod raise_floor;
mod write;

use assay_storage_model::command::{Command, Outcome};
use bytes::Bytes;

use crate::core::Core;
use crate::error::ShardError;

/// Applies one command. The answer depends on the state and the command alone.
pub(crate) fn apply(core: &mut Core, bytes: &Bytes) -> Result<Outcome, ShardError> {
    match Command::decode(bytes)? {
        Command::Write(write) => write::apply(core, bytes, &write),
        Command::Advance { to } => Ok(advance::apply(core, to)),
        Command::RaiseFloor { object, floor } => Ok(raise_floor::apply(core, &object, floor)),
        Command::DropObject { object } => Ok(drop_object::apply(core, &object)),
    }
}

//! Dispatch of commands; each command has its own file.

mod advance;
mod drop_object;
mod raise_floor;
mod write;

use assay_storage_model::command::{Action, Command, ConditionalWrite, DecodeError, Outcome, Write};
use assay_storage_model::sabotage::{self, Sabotage};
use bytes::Bytes;

use crate::core::Core;
use crate::error::ShardError;

/// Applies one command. The outcome depends only on the state and the command.
pub(crate) fn apply(core: &mut Core, bytes: &Bytes) -> Result<Outcome, ShardError> {
    let command = match Command::decode(bytes) {
        Ok(command) => command,
        // The meaning of a newer program's command is unknown here. Skipping it would make this replica differ from
        // others.
        Err(newer @ DecodeError::Newer(_)) => return Err(newer.into()),
        Err(bad) => return Ok(Outcome::Refused { row: 0, reason: bad.to_string() }),
    };
    match command {
        Command::Write(write) => {
            let outcome = write::apply(core, bytes, &write, &[])?;
            if sabotage::is(Sabotage::MergeTwice) && write.rows.iter().any(|op| op.action == Action::Merge) {
                write::apply(core, bytes, &Write { request: None, ..write }, &[])?;
            }
            Ok(outcome)
        }
        Command::ConditionalWrite(ConditionalWrite { write, expected }) => write::apply(core, bytes, &write, &expected),
        Command::Advance { to } => Ok(advance::apply(core, to)),
        Command::RaiseFloor { object, floor } => Ok(raise_floor::apply(core, &object, floor)),
        Command::DropObject { object } => Ok(drop_object::apply(core, &object)),
    }
}

//! Command that raises the history floor of an object.
//!
//! History below the floor may be removed from the disk like deleted rows. Later reads below it are refused. Floors
//! only rise.

use assay_storage_model::command::Outcome;
use assay_storage_model::{ObjectKey, Xact};

use crate::core::Core;

pub(super) fn apply(core: &mut Core, object: &ObjectKey, floor: Xact) -> Outcome {
    let mut rose = false;
    core.change_object(object, |record| {
        rose = record.floor < floor;
        record.floor = record.floor.max(floor);
    });
    core.has_remains |= rose;
    Outcome::Done { last: core.last }
}

//! History of an object below the floor may go; reads below it are refused from now on. Floors only rise.

use assay_storage_model::command::Outcome;
use assay_storage_model::{ObjectKey, Xact};

use crate::core::Core;

pub(super) fn apply(core: &mut Core, object: &ObjectKey, floor: Xact) -> Outcome {
    core.change_object(object, |record| record.floor = record.floor.max(floor));
    Outcome::Done { last: core.last }
}

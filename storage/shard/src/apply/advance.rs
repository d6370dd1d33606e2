//! No later write gets an id at or below this one.

use assay_storage_model::Xact;
use assay_storage_model::command::Outcome;

use crate::core::Core;

pub(super) fn apply(core: &mut Core, to: Xact) -> Outcome {
    core.last = core.last.max(to);
    Outcome::Done { last: core.last }
}

//! Command that raises the last id, so that later writes get higher ids.

use assay_storage_model::Xact;
use assay_storage_model::command::Outcome;

use crate::core::Core;

pub(super) fn apply(core: &mut Core, to: Xact) -> Outcome {
    core.last = core.last.max(to);
    Outcome::Done { last: core.last }
}

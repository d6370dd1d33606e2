//! Command that drops an object permanently: reads and writes are refused, and compaction drops its rows.
//!
//! The record stays, so that a late write cannot recreate the object.

use assay_storage_model::ObjectKey;
use assay_storage_model::command::Outcome;

use crate::core::Core;

pub(super) fn apply(core: &mut Core, object: &ObjectKey) -> Outcome {
    core.change_object(object, |record| {
        record.dropped = true;
        record.rows = 0;
        record.comments = 0;
    });
    core.has_remains = true;
    Outcome::Done { last: core.last }
}

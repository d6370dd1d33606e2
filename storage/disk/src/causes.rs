//! What an error comes from, however deep it lies.

use std::error::Error;
use std::io;

use assay_storage_model::sabotage::{self, Sabotage};

/// Whether some cause of `error` is a full disk.
pub fn disk_was_full(error: &(dyn Error + 'static)) -> bool {
    has_cause(error, |error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

/// Whether some cause of `error` is that this process, or the machine, has as many open files as it may have.
pub fn files_ran_out(error: &(dyn Error + 'static)) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    let is_it = |error: &io::Error| matches!(error.raw_os_error(), Some(ENFILE | EMFILE));
    !sabotage::is(Sabotage::FilesRunOutIsFatal) && has_cause(error, is_it)
}

fn has_cause(error: &(dyn Error + 'static), is_it: impl Fn(&io::Error) -> bool) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(&is_it) {
            return true;
        }
        cause = error.source();
    }
    false
}

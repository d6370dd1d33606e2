//! Background threads for large requests, which would otherwise delay the small requests of the same worker.

use actix_web::web;
use assay_storage_threads::{BackgroundWork, lower_thread_priority};

use crate::responses::refusal::Refusal;

/// Upper bound of the bytes of a body that a worker processes on its own thread.
pub const INLINE_BYTES_MAX: usize = 128 << 10;

/// Runs work on the blocking threads of the worker, at low priority.
///
/// Small requests and socket I/O take precedence over it.
pub async fn in_background<T, W>(work: W) -> Result<T, Refusal>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, Refusal> + Send + 'static,
{
    let working = web::block(move || {
        lower_thread_priority(BackgroundWork::Bulk);
        work()
    });
    working.await.map_err(Refusal::internal)?
}

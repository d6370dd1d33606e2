//! Background threads for work on large requests, which would delay the small ones of the same worker.

use actix_web::web;
use assay_storage_threads::{BackgroundWork, lower_thread_priority};

use crate::responses::refusal::Refusal;

/// Upper bound of the bytes of a body that the thread of a worker counts, parses and searches itself. Larger ones are
/// worked on in the background.
pub const INLINE_BYTES_MAX: usize = 128 << 10;

/// Runs work on the blocking threads of the worker, with a low priority: small requests of others, and what reads from
/// sockets, come first.
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

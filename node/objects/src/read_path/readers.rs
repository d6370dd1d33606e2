//! Threads for reads, so that neither actor threads nor callers block on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use crate::ReadError;
use crate::write_path::outcomes::RETRY_AFTER;

/// Name of the threads. It differs from that of actor threads, because a panic in a read ends only the read.
const READERS_THREAD: &str = "assay-read";
/// Lower bound of the number of threads. There are twice as many threads as cores, since most reads wait for the disk.
const READERS_MIN: usize = 4;
/// Upper bound of the reads that wait for a thread. A page takes up to some hundred milliseconds.
const READS_WAITING_MAX: usize = 256;

/// Thread pool for reads.
#[derive(Debug)]
pub(crate) struct Readers {
    /// Runtime, of which only the blocking threads are used.
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Guard that counts one waiting read, including one that gives up.
struct WaitingRead<'a>(&'a AtomicUsize);

impl Drop for WaitingRead<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Readers {
    /// Starts the threads. It is called once, at the start of the program.
    ///
    /// # Panics
    ///
    /// Panics if the system has no resources for a runtime.
    pub fn start() -> Readers {
        let cores = thread::available_parallelism().map_or(READERS_MIN, usize::from);
        let threads = (2 * cores).max(READERS_MIN);
        let mut builder = Builder::new_current_thread();
        let runtime = builder.thread_name(READERS_THREAD).max_blocking_threads(threads).build();
        let runtime = runtime.expect("the system gives a runtime");
        Readers {
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            permits: Arc::new(Semaphore::new(threads)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Runs `work` on one of the threads. The work completes even if the future is dropped.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ReadError> {
        let closed = || ReadError::Unavailable("this node is shutting down".into());
        let permit = {
            let before = self.waiting.fetch_add(1, Ordering::AcqRel);
            let _waiting = WaitingRead(&self.waiting);
            if before >= READS_WAITING_MAX {
                return Err(ReadError::Busy { why: "too many reads are waiting".into(), retry_after: RETRY_AFTER });
            }
            Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?
        };
        let working = self.handle.spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        working.await.map_err(|error| match error.is_panic() {
            true => ReadError::Internal("the read panicked; the log of this node has the details".into()),
            false => closed(),
        })
    }

    pub fn close(&self) {
        self.permits.close();
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close(); // a runtime must not be dropped inside of another one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_read_and_no_other() {
        let readers = Readers::start();
        let failed = readers.run(|| -> u8 { panic!("on purpose") }).await;
        assert!(matches!(failed, Err(ReadError::Internal(_))));
        assert_eq!(readers.run(|| 7).await, Ok(7));
        readers.close();
        assert!(matches!(readers.run(|| 7).await, Err(ReadError::Unavailable(_))));
    }
}

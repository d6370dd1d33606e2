//! Execution of blocking work, on threads or in place. In-place work serves simulations of a cluster on one thread. A
//! pause then represents its duration, so that other tasks run meanwhile.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

#[derive(Clone, Default)]
pub enum Work {
    #[default]
    Threads,
    InPlace(Pause),
}

/// Duration of the next piece of work.
pub type Pause = Arc<dyn Fn() -> Duration + Send + Sync>;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Work::Threads => "Threads",
            Work::InPlace(_) => "InPlace",
        })
    }
}

impl Work {
    /// Runs blocking work. Returns an error if its thread panicked or its runtime is gone.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        match self {
            Work::Threads => spawn_blocking(work).await.map_err(io::Error::other),
            Work::InPlace(pause) => {
                sleep(pause()).await;
                Ok(work())
            }
        }
    }
}

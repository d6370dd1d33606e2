//! Threads of the actors. Each one runs its own actix system, so that callers need none.
//!
//! An object's actor stays on one thread for its life. Prefetches for merges and the encoding of large writes run on
//! the blocking threads of the same runtime. These threads have the same name, because a panic on any of them could
//! break the order of writes.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use actix::{ArbiterHandle, System};
use assay_storage_model::ObjectKey;
use parking_lot::Mutex;
use tokio::runtime::Builder;

/// Prefix of the names of actor threads; a number follows.
pub const OBJECTS_THREAD: &str = "assay-objects";
/// Upper bound of concurrent reads and encodings for each actor thread.
const BLOCKING_THREADS_MAX: usize = 4;

/// Handle that starts actors on the threads without keeping the threads alive.
#[derive(Clone, Debug)]
pub(crate) struct ActorSpawner(Vec<ArbiterHandle>);

impl ActorSpawner {
    /// Runs `start` on the thread of this object.
    pub fn spawn_fn(&self, object: &ObjectKey, start: impl FnOnce() + Send + 'static) {
        let low = object.id.as_u128() as usize;
        let arbiter = &self.0[low % self.0.len()];
        if !arbiter.spawn_fn(start) {
            tracing::error!(%object, "the threads of the actors have ended");
        }
    }
}

#[derive(Debug)]
pub(crate) struct ActorThreads {
    spawner: ActorSpawner,
    systems: Vec<System>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ActorThreads {
    /// Starts the threads. It is called once, at the start of the program.
    ///
    /// # Panics
    ///
    /// Panics if the system has no resources for a thread.
    pub fn start(count: usize) -> ActorThreads {
        let (mut arbiters, mut systems, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count.max(1) {
            let (sender, started) = mpsc::sync_channel(1);
            let name = format!("{OBJECTS_THREAD}-{number}");
            let thread = thread::Builder::new().name(name.clone()).spawn(move || run(name, &sender));
            threads.push(thread.expect("the system gives a thread"));
            let system: System = started.recv().expect("the thread starts its system");
            arbiters.push(system.arbiter().clone());
            systems.push(system);
        }
        ActorThreads { spawner: ActorSpawner(arbiters), systems, threads: Mutex::new(threads) }
    }

    pub fn spawner(&self) -> ActorSpawner {
        self.spawner.clone()
    }

    pub fn stop(&self) {
        self.systems.iter().for_each(System::stop);
    }

    /// Blocks until the threads have ended.
    pub fn join(&self) {
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the actors panicked");
            }
        }
    }
}

impl Drop for ActorThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(name: String, started: &mpsc::SyncSender<System>) {
    let runner = System::with_tokio_rt(|| {
        let mut runtime = Builder::new_current_thread();
        runtime.enable_all().thread_name(name).max_blocking_threads(BLOCKING_THREADS_MAX);
        runtime.build().expect("the system gives a poll handle")
    });
    // The starting thread waits for this message.
    let _ = started.send(System::current());
    if let Err(why) = runner.run() {
        tracing::error!(%why, "a thread of the actors ended with an error");
    }
}

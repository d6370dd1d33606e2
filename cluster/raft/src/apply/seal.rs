//! Threads that seal for all groups of a node.
//!
//! There are two, so that one computes while the other waits for the disk. More would only compete for memory. A group
//! seals at most once at a time.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_storage_model::Applied;
use assay_storage_threads::{BackgroundWork, lower_thread_priority};
use parking_lot::{Condvar, Mutex};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::apply::machine::{Machine, MachineError};
use crate::fatal::SEAL_THREAD;
use crate::work::Work;

/// Number of seals that a node writes concurrently.
pub const SEALS_AT_ONCE: usize = 2;

/// Reason for a missing seal.
#[derive(Debug, Error)]
pub(crate) enum NotSealed {
    /// The threads stopped before the seal began, so nothing was done.
    #[error("this node is stopping")]
    Stopped,
    #[error(transparent)]
    Machine(#[from] MachineError),
}

struct Order {
    machine: Arc<dyn Machine>,
    answer: oneshot::Sender<Result<Applied, NotSealed>>,
}

/// Handle that passes seals to the threads, which end after `stop` or with the last handle.
#[derive(Clone, Debug)]
pub struct SealThreads(Seals);

#[derive(Clone, Debug)]
enum Seals {
    Threads(Arc<Handle>),
    /// The caller runs the seal. For simulations.
    InPlace(Work),
}

#[derive(Debug)]
struct Handle {
    queue: Arc<SealQueue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct SealQueue {
    state: Mutex<SealQueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct SealQueueState {
    /// Waiting seals, at most one for each group.
    orders: VecDeque<Order>,
    closed: bool,
}

impl Order {
    fn give_up(self) {
        // Possibly nobody waits any more.
        let _ = self.answer.send(Err(NotSealed::Stopped));
    }
}

impl fmt::Debug for SealQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealQueue").field("waiting", &self.state.lock().orders.len()).finish_non_exhaustive()
    }
}

impl SealQueue {
    /// Returns the next seal, or `None` once the queue is closed.
    fn next(&self) -> Option<Order> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(order) = state.orders.pop_front() {
                return Some(order);
            }
            self.wake.wait(&mut state);
        }
    }

    fn add(&self, order: Order) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return order.give_up();
        }
        state.orders.push_back(order);
        drop(state);
        self.wake.notify_one();
    }

    fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.orders)
        };
        waiting.into_iter().for_each(Order::give_up);
        self.wake.notify_all();
    }
}

impl SealThreads {
    /// Starts the threads. Each keeps a clone of `hold` until it ends, for resources that must outlive its writes.
    pub fn start(hold: impl Clone + Send + 'static) -> io::Result<SealThreads> {
        let queue = Arc::new(SealQueue::default());
        let handle = Handle { queue: Arc::clone(&queue), threads: Mutex::default() };
        for _ in 0..SEALS_AT_ONCE {
            let (queue, hold) = (Arc::clone(&queue), hold.clone());
            let work = move || {
                lower_thread_priority(BackgroundWork::Bulk);
                while let Some(Order { machine, answer }) = queue.next() {
                    if answer.is_closed() {
                        continue; // its group shut down while it waited
                    }
                    // At shutdown nobody waits any more, but the seal is still valid.
                    let _ = answer.send(machine.seal().map_err(NotSealed::Machine));
                }
                drop(hold);
            };
            let thread = thread::Builder::new().name(SEAL_THREAD.into()).spawn(work)?;
            handle.threads.lock().push(thread);
        }
        Ok(SealThreads(Seals::Threads(Arc::new(handle))))
    }

    /// Creates an executor without threads, for a simulation.
    pub fn in_place(work: Work) -> SealThreads {
        SealThreads(Seals::InPlace(work))
    }

    pub(crate) async fn seal(&self, machine: Arc<dyn Machine>) -> Result<Applied, NotSealed> {
        let threads = match &self.0 {
            Seals::Threads(threads) => threads,
            Seals::InPlace(work) => {
                let sealed = work.run(move || machine.seal()).await.map_err(MachineError::fatal)?;
                return sealed.map_err(NotSealed::Machine);
            }
        };
        let (answer, sealed) = oneshot::channel();
        threads.queue.add(Order { machine, answer });
        sealed.await.map_err(|_| MachineError::fatal("the seal threads are gone"))?
    }

    /// Waits until the running seals have ended, and cancels the waiting ones. Blocking.
    pub fn stop(&self) {
        let Seals::Threads(handle) = &self.0 else { return };
        handle.queue.close();
        let threads = std::mem::take(&mut *handle.threads.lock());
        for thread in threads {
            // A panic of the thread has already ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::apply::machine::memory::{MemoryMachine, Sealed};

    /// Creates machines whose seals block until `release` is dropped.
    fn slow_machines(release: mpsc::Receiver<()>) -> [Arc<MemoryMachine>; SEALS_AT_ONCE] {
        let disks = [(); SEALS_AT_ONCE].map(|()| Sealed::default());
        let machines = disks.clone().map(|disk| Arc::new(MemoryMachine::open(disk)));
        let (ready, is_ready) = mpsc::channel();
        thread::spawn(move || {
            let _held = disks.each_ref().map(|disk| disk.lock());
            ready.send(()).expect("somebody waits");
            release.recv().expect_err("it is dropped");
        });
        is_ready.recv().expect("comes");
        machines
    }

    type Sealing = Pin<Box<dyn Future<Output = Result<Applied, NotSealed>> + Send>>;

    /// Requests a seal, and returns once it is in the queue or was taken from it.
    fn ordered(seals: &SealThreads, machine: Arc<MemoryMachine>) -> Sealing {
        let seals = seals.clone();
        let mut sealing: Sealing = Box::pin(async move { seals.seal(machine).await });
        assert!(sealing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        sealing
    }

    /// Waits until the threads have taken every seal from the queue.
    fn wait_for_all_taken(seals: &SealThreads) {
        let Seals::Threads(handle) = &seals.0 else { panic!("these have threads") };
        let until = Instant::now() + Duration::from_secs(60);
        while !handle.queue.state.lock().orders.is_empty() {
            assert!(Instant::now() < until, "nobody takes the orders");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Regression: a caller considered the end of the threads a failure, so a planned stop ended with an abort.
    #[tokio::test]
    async fn who_waits_when_the_threads_stop_hears_that_they_stop() {
        let seals = SealThreads::start(()).expect("threads");
        let (release, held) = mpsc::channel();
        let sealing = slow_machines(held).map(|machine| ordered(&seals, machine));
        wait_for_all_taken(&seals);
        let waits = ordered(&seals, Arc::new(MemoryMachine::default()));
        let stopping = {
            let seals = seals.clone();
            tokio::task::spawn_blocking(move || seals.stop())
        };
        assert!(matches!(waits.await, Err(NotSealed::Stopped)), "while the others still seal");
        drop(release);
        stopping.await.expect("the threads end");
        for sealed in sealing {
            sealed.await.expect("a seal under way comes to its end");
        }
        let late = seals.seal(Arc::new(MemoryMachine::default())).await;
        assert!(matches!(late, Err(NotSealed::Stopped)), "nobody is left to do it");
    }
}

//! The threads that seal, for all groups of a node. Two of them: while one waits for the disk the other computes; more
//! would only take memory from each other. A group seals at most once at a time.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_storage_model::Applied;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::fatal::SEAL_THREAD;
use crate::machine::{Machine, MachineError};
use crate::work::Work;

/// Seals of one node that are written at the same time.
pub const SEALS_AT_ONCE: usize = 2;

struct Order {
    machine: Arc<dyn Machine>,
    answer: oneshot::Sender<Result<Applied, MachineError>>,
}

/// Hands seals to the threads. They end after `stop`, or with the last of these handles.
#[derive(Clone, Debug)]
pub struct SealThreads(Seals);

#[derive(Clone, Debug)]
enum Seals {
    Threads(Arc<Handle>),
    /// A simulation's: done by whoever asks.
    InPlace(Work),
}

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// At most one for each group.
    orders: VecDeque<Order>,
    closed: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.state.lock().orders.len()).finish_non_exhaustive()
    }
}

impl Queue {
    /// The next order; none once the queue is closed.
    fn next(&self) -> Option<Order> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                state.orders.clear();
                return None;
            }
            if let Some(order) = state.orders.pop_front() {
                return Some(order);
            }
            self.wake.wait(&mut state);
        }
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }
}

impl SealThreads {
    /// Each thread keeps a clone of `hold` until it ends: what must not be let go of while one writes.
    pub fn start(hold: impl Clone + Send + 'static) -> io::Result<SealThreads> {
        let queue = Arc::new(Queue::default());
        let handle = Handle { queue: Arc::clone(&queue), threads: Mutex::default() };
        for _ in 0..SEALS_AT_ONCE {
            let (queue, hold) = (Arc::clone(&queue), hold.clone());
            let work = move || {
                while let Some(Order { machine, answer }) = queue.next() {
                    if answer.is_closed() {
                        continue; // its group shut down while it waited
                    }
                    // Nobody waits any more at shutdown; the seal is good all the same.
                    let _ = answer.send(machine.seal());
                }
                drop(hold);
            };
            let thread = thread::Builder::new().name(SEAL_THREAD.into()).spawn(work)?;
            handle.threads.lock().push(thread);
        }
        Ok(SealThreads(Seals::Threads(Arc::new(handle))))
    }

    /// No threads: for a simulation.
    pub fn in_place(work: Work) -> SealThreads {
        SealThreads(Seals::InPlace(work))
    }

    pub(crate) async fn seal(&self, machine: Arc<dyn Machine>) -> Result<Applied, MachineError> {
        let threads = match &self.0 {
            Seals::Threads(threads) => threads,
            Seals::InPlace(work) => return work.run(move || machine.seal()).await.map_err(MachineError::fatal)?,
        };
        let (answer, sealed) = oneshot::channel();
        threads.queue.state.lock().orders.push_back(Order { machine, answer });
        threads.queue.wake.notify_one();
        sealed.await.map_err(|_| MachineError::fatal("the seal threads are gone"))?
    }

    /// Blocking: until the seals under way have ended. Those that wait are given up.
    pub fn stop(&self) {
        let Seals::Threads(handle) = &self.0 else { return };
        handle.queue.close();
        let threads = std::mem::take(&mut *handle.threads.lock());
        for thread in threads {
            // A panic there has ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
    }
}

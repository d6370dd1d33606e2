//! The thread that seals, one for all groups of a node: a seal is written as fast as the disk takes it, and two at
//! once would only take memory from each other.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_storage_model::Applied;
use tokio::sync::{mpsc, oneshot};

use crate::fatal::SEAL_THREAD;
use crate::machine::{Machine, MachineError};

/// Seals that wait; a group has at most one.
const SEALS_WAITING_MAX: usize = 1024;

struct Order {
    machine: Arc<dyn Machine>,
    answer: oneshot::Sender<Result<Applied, MachineError>>,
}

/// Hands seals to the thread; it ends when the last of these is dropped.
#[derive(Clone, Debug)]
pub struct SealThread {
    orders: mpsc::Sender<Order>,
}

impl SealThread {
    pub fn start() -> io::Result<(SealThread, JoinHandle<()>)> {
        let (sender, mut receiver) = mpsc::channel::<Order>(SEALS_WAITING_MAX);
        let work = move || {
            while let Some(Order { machine, answer }) = receiver.blocking_recv() {
                if answer.is_closed() {
                    continue; // its group shut down while it waited
                }
                // Nobody waits any more at shutdown; the seal is good all the same.
                let _ = answer.send(machine.seal());
            }
        };
        let handle = thread::Builder::new().name(SEAL_THREAD.into()).spawn(work)?;
        Ok((SealThread { orders: sender }, handle))
    }

    pub(crate) async fn seal(&self, machine: Arc<dyn Machine>) -> Result<Applied, MachineError> {
        let (answer, sealed) = oneshot::channel();
        let gone = || MachineError::fatal("the seal thread is gone");
        self.orders.send(Order { machine, answer }).await.map_err(|_| gone())?;
        sealed.await.map_err(|_| gone())?
    }
}

//! Background tasks that continue after responses, so that a shutdown can wait for them.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

/// Background tasks on a runtime that outlives the workers of the HTTP server.
#[derive(Debug)]
pub(crate) struct BackgroundTasks {
    handle: Handle,
    running: watch::Sender<usize>,
}

/// Counts a task until it is dropped.
struct RunningTask(watch::Sender<usize>);

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl BackgroundTasks {
    pub fn new(handle: Handle) -> BackgroundTasks {
        BackgroundTasks { handle, running: watch::Sender::new(0) }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.send_modify(|running| *running += 1);
        let running = RunningTask(self.running.clone());
        self.handle.spawn(async move {
            task.await;
            drop(running);
        });
    }

    /// Waits for at most `within` until no task runs.
    pub async fn settle(&self, within: Duration) {
        let mut running = self.running.subscribe();
        drop(timeout(within, running.wait_for(|running| *running == 0)).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_waits_for_tasks_but_not_for_ever() {
        let tasks = BackgroundTasks::new(Handle::current());
        tasks.spawn(tokio::time::sleep(Duration::from_secs(3)));
        let began = tokio::time::Instant::now();
        tasks.settle(Duration::from_secs(10)).await;
        assert_eq!(began.elapsed().as_secs(), 3);
        tasks.spawn(std::future::pending());
        tasks.settle(Duration::from_secs(10)).await;
        assert_eq!(began.elapsed().as_secs(), 13);
    }
}

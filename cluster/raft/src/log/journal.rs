//! Log of one group with futures instead of callbacks.
//!
//! The first error of any operation is fatal for the node, because the log refuses everything afterwards.

use std::io;

use assay_storage_log::{Completion, GroupLog, GroupState, LogError, LogRecord};
use tokio::sync::oneshot;

use crate::fatal::OnFatal;
use crate::work::Work;

#[derive(Clone, Debug)]
pub(crate) struct Journal {
    log: GroupLog,
    work: Work,
    fatal: OnFatal,
}

impl Journal {
    pub fn new(log: GroupLog, work: Work, fatal: OnFatal) -> Journal {
        Journal { log, work, fatal }
    }

    pub fn state(&self) -> GroupState {
        self.log.state()
    }

    /// Returns an error once something has ended the node.
    pub fn check(&self) -> io::Result<()> {
        if self.fatal.was_reported() { Err(io::Error::other("this node stops")) } else { Ok(()) }
    }

    /// Appends records in the order of the calls, and returns when they are durable.
    pub async fn append(&self, records: Vec<LogRecord>) -> io::Result<()> {
        self.wait(|done| self.log.append(records, done)).await
    }

    pub async fn save_vote(&self, vote: Vec<u8>) -> io::Result<()> {
        self.wait(|done| self.log.save_vote(vote, done)).await
    }

    /// Saves the committed position with the next write. A crash may restore an older position, which only costs a
    /// replay.
    pub fn save_committed(&self, committed: Vec<u8>) {
        self.log.save_committed(committed);
    }

    pub async fn truncate(&self, from: u64) -> io::Result<()> {
        self.wait(|done| self.log.truncate(from, done)).await
    }

    pub async fn purge(&self, up_to: u64, note: Vec<u8>) -> io::Result<()> {
        self.wait(|done| self.log.purge(up_to, note, done)).await
    }

    /// Returns the records of `from..to`, limited to `bytes_max` but at least one if there is one.
    pub async fn read(&self, from: u64, to: u64, bytes_max: usize) -> io::Result<Vec<LogRecord>> {
        let read = self.read_unless_purged(from, to, bytes_max).await?;
        read.ok_or_else(|| self.broken(format_args!("entry {from} was requested but is purged")))
    }

    /// Returns the same records, or `None` if the first of them was purged.
    pub async fn read_unless_purged(&self, from: u64, to: u64, bytes_max: usize) -> io::Result<Option<Vec<LogRecord>>> {
        let log = self.log.clone();
        match self.work.run(move || log.read(from, to, bytes_max)).await? {
            Ok(records) => Ok(Some(records)),
            Err(LogError::Purged { .. }) => Ok(None),
            Err(error) => Err(self.broken(error)),
        }
    }

    /// Reports a log that failed or is damaged as fatal.
    pub fn broken(&self, error: impl std::fmt::Display) -> io::Error {
        let text = error.to_string();
        self.fatal.report(format_args!("the log: {text}"));
        io::Error::other(text)
    }

    async fn wait(&self, start: impl FnOnce(Completion)) -> io::Result<()> {
        let (sender, receiver) = oneshot::channel();
        // At shutdown possibly nobody waits for the answer.
        start(Box::new(move |result| drop(sender.send(result))));
        match receiver.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.broken(error)),
            Err(_) => Err(self.broken("its writer has ended")),
        }
    }
}

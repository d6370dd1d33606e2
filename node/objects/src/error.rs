//! Errors of writes and reads. Each variant is one kind of response; the HTTP layer chooses its status.

use std::time::Duration;

use assay_storage_model::event::RowError;
use assay_storage_model::{NotWritten, ObjectKey, Xact};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::write_path::outcomes::RETRY_AFTER;

/// Error of a write. Every variant but `Unknown` guarantees that nothing of the request is written, now or later.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// 400. `write` is the index of the write in the call, and `error.row` the index among its rows.
    #[error("{error}")]
    Row { write: usize, error: RowError },
    /// 403, with the same indexes.
    #[error("{error}")]
    Forbidden { write: usize, error: RowError },
    /// 413.
    #[error("{why}")]
    TooLarge { write: usize, why: String },
    /// 404.
    #[error("{object} was deleted")]
    Gone { object: ObjectKey },
    /// 409.
    #[error(
        "this idempotency key was already used for a request with different content, which got the id {xact}; use a \
         new key"
    )]
    KeyReused { xact: Xact },
    /// 429 if a queue is full, 507 if a disk is, else 503. Nothing was written.
    #[error("{}", text_of(why, *retry_after))]
    NotWritten { why: NotWritten, retry_after: Duration },
    /// 503. The writes to `written` are written. The others are not written, or their outcome is unknown.
    #[error("it is unknown whether all of the request was written; a retry is safe: {why}")]
    Unknown { why: String, written: Vec<ObjectKey> },
}

fn text_of(why: &NotWritten, retry_after: Duration) -> String {
    match why {
        NotWritten::Busy(_) => format!("{why}; try again in {} s", retry_after.as_secs()),
        NotWritten::NoSpace(_) => why.to_string(),
        why => format!("writes are unavailable at the moment: {why}"),
    }
}

impl From<NotWritten> for WriteError {
    fn from(why: NotWritten) -> WriteError {
        WriteError::NotWritten { why, retry_after: RETRY_AFTER }
    }
}

impl WriteError {
    /// Returns the error of a write that certainly failed for this reason.
    pub(crate) fn unavailable(why: String) -> WriteError {
        NotWritten::Failed(why).into()
    }

    /// Returns whether a retry of the same write may succeed soon.
    pub fn may_pass(&self) -> bool {
        match self {
            WriteError::NotWritten { why: NotWritten::NoSpace(_), .. } => false,
            WriteError::NotWritten { .. } | WriteError::Unknown { .. } => true,
            WriteError::Row { .. }
            | WriteError::Forbidden { .. }
            | WriteError::TooLarge { .. }
            | WriteError::Gone { .. }
            | WriteError::KeyReused { .. } => false,
        }
    }

    /// Returns the error of a write that depends on rows that could not be read.
    pub(crate) fn rows_unread(object: ObjectKey, why: ReadError) -> WriteError {
        match why {
            ReadError::Gone { .. } => WriteError::Gone { object },
            ReadError::Busy { why, retry_after } => {
                WriteError::NotWritten { why: NotWritten::Busy(why.into()), retry_after }
            }
            ReadError::NoSpace(why) => NotWritten::NoSpace(why).into(),
            ReadError::BadRequest(why) => {
                WriteError::TooLarge { write: 0, why: format!("rows that it depends on: {why}") }
            }
            other => WriteError::unavailable(format!("rows that the write depends on could not be read: {other}")),
        }
    }
}

/// Error of a read.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum ReadError {
    /// 400.
    #[error("{0}")]
    BadRequest(String),
    /// 404.
    #[error("{object} was deleted")]
    Gone { object: ObjectKey },
    /// 410.
    #[error("version {asked} is older than the stored history; the oldest readable version is {floor}")]
    Past { asked: Xact, floor: Xact },
    /// 429.
    #[error("busy: {why}; try again in {} s", retry_after.as_secs())]
    Busy { why: String, retry_after: Duration },
    /// 507: a read at a version ahead of the last write must write to the log, and the disk is full.
    #[error("the disk has no room: {0}")]
    NoSpace(String),
    /// 503.
    #[error("reads are unavailable at the moment: {0}")]
    Unavailable(String),
    /// 500: the files of the replica are damaged, and no other replica has the rows.
    #[error("{0}")]
    Damaged(String),
    /// 500.
    #[error("{0}")]
    Internal(String),
}

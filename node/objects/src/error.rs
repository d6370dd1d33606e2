//! Why a write or a read was not done. Each variant is one kind of answer; its status is chosen at the rim.

use std::time::Duration;

use assay_storage_model::event::RowError;
use assay_storage_model::{NotWritten, ObjectKey, Xact};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::outcomes::RETRY_AFTER;

/// Every variant but `Unknown` is a promise: nothing of the request was written, now or later.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// 400. `write` is the place among the writes of the call, `error.row` the place among its rows.
    #[error("{error}")]
    Row { write: usize, error: RowError },
    /// 413.
    #[error("{why}")]
    TooLarge { write: usize, why: String },
    /// 404.
    #[error("{object} was deleted")]
    Gone { object: ObjectKey },
    /// 409.
    #[error("this idempotency key was used before for a request with other content, which got the id {xact}")]
    KeyReused { xact: Xact },
    /// 429 if a queue is full, 507 if a disk is, else 503. Nothing was written.
    #[error("{}", text_of(why, *retry_after))]
    NotWritten { why: NotWritten, retry_after: Duration },
    /// 503. What `written` names is written; of the others it is not known, or they were not.
    #[error("it is not known whether all of this was written, sending it again is safe: {why}")]
    Unknown { why: String, written: Vec<ObjectKey> },
}

fn text_of(why: &NotWritten, retry_after: Duration) -> String {
    match why {
        NotWritten::Busy(_) => format!("{why}; try again in {} s", retry_after.as_secs()),
        NotWritten::NoSpace(_) => why.to_string(),
        why => format!("writes are not taken at the moment: {why}"),
    }
}

impl From<NotWritten> for WriteError {
    fn from(why: NotWritten) -> WriteError {
        WriteError::NotWritten { why, retry_after: RETRY_AFTER }
    }
}

impl WriteError {
    /// Nothing was written, for this reason.
    pub(crate) fn unavailable(why: String) -> WriteError {
        NotWritten::Failed(why).into()
    }

    /// Whether the same write may succeed if it is sent again soon.
    pub fn may_pass(&self) -> bool {
        match self {
            WriteError::NotWritten { why: NotWritten::NoSpace(_), .. } => false,
            WriteError::NotWritten { .. } | WriteError::Unknown { .. } => true,
            WriteError::Row { .. }
            | WriteError::TooLarge { .. }
            | WriteError::Gone { .. }
            | WriteError::KeyReused { .. } => false,
        }
    }

    /// The parents that rows name by `_parent_id` could not be read; nothing was written.
    pub(crate) fn parents_unread(object: ObjectKey, why: ReadError) -> WriteError {
        match why {
            ReadError::Gone { .. } => WriteError::Gone { object },
            ReadError::Busy { why, retry_after } => {
                WriteError::NotWritten { why: NotWritten::Busy(why.into()), retry_after }
            }
            ReadError::NoSpace(why) => NotWritten::NoSpace(why).into(),
            ReadError::BadRequest(why) => WriteError::TooLarge { write: 0, why: format!("`_parent_id`: {why}") },
            other => WriteError::unavailable(format!("the rows that `_parent_id` names could not be read: {other}")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum ReadError {
    /// 400.
    #[error("{0}")]
    BadRequest(String),
    /// 404.
    #[error("{object} was deleted")]
    Gone { object: ObjectKey },
    /// 410.
    #[error("version {asked} is older than what is kept; the oldest version that can be read is {floor}")]
    Past { asked: Xact, floor: Xact },
    /// 429.
    #[error("busy: {why}; try again in {} s", retry_after.as_secs())]
    Busy { why: String, retry_after: Duration },
    /// 507: reading at a version ahead of the last write has to be noted, and there is no room to do it.
    #[error("the disk has no room: {0}")]
    NoSpace(String),
    /// 503.
    #[error("reads are not answered at the moment: {0}")]
    Unavailable(String),
    /// 500, where nobody else has the rows: the files of the replica that was read are damaged.
    #[error("{0}")]
    Damaged(String),
    /// 500.
    #[error("{0}")]
    Internal(String),
}

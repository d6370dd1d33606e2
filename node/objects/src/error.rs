//! Why a write or a read was not done. Each variant is one kind of answer; its status is chosen at the rim.

use std::time::Duration;

use assay_storage_model::event::RowError;
use assay_storage_model::{ObjectKey, Xact};
use serde::{Deserialize, Serialize};
use thiserror::Error;

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
    /// 429.
    #[error("busy: {why}; try again in {} s", retry_after.as_secs())]
    Busy { why: String, retry_after: Duration },
    /// 507.
    #[error("the disk has no room for writes: {0}")]
    NoSpace(String),
    /// 503, and nothing was written.
    #[error("writes are not taken at the moment: {0}")]
    Unavailable(String),
    /// 503. What `written` names is written; of the others it is not known, or they were not.
    #[error("it is not known whether all of this was written, sending it again is safe: {why}")]
    Unknown { why: String, written: Vec<ObjectKey> },
}

impl WriteError {
    /// The parents that rows name by `_parent_id` could not be read; nothing was written.
    pub(crate) fn parents_unread(object: ObjectKey, why: ReadError) -> WriteError {
        match why {
            ReadError::Gone { .. } => WriteError::Gone { object },
            ReadError::Busy { why, retry_after } => WriteError::Busy { why, retry_after },
            ReadError::NoSpace(why) => WriteError::NoSpace(why),
            ReadError::BadRequest(why) => WriteError::TooLarge { write: 0, why: format!("`_parent_id`: {why}") },
            other => WriteError::Unavailable(format!("the rows that `_parent_id` names could not be read: {other}")),
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

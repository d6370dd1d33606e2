//! Errors of queries. Each variant is one kind of response; the HTTP layer chooses its status.

use assay_cluster::ViewError;
use assay_node_btql::QueryError;
use assay_node_engine::EngineError;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_shard::ShardError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum AskError {
    /// 400.
    #[error("{0}")]
    BadRequest(String),
    /// 404.
    #[error("{object} was deleted")]
    Gone { object: ObjectKey },
    /// 409: a user cancelled the query. It is never sent between nodes.
    #[error("the query was cancelled")]
    Cancelled,
    /// 410.
    #[error("version {asked} is older than the stored history; the oldest readable version is {floor}")]
    Past { asked: Xact, floor: Xact },
    /// 413: the query needs more memory than one query may have.
    #[error("{0}")]
    TooMuch(String),
    /// 429.
    #[error("busy: {0}")]
    Busy(String),
    /// 429, after a wait until the deadline. It is never sent between nodes.
    #[error("busy: {why}")]
    Refused { why: String, retry_after_seconds: u64 },
    /// 501.
    #[error("{0}")]
    NotServed(String),
    /// 503.
    #[error("{0}")]
    Unavailable(String),
    /// 504.
    #[error("{0}")]
    TooLate(String),
    /// 507.
    #[error("{0}")]
    NoSpace(String),
    /// Files of a replica are damaged. Another replica may have the rows.
    #[error("{0}")]
    Damaged(String),
    /// 500.
    #[error("{0}")]
    Internal(String),
}

impl From<QueryError> for AskError {
    fn from(why: QueryError) -> AskError {
        AskError::BadRequest(why.to_string())
    }
}

impl From<ViewError> for AskError {
    fn from(why: ViewError) -> AskError {
        match why {
            ViewError::Future { .. } => AskError::BadRequest(why.to_string()),
            ViewError::Busy(why) => AskError::Busy(why),
            ViewError::NoSpace(why) => AskError::NoSpace(why),
            ViewError::Unavailable { .. } => AskError::Unavailable(why.to_string()),
        }
    }
}

impl From<EngineError> for AskError {
    fn from(why: EngineError) -> AskError {
        match why {
            EngineError::Shard(why) => why.into(),
            EngineError::Crowded(_) => AskError::Busy(why.to_string()),
            EngineError::TooLate => AskError::TooLate(why.to_string()),
            EngineError::Stopped => AskError::Unavailable(why.to_string()),
            EngineError::Memory(_) | EngineError::Groups(_) => AskError::TooMuch(format!(
                "{why}: narrow it down with a filter on created or root_span_id, or group by less"
            )),
            EngineError::PivotedColumns(_) | EngineError::PivotedTwice(_) | EngineError::Refused(_) => {
                AskError::BadRequest(why.to_string())
            }
            EngineError::LongColumn | EngineError::Expression(assay_node_expressions::Error::TooLong) => {
                AskError::TooMuch(why.to_string())
            }
            EngineError::Expression(_) | EngineError::Damaged => AskError::Internal(why.to_string()),
        }
    }
}

impl From<ShardError> for AskError {
    fn from(why: ShardError) -> AskError {
        match why {
            // The caller adds the object to the error.
            ShardError::ObjectGone => AskError::BadRequest("an object of this query was deleted".into()),
            ShardError::Past { asked, floor } => AskError::Past { asked, floor },
            ShardError::NotYet { .. } => AskError::Unavailable(why.to_string()),
            other => AskError::Damaged(other.to_string()),
        }
    }
}

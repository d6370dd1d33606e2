//! Views of shards with a replica here. A reader sees everything acknowledged before its request.

use std::sync::Arc;

use assay_storage_model::command::Command;
use assay_storage_model::{GroupId, NotWritten, ShardId, WriteFailure, Xact};
use assay_storage_shard::{Shard, View};
use bytes::Bytes;
use thiserror::Error;

use crate::Cluster;

/// Maximum time by which a version may be ahead of the clock. The shard's ids then start above it.
const AHEAD_SECONDS_MAX: u64 = 10;

/// Reason for a missing view.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ViewError {
    #[error("version {asked} lies in the future; the last one here is {last}")]
    Future { asked: Xact, last: Xact },
    #[error("{0}")]
    Busy(String),
    /// A version ahead of the last write must be recorded, and there is no space for it.
    #[error("{0}")]
    NoSpace(String),
    /// Another node may serve the view, or this one later.
    #[error("shard {shard}: {why}")]
    Unavailable { shard: ShardId, why: String },
}

impl Cluster {
    /// Returns a view that includes version `at`, if one is given.
    ///
    /// If the version is ahead of the last write, the shard first advances to it, so that the result for it can never
    /// change. With `stale`, the view needs no proof that nothing newer was acknowledged.
    pub async fn view(
        &self,
        shard: ShardId,
        at: Option<Xact>,
        now_micros: i64,
        stale: bool,
    ) -> Result<View, ViewError> {
        let unavailable = |why: String| ViewError::Unavailable { shard, why };
        let found = self.shard(shard).ok_or_else(|| unavailable("it is not here".into()))?;
        if !stale {
            self.fence(GroupId::of_shard(shard)).await.map_err(|why| unavailable(why.to_string()))?;
        }
        if let Some(at) = at.filter(|at| *at > found.last()) {
            self.advance(shard, &found, at, now_micros).await?;
        }
        Ok(found.view())
    }

    /// Makes every later write of the shard get an id above `to`.
    async fn advance(&self, shard: ShardId, found: &Arc<Shard>, to: Xact, now_micros: i64) -> Result<(), ViewError> {
        let now_seconds = u64::try_from(now_micros).unwrap_or(0) / 1_000_000;
        if u64::from(to.seconds()) > now_seconds + AHEAD_SECONDS_MAX || to > Xact::MAX {
            return Err(ViewError::Future { asked: to, last: found.last() });
        }
        match self.write(shard, Bytes::from(Command::Advance { to }.encode())).await {
            Ok(_) => Ok(()),
            Err(WriteFailure::NotWritten(NotWritten::Busy(why))) => Err(ViewError::Busy(why.into_owned())),
            Err(WriteFailure::NotWritten(NotWritten::NoSpace(why))) => Err(ViewError::NoSpace(why)),
            Err(why) => Err(ViewError::Unavailable { shard, why: why.to_string() }),
        }
    }
}

//! Why a node could not start, and what to do about it.

use std::io;

use assay_cluster_raft::{FenceError, ProposeError, StartError};
use assay_storage_catalog::CatalogError;
use assay_storage_log::LogError;
use assay_storage_model::ShardId;
use assay_storage_shard::ShardError;
use thiserror::Error;

use crate::home::HomeError;

#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{found} shards: a cluster has between {min} and {max}")]
    Shards { found: u16, min: usize, max: usize },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the catalog: {0}")]
    Catalog(#[from] CatalogError),
    #[error("shard {shard}: {source}")]
    Shard { shard: ShardId, source: ShardError },
    #[error(transparent)]
    Group(#[from] StartError),
    #[error("a group did not come to lead: {0}")]
    Lead(#[from] FenceError),
    #[error("the shard map could not be written: {0}")]
    Map(#[from] ProposeError),
    #[error("the catalog has another shard map than this directory: {0}")]
    OtherMap(String),
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

impl OpenError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
        let doing = doing.into();
        move |source| OpenError::Io { doing, source }
    }
}

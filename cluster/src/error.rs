//! Errors of a start. Each message names the action to take.

use std::io;

use assay_cluster_directory::data_dir::HomeError;
use assay_cluster_raft::{FenceError, StartError};
use assay_cluster_transport::TransportError;
use assay_storage_catalog::CatalogError;
use assay_storage_log::LogError;
use assay_storage_model::{GroupId, ShardId, WriteFailure};
use assay_storage_shard::ShardError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{found} shards: a cluster has between {min} and {max}")]
    Shards { found: u16, min: usize, max: usize },
    #[error("this directory names no replica of the catalog: restore it from a backup, or let this node join again")]
    NoCatalog,
    #[error("this node is the only one of its cluster: there is no lost majority to recover from")]
    Alone,
    #[error("this node's replica of the catalog is still empty: recover on another node")]
    NothingOfCatalog,
    #[error("this node has no complete replica of shards {}: recover on a node that has them, or restore from backups", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    NotAllHere(Vec<ShardId>),
    #[error("cannot finish the recovery: {0}")]
    Recovery(String),
    #[error("the catalog has no certificate authority for this cluster")]
    NoAuthority,
    #[error("cannot use the key of the cluster's certificate authority: {0}")]
    Keys(String),
    #[error("tls/ lacks authority.pem, node.key or node.pem: restore them, or restart this node to make new ones")]
    NoIdentity,
    #[error(
        "this node has no certificate that other nodes accept, and cannot make one. Give it the master key \
         (secrets.master_key_file) if it has none, or let it join again with an empty directory"
    )]
    NoCertificate,
    #[error(transparent)]
    Network(#[from] TransportError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the catalog failed: {0}")]
    Catalog(#[from] CatalogError),
    #[error(
        "shard {shard} cannot be opened, and nothing was changed: {source}. Fix the cause (limit of open files, \
         permissions, disk space, version of this program), then start again"
    )]
    Shard { shard: ShardId, source: ShardError },
    #[error(
        "shard {shard} is damaged, and no other node is known to have it: {source}. Nothing was changed: restore this \
         node's directory from a backup, or run `assay doctor` for details"
    )]
    DamagedAlone { shard: ShardId, source: ShardError },
    #[error(
        "log/ was not last used by this data directory: it is of another time. No other node has the entries of group \
         {0} that it may lack. Restore the whole data directory from one backup"
    )]
    LogOfOtherTime(GroupId),
    #[error(transparent)]
    Group(#[from] StartError),
    #[error("a group could not elect a leader: {0}")]
    Lead(#[from] FenceError),
    #[error("the shard map could not be written: {0}")]
    Map(#[from] WriteFailure),
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

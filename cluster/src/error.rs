//! Errors of a start, and what to do about them.

use std::io;

use assay_cluster_raft::{FenceError, StartError};
use assay_cluster_transport::TransportError;
use assay_storage_catalog::CatalogError;
use assay_storage_log::LogError;
use assay_storage_model::{GroupId, ShardId, WriteFailure};
use assay_storage_shard::ShardError;
use thiserror::Error;

use crate::startup::data_dir::HomeError;

#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{found} shards: a cluster has between {min} and {max}")]
    Shards { found: u16, min: usize, max: usize },
    #[error("this directory names no replica of the catalog: restore it from a backup, or let this node join anew")]
    NoCatalog,
    #[error("this node is alone: there is no majority that it could have lost, and nothing to recover from")]
    Alone,
    #[error("nothing of the catalog is on this node, which was to be filled: recover on another one")]
    NothingOfCatalog,
    #[error("nothing whole of shards {} is on this node: recover on one that has them, or restore from backups", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    NotAllHere(Vec<ShardId>),
    #[error("finishing a recovery: {0}")]
    Recovery(String),
    #[error("the catalog has no certificate authority for this cluster")]
    NoAuthority,
    #[error("the key of the cluster's certificate authority: {0}")]
    Keys(String),
    #[error(
        "tls/ lacks authority.pem, node.key or node.pem: put them back, or restart this node, which makes them anew"
    )]
    NoIdentity,
    #[error(
        "this node has no certificate that others accept any more, and cannot make one: give it the master key \
         (secrets.master_key_file) if it has none, or let it join anew, with an empty directory"
    )]
    NoCertificate,
    #[error(transparent)]
    Network(#[from] TransportError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the catalog: {0}")]
    Catalog(#[from] CatalogError),
    #[error(
        "shard {shard} does not open, and nothing of it was changed: {source}. Mend what keeps it from opening (the limit \
         of open files, permissions, room on the disk, this program's version), then start again"
    )]
    Shard { shard: ShardId, source: ShardError },
    #[error(
        "shard {shard} is damaged, and no other node has it as far as this one knows: {source}. Nothing was changed: \
         restore this node's directory from a backup, or run `assay doctor` to see more"
    )]
    DamagedAlone { shard: ShardId, source: ShardError },
    #[error(
        "log/ was not last used by this data directory: it is of another time, and no other node has what it may lack of \
         group {0}. Put the whole data directory back from one backup"
    )]
    LogOfOtherTime(GroupId),
    #[error(transparent)]
    Group(#[from] StartError),
    #[error("a group did not come to lead: {0}")]
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

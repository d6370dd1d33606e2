//! `assay cluster init`: founds a directory. A directory that was founded before must agree with the arguments.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use assay_cluster::{
    Cluster, ClusterConfig, ClusterStatus, Format, NodeFile, PeerConfig, REPLICAS_DEFAULT, SHARDS_DEFAULT, read_format,
    read_node,
};
use assay_storage_disk::RealDisk;
use serde_json::{Value, json};

use crate::admin_api::requests::{ClusterRequest, SocketReply, SocketRequest};
use crate::admin_api::socket::ask;

/// Arguments of `init`. A number that is not given is the default, or that of the founded directory.
#[derive(Clone, Copy, Debug)]
pub struct InitRequest<'a> {
    pub peer_address: &'a str,
    pub shards: Option<u16>,
    pub replicas: Option<u16>,
}

/// Founds a directory, or reports that it was founded before.
pub fn init(data_dir: &Path, wanted: InitRequest<'_>) -> anyhow::Result<Value> {
    let peer = PeerConfig::new(wanted.peer_address, None).map_err(anyhow::Error::msg)?;
    let format = read_format(&RealDisk, data_dir)?;
    if let Some(format) = format {
        check_shards(data_dir, format, wanted)?;
    }
    if let Some(format) = format.filter(|format| format.founded) {
        let node = read_node(Arc::new(RealDisk), data_dir)?;
        check_address(data_dir, &node, wanted)?;
        check_replicas(data_dir, wanted)?;
        return Ok(founded(format, &node, true));
    }
    open(ClusterConfig {
        data_dir: data_dir.to_owned(),
        shards: wanted.shards.unwrap_or(SHARDS_DEFAULT),
        replicas: wanted.replicas.unwrap_or(REPLICAS_DEFAULT),
        peer: Some(peer),
        ..ClusterConfig::default()
    })?;
    let format = read_format(&RealDisk, data_dir)?.context("the directory that was just founded has no format file")?;
    Ok(founded(format, &read_node(Arc::new(RealDisk), data_dir)?, false))
}

fn founded(format: Format, node: &NodeFile, before: bool) -> Value {
    json!({"cluster": format.cluster, "node": node.node, "before": before})
}

fn check_shards(data_dir: &Path, format: Format, wanted: InitRequest<'_>) -> anyhow::Result<()> {
    let (dir, stands) = (data_dir.display(), format.shards);
    anyhow::ensure!(
        wanted.shards.is_none_or(|shards| shards == stands),
        "{dir} was founded with {stands} shards, which cannot change: pass --shards {stands}, leave --shards out, or \
         use an empty directory"
    );
    Ok(())
}

fn check_address(data_dir: &Path, node: &NodeFile, wanted: InitRequest<'_>) -> anyhow::Result<()> {
    let (dir, address, number) = (data_dir.display(), wanted.peer_address, node.node);
    match node.address.as_deref() {
        Some(stands) if stands == address => Ok(()),
        Some(stands) => anyhow::bail!(
            "{dir} was founded before: it is node {number}, at {stands} and not at {address}. Pass --peer-address \
             {stands}. If it moved, start it with `assay serve --peer-address {address}`, which stores the new \
             address"
        ),
        None => anyhow::bail!(
            "{dir} was founded before: it is node {number}, and has no address for other nodes. It needs no init: \
             start it with `assay serve --peer-address {address}`, which stores the address"
        ),
    }
}

fn check_replicas(data_dir: &Path, wanted: InitRequest<'_>) -> anyhow::Result<()> {
    let Some(replicas) = wanted.replicas else { return Ok(()) };
    let dir = data_dir.display();
    match status(data_dir)?.replicas {
        Some(stands) if stands == replicas => Ok(()),
        Some(stands) => anyhow::bail!(
            "{dir} was founded before, in a cluster with {stands} replicas of each shard, not {replicas}. Pass \
             --replicas {stands}, leave --replicas out, or use an empty directory"
        ),
        None => anyhow::bail!(
            "{dir} was founded before and does not know the number of replicas of its cluster. Leave --replicas out, \
             or start it and other nodes of its cluster first"
        ),
    }
}

/// Returns the status from the node that runs there, or from the directory itself where none runs.
fn status(data_dir: &Path) -> anyhow::Result<ClusterStatus> {
    match ask(data_dir, &SocketRequest::Cluster(ClusterRequest::Status))? {
        Some(SocketReply::Done(status)) => Ok(serde_json::from_value(status)?),
        Some(SocketReply::Refused(why)) => anyhow::bail!(why),
        None => open(ClusterConfig { data_dir: data_dir.to_owned(), ..ClusterConfig::default() }),
    }
}

/// Opens a node and closes it again.
fn open(config: ClusterConfig) -> anyhow::Result<ClusterStatus> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let cluster = Cluster::open(config).await?;
        let status = cluster.status().await;
        cluster.shutdown().await?;
        Ok(status)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address on a loopback host that no other test process uses. Process ids have 22 bits at most.
    fn own_address() -> String {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        format!("127.{}.{middle}.{low}:7400", 64 + high)
    }

    fn refused(data_dir: &Path, wanted: InitRequest<'_>, parts: [&str; 2]) {
        let why = init(data_dir, wanted).unwrap_err().to_string();
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }

    #[test]
    fn a_directory_is_founded_once_and_never_said_to_be_what_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, peer_address) = (dir.path().join("data"), own_address());
        let wanted = InitRequest { peer_address: &peer_address, shards: Some(4), replicas: Some(2) };
        let made = init(&dir, wanted).unwrap();
        assert_eq!((&made["node"], &made["before"]), (&json!(1), &json!(false)));
        let less = InitRequest { shards: None, replicas: None, ..wanted };
        for again in [wanted, less] {
            let found = init(&dir, again).unwrap();
            assert_eq!((&found["cluster"], &found["before"]), (&made["cluster"], &json!(true)), "{again:?}");
        }
        refused(&dir, InitRequest { shards: Some(8), ..wanted }, ["with 4 shards", "--shards 4"]);
        refused(&dir, InitRequest { replicas: Some(3), ..wanted }, ["with 2 replicas", "--replicas 2"]);
        let other = InitRequest { peer_address: "127.0.0.1:1", ..wanted };
        refused(&dir, other, [&format!("--peer-address {peer_address}"), "serve --peer-address 127.0.0.1:1"]);
    }

    /// What was said of the address was dropped, and the success believed.
    #[test]
    fn what_serve_founded_is_told_how_to_get_an_address() {
        let dir = tempfile::tempdir().unwrap();
        open(ClusterConfig { data_dir: dir.path().to_owned(), shards: 4, ..ClusterConfig::default() }).unwrap();
        let wanted = InitRequest { peer_address: "10.0.0.1:7400", shards: None, replicas: None };
        refused(dir.path(), wanted, ["has no address", "serve --peer-address 10.0.0.1:7400"]);
    }
}

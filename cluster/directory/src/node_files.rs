//! Files that a node keeps beside its data: its identity, the last addresses of its peers, and its replicas.
//!
//! ```text
//! NODE        node 3, address 10.0.0.3:7400      none in a directory that was founded here: that is node 1
//! PEERS       peer 1 10.0.0.1:7400 ...           a copy of the catalog's, for a start without it
//! REPLICAS    replica <group> <replica> <directory> <kept | leaving | lost> ...
//! tls/        authority.pem, node.pem, node.key
//! ```
//! A replica is in `REPLICAS` before its directory is made, and until nothing of it is left: a `leaving` one is removed
//! by the next start. A damaged one is lost: its directory is set aside and its number never used again; the planner
//! assigns the group another one here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_cluster_transport::Identity;
use assay_storage_disk::SharedDisk;
use assay_storage_model::catalog::ShardMap;
use assay_storage_model::{GroupId, NodeId, ReplicaId, ShardId};

use crate::checksummed_file;
use crate::data_dir::HomeError;

/// Number of the node that founds a cluster.
pub const FOUNDER: NodeId = NodeId(1);

/// Identity of a node, as its directory has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFile {
    pub node: NodeId,
    /// Address at which other nodes reach it.
    pub address: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptState {
    Kept,
    Leaving,
    /// Without data: it left, or was damaged and discarded. Its number is not used again here.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReplica {
    pub group: GroupId,
    pub replica: ReplicaId,
    /// Below the data directory.
    pub dir: String,
    pub state: KeptState,
}

/// The files of one data directory.
#[derive(Clone, Debug)]
pub struct NodeFiles {
    pub disk: SharedDisk,
    pub dir: PathBuf,
}

/// Reads the identity of the node that a directory belongs to. Needs no lock, since the file is replaced whole.
pub fn read_node(disk: SharedDisk, dir: &Path) -> Result<NodeFile, HomeError> {
    NodeFiles { disk, dir: dir.to_owned() }.node()
}

/// The groups whose replicas a directory has to have, and where below it; none in a directory of before there were several
/// nodes. Needs no lock.
pub fn read_replicas(disk: SharedDisk, dir: &Path) -> Result<Option<Vec<(GroupId, String)>>, HomeError> {
    let kept = NodeFiles { disk, dir: dir.to_owned() }.replicas()?;
    let there = |replicas: Vec<KeptReplica>| {
        let kept = replicas.into_iter().filter(|replica| replica.state == KeptState::Kept);
        kept.map(|replica| (replica.group, replica.dir)).collect()
    };
    Ok(kept.map(there))
}

impl NodeFiles {
    fn damaged(&self, file: &str, what: &str) -> HomeError {
        HomeError::Damaged { path: self.dir.join(file), what: what.to_owned() }
    }

    pub fn node(&self) -> Result<NodeFile, HomeError> {
        let Some(lines) = checksummed_file::read(&*self.disk, &self.dir.join("NODE"), "node")? else {
            return Ok(NodeFile { node: FOUNDER, address: None });
        };
        let value = |name: &str| lines.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        let node =
            value("node").and_then(|text| text.parse().ok()).ok_or_else(|| self.damaged("NODE", "it names no node"))?;
        Ok(NodeFile { node: NodeId(node), address: value("address") })
    }

    pub fn set_node(&self, file: &NodeFile) -> Result<(), HomeError> {
        let mut lines = vec![("node".to_owned(), file.node.to_string())];
        lines.extend(file.address.iter().map(|address| ("address".to_owned(), address.clone())));
        checksummed_file::write(&*self.disk, &self.dir.join("NODE"), "node", &lines)
    }

    pub fn peers(&self) -> Result<BTreeMap<NodeId, String>, HomeError> {
        Ok(self.kept_peers()?.unwrap_or_default())
    }

    /// None where none were ever written down.
    pub fn kept_peers(&self) -> Result<Option<BTreeMap<NodeId, String>>, HomeError> {
        let Some(lines) = checksummed_file::read(&*self.disk, &self.dir.join("PEERS"), "peers")? else {
            return Ok(None);
        };
        let peer = |(_, value): (String, String)| {
            let (node, address) = value.split_once(' ')?;
            Some((NodeId(node.parse().ok()?), address.to_owned()))
        };
        let peers = lines.into_iter().map(peer).collect::<Option<BTreeMap<_, _>>>();
        peers.map(Some).ok_or_else(|| self.damaged("PEERS", "a line names no node and its address"))
    }

    pub fn set_peers(&self, peers: &BTreeMap<NodeId, String>) -> Result<(), HomeError> {
        let lines: Vec<_> = peers.iter().map(|(node, at)| ("peer".to_owned(), format!("{node} {at}"))).collect();
        checksummed_file::write(&*self.disk, &self.dir.join("PEERS"), "peers", &lines)
    }

    /// None in a directory of before there were several nodes.
    pub fn replicas(&self) -> Result<Option<Vec<KeptReplica>>, HomeError> {
        let Some(lines) = checksummed_file::read(&*self.disk, &self.dir.join("REPLICAS"), "replicas")? else {
            return Ok(None);
        };
        let replicas = lines.iter().map(|(_, value)| parse_replica(value)).collect::<Option<Vec<_>>>();
        replicas.map(Some).ok_or_else(|| self.damaged("REPLICAS", "a line names no replica"))
    }

    pub fn set_replicas(&self, replicas: &[KeptReplica]) -> Result<(), HomeError> {
        let line = |kept: &KeptReplica| {
            let state = match kept.state {
                KeptState::Kept => "kept",
                KeptState::Leaving => "leaving",
                KeptState::Lost => "lost",
            };
            ("replica".to_owned(), format!("{} {} {} {state}", kept.group, kept.replica, kept.dir))
        };
        let lines: Vec<_> = replicas.iter().map(line).collect();
        checksummed_file::write(&*self.disk, &self.dir.join("REPLICAS"), "replicas", &lines)
    }

    fn tls(&self, name: &str) -> PathBuf {
        self.dir.join("tls").join(name)
    }

    /// None before the node has a certificate.
    pub fn identity(&self) -> Result<Option<Identity>, HomeError> {
        let read = |name: &str| -> Result<Option<String>, HomeError> {
            let path = self.tls(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(source) => Err(HomeError::Io { doing: format!("reading {}", path.display()), source }),
            }
        };
        // The certificate is written last, so where it is the others are.
        let (Some(authority_pem), Some(key_pem), Some(certificate_pem)) =
            (read("authority.pem")?, read("node.key")?, read("node.pem")?)
        else {
            return Ok(None);
        };
        Ok(Some(Identity { authority_pem, certificate_pem, key_pem }))
    }

    pub fn set_identity(&self, identity: &Identity) -> Result<(), HomeError> {
        let dir = self.dir.join("tls");
        self.disk
            .create_dir_all(&dir)
            .map_err(|source| HomeError::Io { doing: format!("making {}", dir.display()), source })?;
        restrict(&dir, 0o700)?;
        self.write_tls("authority.pem", &identity.authority_pem)?;
        self.write_tls("node.key", &identity.key_pem)?;
        self.set_certificate(&identity.certificate_pem)
    }

    /// Sets the authority that this node trusts from now on.
    pub fn set_authority(&self, authority_pem: &str) -> Result<(), HomeError> {
        self.write_tls("authority.pem", authority_pem)
    }

    /// Another one for the same key: whenever a crash comes, the two fit.
    pub fn set_certificate(&self, certificate_pem: &str) -> Result<(), HomeError> {
        self.write_tls("node.pem", certificate_pem)
    }

    fn write_tls(&self, name: &str, text: &str) -> Result<(), HomeError> {
        let (path, new) = (self.tls(name), self.tls(&format!("{name}.tmp")));
        let failed = |source| HomeError::Io { doing: format!("writing {}", path.display()), source };
        write_secret(&new, text.as_bytes()).map_err(failed)?;
        let dir = self.dir.join("tls");
        self.disk.rename(&new, &path).and_then(|()| self.disk.sync_dir(&dir)).map_err(failed)
    }
}

/// Writes a file that only its owner can read at any moment.
pub fn write_secret(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Restricts access to the owner.
fn restrict(path: &Path, mode: u32) -> Result<(), HomeError> {
    use std::os::unix::fs::PermissionsExt;
    let set = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    set.map_err(|source| HomeError::Io { doing: format!("cannot restrict access to {}", path.display()), source })
}

fn parse_replica(value: &str) -> Option<KeptReplica> {
    let mut words = value.split(' ');
    let group = GroupId(words.next()?.parse().ok()?);
    let replica = ReplicaId(words.next()?.parse().ok()?);
    let dir = words.next()?.to_owned();
    let state = match words.next()? {
        "kept" => KeptState::Kept,
        "leaving" => KeptState::Leaving,
        "lost" => KeptState::Lost,
        _ => return None,
    };
    words.next().is_none().then_some(KeptReplica { group, replica, dir, state })
}

/// Replicas of the founder, where no file lists them: the first replica of every group, in directories without a number.
pub fn replicas_of_founder(map: &ShardMap) -> Vec<KeptReplica> {
    let kept = |group: GroupId, replica, dir| KeptReplica { group, replica, dir, state: KeptState::Kept };
    let mut replicas = vec![kept(GroupId::CATALOG, map.catalog.replicas[0].id, "catalog".to_owned())];
    for (number, members) in (0..).zip(&map.shards) {
        let dir = format!("shards/{number:03}");
        replicas.push(kept(GroupId::of_shard(ShardId(number)), members.replicas[0].id, dir));
    }
    replicas
}

/// Directory of a replica that came later: no two of them ever share a directory.
pub fn dir_of(group: GroupId, replica: ReplicaId) -> String {
    match group.shard() {
        Some(shard) => format!("shards/{:03}-r{replica}", shard.0),
        None => format!("catalog-r{replica}"),
    }
}

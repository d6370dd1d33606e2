//! The master keys of secrets: where a node has them from, and the one that a first start makes.
//!
//! The environment before the setting before `master.key` in the data directory. What was made there is all that opens the
//! secrets of the cluster: it is synced before anything is kept under it, and nothing ever writes over it.
//!
//! The same key wraps the cluster's certificate authority and the key that addresses of files and cursors are signed with.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use assay_cluster::{Cluster, KeyWrap};
use assay_node_auth::{Belonging, Keyring, NONCE_BYTES, Sealed, Secret, VAULT_KEY_BYTES, VaultKey};
use assay_node_records::{MasterKey, Records};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::desk::{keep_secret, read_secret, variable};

/// Takes the place of the key in the file.
pub const MASTER_KEY_VARIABLE: &str = "ASSAY_MASTER_KEY";
/// In the data directory.
pub const MASTER_KEY_FILE: &str = "master.key";
/// A rotation leaves one behind; more than a few were forgotten.
const OLD_KEYS_MAX: usize = 16;
const WHAT: &str = "the master key of secrets";

/// Keys that secrets are kept under.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// A file with the master key, the same on every node, as 64 hexadecimal digits or in base64, readable by its owner
    /// alone. Without it the node that founds a cluster makes one and keeps it as `master.key` in its data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_key_file: Option<PathBuf>,
    /// Files with master keys from before, until `assay admin rotate-master-key` has wrapped everything with the new one.
    pub old_master_key_files: Vec<PathBuf>,
}

/// How often the key that addresses and cursors are signed with is looked after. A node states what keys it has within a
/// second of its start.
const TEND_EVERY: Duration = Duration::from_secs(2);

/// The master keys of this node, which the cluster and the records share.
#[derive(Debug)]
pub struct NodeKeys {
    ring: OnceLock<Keyring>,
    /// Where a key that is made is kept.
    file: PathBuf,
}

impl NodeKeys {
    pub fn open(config: &Config) -> anyhow::Result<Arc<NodeKeys>> {
        let ring = keyring(config)?.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Arc::new(NodeKeys { ring, file: config.store.data_dir.join(MASTER_KEY_FILE) }))
    }

    /// None where this node was given no key and made none.
    pub fn ring(&self) -> Option<&Keyring> {
        self.ring.get()
    }

    /// The same; makes a key where there is none.
    fn ring_made(&self) -> anyhow::Result<&Keyring> {
        if let Some(ring) = self.ring.get() {
            return Ok(ring);
        }
        let made = Keyring::new(make(&self.file)?, Vec::new());
        tracing::info!(
            file = %self.file.display(),
            "made a master key for secrets: keep a copy of it elsewhere, nothing else opens them"
        );
        Ok(self.ring.get_or_init(|| made))
    }

    fn given(&self) -> Result<&Keyring, String> {
        self.ring.get().ok_or_else(|| {
            "this node has no master key: give it that of the cluster in secrets.master_key_file, and start it again".into()
        })
    }
}

impl KeyWrap for NodeKeys {
    fn make(&self) -> Result<(), String> {
        self.ring_made().map(drop).map_err(|error| format!("{error:#}"))
    }

    fn ids(&self) -> Vec<String> {
        self.ring.get().map(|ring| ring.ids().iter().map(ToString::to_string).collect()).unwrap_or_default()
    }

    fn wrap(&self, label: &str, plain: &str) -> Result<String, String> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| format!("no random bytes: {error}"))?;
        let key = self.given()?.current();
        let sealed = key.seal(&Belonging::of_cluster(label), &Secret::new(plain.to_owned()), nonce);
        sealed.map(|sealed| sealed.to_string()).map_err(|error| error.to_string())
    }

    fn unwrap(&self, label: &str, wrapped: &str) -> Result<String, String> {
        let sealed = Sealed::parse(wrapped).ok_or("what is kept does not read")?;
        let ring = self.given()?;
        let missing = || format!("it is wrapped by the master key {}, which this node does not have", sealed.key);
        let opened = ring.find(sealed.key).ok_or_else(missing)?.open(&Belonging::of_cluster(label), &sealed);
        opened.map(|plain| plain.expose().to_owned()).map_err(|error| error.to_string())
    }

    fn id_of(&self, wrapped: &str) -> Option<String> {
        Sealed::parse(wrapped).map(|sealed| sealed.key.to_string())
    }
}

/// Keeps the signing key as the nodes of the cluster allow it, until this is aborted.
pub async fn keep_tending(records: Records) {
    let mut said = None;
    loop {
        tokio::time::sleep(TEND_EVERY).await;
        let problem = records.tend_signing_key().await.err().map(|error| error.to_string());
        if problem.is_some() && problem != said {
            tracing::warn!(problem, "the key that addresses of files and cursors are signed with is not looked after");
        }
        said = problem;
    }
}

/// What keeps this cluster from using the master key for all that it could, in words. The node serves all the same.
pub fn shortfalls(cluster: &Cluster, records: &Records) -> Vec<String> {
    let mut notes = records.signing_shortfalls();
    if let Some(status) = cluster.authority_status() {
        if status.master_key.is_none() {
            notes
                .push("the key of the cluster's certificate authority is not wrapped by the master key yet".to_owned());
        }
        if status.rotating {
            let nodes: Vec<String> = status.waits_for.iter().map(|node| format!("node {node}")).collect();
            let waits = if nodes.is_empty() { String::new() } else { format!("; it waits for {}", nodes.join(", ")) };
            notes.push(format!("another certificate authority is being taken up{waits}"));
        }
    }
    notes
}

/// The keys that this node is given; none where it has none yet.
fn keyring(config: &Config) -> anyhow::Result<Option<Keyring>> {
    let SecretsConfig { master_key_file, old_master_key_files } = &config.secrets;
    let own = config.store.data_dir.join(MASTER_KEY_FILE);
    let current = match (variable(MASTER_KEY_VARIABLE)?, master_key_file) {
        (Some(text), _) => Some(parsed(MASTER_KEY_VARIABLE, &text)?),
        (None, Some(file)) => Some(read(file)?),
        (None, None) => {
            let is_there = own.try_exists().with_context(|| format!("looking for {}", own.display()))?;
            is_there.then(|| read(&own)).transpose()?
        }
    };
    let old = old_master_key_files;
    anyhow::ensure!(old.len() <= OLD_KEYS_MAX, "secrets.old_master_key_files: at most {OLD_KEYS_MAX} files are read");
    let Some(current) = current else {
        anyhow::ensure!(
            old.is_empty(),
            "secrets.old_master_key_files are of no use without a key that takes their place: name it in \
             secrets.master_key_file"
        );
        return Ok(None);
    };
    Ok(Some(Keyring::new(current, old.iter().map(|file| read(file)).collect::<anyhow::Result<_>>()?)))
}

/// Once the cluster is founded and heard: makes the key of a new one, and says what this node will not be able to open.
pub async fn settle(keys: &NodeKeys, records: &Records) -> anyhow::Result<()> {
    if records.master_key_when_heard().await? == MasterKey::ToMake {
        records.give_keys(keys.ring_made()?.clone());
    }
    match records.master_key_when_heard().await? {
        MasterKey::Known(id) => tracing::info!(master_key = %id, "secrets can be opened here"),
        MasterKey::ToRotate { from, to } => tracing::warn!(
            %from, %to,
            "secrets are kept under an old master key: once every node has the new one, `assay admin rotate-master-key` \
             wraps them with it"
        ),
        MasterKey::Missing(id) => tracing::warn!(
            master_key = %id,
            "this node does not have the master key that secrets are kept under, and answers 503 for what needs it; as long \
             as it runs, addresses of files and cursors of the whole cluster are signed with a key that every copy of a data \
             directory has: give it the key in secrets.master_key_file"
        ),
        MasterKey::ToMake | MasterKey::None => tracing::warn!(
            "there is no master key for secrets, and what needs it is answered 503: give every node the same one in \
             secrets.master_key_file"
        ),
    }
    Ok(())
}

/// One in a file of its own, for who starts several nodes; the one that is there stays.
pub fn made_once(file: &Path) -> anyhow::Result<()> {
    if file.try_exists().with_context(|| format!("looking for {}", file.display()))? {
        return Ok(());
    }
    make(file).map(drop)
}

fn make(file: &Path) -> anyhow::Result<VaultKey> {
    let mut random = [0; VAULT_KEY_BYTES];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    let key = VaultKey::new(random);
    random.fill(0);
    anyhow::ensure!(!file.exists(), "{} is there already", file.display());
    keep_secret(file, &key.to_hex()).with_context(|| format!("writing {}", file.display()))?;
    Ok(key)
}

fn read(file: &Path) -> anyhow::Result<VaultKey> {
    parsed(&file.display().to_string(), &read_secret(file, WHAT)?)
}

fn parsed(place: &str, text: &Secret) -> anyhow::Result<VaultKey> {
    VaultKey::parse(text).map_err(|why| anyhow::anyhow!("{place}: {why}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(file: &Path, text: &str, mode: u32) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = dir.path().to_owned();
        assert!(keyring(&config).unwrap().is_none());
        let file = dir.path().join(MASTER_KEY_FILE);
        let made = make(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(keyring(&config).unwrap().unwrap().current().id(), made.id(), "the next start takes the same");
        made_once(&file).unwrap();
        assert!(make(&file).unwrap_err().to_string().contains("is there already"));
        assert_eq!(keyring(&config).unwrap().unwrap().current().id(), made.id());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let open = keyring(&config).unwrap_err().to_string();
        assert!(open.contains("mode 0644") && open.contains("chmod 600"), "{open}");
    }

    #[test]
    fn keys_are_read_from_where_the_settings_say() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new.key"), dir.path().join("old.key"));
        let mut config = Config::default();
        config.store.data_dir = dir.path().join("data");
        config.secrets.old_master_key_files = vec![old.clone()];
        let refused = |config: &Config| keyring(config).unwrap_err().to_string();
        assert!(refused(&config).contains("name it in secrets.master_key_file"));
        config.secrets.master_key_file = Some(new.clone());
        let missing = refused(&config);
        assert!(missing.contains("there is no file") && missing.contains(WHAT), "{missing}");
        write(&new, &"ab".repeat(32), 0o600);
        write(&old, "short", 0o600);
        let wrong = refused(&config);
        assert!(wrong.contains("old.key: a master key is 32 bytes") && !wrong.contains("short"), "{wrong}");
        write(&old, "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n", 0o600);
        let ring = keyring(&config).unwrap().unwrap();
        assert_eq!(ring.current().id(), VaultKey::new([0xab; 32]).id());
        assert!(ring.find(VaultKey::new([1; 32]).id()).is_some());
        config.secrets.old_master_key_files = vec![old; OLD_KEYS_MAX + 1];
        assert!(refused(&config).contains("at most 16"));
    }
}

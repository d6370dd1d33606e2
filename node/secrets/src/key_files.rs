//! Sources of the master keys of a node: files and an environment variable, and the key that a first start creates.
//!
//! The environment before the setting before `master.key` in the data directory. What was made there is all that opens the
//! secrets of the cluster: it is synced before anything is kept under it, and nothing ever writes over it.
//!
//! The same key wraps the cluster's certificate authority and the key that addresses of files and cursors are signed with.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use assay_cluster::KeyWrap;
use serde::{Deserialize, Serialize};

use crate::{Belonging, Keyring, NONCE_BYTES, Sealed, Secret, VAULT_KEY_BYTES, VaultKey, random};

/// Variable of the environment that takes the place of the key in the file.
pub const MASTER_KEY_VARIABLE: &str = "ASSAY_MASTER_KEY";
/// Name of the file in the data directory.
pub const MASTER_KEY_FILE: &str = "master.key";
/// Upper bound of old keys. A rotation leaves one behind; more than a few were forgotten.
const OLD_KEYS_MAX: usize = 16;
const WHAT: &str = "the master key of secrets";
/// Upper bound of the size of a file with a secret.
const SECRET_FILE_BYTES_MAX: u64 = 4 << 10;
/// Bits of a mode that let others at a file.
const OTHERS: u32 = 0o077;

/// Settings of the keys that secrets are kept under.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// File with the master key, the same on every node: 64 hexadecimal digits or base64, readable by its owner alone.
    /// Without it the node that founds a cluster makes `master.key` in its data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_key_file: Option<PathBuf>,
    /// Files with earlier master keys, until `assay admin rotate-master-key` has wrapped everything with the new one.
    pub old_master_key_files: Vec<PathBuf>,
}

/// Sources of the master keys of a node.
#[derive(Clone, Copy, Debug)]
pub struct KeySources<'s> {
    /// Value of [`MASTER_KEY_VARIABLE`], which takes precedence over the setting.
    pub variable: Option<&'s Secret>,
    pub settings: &'s SecretsConfig,
    pub data_dir: &'s Path,
}

/// The master keys of this node, which the cluster and the records share.
#[derive(Debug)]
pub struct NodeKeys {
    ring: OnceLock<Keyring>,
    /// The file that keeps a key made here.
    file: PathBuf,
}

impl NodeKeys {
    /// Reads the keys of this node; one that has none yet may make one later.
    pub fn open(sources: KeySources<'_>) -> anyhow::Result<Arc<NodeKeys>> {
        let ring = keyring(sources)?.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Arc::new(NodeKeys { ring, file: sources.data_dir.join(MASTER_KEY_FILE) }))
    }

    /// Returns the keys; `None` if this node has none.
    pub fn ring(&self) -> Option<&Keyring> {
        self.ring.get()
    }

    /// Returns the keys; makes one where there is none.
    pub fn ring_made(&self) -> anyhow::Result<&Keyring> {
        if let Some(ring) = self.ring.get() {
            return Ok(ring);
        }
        let made = Keyring::new(make(&self.file)?, Vec::new());
        tracing::info!(
            file = %self.file.display(),
            "created a master key for secrets: keep a copy of it elsewhere, because nothing else can decrypt them"
        );
        Ok(self.ring.get_or_init(|| made))
    }

    fn given(&self) -> Result<&Keyring, String> {
        self.ring.get().ok_or_else(|| {
            "this node has no master key: set secrets.master_key_file to the key of the cluster, and restart it".into()
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
        let nonce = random::<NONCE_BYTES>().map_err(|error| error.to_string())?;
        let key = self.given()?.current();
        let sealed = key.seal(&Belonging::of_cluster(label), &Secret::new(plain.to_owned()), nonce);
        sealed.map(|sealed| sealed.to_string()).map_err(|error| error.to_string())
    }

    fn unwrap(&self, label: &str, wrapped: &str) -> Result<String, String> {
        let sealed = Sealed::parse(wrapped).ok_or("the stored key cannot be decoded")?;
        let ring = self.given()?;
        let missing = || format!("it is wrapped by the master key {}, which this node does not have", sealed.key);
        let opened = ring.find(sealed.key).ok_or_else(missing)?.open(&Belonging::of_cluster(label), &sealed);
        opened.map(|plain| plain.expose().to_owned()).map_err(|error| error.to_string())
    }

    fn id_of(&self, wrapped: &str) -> Option<String> {
        Sealed::parse(wrapped).map(|sealed| sealed.key.to_string())
    }
}

/// Returns the configured or existing keys; `None` if this node has none yet.
fn keyring(sources: KeySources<'_>) -> anyhow::Result<Option<Keyring>> {
    let SecretsConfig { master_key_file, old_master_key_files } = sources.settings;
    let own = sources.data_dir.join(MASTER_KEY_FILE);
    let current = match (sources.variable, master_key_file) {
        (Some(text), _) => Some(parsed(MASTER_KEY_VARIABLE, text)?),
        (None, Some(file)) => Some(read(file)?),
        (None, None) => {
            let is_there = own.try_exists().with_context(|| format!("cannot look for {}", own.display()))?;
            is_there.then(|| read(&own)).transpose()?
        }
    };
    let old = old_master_key_files;
    anyhow::ensure!(old.len() <= OLD_KEYS_MAX, "secrets.old_master_key_files: the maximum is {OLD_KEYS_MAX} files");
    let Some(current) = current else {
        anyhow::ensure!(
            old.is_empty(),
            "secrets.old_master_key_files has no effect without a current key: set secrets.master_key_file"
        );
        return Ok(None);
    };
    Ok(Some(Keyring::new(current, old.iter().map(|file| read(file)).collect::<anyhow::Result<_>>()?)))
}

/// Makes a key in a file of its own, for several nodes; one that is there stays.
pub fn ensure_key_file(file: &Path) -> anyhow::Result<()> {
    if file.try_exists().with_context(|| format!("cannot look for {}", file.display()))? {
        return Ok(());
    }
    make(file).map(drop)
}

fn make(file: &Path) -> anyhow::Result<VaultKey> {
    let key = VaultKey::new(random::<VAULT_KEY_BYTES>()?);
    anyhow::ensure!(!file.exists(), "{} already exists", file.display());
    keep_secret_file(file, &key.to_hex()).with_context(|| format!("writing {}", file.display()))?;
    Ok(key)
}

fn read(file: &Path) -> anyhow::Result<VaultKey> {
    parsed(&file.display().to_string(), &read_secret_file(file, WHAT)?)
}

fn parsed(place: &str, text: &Secret) -> anyhow::Result<VaultKey> {
    VaultKey::parse(text).map_err(|why| anyhow::anyhow!("{place}: {why}"))
}

/// Writes a secret to a file that only its owner can read from the first moment, and that is whole or not there.
pub fn keep_secret_file(file: &Path, secret: &Secret) -> anyhow::Result<()> {
    let dir = file.parent().context("a file in a directory")?;
    let mut name = file.file_name().context("a file with a name")?.to_owned();
    name.push(".tmp");
    let new = dir.join(name);
    let mut opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    writeln!(opened, "{}", secret.expose())?;
    opened.sync_all()?;
    fs::rename(&new, file)?;
    File::open(dir)?.sync_all()?;
    Ok(())
}

/// Reads a secret from a file that only its owner can read. `what` describes it in errors.
pub fn read_secret_file(file: &Path, what: &str) -> anyhow::Result<Secret> {
    let doing = || format!("reading {}", file.display());
    let opened = File::open(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            anyhow::anyhow!("the file {} does not exist; it should contain {what}", file.display())
        }
        _ => anyhow::Error::new(error).context(doing()),
    })?;
    let mode = opened.metadata().with_context(doing)?.permissions().mode() & 0o777;
    anyhow::ensure!(
        mode & OTHERS == 0,
        "{} is readable by other users (mode {mode:04o}); only its owner may read a secret: chmod 600 {}",
        file.display(),
        file.display()
    );
    let mut text = String::new();
    opened.take(SECRET_FILE_BYTES_MAX).read_to_string(&mut text).with_context(doing)?;
    Ok(Secret::new(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring_of(settings: &SecretsConfig, data_dir: &Path) -> anyhow::Result<Option<Keyring>> {
        keyring(KeySources { variable: None, settings, data_dir })
    }

    fn write(file: &Path, text: &str, mode: u32) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_is_ensure_key_file_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let config = SecretsConfig::default();
        assert!(keyring_of(&config, dir.path()).unwrap().is_none());
        let file = dir.path().join(MASTER_KEY_FILE);
        let made = make(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            keyring_of(&config, dir.path()).unwrap().unwrap().current().id(),
            made.id(),
            "the next start takes the same"
        );
        ensure_key_file(&file).unwrap();
        assert!(make(&file).unwrap_err().to_string().contains("already exists"));
        assert_eq!(keyring_of(&config, dir.path()).unwrap().unwrap().current().id(), made.id());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let open = keyring_of(&config, dir.path()).unwrap_err().to_string();
        assert!(open.contains("mode 0644") && open.contains("chmod 600"), "{open}");
    }

    #[test]
    fn keys_are_read_from_where_the_settings_say() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new.key"), dir.path().join("old.key"));
        let (mut config, data_dir) = (SecretsConfig::default(), dir.path().join("data"));
        config.old_master_key_files = vec![old.clone()];
        let refused = |config: &SecretsConfig| keyring_of(config, &data_dir).unwrap_err().to_string();
        assert!(refused(&config).contains("set secrets.master_key_file"));
        config.master_key_file = Some(new.clone());
        let missing = refused(&config);
        assert!(missing.contains("does not exist") && missing.contains(WHAT), "{missing}");
        write(&new, &"ab".repeat(32), 0o600);
        write(&old, "short", 0o600);
        let wrong = refused(&config);
        assert!(wrong.contains("old.key: a master key has 32 bytes") && !wrong.contains("short"), "{wrong}");
        write(&old, "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n", 0o600);
        let ring = keyring_of(&config, &data_dir).unwrap().unwrap();
        assert_eq!(ring.current().id(), VaultKey::new([0xab; 32]).id());
        assert!(ring.find(VaultKey::new([1; 32]).id()).is_some());
        config.old_master_key_files = vec![old; OLD_KEYS_MAX + 1];
        assert!(refused(&config).contains("maximum is 16"));
    }
}

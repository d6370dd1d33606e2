//! Encrypted objects of one backup in a store, with their names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_node_secrets::Secret;
use assay_node_segment_store::{
    CHUNK_BYTES_MAX, Chunks, SegmentStore, StoreError, StoredName, StoredObject, chunks_of,
};
use assay_storage_model::{ClusterId, GroupId, ShardId};
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BackupError;
use crate::key::{BackupKey, ContentHash};
use crate::layout::{self, BaseName, LogPartName, Millis};
use crate::manifest::{BaseManifest, Descriptor, FORMAT, PointManifest, UnusedManifest};
use crate::pace::Pace;
use crate::restore_plan::GroupObjects;
use crate::sealed_object::{ObjectOpener, ObjectSealer, seal};

/// Upper bound of an object that is read into memory: a stored state has at most a gigabyte.
const OBJECT_BYTES_MAX: u64 = (1 << 30) + (64 << 20);
/// Upper bound of the looks at the descriptor and its copy.
const MENDS_MAX: usize = 8;
/// Upper bound of the descriptor that is read.
const DESCRIPTOR_BYTES_MAX: u64 = 64 << 10;
/// Bytes of one read from the store.
const READ_BYTES: u64 = CHUNK_BYTES_MAX as u64;

/// Backup in a store, with its key. Clones share the store.
#[derive(Clone)]
pub struct Repository {
    store: Arc<dyn SegmentStore>,
    key: Arc<BackupKey>,
    pace: Pace,
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repository({})", self.store.location())
    }
}

/// Names of all objects of a backup that a restore or a deletion looks at.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    pub points: Vec<Millis>,
    pub groups: BTreeMap<GroupId, GroupObjects>,
    /// Indices of the entries with large writes.
    pub large: BTreeMap<GroupId, Vec<u64>>,
    /// Bytes of all objects.
    pub bytes: u64,
}

/// Returns the time of this machine.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Parses the text of a descriptor, which an object has.
fn parsed(name: &StoredName, text: &[u8]) -> Result<Descriptor, BackupError> {
    let damaged = |why: serde_json::Error| BackupError::Damaged { name: name.clone(), what: why.to_string() };
    let descriptor: Descriptor = serde_json::from_slice(text).map_err(damaged)?;
    if descriptor.format > FORMAT { Err(BackupError::Newer(descriptor.format)) } else { Ok(descriptor) }
}

impl Repository {
    pub fn new(store: Arc<dyn SegmentStore>, key: BackupKey, pace: Pace) -> Repository {
        Repository { store, key: Arc::new(key), pace }
    }

    pub fn key(&self) -> &BackupKey {
        &self.key
    }

    pub fn store(&self) -> &Arc<dyn SegmentStore> {
        &self.store
    }

    /// Reads the descriptor of the store, or returns `None` if the store has no backup.
    pub async fn descriptor(&self) -> Result<Option<Descriptor>, BackupError> {
        let text = self.descriptor_text().await?;
        text.map(|text| parsed(&layout::descriptor(), &text)).transpose()
    }

    /// Reads the text of the descriptor.
    pub async fn descriptor_text(&self) -> Result<Option<Bytes>, BackupError> {
        let name = layout::descriptor();
        let Some(length) = self.store.length(&name).await? else { return Ok(None) };
        Ok(Some(self.store.read(&name, 0..length.min(DESCRIPTOR_BYTES_MAX)).await?))
    }

    /// Reads the encrypted copy of the text of the descriptor.
    pub async fn descriptor_copy(&self) -> Result<Option<Bytes>, BackupError> {
        match self.read(&layout::descriptor_copy()).await {
            Err(BackupError::MissingObject(_)) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Returns the descriptor, and checks that the key is that of the backup.
    ///
    /// If the object in plain text is missing or was changed, its encrypted copy serves.
    pub async fn opened(&self) -> Result<Descriptor, BackupError> {
        let given = self.key.id();
        let problem = match self.descriptor().await {
            Ok(Some(found)) if found.key == given.to_string() => return Ok(found),
            Ok(Some(found)) => {
                let needed = assay_node_secrets::KeyId::parse(&found.key).unwrap_or(given);
                BackupError::OtherKey { needed, given }
            }
            Ok(None) => BackupError::NoBackup(layout::descriptor()),
            Err(why @ BackupError::Store(_)) => return Err(why),
            Err(why) => why,
        };
        match self.descriptor_copy().await {
            Ok(Some(text)) => parsed(&layout::descriptor_copy(), &text),
            // Somebody else's backup has a copy that this key does not open.
            Err(why) if matches!(problem, BackupError::NoBackup(_)) => Err(why),
            Ok(None) | Err(_) => Err(problem),
        }
    }

    /// Makes the store the backup of a cluster, unless it already is.
    pub async fn found(&self, cluster: ClusterId, shards: u16) -> Result<(), BackupError> {
        match self.opened().await {
            Err(BackupError::NoBackup(_)) => {}
            opened => {
                let found = opened?.cluster;
                if found != cluster {
                    let (found, own) = (found.to_string(), cluster.to_string());
                    return Err(BackupError::OtherCluster { found, own });
                }
                return self.mend_descriptor().await;
            }
        }
        let key = self.key.id().to_string();
        let descriptor = Descriptor { format: FORMAT, cluster, key, shards, created: now() };
        let text = serde_json::to_vec_pretty(&descriptor).map_err(|why| BackupError::Internal(why.to_string()))?;
        self.store.put(&layout::descriptor(), chunks_of(Bytes::from(text))).await?;
        self.mend_descriptor().await
    }

    /// Stores the descriptor or its encrypted copy, if it is missing. The copy is right if both differ.
    ///
    /// Nodes that begin a backup at the same time may write different texts, so the result is looked at again.
    async fn mend_descriptor(&self) -> Result<(), BackupError> {
        for _ in 0..MENDS_MAX {
            match (self.descriptor_text().await?, self.descriptor_copy().await?) {
                (Some(text), None) => self.put(&layout::descriptor_copy(), &text).await?,
                (text, Some(copy)) if text.as_ref() != Some(&copy) => {
                    self.store.put(&layout::descriptor(), chunks_of(copy)).await?;
                }
                _ => return Ok(()),
            }
        }
        Err(BackupError::Internal("other nodes write the descriptor of the backup all the time".into()))
    }

    /// Keeps the master keys of the cluster, the current one first. A restored cluster reads its secrets with them.
    ///
    /// Returns the time in the name of the object, if there is any key.
    pub async fn keep_master_keys(&self, keys: &[Secret]) -> Result<Option<Millis>, BackupError> {
        let texts = |keys: &[Secret]| keys.iter().map(|key| key.expose().to_owned()).collect::<Vec<_>>();
        let newest = self.times(layout::KEYS, None).await?.pop();
        if keys.is_empty() || (newest.is_some() && texts(&self.master_keys().await?) == texts(keys)) {
            return Ok(newest);
        }
        let at = now();
        self.put_json(&layout::master_keys(at), &texts(keys)).await?;
        Ok(Some(at))
    }

    /// Returns the master keys of the cluster, the current one first.
    pub async fn master_keys(&self) -> Result<Vec<Secret>, BackupError> {
        let Some(newest) = self.times(layout::KEYS, None).await?.pop() else { return Ok(Vec::new()) };
        let texts: Vec<String> = self.read_json(&layout::master_keys(newest)).await?;
        Ok(texts.into_iter().map(Secret::new).collect())
    }

    /// Encrypts and writes an object in memory.
    pub async fn put(&self, name: &StoredName, plain: &[u8]) -> Result<(), BackupError> {
        let sealed = seal(&self.key, name, plain)?;
        self.pace.pass(sealed.len() as u64).await;
        self.store.put(name, chunks_of(sealed)).await?;
        Ok(())
    }

    pub async fn put_json(&self, name: &StoredName, value: &impl Serialize) -> Result<(), BackupError> {
        let text = serde_json::to_vec(value).map_err(|why| BackupError::Internal(why.to_string()))?;
        self.put(name, &text).await
    }

    /// Encrypts and writes an object whose plain bytes come from a blocking reader.
    ///
    /// `read` returns the next bytes, or nothing at the end. It runs on threads for blocking work.
    pub async fn put_read(
        &self,
        name: &StoredName,
        read: impl FnMut() -> std::io::Result<Bytes> + Send + 'static,
    ) -> Result<u64, BackupError> {
        let state = SealingState { sealer: ObjectSealer::new(&self.key, name), read, pace: self.pace.clone() };
        let chunks: Chunks = Box::pin(stream::unfold(Some(state), |state| async {
            let state = state?;
            match state.next().await {
                Ok((chunk, state)) => Some((Ok(chunk), state)),
                Err(why) => Some((Err(StoreError::Content(why.to_string())), None)),
            }
        }));
        Ok(self.store.put(name, chunks).await?)
    }

    /// Reads and decrypts an object, and passes its plain bytes on in order. Returns their number.
    pub async fn read_to(
        &self,
        name: &StoredName,
        mut take: impl FnMut(&[u8]) -> Result<(), BackupError> + Send,
    ) -> Result<u64, BackupError> {
        let missing = || BackupError::MissingObject(name.clone());
        let length = self.store.length(name).await?.ok_or_else(missing)?;
        let mut opener = ObjectOpener::new(&self.key, name);
        let (mut place, mut bytes) = (0, 0);
        while place < length {
            let end = length.min(place + READ_BYTES);
            let sealed = self.store.read(name, place..end).await;
            let sealed = sealed.map_err(|why| if why.is_missing() { missing() } else { why.into() })?;
            let plain = opener.push(&sealed)?;
            take(&plain)?;
            bytes += plain.len() as u64;
            place = end;
        }
        opener.finish()?;
        Ok(bytes)
    }

    /// Reads and decrypts an object into memory.
    pub async fn read(&self, name: &StoredName) -> Result<Bytes, BackupError> {
        let mut plain = Vec::new();
        let too_large = || BackupError::Damaged { name: name.clone(), what: "it is too large".into() };
        self.read_to(name, |bytes| {
            if (plain.len() + bytes.len()) as u64 > OBJECT_BYTES_MAX {
                return Err(too_large());
            }
            plain.extend_from_slice(bytes);
            Ok(())
        })
        .await?;
        Ok(Bytes::from(plain))
    }

    async fn read_json<T: DeserializeOwned>(&self, name: &StoredName) -> Result<T, BackupError> {
        let text = self.read(name).await?;
        let damaged = |what: String| BackupError::Damaged { name: name.clone(), what };
        serde_json::from_slice(&text).map_err(|why| damaged(why.to_string()))
    }

    pub async fn base(&self, group: GroupId, base: BaseName) -> Result<BaseManifest, BackupError> {
        self.read_json(&base.of(group)).await
    }

    pub async fn point(&self, at: Millis) -> Result<PointManifest, BackupError> {
        self.read_json(&layout::point(at)).await
    }

    pub async fn unused_list(&self, at: Millis) -> Result<UnusedManifest, BackupError> {
        self.read_json(&layout::unused(at)).await
    }

    /// Returns whether the store has this content.
    pub async fn has_content(&self, content: &ContentHash) -> Result<bool, BackupError> {
        Ok(self.store.length(&layout::content(content)).await?.is_some())
    }

    /// Lists the times of a directory of objects that are named by times.
    pub async fn times(&self, directory: &str, behind: Option<Millis>) -> Result<Vec<Millis>, BackupError> {
        let behind = behind.map(|at| StoredName::new(format!("{directory}/{:015}", at.0))).transpose()?;
        let listed = self.store.list(directory, behind.as_ref()).await?;
        Ok(listed.iter().filter_map(|object| layout::parse_time(&object.name)).collect())
    }

    /// Lists the bases and the parts of the log of one group. Parts begin at `from`, or at the beginning.
    pub async fn group_objects(&self, group: GroupId, from: Option<u64>) -> Result<GroupObjects, BackupError> {
        let bases = self.store.list(&layout::bases(group), None).await?;
        let behind = from.map(|index| LogPartName::before(group, index));
        let parts = self.store.list(&layout::log_parts(group), behind.as_ref()).await?;
        let bases = bases.iter().filter_map(|object| BaseName::parse(&object.name)).collect();
        let parts = parts.iter().filter_map(|object| LogPartName::parse(&object.name)).collect();
        Ok(GroupObjects { bases, parts })
    }

    /// Lists everything but content.
    pub async fn inventory(&self, shards: u16) -> Result<Inventory, BackupError> {
        let mut inventory = Inventory { points: self.times(layout::POINTS, None).await?, ..Inventory::default() };
        let all = [GroupId::CATALOG].into_iter().chain((0..shards).map(|shard| GroupId::of_shard(ShardId(shard))));
        inventory.groups = all.map(|group| (group, GroupObjects::default())).collect();
        for object in self.store.list(layout::GROUPS, None).await? {
            inventory.add(&object);
        }
        inventory.groups.values_mut().for_each(|objects| {
            objects.bases.sort();
            objects.parts.sort();
        });
        Ok(inventory)
    }

    /// Lists all content with its encrypted size.
    pub async fn contents(&self) -> Result<BTreeMap<ContentHash, u64>, BackupError> {
        let listed = self.store.list(layout::CONTENT, None).await?;
        let named = |object: StoredObject| Some((ContentHash::parse(object.name.last_segment())?, object.bytes));
        Ok(listed.into_iter().filter_map(named).collect())
    }

    /// Reads the content of all bases, by their names.
    pub async fn named_contents(&self, inventory: &Inventory) -> Result<BTreeSet<ContentHash>, BackupError> {
        let mut named = BTreeSet::new();
        for (group, objects) in &inventory.groups {
            for base in &objects.bases {
                let manifest = self.base(*group, *base).await?;
                named.extend(manifest.contents().map(|file| file.content));
            }
        }
        Ok(named)
    }

    pub async fn delete(&self, name: &StoredName) -> Result<(), BackupError> {
        Ok(self.store.delete(name).await?)
    }
}

impl Inventory {
    fn add(&mut self, object: &StoredObject) {
        self.bytes += object.bytes;
        let mut parts = object.name.as_str().split('/').skip(1);
        let (Some(group), Some(kind)) = (parts.next().and_then(layout::parse_group), parts.next()) else { return };
        let objects = self.groups.entry(group).or_default();
        match kind {
            "bases" => objects.bases.extend(BaseName::parse(&object.name)),
            "log" => objects.parts.extend(LogPartName::parse(&object.name)),
            "large" => self.large.entry(group).or_default().extend(layout::parse_large_write(&object.name)),
            _ => {}
        }
    }
}

/// State of an object that is read, encrypted and written at once.
struct SealingState<R> {
    sealer: ObjectSealer,
    read: R,
    pace: Pace,
}

impl<R: FnMut() -> std::io::Result<Bytes> + Send + 'static> SealingState<R> {
    /// Returns the next chunk, and the state unless it was the last one.
    async fn next(mut self) -> Result<(Bytes, Option<SealingState<R>>), BackupError> {
        let pace = self.pace.clone();
        let step = tokio::task::spawn_blocking(move || {
            let plain = (self.read)().map_err(|why| BackupError::Internal(why.to_string()))?;
            if plain.is_empty() {
                return Ok((self.sealer.finish()?, None));
            }
            Ok((self.sealer.push(&plain)?, Some(self)))
        });
        let done: Result<_, BackupError> = step.await.map_err(|why| BackupError::Internal(why.to_string()))?;
        let (sealed, state) = done?;
        pace.pass(sealed.len() as u64).await;
        Ok((sealed, state))
    }
}

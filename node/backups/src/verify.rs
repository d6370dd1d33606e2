//! Verification of a backup: every object is read, decrypted and compared with what names it.
//!
//! V1: a changed bit of any object is found.
//! V2: a missing object that a restore may need is found: a base, a part of a log, a large write, content, or master
//!     keys. Points prove each other's times, so one that is missing between others is not noticed.
//! V3: objects that a running node stores or deletes meanwhile are no findings.

use std::collections::{BTreeMap, BTreeSet};

use assay_node_segment_store::{StoreError, StoredName};
use assay_storage_model::GroupId;
use futures::{StreamExt, stream};

use crate::error::BackupError;
use crate::key::ContentHash;
use crate::layout::{self, BaseName, LogPartName, Millis, group_name};
use crate::log_part::{self, ArchivedContent};
use crate::manifest::{BaseManifest, Descriptor, PointManifest};
use crate::repository::{Inventory, Repository};
use crate::restore_plan::{GroupObjects, plan, restorable};

/// Upper bound of the findings of a verification, so that a lost store does not fill a screen.
const FINDINGS_MAX: usize = 1_000;
/// Objects that are read at the same time.
const READS_AT_ONCE: usize = 8;
/// Shortest time that a deletion of old objects keeps. A later base was never deleted.
const KEPT_ALWAYS_MILLIS: u64 = 24 * 3600 * 1000;

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    pub objects: u64,
    /// Plain bytes that were read.
    pub bytes: u64,
    /// First and last time that can be restored, without a gap between them.
    pub restorable: Option<(Millis, Millis)>,
    /// Damaged and missing objects, and gaps.
    pub findings: Vec<String>,
}

/// Progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyProgress {
    pub objects_done: u64,
    pub objects: u64,
    pub bytes: u64,
}

/// Object to read.
#[derive(Clone, Copy, Debug)]
enum Listed {
    Base(GroupId, BaseName),
    Part(GroupId, LogPartName),
    Large(GroupId, u64),
    Content(ContentHash),
    Point(Millis),
    MasterKeys(Millis),
    Unused(Millis),
}

impl Listed {
    fn name(self) -> StoredName {
        match self {
            Listed::Base(group, base) => base.of(group),
            Listed::Part(group, part) => part.of(group),
            Listed::Large(group, index) => layout::large_write(group, index),
            Listed::Content(hash) => layout::content(&hash),
            Listed::Point(at) => layout::point(at),
            Listed::MasterKeys(at) => layout::master_keys(at),
            Listed::Unused(at) => layout::unused(at),
        }
    }
}

/// What an intact object says about others.
#[derive(Debug)]
enum ObjectStatement {
    Nothing,
    /// Content of a base.
    Content(Vec<ContentHash>),
    /// Indices of large writes.
    Large(GroupId, Vec<u64>),
    Point(Millis, Box<PointManifest>),
}

/// What all objects say together.
#[derive(Debug, Default)]
struct AllStatements {
    content: BTreeSet<ContentHash>,
    large: BTreeSet<(GroupId, u64)>,
    points: BTreeMap<Millis, PointManifest>,
}

struct Verifier<'r, F> {
    repository: &'r Repository,
    tell: F,
    total: u64,
    found: Verification,
}

/// Verifies all objects of a backup. With `reads_content` false, content is only looked for.
pub async fn verify(
    repository: &Repository,
    reads_content: bool,
    tell: impl FnMut(VerifyProgress) + Send,
) -> Result<Verification, BackupError> {
    let mut verifier = Verifier { repository, tell, total: 0, found: Verification::default() };
    let descriptor = verifier.descriptor().await?;
    // What names an object is listed before the object, and is stored behind it.
    let keys = repository.times(layout::KEYS, None).await?;
    let inventory = repository.inventory(descriptor.shards).await?;
    let contents: BTreeSet<_> = repository.contents().await?.into_keys().collect();
    let unused = repository.times(layout::UNUSED, None).await?;
    let mut objects = listed(&inventory);
    if reads_content {
        objects.extend(contents.iter().copied().map(Listed::Content));
    }
    objects.extend(keys.iter().copied().map(Listed::MasterKeys).chain(unused.into_iter().map(Listed::Unused)));
    let said = verifier.read_all(objects).await?;
    verifier.missing_content(&contents, &said).await?;
    verifier.missing_large(&inventory, &said).await?;
    verifier.named_by_points(&inventory, &said).await?;
    verifier.times(&inventory, &said);
    Ok(verifier.found)
}

fn listed(inventory: &Inventory) -> Vec<Listed> {
    let mut objects = Vec::new();
    for (group, names) in &inventory.groups {
        objects.extend(names.bases.iter().map(|base| Listed::Base(*group, *base)));
        objects.extend(names.parts.iter().map(|part| Listed::Part(*group, *part)));
    }
    for (group, indices) in &inventory.large {
        objects.extend(indices.iter().map(|index| Listed::Large(*group, *index)));
    }
    objects.extend(inventory.points.iter().copied().map(Listed::Point));
    objects
}

/// Reads one object. Returns its plain bytes and what it says.
async fn read(repository: &Repository, object: Listed) -> Result<(u64, ObjectStatement), BackupError> {
    let name = object.name();
    let damaged = |what: String| BackupError::Damaged { name: name.clone(), what };
    match object {
        Listed::Base(group, base) => {
            let manifest = repository.base(group, base).await?;
            if manifest.group != group || manifest.position.index != base.index {
                return Err(damaged("it is the state of something else".into()));
            }
            Ok((0, ObjectStatement::Content(contents_of(&manifest))))
        }
        Listed::Part(group, part) => {
            let encoded = repository.read(&name).await?;
            let entries = log_part::decode(&encoded).map_err(damaged)?;
            part.check(&entries).map_err(damaged)?;
            let large = entries.iter().filter(|entry| matches!(entry.content, ArchivedContent::Large(_)));
            let large = large.map(|entry| entry.position.index).collect();
            Ok((encoded.len() as u64, ObjectStatement::Large(group, large)))
        }
        Listed::Content(content) => {
            let mut hasher = repository.key().hasher();
            let bytes = repository.read_to(&name, |plain| {
                hasher.update(plain);
                Ok(())
            });
            let bytes = bytes.await?;
            if hasher.finish() != content {
                return Err(damaged("its content does not match its name".into()));
            }
            Ok((bytes, ObjectStatement::Nothing))
        }
        Listed::Point(at) => Ok((0, ObjectStatement::Point(at, Box::new(repository.point(at).await?)))),
        Listed::Unused(at) => repository.unused_list(at).await.map(|_| (0, ObjectStatement::Nothing)),
        Listed::Large(..) | Listed::MasterKeys(_) => {
            Ok((repository.read_to(&name, |_| Ok(())).await?, ObjectStatement::Nothing))
        }
    }
}

fn contents_of(manifest: &BaseManifest) -> Vec<ContentHash> {
    manifest.contents().map(|file| file.content).collect()
}

/// Returns the text of an error that is about one object, or the error if it is about the store.
fn finding(name: &StoredName, why: BackupError) -> Result<String, BackupError> {
    match why {
        BackupError::Damaged { .. } | BackupError::MissingObject(_) => Ok(why.to_string()),
        // The key fits the descriptor, so the object is damaged where it names the key.
        BackupError::OtherKey { .. } => Ok(format!("object {name} of the backup is damaged: it names another key")),
        BackupError::Store(why @ (StoreError::Io { .. } | StoreError::Short { .. })) => {
            Ok(format!("object {name} of the backup cannot be read: {why}"))
        }
        why => Err(why),
    }
}

impl<F: FnMut(VerifyProgress)> Verifier<'_, F> {
    fn find(&mut self, finding: String) {
        if self.found.findings.len() < FINDINGS_MAX {
            self.found.findings.push(finding);
        }
    }

    fn find_missing(&mut self, name: StoredName) {
        self.find(BackupError::MissingObject(name).to_string());
    }

    /// Returns the descriptor. The object in plain text is compared with its encrypted copy.
    async fn descriptor(&mut self) -> Result<Descriptor, BackupError> {
        let (name, copy) = (layout::descriptor(), layout::descriptor_copy());
        let kept = match self.repository.descriptor_copy().await {
            Ok(kept) => kept,
            // A wrong key fits nothing, and that is more to the point.
            Err(why) => {
                let opened = self.repository.opened().await?;
                self.find(finding(&copy, why)?);
                return Ok(opened);
            }
        };
        let Some(kept) = kept else {
            let opened = self.repository.opened().await?;
            self.find_missing(copy);
            return Ok(opened);
        };
        self.found.objects += 2;
        match self.repository.descriptor_text().await? {
            None => self.find_missing(name),
            Some(text) if text == kept => {}
            Some(_) => self.find(format!("object {name} of the backup is damaged: it differs from object {copy}")),
        }
        let damaged = |why: serde_json::Error| BackupError::Damaged { name: copy.clone(), what: why.to_string() };
        serde_json::from_slice(&kept).map_err(damaged)
    }

    async fn read_all(&mut self, objects: Vec<Listed>) -> Result<AllStatements, BackupError> {
        self.total = objects.len() as u64;
        let repository = self.repository.clone();
        let mut said = AllStatements::default();
        let mut reads = stream::iter(objects)
            .map(|object| {
                let repository = repository.clone();
                async move { (object, read(&repository, object).await) }
            })
            .buffer_unordered(READS_AT_ONCE);
        while let Some((object, outcome)) = reads.next().await {
            self.found.objects += 1;
            match outcome {
                Ok((bytes, what)) => {
                    self.found.bytes += bytes;
                    said.add(what);
                }
                // It was listed, so it was deleted meanwhile. Callers look for named content and large writes.
                Err(BackupError::MissingObject(_)) => {}
                Err(why) => {
                    let finding = finding(&object.name(), why)?;
                    self.find(finding);
                }
            }
            let (objects_done, bytes) = (self.found.objects, self.found.bytes);
            (self.tell)(VerifyProgress { objects_done, objects: self.total.max(objects_done), bytes });
        }
        Ok(said)
    }

    /// Reports an object that was not listed, unless it was stored meanwhile.
    async fn look_again(&mut self, name: StoredName) -> Result<(), BackupError> {
        if self.repository.store().length(&name).await?.is_none() {
            self.find_missing(name);
        }
        Ok(())
    }

    async fn missing_content(
        &mut self,
        stored: &BTreeSet<ContentHash>,
        said: &AllStatements,
    ) -> Result<(), BackupError> {
        for content in said.content.difference(stored) {
            self.look_again(layout::content(content)).await?;
        }
        Ok(())
    }

    async fn missing_large(&mut self, inventory: &Inventory, said: &AllStatements) -> Result<(), BackupError> {
        let stored = inventory.large.iter().flat_map(|(group, indices)| indices.iter().map(|index| (*group, *index)));
        let stored: BTreeSet<_> = stored.collect();
        for (group, index) in said.large.difference(&stored) {
            self.look_again(layout::large_write(*group, *index)).await?;
        }
        Ok(())
    }

    /// Looks for bases and master keys that points name.
    async fn named_by_points(&mut self, inventory: &Inventory, said: &AllStatements) -> Result<(), BackupError> {
        let newest = said.points.keys().next_back().copied().unwrap_or_default();
        let mut missing = BTreeSet::new();
        for (at, point) in &said.points {
            let may_be_deleted = newest.0.saturating_sub(at.0) >= KEPT_ALWAYS_MILLIS;
            for (group, base) in &point.bases {
                let stored = inventory.groups.get(group).map_or(&[][..], |objects| &objects.bases);
                let was_oldest = stored.iter().all(|other| other > base);
                if !(stored.contains(base) || may_be_deleted && was_oldest) {
                    missing.insert(base.of(*group));
                }
            }
            missing.extend(point.master_keys.map(layout::master_keys));
        }
        for name in missing {
            self.look_again(name).await?;
        }
        Ok(())
    }

    /// Finds out which times can be restored, and looks for gaps in the logs.
    fn times(&mut self, inventory: &Inventory, said: &AllStatements) {
        let points: Vec<_> = said.points.iter().map(|(at, point)| (*at, point.groups.clone())).collect();
        if let Err(why) = plan(None, &points, &inventory.groups) {
            self.find(why.to_string());
        }
        self.found.restorable = restorable(&points, &inventory.groups);
        for (group, objects) in &inventory.groups {
            self.gaps(*group, objects);
        }
    }

    /// Finds entries between the oldest base and the newest part that no part has.
    fn gaps(&mut self, group: GroupId, objects: &GroupObjects) {
        let Some(first) = objects.bases.iter().map(|base| base.index).min() else { return };
        let mut reached = first;
        for part in &objects.parts {
            if part.first > reached + 1 {
                let (from, to) = (reached + 1, part.first - 1);
                let name = group_name(group);
                self.find(format!("the log of group {name} lacks entries {from} to {to}"));
            }
            reached = reached.max(part.last);
        }
    }
}

impl AllStatements {
    fn add(&mut self, said: ObjectStatement) {
        match said {
            ObjectStatement::Nothing => {}
            ObjectStatement::Content(contents) => self.content.extend(contents),
            ObjectStatement::Large(group, indices) => {
                self.large.extend(indices.into_iter().map(|index| (group, index)))
            }
            ObjectStatement::Point(at, point) => drop(self.points.insert(at, *point)),
        }
    }
}

#[cfg(test)]
mod tests;

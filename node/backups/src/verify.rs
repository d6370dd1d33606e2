//! Verification of a backup: every object is read, decrypted and compared with what names it.

use std::collections::BTreeSet;

use assay_storage_model::GroupId;

use crate::error::BackupError;
use crate::key::ContentHash;
use crate::layout::{self, Millis, group_name};
use crate::log_part::{self, ArchivedContent};
use crate::manifest::BaseManifest;
use crate::repository::{Inventory, Repository};
use crate::restore_plan::{plan, restorable};

/// Upper bound of the findings of a verification, so that a lost store does not fill a screen.
const FINDINGS_MAX: usize = 1_000;

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

struct Verifier<'r, F> {
    repository: &'r Repository,
    tell: F,
    total: u64,
    /// Whether content is read, or only looked for.
    reads_content: bool,
    found: Verification,
    looked: BTreeSet<ContentHash>,
}

/// Verifies all objects of a backup. With `reads_content` false, content is only looked for.
pub async fn verify(
    repository: &Repository,
    reads_content: bool,
    tell: impl FnMut(VerifyProgress) + Send,
) -> Result<Verification, BackupError> {
    let descriptor = repository.opened().await?;
    let inventory = repository.inventory(descriptor.shards).await?;
    let objects = inventory.groups.values().map(|group| group.bases.len() + group.parts.len());
    let total = objects.sum::<usize>() + inventory.points.len();
    let (found, looked) = (Verification::default(), BTreeSet::new());
    let mut verifier = Verifier { repository, tell, total: total as u64, reads_content, found, looked };
    for (group, objects) in &inventory.groups {
        for base in &objects.bases {
            let manifest = repository.base(*group, *base).await;
            if let Some(manifest) = verifier.looked_at(manifest)? {
                verifier.base(&manifest).await?;
            }
        }
        for part in &objects.parts {
            let name = part.of(*group);
            let read = repository.read(&name).await;
            let Some(encoded) = verifier.looked_at(read)? else { continue };
            verifier.found.bytes += encoded.len() as u64;
            match log_part::decode(&encoded) {
                Ok(entries) => {
                    let large = entries.iter().filter(|entry| matches!(entry.content, ArchivedContent::Large(_)));
                    for entry in large {
                        let name = layout::large_write(*group, entry.position.index);
                        let read = repository.read_to(&name, |_| Ok(())).await;
                        let read = verifier.looked_at(read)?;
                        verifier.found.bytes += read.unwrap_or(0);
                    }
                }
                Err(what) => verifier.find(format!("object {name} of the backup is damaged: {what}")),
            }
        }
    }
    for at in repository.times(layout::KEYS, None).await? {
        let read = repository.read(&layout::master_keys(at)).await;
        verifier.looked_at(read)?;
    }
    verifier.points(&inventory).await?;
    Ok(verifier.found)
}

impl<F: FnMut(VerifyProgress)> Verifier<'_, F> {
    fn find(&mut self, finding: String) {
        if self.found.findings.len() < FINDINGS_MAX {
            self.found.findings.push(finding);
        }
    }

    /// Counts an object, and keeps damage as a finding. Other errors end the verification.
    fn looked_at<T>(&mut self, read: Result<T, BackupError>) -> Result<Option<T>, BackupError> {
        self.found.objects += 1;
        let (objects_done, bytes) = (self.found.objects, self.found.bytes);
        (self.tell)(VerifyProgress { objects_done, objects: self.total.max(objects_done), bytes });
        match read {
            Ok(value) => Ok(Some(value)),
            Err(why @ BackupError::Damaged { .. }) => {
                self.find(why.to_string());
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }

    async fn base(&mut self, manifest: &BaseManifest) -> Result<(), BackupError> {
        for file in manifest.contents() {
            if !self.looked.insert(file.content) {
                continue;
            }
            self.total += 1;
            let name = layout::content(&file.content);
            if !self.reads_content {
                let is_there = self.repository.has_content(&file.content).await?;
                self.looked_at(Ok(()))?;
                if !is_there {
                    self.find(format!("object {name} of the backup is missing"));
                }
                continue;
            }
            let mut hasher = self.repository.key().hasher();
            let read = self.repository.read_to(&name, |plain| {
                hasher.update(plain);
                Ok(())
            });
            let read = read.await;
            if let Some(bytes) = self.looked_at(read)? {
                self.found.bytes += bytes;
                if hasher.finish() != file.content || bytes != file.bytes {
                    self.find(format!("object {name} of the backup is damaged: its content does not match its name"));
                }
            }
        }
        Ok(())
    }

    /// Reads the points, and looks for gaps in the logs.
    async fn points(&mut self, inventory: &Inventory) -> Result<(), BackupError> {
        let mut points = Vec::new();
        for at in &inventory.points {
            let read = self.repository.point(*at).await;
            points.extend(self.looked_at(read)?.map(|point| (*at, point.groups)));
        }
        if let Err(why) = plan(None, &points, &inventory.groups) {
            self.find(why.to_string());
        }
        self.found.restorable = restorable(&points, &inventory.groups);
        for (group, objects) in &inventory.groups {
            self.gaps(*group, objects);
        }
        Ok(())
    }

    /// Finds entries between the oldest base and the newest part that no part has.
    fn gaps(&mut self, group: GroupId, objects: &crate::restore_plan::GroupObjects) {
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

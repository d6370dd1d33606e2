//! Groups of a directory: the catalog and the shards, each with its stored state.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_cluster::{Format, read_replicas};
use assay_storage_catalog::{Catalog, CatalogConfig};
use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_model::{Applied, GroupId, ShardId};

use super::REBUILD;
use super::directory_copy::DirectoryCopy;
use super::finding::Report;

const KV_CACHE_BYTES: u64 = 8 << 20;

#[derive(Debug)]
pub struct Group {
    pub id: GroupId,
    dir: PathBuf,
}

/// Returns the groups with a directory. In a founded directory the expected groups are known: those in the node's file,
/// or all groups of a node that was always alone.
pub fn all(disk: &SharedDisk, data_dir: &Path, format: Option<Format>, report: &mut Report) -> Vec<Group> {
    let kept = match read_replicas(Arc::clone(disk), data_dir) {
        Ok(kept) => kept.filter(|_| format.is_some()),
        Err(error) => {
            report.damaged("REPLICAS", error.to_string(), REBUILD);
            None
        }
    };
    let wanted: Vec<(GroupId, PathBuf)> = match kept {
        Some(kept) => kept.into_iter().map(|(id, dir)| (id, data_dir.join(dir))).collect(),
        None => {
            let shards = format.map_or_else(|| shards_there(data_dir), |format| (0..format.shards).collect());
            let shards = shards.into_iter().map(|shard| {
                let dir = data_dir.join("shards").join(format!("{shard:03}"));
                (GroupId::of_shard(ShardId(shard)), dir)
            });
            std::iter::once((GroupId::CATALOG, data_dir.join("catalog"))).chain(shards).collect()
        }
    };
    let mut groups = Vec::new();
    for (id, dir) in wanted {
        let group = Group { id, dir };
        if group.dir.is_dir() {
            groups.push(group);
        } else if format.is_some() {
            report.damaged(&group.name(), format!("{} is missing", group.dir.display()), REBUILD);
        }
    }
    groups
}

/// Every shard that has a directory.
fn shards_there(data_dir: &Path) -> Vec<u16> {
    let entries = std::fs::read_dir(data_dir.join("shards")).into_iter().flatten().flatten();
    let mut shards: Vec<u16> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    shards.sort_unstable();
    shards
}

pub fn name_of(group: GroupId) -> String {
    match group.shard() {
        Some(shard) => format!("shard {:03}", shard.0),
        None => "catalog".to_owned(),
    }
}

impl Group {
    pub fn name(&self) -> String {
        name_of(self.id)
    }

    /// Checks the stored state of the group. Returns the end of it, if that is readable.
    pub fn check(&self, disk: &SharedDisk, report: &mut Report) -> Option<Applied> {
        let copy = match DirectoryCopy::new(&self.dir) {
            Ok(copy) => copy,
            Err(error) => {
                report.not_checked(&self.name(), format!("{} could not be copied: {error}", self.dir.display()));
                return None;
            }
        };
        match self.id.shard() {
            Some(_) => self.check_shard(disk, &copy, report),
            None => self.check_catalog(&copy, report),
        }
    }

    fn check_shard(&self, disk: &SharedDisk, copy: &DirectoryCopy, report: &mut Report) -> Option<Applied> {
        let place = self.name();
        match assay_storage_shard::check_dir(disk, copy.path()) {
            Err(error) => {
                self.tell(copy, &error, report);
                None
            }
            Ok(checked) => {
                for finding in &checked.findings {
                    report.damaged(&place, copy.about_the_original(finding), REBUILD);
                }
                if checked.findings.is_empty() {
                    report.ok(
                        &place,
                        format!("stored state of {} objects; {} segments", checked.objects, checked.segments),
                    );
                }
                Some(checked.applied)
            }
        }
    }

    fn check_catalog(&self, copy: &DirectoryCopy, report: &mut Report) -> Option<Applied> {
        // All that opening changes is in the stand-in.
        let disk: SharedDisk = Arc::new(RealDisk);
        if !copy.path().join("CURRENT").is_file() {
            report.damaged(&self.name(), format!("{} is missing", self.dir.join("CURRENT").display()), REBUILD);
            return None;
        }
        let config = CatalogConfig { disk, dir: copy.path().to_path_buf(), kv_cache_bytes: KV_CACHE_BYTES };
        match Catalog::open(config) {
            Err(error) => {
                self.tell(copy, &error, report);
                None
            }
            Ok(catalog) => {
                report.ok(&self.name(), "stored state");
                Some(catalog.sealed())
            }
        }
    }

    fn tell(&self, copy: &DirectoryCopy, error: &(dyn Error + 'static), report: &mut Report) {
        let text = copy.about_the_original(&error.to_string());
        if is_no_damage(error) {
            report.not_checked(&self.name(), text);
        } else {
            report.damaged(&self.name(), text, REBUILD);
        }
    }
}

/// Whether the cause is this machine's state and not the files'.
fn is_no_damage(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{OutOfMemory, PermissionDenied, QuotaExceeded, StorageFull};
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(error.kind(), PermissionDenied | StorageFull | QuotaExceeded | OutOfMemory);
        }
        cause = error.source();
    }
    false
}

//! Deletion of what a backup no longer needs. The decisions are those of `prune_plan`.

use std::collections::BTreeSet;

use crate::error::BackupError;
use crate::key::ContentHash;
use crate::layout::{self, Millis};
use crate::manifest::UnusedManifest;
use crate::prune_plan::{outdated, outdated_points, unused};
use crate::repository::{Repository, now};

/// Result of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub objects: u64,
    /// Content that is deleted in a day, if nothing uses it until then.
    pub unused: u64,
}

/// Deletes what no time from `keep_from` on needs.
pub async fn prune(repository: &Repository, keep_from: Millis) -> Result<Pruned, BackupError> {
    let descriptor = repository.opened().await?;
    // Content is listed first: what a later base names is then either not listed, or was unused before.
    let contents: BTreeSet<_> = repository.contents().await?.into_keys().collect();
    let inventory = repository.inventory(descriptor.shards).await?;
    let mut pruned = Pruned { objects: repository.store().remove_leftovers().await? as u64, ..Pruned::default() };
    for name in outdated(keep_from, &inventory.groups, &inventory.large) {
        repository.delete(&name).await?;
        pruned.objects += 1;
    }
    // A point before the period is read only to learn whether it is shown in lists.
    let mut points = Vec::with_capacity(inventory.points.len());
    let automatic = inventory.points.len().saturating_sub(crate::prune_plan::AUTOMATIC_POINTS_KEPT);
    for (place, at) in inventory.points.iter().enumerate() {
        let is_requested = place < automatic && *at >= keep_from && repository.point(*at).await?.is_requested;
        points.push((*at, is_requested));
    }
    for name in outdated_points(keep_from, &points) {
        repository.delete(&name).await?;
        pruned.objects += 1;
    }
    let kept = repository.inventory(descriptor.shards).await?;
    let named = repository.named_contents(&kept).await?;
    let mut lists = Vec::new();
    for at in repository.times(layout::UNUSED, None).await? {
        lists.push((at, repository.unused_list(at).await?.contents.into_iter().collect::<BTreeSet<_>>()));
    }
    let (delete, listed) = unused(now(), &contents, &named, &lists);
    for content in &delete {
        repository.delete(&layout::content(content)).await?;
        pruned.objects += 1;
    }
    pruned.unused = listed.len() as u64;
    let is_listed = |content: &ContentHash| lists.iter().any(|(_, contents)| contents.contains(content));
    let new: Vec<_> = listed.into_iter().filter(|content| !is_listed(content)).collect();
    if !new.is_empty() {
        repository.put_json(&layout::unused(now()), &UnusedManifest { contents: new }).await?;
    }
    for (at, listed) in &lists {
        // A list is over once all of its content is gone or in use.
        let is_waiting = |content| contents.contains(content) && !named.contains(content) && !delete.contains(content);
        if !listed.iter().any(is_waiting) {
            repository.delete(&layout::unused(*at)).await?;
        }
    }
    Ok(pruned)
}

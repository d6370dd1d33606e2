//! Replicas that may be damaged, queued for the reconciler that examines them.

use std::collections::BTreeSet;

use assay_storage_model::GroupId;
use assay_storage_model::sabotage::{self, Sabotage};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Queue of groups whose replica here could not be read, or sent a damaged snapshot to another one.
#[derive(Debug, Default)]
pub struct Suspects {
    waiting: Mutex<BTreeSet<GroupId>>,
    told: Notify,
}

impl Suspects {
    pub fn add(&self, group: GroupId) {
        if sabotage::is(Sabotage::RotInCompactionIsFatal) {
            return; // a reader may find the damage first
        }
        self.waiting.lock().insert(group);
        self.told.notify_one();
    }

    /// Returns the groups that were not examined yet.
    pub fn waiting(&self) -> Vec<GroupId> {
        self.waiting.lock().iter().copied().collect()
    }

    /// Waits for the next group.
    pub async fn next(&self) -> GroupId {
        loop {
            if let Some(group) = self.waiting.lock().pop_first() {
                return group;
            }
            self.told.notified().await;
        }
    }
}

//! Backups of a cluster: a continuous archive in a store outside of it, and restores.
//!
//! ```text
//! leaders ─> bases (states of groups) and parts (their logs) ─> repository ─> encrypted objects ─> store
//!            points: everything acknowledged before a time is in the store
//! store ─> plan for a time ─> bases, and the logs behind them ─> data directory of a new cluster
//! ```
//! The cluster serves meanwhile. A backup has everything that the cluster keeps: rows with all versions, records,
//! access rights, files. It contains the master keys as well, encrypted by the key of the backup, which it does not
//! contain. `node/decisions/0066-a-continuous-archive-of-logs.md` describes the design.
//!
//! | module | subject |
//! |---|---|
//! | `layout`, `manifest`, `log_part`, `sealed_object` | format of the objects |
//! | `repository` | encrypted objects in a store |
//! | `archive_line`, `archiver` | what the leader of a group stores, and when |
//! | `points` | proofs of what is in the store |
//! | `restore_plan`, `restore` | restore of a time |
//! | `prune_plan`, `prune` | deletion of what is older than wanted |
//! | `service` | the jobs of a node |
//! | `verify` | verification of all objects |

mod archive_line;
mod archiver;
mod error;
mod key;
mod layout;
mod log_part;
mod manifest;
mod pace;
mod points;
mod prune;
mod prune_plan;
mod repository;
mod restore;
mod restore_plan;
mod sealed_object;
mod service;
mod settings;
mod verify;

pub use archive_line::{FAILED_PAUSE_MAX, PART_EVERY};
pub use archiver::{ArchiveCounts, Archiver};
pub use error::BackupError;
pub use key::BackupKey;
pub use layout::Millis;
pub use manifest::{BaseManifest, Descriptor, PointManifest};
pub use pace::Pace;
pub use points::{BackupProgress, POINT_EVERY, Points};
pub use prune::{Pruned, prune};
pub use repository::{Inventory, Repository, now};
pub use restore::{RestoreProgress, RestoreTarget, Restored, plan_restore, restore};
pub use restore_plan::{restorable, time_text};
pub use service::{BackupStatus, Backups};
pub use settings::{BackupConfig, BackupSettings};
pub use verify::{Verification, VerifyProgress, verify};

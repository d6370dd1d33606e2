//! Settings of backups.

use std::path::PathBuf;
use std::time::Duration;

use assay_node_segment_store::StoreLocation;
use serde::{Deserialize, Serialize};

use crate::key::BackupKey;
use crate::pace::Pace;
use crate::repository::Repository;

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOURS_MAX: u64 = 24 * 365;
const DAYS_MAX: u64 = 100 * 365;
const MEGABYTE: u64 = 1_000_000;

/// Settings of the continuous backup. All nodes of a cluster need the same ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackupConfig {
    /// Directory or bucket of the backup: an absolute path, `s3://bucket/prefix`, `gs://bucket/prefix` or
    /// `az://container/prefix`. Without it, nothing is backed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// File with the key of the backup, the same on every node. Keep a copy of it away from the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Interval between two stored states of a group, in hours. The log is stored all the time.
    pub base_hours: u64,
    /// Days for which every second stays restorable.
    pub keep_days: u64,
    /// Upper bound of the megabytes a second that a node writes to the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub megabytes_a_second_max: Option<u64>,
}

impl Default for BackupConfig {
    fn default() -> BackupConfig {
        BackupConfig { location: None, key_file: None, base_hours: 24, keep_days: 30, megabytes_a_second_max: None }
    }
}

/// Checked settings of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSettings {
    pub location: StoreLocation,
    pub key_file: PathBuf,
    pub base_every: Duration,
    pub keep: Duration,
    pub bytes_a_second: Option<u64>,
}

impl BackupConfig {
    /// Returns the checked settings, or `None` if nothing is to be backed up.
    pub fn checked(&self) -> Result<Option<BackupSettings>, String> {
        let Some(location) = &self.location else {
            let BackupConfig { base_hours, keep_days, .. } = BackupConfig::default();
            let set = [
                ("key_file", self.key_file.is_some()),
                ("base_hours", self.base_hours != base_hours),
                ("keep_days", self.keep_days != keep_days),
                ("megabytes_a_second_max", self.megabytes_a_second_max.is_some()),
            ];
            return match set.iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => Err(format!("backup.{name} has no effect without backup.location")),
                None => Ok(None),
            };
        };
        let location = StoreLocation::parse(location).map_err(|why| format!("backup.location: {why}"))?;
        let key_file = self.key_file.clone().ok_or(
            "backup.location needs backup.key_file: `assay backup key FILE` creates a key. Keep a copy of it away from \
             the backup",
        )?;
        if !(1..=HOURS_MAX).contains(&self.base_hours) {
            return Err(format!("backup.base_hours is {}; it must be between 1 and {HOURS_MAX}", self.base_hours));
        }
        if !(1..=DAYS_MAX).contains(&self.keep_days) {
            return Err(format!("backup.keep_days is {}; it must be between 1 and {DAYS_MAX}", self.keep_days));
        }
        if self.megabytes_a_second_max == Some(0) {
            return Err("backup.megabytes_a_second_max is 0; remove it for no limit".into());
        }
        Ok(Some(BackupSettings {
            location,
            key_file,
            base_every: Duration::from_secs(self.base_hours * 3600),
            keep: DAY * u32::try_from(self.keep_days).unwrap_or(u32::MAX),
            bytes_a_second: self.megabytes_a_second_max.map(|megabytes| megabytes.saturating_mul(MEGABYTE)),
        }))
    }
}

impl BackupSettings {
    /// Opens the store with the key in the file. Sends no request to a bucket.
    pub fn open(&self) -> Result<Repository, crate::BackupError> {
        let key = BackupKey::from_file(&self.key_file, false)?;
        let store = assay_node_segment_store::open(&self.location)?;
        Ok(Repository::new(store, key, Pace::new(self.bytes_a_second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_setting() {
        let good = || BackupConfig {
            location: Some("/backups".into()),
            key_file: Some("/etc/backup.key".into()),
            ..BackupConfig::default()
        };
        assert_eq!(BackupConfig::default().checked(), Ok(None));
        let checked = good().checked().expect("settings").expect("a backup");
        assert_eq!((checked.base_every, checked.keep), (DAY, 30 * DAY));
        let refused = |config: BackupConfig| config.checked().expect_err("refused");
        assert!(refused(BackupConfig { key_file: None, ..good() }).contains("backup.key_file"));
        let without = BackupConfig { location: None, key_file: None, ..good() };
        let useless = [
            BackupConfig { key_file: good().key_file, ..without.clone() },
            BackupConfig { base_hours: 6, ..without.clone() },
            BackupConfig { keep_days: 7, ..without.clone() },
            BackupConfig { megabytes_a_second_max: Some(5), ..without },
        ];
        for config in useless {
            let why = refused(config);
            assert!(why.contains("has no effect without backup.location"), "{why}");
        }
        assert!(refused(BackupConfig { location: Some("x".into()), ..good() }).contains("backup.location"));
        assert!(refused(BackupConfig { base_hours: 0, ..good() }).contains("backup.base_hours"));
        assert!(refused(BackupConfig { keep_days: 0, ..good() }).contains("backup.keep_days"));
        let pace = Some(0);
        assert!(refused(BackupConfig { megabytes_a_second_max: pace, ..good() }).contains("megabytes_a_second_max"));
    }
}

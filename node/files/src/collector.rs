//! Background collection of files: attachments that nothing names, and uploads that never counted, are removed.
//!
//! The node that leads the catalog looks through all files from time to time. A second one that does the same at the same
//! time, as when the lead changes, does no harm.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_cluster::Cluster;
use assay_node_records::{Records, RecordsError};
use assay_storage_model::catalog::RecordKind;
use assay_storage_model::{GroupId, ObjectKey, OrgId};
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Ages, Collected, Files, FilesError};

/// Settings of the collection: the table `files` of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesConfig {
    /// Time between two rounds of the collection of files.
    pub collect_every_seconds: u64,
    /// Age at which an attachment that no row names is deleted.
    pub unnamed_seconds: u64,
    /// Age at which an upload of rows that were too large for one request is deleted.
    pub overflow_seconds: u64,
    /// Age at which an unfinished or replaced upload is deleted.
    pub upload_seconds: u64,
}

impl Default for FilesConfig {
    fn default() -> Self {
        let Ages { unnamed, overflow, upload } = Ages::default();
        FilesConfig {
            collect_every_seconds: 600,
            unnamed_seconds: unnamed,
            overflow_seconds: overflow,
            upload_seconds: upload,
        }
    }
}

impl FilesConfig {
    fn ages(&self) -> Ages {
        Ages { unnamed: self.unnamed_seconds, overflow: self.overflow_seconds, upload: self.upload_seconds }
    }
}

/// Reason why a round did not look through all files.
#[derive(Debug, Error)]
enum CollectorError {
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error("the organization {org}: {source}")]
    Organization { org: OrgId, source: FilesError },
}

/// Background job that collects the files of all organizations.
#[derive(Clone, Debug)]
pub struct Collector {
    pub cluster: Arc<Cluster>,
    pub records: Records,
    pub files: Files,
    pub config: FilesConfig,
}

impl Collector {
    /// Collects from time to time while this node leads the catalog. Never returns.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(Duration::from_secs(self.config.collect_every_seconds.max(1))).await;
            if !self.cluster.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
                continue;
            }
            match self.collect_all().await {
                Ok(Collected { files: 0, uploads: 0 }) => {}
                Ok(Collected { files, uploads }) => {
                    tracing::info!(files, uploads, "removed files that no row refers to")
                }
                Err(error) => {
                    tracing::warn!(%error, "the check for unreferenced files was incomplete; it is retried later");
                }
            }
        }
    }

    async fn collect_all(&self) -> Result<Collected, CollectorError> {
        let catalog = self.records.catalog();
        catalog.fence().await?;
        let orgs: Vec<_> = catalog.peek(|view| view.all(RecordKind::ORGANIZATION).map(|org| OrgId(org.id)).collect());
        let mut collected = Collected::default();
        for org in orgs {
            let found = self.collect_organization(org).await;
            let found = found.map_err(|source| CollectorError::Organization { org, source })?;
            collected.files += found.files;
            collected.uploads += found.uploads;
        }
        Ok(collected)
    }

    async fn collect_organization(&self, org: OrgId) -> Result<Collected, FilesError> {
        // A clock before 1970 makes nothing due.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // An object that cannot be looked up now counts as existing.
        let records = self.records.clone();
        let exists = move |object: ObjectKey| {
            let records = records.clone();
            async move { records.has_record(&object).await.unwrap_or(true) }.boxed()
        };
        self.files.collect(org, self.config.ages(), now, &exists).await
    }
}

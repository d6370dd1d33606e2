//! Files that nothing names, and uploads that never counted, are taken away. The node that leads the catalog looks through all of
//! them once in a while; a second one that does the same at the same time, as when the lead changes, does no harm.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_cluster::Cluster;
use assay_node_files::{Ages, Collected, Files};
use assay_node_records::Records;
use assay_storage_model::catalog::RecordKind;
use assay_storage_model::{GroupId, ObjectKey, OrgId};
use futures::FutureExt;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesConfig {
    /// How often files are looked through.
    pub collect_every_seconds: u64,
    /// An attachment that no object names goes after this.
    pub unnamed_seconds: u64,
    /// Rows that were uploaded because one request was too small for them go after this.
    pub overflow_seconds: u64,
    /// An upload that was not ended, or that another one replaced, goes after this.
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

#[derive(Clone)]
pub struct Collecting {
    pub cluster: Arc<Cluster>,
    pub records: Records,
    pub files: Files,
    pub config: FilesConfig,
}

impl Collecting {
    pub async fn keep(self) {
        loop {
            tokio::time::sleep(Duration::from_secs(self.config.collect_every_seconds.max(1))).await;
            if !self.cluster.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
                continue;
            }
            match self.round().await {
                Ok(Collected { files: 0, uploads: 0 }) => {}
                Ok(Collected { files, uploads }) => {
                    tracing::info!(files, uploads, "files that nothing names were taken away")
                }
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "files were not all looked through; it is tried again"
                    );
                }
            }
        }
    }

    async fn round(&self) -> anyhow::Result<Collected> {
        let catalog = self.records.catalog();
        catalog.fence().await?;
        let orgs: Vec<_> = catalog.peek(|view| view.all(RecordKind::ORGANIZATION).map(|org| OrgId(org.id)).collect());
        let mut collected = Collected::default();
        for org in orgs {
            let found = self.collect(org).await.with_context(|| format!("the organization {org}"))?;
            collected.files += found.files;
            collected.uploads += found.uploads;
        }
        Ok(collected)
    }

    async fn collect(&self, org: OrgId) -> anyhow::Result<Collected> {
        let config = &self.config;
        let ages =
            Ages { unnamed: config.unnamed_seconds, overflow: config.overflow_seconds, upload: config.upload_seconds };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
        // What cannot be said now counts as there.
        let records = self.records.clone();
        let there = move |object: ObjectKey| {
            let records = records.clone();
            async move { records.has_record(&object).await.unwrap_or(true) }.boxed()
        };
        Ok(self.files.collect(org, ages, now, &there).await?)
    }
}

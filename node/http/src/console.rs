//! Settings of the console, and the state that requests to it share.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use assay_node_bulk_jobs::BulkJobs;
use assay_node_limits::ObjectUsages;
use assay_storage_model::OrgId;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings of the web console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Whether this server serves the console at `/app`.
    pub enabled: bool,
    /// Folder that replaces the built-in console, for development.
    pub dir: Option<PathBuf>,
    /// E-mail addresses of the users who may see the state of the cluster.
    pub operators: Vec<String>,
}

impl Default for ConsoleConfig {
    fn default() -> ConsoleConfig {
        ConsoleConfig { enabled: true, dir: None, operators: Vec::new() }
    }
}

/// Source of state and usage of the whole cluster, for pages of the console.
pub trait ClusterReadings: fmt::Debug + Send + Sync {
    /// Returns the state of nodes and groups, in the form of `GET /console/cluster`.
    fn status(&self) -> BoxFuture<'static, Value>;

    /// Measures the storage of each object of an organization.
    fn usage(&self, org: OrgId) -> BoxFuture<'static, ObjectUsages>;
}

/// Console of one node.
#[derive(Clone, Debug)]
pub struct Console {
    pub config: ConsoleConfig,
    /// First eight hexadecimal digits of the cluster id.
    pub cluster: String,
    /// Name of the node that serves the console.
    pub node: String,
    pub readings: Arc<dyn ClusterReadings>,
    /// Registry of bulk jobs.
    pub jobs: Arc<BulkJobs>,
}

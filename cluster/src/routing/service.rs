//! Services between nodes that upper layers name, serve and call.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::{AskError, Service};
use assay_storage_model::NodeId;
use bytes::Bytes;

use crate::Cluster;

impl Cluster {
    /// Registers the service on this node. Without peers it is never called.
    pub fn serve(&self, service: &'static str, answers: Arc<dyn Service>) {
        self.shared.net.serve(service, answers);
    }

    pub async fn ask(
        &self,
        node: NodeId,
        service: &'static str,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        self.shared.net.ask(node, service, body, within).await
    }

    /// Sends a request that changes nothing and may be received twice.
    pub async fn ask_repeatable(
        &self,
        node: NodeId,
        service: &'static str,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        self.shared.net.ask_repeatable(node, service, body, within).await
    }
}

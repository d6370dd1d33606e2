//! Streams of chunks about groups, from the nodes that lead them.

use std::sync::Arc;
use std::time::Duration;

use assay_cluster_network::{AskError, AskStream, StreamService};
use assay_storage_model::{GroupId, NodeId};

use crate::Cluster;

impl Cluster {
    /// Registers the service on this node. Without peers it is never called.
    pub fn serve_stream(&self, service: &'static str, answers: Arc<dyn StreamService>) {
        self.shared.net.serve_stream(service, answers);
    }

    /// Opens a stream of chunks about groups from another node, on behalf of a principal, and waits for the first
    /// chunk.
    ///
    /// Each chunk may take `within`. Records the leaders that a failure names.
    pub async fn stream_about(
        &self,
        node: NodeId,
        groups: &[GroupId],
        service: &'static str,
        message: (&[u8], &[u8]),
        within: Duration,
    ) -> Result<AskStream, AskError> {
        let opened = self.shared.net.open_stream(node, service, message, within).await;
        opened.inspect_err(|error| groups.iter().for_each(|group| self.shared.note_failure(*group, node, error)))
    }
}

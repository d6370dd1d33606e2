//! Calls on behalf of a principal, with the features of the called node and the guard of this node.

use std::sync::Arc;

use assay_cluster_network::{DelegatedService, Feature, Guard, NoAnswer, ObjectAccess, ServiceNames, node_records};
use assay_storage_model::{NodeId, ObjectKey};
use bytes::Bytes;

use crate::{Cluster, Shared};

impl Cluster {
    /// Sets the guard that this node consults before it serves another node's request.
    pub fn guard_with(&self, guard: Arc<dyn Guard>) {
        self.shared.net.guard_with(Some(guard));
    }

    /// Registers the service under both of its names.
    pub fn serve_on_behalf(&self, names: ServiceNames, answers: Arc<dyn DelegatedService>) {
        self.shared.net.serve_on_behalf(names, answers);
    }

    /// Returns the service name and body for a call to the node.
    pub fn addressed(&self, node: NodeId, names: ServiceNames, principal: &[u8], body: Bytes) -> (&'static str, Bytes) {
        self.shared.addressed(node, names, principal, body)
    }

    /// Returns whether a node has announced the feature.
    pub fn has_feature(&self, node: NodeId, feature: Feature) -> bool {
        self.shared.has_feature(node, feature)
    }

    /// Checks whether a principal may access objects here, according to this node's catalog.
    pub async fn check(
        &self,
        principal: Option<Bytes>,
        access: ObjectAccess,
        objects: Vec<ObjectKey>,
    ) -> Result<(), NoAnswer> {
        self.shared.net.check_access(principal, access, objects).await
    }
}

impl Shared {
    pub fn addressed(&self, node: NodeId, names: ServiceNames, principal: &[u8], body: Bytes) -> (&'static str, Bytes) {
        names.addressed(self.has_feature(node, Feature::Principals), principal, body)
    }

    fn has_feature(&self, node: NodeId, feature: Feature) -> bool {
        let state = self.catalog.read();
        node_records::get(&state, node).and_then(|record| record.program).is_some_and(|program| program.has(feature))
    }
}

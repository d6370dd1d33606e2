//! Rotation of the cluster's authority and of the key that wraps it.
//!
//! The authority's key is wrapped once every node can read a wrapped key. It is replaced on request of an operator, and
//! wrapped again when the master key changes.

use assay_cluster_network::node_records::{self, Feature, NodeRecord};
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, Record};
use assay_storage_model::{GroupId, NodeId};
use serde::Serialize;

use crate::certificates::authority_records::{Authorities, NextAuthority};
use crate::certificates::key_wrap::KeyWrap;
use crate::certificates::node_certificates::{now_micros, record_of};
use crate::membership::operations::OperateError;
use crate::membership::upgrade::obstacles;
use crate::{Cluster, Shared};

/// Status of the cluster's authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthorityStatus {
    /// Id of the master key that wraps the authority's private key, or `None` if the catalog has it in plain text.
    pub master_key: Option<String>,
    /// Whether a rotation to another authority is in progress.
    pub rotating: bool,
    /// Nodes that the rotation waits for.
    pub waits_for: Vec<NodeId>,
}

fn failed(error: impl std::fmt::Display) -> OperateError {
    OperateError::Failed(error.to_string())
}

impl Shared {
    /// Unwraps the authority's key if a node was started without the master key. Makes the next step of a rotation if
    /// this node leads the catalog.
    pub async fn tend_authorities(&self) -> Result<(), OperateError> {
        self.open_for_all().await?;
        if !self.replicas.group(GroupId::CATALOG).is_some_and(|catalog| catalog.leads()) {
            return Ok(());
        }
        let (body, record, nodes, lacks) = {
            let state = self.catalog.read();
            let Ok((body, record)) = record_of(&state) else { return Ok(()) };
            let nodes: Vec<NodeRecord> = node_records::present(&state).collect();
            let lacks = !node_records::lacking(&state, Feature::WrappedKeys).is_empty();
            (body, record, nodes, lacks)
        };
        if let Some(stepped) = body.step(&nodes) {
            tracing::info!(
                rotating = stepped.is_rotating(),
                "the rotation of the cluster's certificate authority advances"
            );
            return self.put_authorities(&record, &stepped).await;
        }
        if let Some(keys) = &self.config.keys
            && !body.is_wrapped()
            && !lacks
            && let Some(id) = keys.ids().first()
            && node_records::without_key(&self.catalog.read(), id).is_empty()
        {
            let wrapped = wrapped(body, &**keys)?;
            self.put_authorities(&record, &wrapped).await?;
            tracing::warn!(
                "the key of the cluster's certificate authority is wrapped by the master key from now on. Earlier \
                 copies of data directories hold it in plain text: `assay admin rotate-secrets` makes them worthless"
            );
        }
        Ok(())
    }

    /// Keeps the authority's key in plain text while a node lacks the master key that wraps it.
    ///
    /// Otherwise the loss of the nodes with the master key would leave a cluster that admits no node and renews no
    /// certificate. Any node with the master key does this, because the leader of the catalog may lack it.
    async fn open_for_all(&self) -> Result<(), OperateError> {
        let Some(keys) = &self.config.keys else { return Ok(()) };
        let (body, record, without) = {
            let state = self.catalog.read();
            let Ok((body, record)) = record_of(&state) else { return Ok(()) };
            let id = body.wrapped_key.as_deref().and_then(|wrapped| keys.id_of(wrapped));
            let Some(id) = id.filter(|id| keys.ids().contains(id)) else { return Ok(()) };
            (body, record, node_records::without_key(&state, &id))
        };
        // Each step of a rotation waits for every node, and keeps the next key wrapped.
        if without.is_empty() || body.is_rotating() {
            return Ok(());
        }
        let opened = opened(body, &**keys)?;
        self.put_authorities(&record, &opened).await?;
        let nodes: Vec<String> = without.iter().map(ToString::to_string).collect();
        tracing::warn!(
            nodes = nodes.join(", "),
            "the key of the cluster's certificate authority is in the catalog in plain text, because these nodes do not \
             have the master key. Set secrets.master_key_file on them"
        );
        Ok(())
    }

    async fn put_authorities(&self, record: &Record, body: &Authorities) -> Result<(), OperateError> {
        let put = CatalogCommand::Put(PutRecord {
            kind: record.kind,
            id: record.id,
            org: record.org,
            expect: Expect::Revision(record.revision),
            keys: record.keys.clone(),
            body: serde_json::to_vec(body).expect("plain data encodes"),
            at: now_micros(),
        });
        match self.change(put).await? {
            // If another node was faster, the next check finds its result.
            CatalogOutcome::Put { .. } | CatalogOutcome::Stale { .. } => Ok(()),
            other => Err(failed(format!("the catalog answered {other:?}"))),
        }
    }
}

/// Returns the same authorities with a wrapped key.
fn wrapped(body: Authorities, keys: &dyn KeyWrap) -> Result<Authorities, OperateError> {
    let wrapped_key = keys.wrap(&Authorities::label(&body.certificate_pem), &body.key_pem).map_err(failed)?;
    Ok(Authorities { key_pem: String::new(), wrapped_key: Some(wrapped_key), ..body })
}

/// Returns the same authorities with the key in plain text, as programs before 0.5.0 kept it.
fn opened(body: Authorities, keys: &dyn KeyWrap) -> Result<Authorities, OperateError> {
    let Some(wrapped_key) = &body.wrapped_key else { return Ok(body) };
    let key_pem = keys.unwrap(&Authorities::label(&body.certificate_pem), wrapped_key).map_err(failed)?;
    Ok(Authorities { key_pem, wrapped_key: None, ..body })
}

/// Returns the same authorities with every key wrapped by the current master key, or `None` if that is already so.
fn wrapped_again(body: &Authorities, keys: &dyn KeyWrap) -> Result<Option<Authorities>, OperateError> {
    let ids = keys.ids();
    let current = ids.first();
    let is_old = |wrapped: &str| keys.id_of(wrapped).as_ref() != current;
    let again = |certificate_pem: &str, wrapped: &str| {
        let label = Authorities::label(certificate_pem);
        keys.unwrap(&label, wrapped).and_then(|plain| keys.wrap(&label, &plain)).map_err(failed)
    };
    let mut new = body.clone();
    if let Some(wrapped) = new.wrapped_key.as_mut().filter(|wrapped| is_old(wrapped)) {
        *wrapped = again(&body.certificate_pem, wrapped)?;
    }
    if let Some(next) = new.next.as_mut().filter(|next| is_old(&next.wrapped_key)) {
        next.wrapped_key = again(&next.certificate_pem, &next.wrapped_key)?;
    }
    Ok((new != *body).then_some(new))
}

impl Cluster {
    /// Returns whether every node that was not removed runs a program with this feature.
    pub fn all_nodes_have(&self, feature: Feature) -> bool {
        self.nodes_lacking(feature).is_empty()
    }

    /// Returns descriptions of the nodes that lack the feature, with their versions, or of a missing confirmation.
    pub fn nodes_lacking(&self, feature: Feature) -> Vec<String> {
        obstacles(&self.shared.catalog.read(), feature)
    }

    /// Returns the nodes that were started without the master key of this id.
    pub fn nodes_without_key(&self, id: &str) -> Vec<NodeId> {
        node_records::without_key(&self.shared.catalog.read(), id)
    }

    /// Returns the status of the cluster's authority, or `None` if there is no authority yet.
    pub fn authority_status(&self) -> Option<AuthorityStatus> {
        let state = self.shared.catalog.read();
        let (body, _) = record_of(&state).ok()?;
        let nodes: Vec<NodeRecord> = node_records::present(&state).collect();
        let keys = self.shared.config.keys.as_ref();
        let master_key = body.wrapped_key.as_deref().and_then(|wrapped| keys?.id_of(wrapped));
        Some(AuthorityStatus { master_key, rotating: body.is_rotating(), waits_for: body.waits_for(&nodes) })
    }

    /// Begins the rotation to another authority. Nodes adopt it within seconds, and [`Cluster::authority_status`]
    /// reports the progress.
    pub async fn rotate_authority(&self) -> Result<(), OperateError> {
        self.fence(GroupId::CATALOG).await?;
        let shared = &self.shared;
        let keys = shared.config.keys.as_ref().ok_or_else(|| failed("this node has no master key"))?;
        let (body, record) = record_of(&shared.catalog.read()).map_err(failed)?;
        if body.is_rotating() {
            return Ok(());
        }
        let body = if body.is_wrapped() { body } else { wrapped(body, &**keys)? };
        let (certificate_pem, wrapped_key) = shared.new_authority(&**keys).map_err(failed)?;
        let rotated = Authorities { next: Some(NextAuthority { certificate_pem, wrapped_key }), ..body };
        shared.put_authorities(&record, &rotated).await
    }

    /// Wraps the authority's key with the current master key of this node. Returns whether anything changed.
    pub async fn wrap_authority_again(&self) -> Result<bool, OperateError> {
        self.fence(GroupId::CATALOG).await?;
        let Some(keys) = &self.shared.config.keys else { return Ok(false) };
        let Ok((body, record)) = record_of(&self.shared.catalog.read()) else { return Ok(false) };
        match wrapped_again(&body, &**keys)? {
            None => Ok(false),
            Some(body) => self.shared.put_authorities(&record, &body).await.map(|()| true),
        }
    }
}

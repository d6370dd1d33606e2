//! Access to the catalog: consistent views, fences, and audited commands.
//!
//! A fence precedes refusals that a newer write could change. Each command is logged before it is executed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use assay_cluster::Cluster;
use assay_node_auth::{Ledger, Pepper};
use assay_node_secrets::{Author, KeyCatalog, PutOutcome};
use assay_storage_model::GroupId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, PutRecord, Record, RecordKind, UniqueKey};

use crate::audit::By;
use crate::authz::CatalogView;
use crate::authz::access::AccessCache;
use crate::authz::fences::Fences;
use crate::commit::unexpected;
use crate::edge;
use crate::error::RecordsError;

/// Handle of the catalog, for crates with records of their own. Clones share all state.
#[derive(Clone)]
pub struct Catalog {
    pub(crate) cluster: Arc<Cluster>,
    fences: Arc<Fences>,
    access: Arc<AccessCache>,
    /// Cached pepper, which never changes.
    pub(crate) pepper: Arc<OnceLock<Pepper>>,
    pub(crate) ledger: Arc<dyn Ledger>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").finish_non_exhaustive()
    }
}

impl Catalog {
    pub(crate) fn new(cluster: Arc<Cluster>, ledger: Arc<dyn Ledger>) -> Catalog {
        let fences = Fences::new(Arc::clone(&cluster));
        Catalog { cluster, fences, access: Arc::default(), pepper: Arc::default(), ledger }
    }

    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Refuses if this node is not connected to the catalog and therefore cannot decide on access.
    pub async fn check_heard(&self) -> Result<(), RecordsError> {
        if self.cluster.hears_catalog_soon().await {
            return Ok(());
        }
        let why = self.cluster.catalog_silence();
        Err(RecordsError::Unavailable(format!("{why}, so this node cannot check permissions; try again")))
    }

    /// Passes a shared and rate-limited fence, for requests that anyone can send.
    pub async fn paced_fence(&self) -> Result<(), RecordsError> {
        Ok(self.fences.pass().await?)
    }

    /// Evaluates `look` on the local catalog. It is evaluated again behind a fence before a refusal that newer state
    /// could change.
    pub async fn look<T>(&self, look: impl Fn(&CatalogView<'_>) -> Result<T, RecordsError>) -> Result<T, RecordsError> {
        match self.peek(&look) {
            Err(refusal) if refusal.may_be_stale() => {
                self.cluster.fence(GroupId::CATALOG).await?;
                self.peek(&look)
            }
            answer => answer,
        }
    }

    /// Returns when everything acknowledged before the call can be read here.
    pub async fn fence(&self) -> Result<(), RecordsError> {
        self.cluster.fence(GroupId::CATALOG).await?;
        Ok(())
    }

    /// Returns when everything acknowledged by other nodes before the call can be read here. A single node returns
    /// immediately.
    pub async fn fresh(&self) -> Result<(), RecordsError> {
        if !self.cluster.is_alone() {
            self.cluster.fence(GroupId::CATALOG).await?;
        }
        Ok(())
    }

    /// Evaluates `look` on one consistent view. The closure prevents a lock across an await.
    pub fn peek<T>(&self, look: impl FnOnce(&CatalogView<'_>) -> T) -> T {
        look(&CatalogView::new(&self.cluster.catalog().read(), &self.access))
    }
}

impl KeyCatalog for Catalog {
    type Error = RecordsError;

    fn find(&self, key: &UniqueKey) -> Option<Arc<Record>> {
        self.peek(|view| view.find(key).cloned())
    }

    fn all(&self, kind: RecordKind) -> Vec<Arc<Record>> {
        self.peek(|view| view.all(kind).cloned().collect())
    }

    fn legacy_secret(&self, context: &str) -> Result<[u8; 32], RecordsError> {
        self.peek(|view| self.pepper(view).map(|pepper| pepper.derive(context)))
    }

    fn now_micros(&self) -> i64 {
        edge::now_micros()
    }

    async fn fence(&self) -> Result<(), RecordsError> {
        Catalog::fence(self).await
    }

    async fn put(&self, author: Author, put: PutRecord) -> Result<PutOutcome, RecordsError> {
        let by = match author {
            Author::Operator => By::Operator,
            Author::System => By::System,
        };
        match self.propose_one(by, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => Ok(PutOutcome::Written),
            CatalogOutcome::Stale { .. } | CatalogOutcome::Taken { .. } => Ok(PutOutcome::Lost),
            other => Err(unexpected(&other)),
        }
    }
}

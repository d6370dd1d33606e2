//! Reads of the local copy of the catalog: one consistent view each, looked at again behind a fence before a refusal that
//! another node's acknowledged write could turn.

use assay_storage_model::GroupId;

use crate::Records;
use crate::authz::CatalogView;
use crate::error::RecordsError;

impl Records {
    /// Looks at the local catalog; before a refusal that fresher state could turn, once more behind a fence.
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

    /// Returns when what others acknowledged before the call can be seen here. Alone there are no others.
    pub async fn fresh(&self) -> Result<(), RecordsError> {
        if !self.cluster.is_alone() {
            self.cluster.fence(GroupId::CATALOG).await?;
        }
        Ok(())
    }

    /// One consistent view; a function, so that no lock lives across an await.
    pub fn peek<T>(&self, look: impl FnOnce(&CatalogView<'_>) -> T) -> T {
        look(&CatalogView::new(&self.cluster.catalog().read(), &self.known))
    }
}

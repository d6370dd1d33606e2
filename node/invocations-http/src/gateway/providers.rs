//! Model providers of a caller, with access to their keys.

use std::sync::Arc;

use assay_node_auth::Secret;
use assay_node_gateway::ProviderKeys;
use assay_node_http::requests::caller::Caller;
use assay_node_models::provider::Provider;
use assay_node_records::{ModelProvider, Records, RecordsError};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use uuid::Uuid;

/// Providers that a caller may use, and their keys.
#[derive(Clone, Debug)]
pub struct CallerProviders {
    pub providers: Arc<[Arc<Provider>]>,
    pub keys: Arc<dyn ProviderKeys>,
}

/// Keys of providers, which are decrypted on demand.
#[derive(Debug)]
struct RecordKeys {
    records: Records,
    providers: Vec<Arc<ModelProvider>>,
}

impl ProviderKeys for RecordKeys {
    fn key(&self, secret_id: &str) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        let found = self.providers.iter().find(|found| found.provider.id == secret_id);
        let key = found.map(|found| self.records.provider_key(found));
        ready(key.transpose().map(Option::flatten).map_err(|error| error.to_string())).boxed()
    }
}

/// Returns the providers of the caller's organization and of a project that the caller can read.
pub async fn providers_of(caller: &Caller, project: Option<Uuid>) -> Result<CallerProviders, RecordsError> {
    let records = caller.edge.records.clone();
    let found = records.model_providers(&caller.principal, project).await?;
    let providers = found.iter().map(|found| Arc::clone(&found.provider)).collect();
    Ok(CallerProviders { providers, keys: Arc::new(RecordKeys { records, providers: found }) })
}

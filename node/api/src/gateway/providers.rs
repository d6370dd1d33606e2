//! Providers of a caller, with access to their keys on the caller's behalf.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use assay_node_auth::Secret;
use assay_node_gateway::ProviderKeys;
use assay_node_http::requests::caller::Caller;
use assay_node_models::provider::{Provider, ProviderScope, ProviderType};
use assay_node_records::{ModelProvider, Records, RecordsError};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use uuid::Uuid;

/// Providers that a caller may use, and their keys.
#[derive(Clone)]
pub struct CallerProviders {
    pub providers: Arc<[Arc<Provider>]>,
    pub keys: Arc<dyn ProviderKeys>,
}

/// Keys of providers, read from the records when a call needs one.
struct RecordKeys {
    records: Records,
    providers: HashMap<String, ModelProvider>,
}

impl fmt::Debug for RecordKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordKeys({})", self.providers.len())
    }
}

impl ProviderKeys for RecordKeys {
    fn key(&self, secret_id: &str) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        let key = self.providers.get(secret_id).map(|provider| self.records.provider_key(provider));
        ready(key.transpose().map(Option::flatten).map_err(|error| error.to_string())).boxed()
    }
}

/// Returns the providers of the caller's organization, and of a project that the caller can read.
pub async fn providers_of(caller: &Caller, project: Option<Uuid>) -> Result<CallerProviders, RecordsError> {
    let records = caller.edge.records.clone();
    let found = records.model_providers(&caller.principal, project).await?;
    let providers = found.iter().filter_map(parsed).collect();
    let by_id = found.into_iter().map(|provider| (provider.id.to_string(), provider)).collect();
    let keys = RecordKeys { records, providers: by_id };
    Ok(CallerProviders { providers, keys: Arc::new(keys) })
}

/// Returns the typed view of a provider; none if its type is of a later version.
fn parsed(found: &ModelProvider) -> Option<Arc<Provider>> {
    let provider_type = ProviderType::parse(&found.provider_type)?;
    let scope = if found.project.is_some() { ProviderScope::Project } else { ProviderScope::Organization };
    let empty = serde_json::Map::new();
    let metadata = found.metadata.as_object().unwrap_or(&empty);
    let (provider, complaints) =
        Provider::parse(found.id.to_string(), found.name.clone(), provider_type, scope, metadata);
    for complaint in &complaints {
        tracing::debug!(secret = %found.id, %complaint, "a member of a provider's metadata counts as absent");
    }
    Some(Arc::new(provider))
}

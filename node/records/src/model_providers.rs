//! Providers of models: AI secrets of an organization, and environment variables of a project with a provider key.

use std::collections::HashMap;
use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Secret};
use assay_node_models::provider::{Provider, ProviderScope, ProviderType, SecretTarget, check_tls};
use assay_storage_model::catalog::Record;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Records;
use crate::authz::CatalogView;
use crate::draft::{Body, read};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::{AI_SECRET, ENV_VAR, PROJECT};
use crate::list::{ListRequest, Walk};
use crate::read::{decided, visible};
use crate::sealed_values::{SealedValue, sealed_in};

/// Upper bound of cached providers, above which the cache is cleared.
const PROVIDERS_READ_MAX: usize = 10_000;

/// Provider of models with its encrypted key.
#[derive(Debug)]
pub struct ModelProvider {
    pub provider: Arc<Provider>,
    /// Key; `None` if it was not set. A key that cannot be decoded is an error only for calls that need it.
    key: Result<Option<SealedValue>, String>,
}

impl ModelProvider {
    /// Decodes the provider of a record; `None` if this version does not know its type.
    fn read(kind: &Kind, record: &Record) -> Result<Option<ModelProvider>, RecordsError> {
        let body = read(record)?;
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let provider_type = text(type_field(kind)).and_then(ProviderType::parse);
        let (Some(name), Some(provider_type)) = (text("name"), provider_type) else { return Ok(None) };
        let is_organizations = kind.record == AI_SECRET.record;
        let scope = if is_organizations { ProviderScope::Organization } else { ProviderScope::Project };
        let empty = Map::new();
        let metadata = body.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let (provider, complaints) =
            Provider::parse(record.id.to_string(), name.to_owned(), provider_type, scope, metadata);
        for complaint in &complaints {
            tracing::debug!(secret = %record.id, %complaint, "a member of a provider's metadata counts as absent");
        }
        let key = sealed_in(kind, record, &body).map_err(|error| error.to_string());
        Ok(Some(ModelProvider { provider: Arc::new(provider), key }))
    }
}

/// Cache of decoded providers, each valid while its record is unchanged. Clones share the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadProviders(Arc<Mutex<HashMap<Uuid, ReadProvider>>>);

#[derive(Debug)]
struct ReadProvider {
    record: Arc<Record>,
    /// Decoded provider; `None` if the record is not a provider.
    provider: Option<Arc<ModelProvider>>,
}

impl ReadProviders {
    fn get(&self, kind: &Kind, record: Arc<Record>) -> Result<Option<Arc<ModelProvider>>, RecordsError> {
        let is_same = |read: &&ReadProvider| Arc::ptr_eq(&read.record, &record);
        if let Some(read) = self.0.lock().get(&record.id).filter(is_same) {
            return Ok(read.provider.clone());
        }
        let provider = ModelProvider::read(kind, &record)?.map(Arc::new);
        let mut all = self.0.lock();
        if all.len() >= PROVIDERS_READ_MAX {
            all.clear();
        }
        all.insert(record.id, ReadProvider { record, provider: provider.clone() });
        Ok(provider)
    }
}

impl Records {
    /// Returns the providers of the organization and of a project that the caller may use.
    ///
    /// Any member may use a provider of the organization, unless grants on the secret itself restrict its readers
    /// (G-07). Providers of a project require permission to read the project.
    pub async fn model_providers(
        &self,
        who: &Principal,
        project: Option<Uuid>,
    ) -> Result<Vec<Arc<ModelProvider>>, RecordsError> {
        self.catalog.fresh().await?;
        let member = self.lister(who, None).await?;
        let mut secrets = Vec::new();
        let mut walk = Walk::from_newest(&AI_SECRET, member.org);
        while !walk.is_over() {
            secrets.extend(self.catalog.peek(|view| walk.step(view, |secret| is_usable(view, &member, secret)))?);
        }
        let mut found = Vec::with_capacity(secrets.len());
        for secret in secrets {
            found.extend(self.read_providers.get(&AI_SECRET, secret)?);
        }
        if let Some(id) = project {
            self.catalog.look(|view| visible(view, who, &PROJECT, id, Permission::Read)).await?;
            let filters = vec![("object_type".into(), "project".into()), ("object_id".into(), id.to_string())];
            let variables = self.listed(who, &ENV_VAR, &ListRequest { filters, ..ListRequest::default() }).await?;
            for variable in variables {
                found.extend(self.read_providers.get(&ENV_VAR, variable)?);
            }
        }
        Ok(found)
    }

    /// Returns the settings of a project that `who` can read, or of any project for the node itself.
    pub async fn project_settings(&self, who: Option<&Principal>, project: Uuid) -> Result<Value, RecordsError> {
        let record = self.catalog.look(|view| match who {
            Some(who) => visible(view, who, &PROJECT, project, Permission::Read).map(|seen| seen.record),
            None => view.get(PROJECT.record, project).cloned().ok_or(RecordsError::NotFound("deleted project".into())),
        });
        Ok(read(record.await?.as_ref())?.remove("settings").unwrap_or_default())
    }

    /// Returns the key of a provider; `None` if it was not set. The key must not leave the node.
    pub fn provider_key(&self, provider: &ModelProvider) -> Result<Option<Secret>, RecordsError> {
        let key = provider.key.as_ref().map_err(|why| RecordsError::Internal(why.clone()))?;
        key.as_ref().map(|key| self.opened(key)).transpose()
    }
}

/// Returns whether a member of the organization may call models with this secret.
fn is_usable(view: &CatalogView<'_>, member: &Principal, secret: &Record) -> bool {
    let has_grants = view.has_grants_on(member.org, (ObjectType::AiSecret, secret.id));
    let may_read =
        || decided(view, member, &AI_SECRET, secret, Permission::Read).is_ok_and(|said| said == Decision::Allowed);
    AI_SECRET.lives(view, secret) && (has_grants.is_ok_and(|has_grants| !has_grants) || may_read())
}

/// Returns whether this type is a provider of models. A variable of such a type is a provider (G-08).
pub(crate) fn is_model_provider(secret_type: &str) -> bool {
    ProviderType::parse(secret_type).is_some()
}

/// Returns the destination of the secret of a record. Not only an address, but also the type, region and location
/// determine it.
pub(crate) fn target_of(kind: &Kind, body: &Body) -> SecretTarget {
    let named = body.get(type_field(kind)).and_then(Value::as_str).and_then(ProviderType::parse);
    // The secret of an unknown type is sent nowhere, like that of this type.
    let provider_type = named.unwrap_or(ProviderType::Js);
    let empty = Map::new();
    let metadata = body.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    SecretTarget::of(&Provider::parse("", "", provider_type, ProviderScope::Organization, metadata).0)
}

fn type_field(kind: &Kind) -> &'static str {
    if kind.record == AI_SECRET.record { "type" } else { "secret_type" }
}

/// Refuses a provider whose metadata has unusable certificates or a private key.
pub(crate) fn check_provider(type_field: &str, body: &Body) -> Result<(), RecordsError> {
    let is_provider = body.get(type_field).and_then(Value::as_str).is_some_and(is_model_provider);
    let Some(metadata) = body.get("metadata").and_then(Value::as_object).filter(|_| is_provider) else { return Ok(()) };
    check_tls(metadata).map_err(|why| RecordsError::BadRequest(format!("`{}`: {}", why.path, why.problem)))
}

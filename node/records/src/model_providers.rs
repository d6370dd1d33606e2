//! Providers of models: AI secrets of an organization, and variables of a project that hold a provider's key.

use assay_node_auth::{Permission, Principal, Secret};
use assay_node_models::provider::{Provider, ProviderScope, ProviderType, SecretTarget, check_tls};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Records;
use crate::draft::{Body, read};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::{AI_SECRET, ENV_VAR, PROJECT};
use crate::list::ListRequest;
use crate::read::{VisibleRecord, visible};

/// Provider of models without its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelProvider {
    pub id: Uuid,
    /// Project that it is for; none if it is for the organization.
    pub project: Option<Uuid>,
    pub name: String,
    pub provider_type: String,
    pub metadata: Value,
}

impl ModelProvider {
    fn of(record: &Value, project: Option<Uuid>, type_field: &str) -> Option<ModelProvider> {
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(ModelProvider {
            id: text("id")?.parse().ok()?,
            project,
            name: text("name")?,
            provider_type: text(type_field)?,
            metadata: record.get("metadata").cloned().unwrap_or_default(),
        })
    }

    fn kind(&self) -> &'static Kind {
        if self.project.is_some() { &ENV_VAR } else { &AI_SECRET }
    }
}

impl Records {
    /// Returns the providers of the organization and of a project, as far as the caller may read them. The caller needs to
    /// read the project.
    pub async fn model_providers(
        &self,
        who: &Principal,
        project: Option<Uuid>,
    ) -> Result<Vec<ModelProvider>, RecordsError> {
        let secrets = self.list(who, &AI_SECRET, &ListRequest::default()).await?;
        let mut found: Vec<_> = secrets.iter().filter_map(|secret| ModelProvider::of(secret, None, "type")).collect();
        if let Some(id) = project {
            self.catalog.look(|view| visible(view, who, &PROJECT, id, Permission::Read)).await?;
            let filters = vec![("object_type".into(), "project".into()), ("object_id".into(), id.to_string())];
            let variables = self.list(who, &ENV_VAR, &ListRequest { filters, ..ListRequest::default() }).await?;
            let providers = variables.iter().filter_map(|variable| ModelProvider::of(variable, project, "secret_type"));
            found.extend(providers.filter(|provider| is_model_provider(&provider.provider_type)));
        }
        Ok(found)
    }

    /// Returns the settings of a project that the caller can read.
    pub async fn project_settings(&self, who: &Principal, project: Uuid) -> Result<Value, RecordsError> {
        let VisibleRecord { record, .. } =
            self.catalog.look(|view| visible(view, who, &PROJECT, project, Permission::Read)).await?;
        Ok(read(&record)?.remove("settings").unwrap_or_default())
    }

    /// Returns the key of a provider, for use inside of the node: no answer ever shows it. None if no key was set.
    pub async fn provider_key(
        &self,
        who: &Principal,
        provider: &ModelProvider,
    ) -> Result<Option<Secret>, RecordsError> {
        self.secret_in(who, provider.kind(), provider.id).await
    }
}

/// Returns whether secrets of this type are keys of model providers. A variable of such a type is a provider (G-08).
pub(crate) fn is_model_provider(secret_type: &str) -> bool {
    ProviderType::parse(secret_type).is_some()
}

/// Returns where the secret of a record is sent. A change of type, region or location may lead elsewhere as well as one of an
/// address.
pub(crate) fn target_of(kind: &Kind, body: &Body) -> SecretTarget {
    let named = body.get(type_field(kind)).and_then(Value::as_str).and_then(ProviderType::parse);
    // what is no provider is sent nowhere, as this type
    let provider_type = named.unwrap_or(ProviderType::Js);
    let empty = Map::new();
    let metadata = body.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    SecretTarget::of(&Provider::parse("", "", provider_type, ProviderScope::Organization, metadata).0)
}

fn type_field(kind: &Kind) -> &'static str {
    if kind.record == AI_SECRET.record { "type" } else { "secret_type" }
}

/// Refuses a provider whose metadata has certificates that cannot be used, or a private key.
pub(crate) fn check_provider(type_field: &str, body: &Body) -> Result<(), RecordsError> {
    let is_provider = body.get(type_field).and_then(Value::as_str).is_some_and(is_model_provider);
    match body.get("metadata").and_then(Value::as_object) {
        Some(metadata) if is_provider => {
            check_tls(metadata).map_err(|why| RecordsError::BadRequest(format!("`{}`: {}", why.path, why.problem)))
        }
        _ => Ok(()),
    }
}

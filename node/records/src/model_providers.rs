//! Providers of models: AI secrets of an organization, and variables of a project that hold a provider's key.

use std::sync::Arc;

use assay_node_auth::{Decision, ObjectType, Permission, Principal, Secret};
use assay_node_models::provider::{Provider, ProviderScope, ProviderType, SecretTarget, check_tls};
use assay_storage_model::catalog::Record;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Records;
use crate::authz::CatalogView;
use crate::draft::{Body, read};
use crate::error::RecordsError;
use crate::kind::Kind;
use crate::kinds::{AI_SECRET, ENV_VAR, PROJECT};
use crate::list::{ListRequest, Walk};
use crate::read::{VisibleRecord, decided, visible};

/// Provider of models, as it was when it was listed.
#[derive(Clone, Debug)]
pub struct ModelProvider {
    pub id: Uuid,
    /// Project that it is for; none if it is for the organization.
    pub project: Option<Uuid>,
    pub name: String,
    pub provider_type: String,
    pub metadata: Value,
    /// Record with the encrypted key.
    record: Arc<Record>,
}

impl ModelProvider {
    /// Returns the provider of a record; none if the record does not name its type.
    fn of(record: Arc<Record>, project: Option<Uuid>) -> Result<Option<ModelProvider>, RecordsError> {
        let body = read(&record)?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = if project.is_some() { &ENV_VAR } else { &AI_SECRET };
        let (Some(name), Some(provider_type)) = (text("name"), text(type_field(kind))) else { return Ok(None) };
        let metadata = body.get("metadata").cloned().unwrap_or_default();
        Ok(Some(ModelProvider { id: record.id, project, name, provider_type, metadata, record }))
    }

    fn kind(&self) -> &'static Kind {
        if self.project.is_some() { &ENV_VAR } else { &AI_SECRET }
    }
}

impl Records {
    /// Returns the providers of the organization and of a project, as far as the caller may use them. Any member may use
    /// a provider of the organization, unless grants on the secret itself say who may read it (G-07). Providers of a
    /// project are for those who can read the project.
    pub async fn model_providers(
        &self,
        who: &Principal,
        project: Option<Uuid>,
    ) -> Result<Vec<ModelProvider>, RecordsError> {
        self.catalog.fresh().await?;
        let member = self.lister(who, None).await?;
        let mut secrets = Vec::new();
        let mut walk = Walk::from_newest(&AI_SECRET, member.org);
        while !walk.is_over() {
            secrets.extend(self.catalog.peek(|view| walk.step(view, |secret| is_usable(view, &member, secret)))?);
        }
        let found = secrets.into_iter().map(|secret| ModelProvider::of(secret, None));
        let mut found = found.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        if let Some(id) = project {
            self.catalog.look(|view| visible(view, who, &PROJECT, id, Permission::Read)).await?;
            let filters = vec![("object_type".into(), "project".into()), ("object_id".into(), id.to_string())];
            let variables = self.listed(who, &ENV_VAR, &ListRequest { filters, ..ListRequest::default() }).await?;
            for variable in variables {
                let provider = ModelProvider::of(variable, project)?;
                found.extend(provider.filter(|provider| is_model_provider(&provider.provider_type)));
            }
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
    pub fn provider_key(&self, provider: &ModelProvider) -> Result<Option<Secret>, RecordsError> {
        self.opened(provider.kind(), &provider.record)
    }
}

/// Returns whether a member of the organization may call models with this secret.
fn is_usable(view: &CatalogView<'_>, member: &Principal, secret: &Record) -> bool {
    let has_grants = view.has_grants_on(member.org, (ObjectType::AiSecret, secret.id));
    let may_read =
        || decided(view, member, &AI_SECRET, secret, Permission::Read).is_ok_and(|said| said == Decision::Allowed);
    AI_SECRET.lives(view, secret) && (has_grants.is_ok_and(|has_grants| !has_grants) || may_read())
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

//! Candidates of a call for a model name, in order of attempts (1.4, G-10).

mod affinity;
mod order;

use std::collections::HashSet;
use std::sync::Arc;

use crate::catalog::{Catalog, ModelSpec, WireFormat};
use crate::cooling::{CoolingKey, CoolingTable};
use crate::provider::{Provider, ProviderScope, ProviderType};

pub use affinity::session_key;
pub use order::CandidateOrder;

/// Upper bound of the provider secrets of an organization and a project together.
pub const PROVIDERS_MAX: usize = 10_000;
/// Upper bound of the candidates of one call. Further candidates are not tried.
pub const CANDIDATES_MAX: usize = 64;

/// Provider secret that may serve a call.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub provider: Arc<Provider>,
    /// Spec of the model. An undescribed model has none and uses the OpenAI format.
    pub spec: Option<Arc<ModelSpec>>,
    /// Whether the spec is from `customModels`.
    pub is_custom: bool,
    /// Name under which the model was found: the requested one, or another name of the same model.
    pub model: String,
}

impl Candidate {
    pub fn format(&self) -> WireFormat {
        self.spec.as_ref().map_or(WireFormat::OpenAi, |spec| spec.format)
    }

    /// Returns the model name for the upstream.
    pub fn upstream_model(&self) -> &str {
        self.provider.metadata.override_model.as_deref().unwrap_or(&self.model)
    }

    pub fn cooling_key(&self) -> CoolingKey {
        CoolingKey { secret_id: self.provider.id.clone(), model: self.upstream_model().to_owned() }
    }

    /// Returns whether both the provider and the model support streaming.
    pub fn supports_streaming(&self) -> bool {
        self.provider.metadata.supports_streaming && self.spec.as_ref().is_none_or(|spec| spec.supports_streaming)
    }
}

/// Candidates in order of attempts. The list is never empty.
#[derive(Clone, Debug)]
pub struct ResolvedCandidates {
    pub candidates: Vec<Candidate>,
    /// Whether all candidates are cooling. In that case, none was omitted.
    pub all_cooling: bool,
}

/// Request for the candidates of a call.
#[derive(Clone, Copy, Debug)]
pub struct RouteQuery<'a> {
    pub model: &'a str,
    /// Name of the only secret that may be used, from `x-bt-endpoint-name`.
    pub endpoint_name: Option<&'a str>,
    /// Secrets of the organization and of the project that the caller may use.
    pub providers: &'a [Arc<Provider>],
    pub catalog: &'a Catalog,
    pub order: CandidateOrder<'a>,
    pub cooling: &'a CoolingTable,
    pub now_ms: u64,
}

/// Reason why a call has no candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolutionError {
    /// Unknown model, with status 404 `model_not_found` in the caller's dialect (G-11).
    #[error("no provider secret serves the model `{model}`: add one, or add the model to one")]
    ModelNotFound { model: String },
    /// Model that only stored secrets serve, with status 400 (G-09).
    #[error("the model `{model}` is served by secrets of type `{provider_type}` only, which cannot be called")]
    NotCallable { model: String, provider_type: &'static str },
    #[error("there are more than {PROVIDERS_MAX} provider secrets")]
    TooManyProviders,
}

/// Returns the candidates of a call.
pub fn resolve(query: &RouteQuery<'_>) -> Result<ResolvedCandidates, ResolutionError> {
    if query.providers.len() > PROVIDERS_MAX {
        return Err(ResolutionError::TooManyProviders);
    }
    let providers = in_scope(query);
    let mut candidates = serving(query, &providers, query.model, true);
    // A custom model hides the catalog's model of the same name, including its other names.
    let is_shadowed = providers.iter().any(|provider| provider.metadata.custom_models.contains_key(query.model));
    if candidates.is_empty() && !is_shadowed {
        for name in query.catalog.equivalents(query.model) {
            candidates.extend(serving(query, &providers, name, false));
        }
    }
    let not_callable = candidates.iter().find(|one| !one.provider.provider_type.is_callable());
    let not_callable = not_callable.map(|one| one.provider.provider_type.name());
    candidates.retain(|one| one.provider.provider_type.is_callable());
    if candidates.is_empty() {
        let model = query.model.to_owned();
        return Err(match not_callable {
            Some(provider_type) => ResolutionError::NotCallable { model, provider_type },
            None => ResolutionError::ModelNotFound { model },
        });
    }
    order::sort(&mut candidates, query.model, query.order);
    let is_cooling = |one: &Candidate| query.cooling.is_cooling(&one.cooling_key(), query.now_ms);
    let all_cooling = candidates.iter().all(is_cooling);
    if !all_cooling {
        candidates.retain(|one| !is_cooling(one));
    }
    candidates.truncate(CANDIDATES_MAX);
    Ok(ResolvedCandidates { candidates, all_cooling })
}

/// Returns the secrets of the project, and those of the organization that they do not override.
///
/// Custom secrets override by name, and other secrets by type. Names and types are case-sensitive (trap 13).
fn in_scope<'a>(query: &RouteQuery<'a>) -> Vec<&'a Arc<Provider>> {
    let of_project = || query.providers.iter().filter(|provider| provider.scope == ProviderScope::Project);
    let types: HashSet<ProviderType> =
        of_project().filter(|provider| !provider.is_custom()).map(|provider| provider.provider_type).collect();
    let names: HashSet<&str> =
        of_project().filter(|provider| provider.is_custom()).map(|provider| provider.name.as_str()).collect();
    let is_overridden = |provider: &Provider| match provider.is_custom() {
        true => names.contains(provider.name.as_str()),
        false => types.contains(&provider.provider_type),
    };
    let is_named = |provider: &Provider| query.endpoint_name.is_none_or(|name| provider.name == name);
    let in_scope = query.providers.iter().filter(|provider| {
        (provider.scope == ProviderScope::Project || !is_overridden(provider)) && is_named(provider)
    });
    in_scope.collect()
}

/// Returns the secrets that serve a model under one name. `with_custom` includes custom models of that name.
fn serving(query: &RouteQuery<'_>, providers: &[&Arc<Provider>], model: &str, with_custom: bool) -> Vec<Candidate> {
    let known = query.catalog.find(model);
    let mut candidates = Vec::new();
    for provider in providers {
        let metadata = &provider.metadata;
        let custom = metadata.custom_models.get(model);
        if custom.is_some() && !with_custom || !metadata.allows(model) {
            continue;
        }
        let spec = custom.or(known);
        let serves = match spec {
            _ if custom.is_some() => true,
            _ if metadata.exclude_default_models => false,
            Some(spec) if !is_open(Some(spec)) => spec.is_served_by(provider.provider_type),
            _ => may_have(provider, model),
        };
        let format = spec.map_or(WireFormat::OpenAi, |spec| spec.format);
        let is_bedrock_without_format = provider.provider_type == ProviderType::Bedrock && format == WireFormat::OpenAi;
        if serves && !is_bedrock_without_format {
            candidates.push(Candidate {
                provider: Arc::clone(provider),
                spec: spec.cloned(),
                is_custom: custom.is_some(),
                model: model.to_owned(),
            });
        }
    }
    if is_open(known.map(|spec| &**spec)) {
        narrow(&mut candidates);
    }
    candidates
}

/// Returns whether the providers of a model are unknown, which applies only to the OpenAI format.
fn is_open(spec: Option<&ModelSpec>) -> bool {
    spec.is_none_or(|spec| spec.format == WireFormat::OpenAi && spec.available_providers.is_none())
}

/// Returns whether a secret may serve an open model, due to its type or its list of models.
fn may_have(provider: &Provider, model: &str) -> bool {
    let provider_type = provider.provider_type;
    WireFormat::OpenAi.usual_providers().contains(&provider_type)
        || provider_type == ProviderType::Ollama
        || (provider_type.speaks_openai() && provider.metadata.lists(model))
}

/// Narrows the candidates of an open model to the secrets that list it.
///
/// If there are none, a single secret with its own server is chosen. Users of vLLM and Ollama do not register their
/// models (G-10).
fn narrow(candidates: &mut Vec<Candidate>) {
    let says = |one: &Candidate| one.is_custom || one.provider.metadata.lists(&one.model);
    if candidates.iter().any(says) {
        candidates.retain(says);
        return;
    }
    let has_own_server = |one: &Candidate| {
        one.provider.provider_type == ProviderType::OpenAi && one.provider.metadata.api_base.is_some()
    };
    if candidates.iter().filter(|one| has_own_server(one)).count() == 1 {
        candidates.retain(has_own_server);
    }
}

#[cfg(test)]
mod tests;

//! Tests of the candidates of a call and of their order.

use serde_json::{Value, json};

use super::*;
use crate::catalog::CatalogSources;
use crate::cooling::UpstreamFailure;

const NOW: u64 = 1_795_737_600_000;

fn provider(scope: ProviderScope, name: &str, provider_type: &str, metadata: Value) -> Arc<Provider> {
    let provider_type = ProviderType::parse(provider_type).expect("a type");
    let metadata = metadata.as_object().expect("an object").clone();
    let id = format!("{}-{name}", if scope == ProviderScope::Project { "p" } else { "o" });
    let (provider, complaints) = Provider::parse(id, name, provider_type, scope, &metadata);
    assert!(complaints.is_empty(), "{complaints:?}");
    Arc::new(provider)
}

fn org(name: &str, provider_type: &str, metadata: Value) -> Arc<Provider> {
    provider(ProviderScope::Organization, name, provider_type, metadata)
}

fn project(name: &str, provider_type: &str, metadata: Value) -> Arc<Provider> {
    provider(ProviderScope::Project, name, provider_type, metadata)
}

fn query<'a>(model: &'a str, providers: &'a [Arc<Provider>], cooling: &'a CoolingTable) -> RouteQuery<'a> {
    RouteQuery {
        model,
        endpoint_name: None,
        providers,
        catalog: Catalog::built_in(),
        order: CandidateOrder::Random { seed: 1 },
        cooling,
        now_ms: NOW,
    }
}

/// Returns the names of secrets and upstream models, sorted.
fn found(query: &RouteQuery<'_>) -> Vec<String> {
    let Ok(resolved) = resolve(query) else { return Vec::new() };
    let mut found: Vec<String> =
        resolved.candidates.iter().map(|one| format!("{} {}", one.provider.name, one.upstream_model())).collect();
    found.sort();
    found
}

#[test]
fn a_secret_serves_a_model_by_its_type_or_by_defining_it() {
    let cooling = CoolingTable::new();
    let providers = [
        org("a", "openai", json!({})),
        org("b", "anthropic", json!({})),
        org("c", "azure", json!({})),
        org("d", "mistral", json!({"customModels": {"mine": {"format": "openai"}}})),
        org("e", "openai", json!({"excludeDefaultModels": true, "customModels": {"gpt-4o": {}}})),
        org("f", "google", json!({})),
    ];
    for (model, expected) in [
        ("gpt-4o", vec!["a gpt-4o", "c gpt-4o", "e gpt-4o"]),
        ("gpt-4o-mini", vec!["a gpt-4o-mini", "c gpt-4o-mini"]),
        ("claude-sonnet-4-5", vec!["b claude-sonnet-4-5"]),
        ("gemini-2.5-pro", vec!["f gemini-2.5-pro"]),
        ("mistral-large-latest", vec!["d mistral-large-latest"]),
        ("mine", vec!["d mine"]),
        ("Claude-Sonnet-4-5-thinking", vec!["b Claude-Sonnet-4-5-thinking"]),
        ("grok-4.5", vec![]),
    ] {
        assert_eq!(found(&query(model, &providers, &cooling)), expected, "{model}");
    }
}

#[test]
fn a_model_without_candidates_is_not_found() {
    let cooling = CoolingTable::new();
    let error = resolve(&query("gpt-4o", &[], &cooling)).expect_err("no candidate");
    assert_eq!(error, ResolutionError::ModelNotFound { model: "gpt-4o".to_owned() });
    let stored = [org("a", "replicate", json!({"customModels": {"m": {}}}))];
    let error = resolve(&query("m", &stored, &cooling)).expect_err("no callable candidate");
    assert_eq!(error, ResolutionError::NotCallable { model: "m".to_owned(), provider_type: "replicate" });
}

#[test]
fn lists_of_models_and_endpoint_names_filter() {
    let cooling = CoolingTable::new();
    let providers = [
        org("a", "openai", json!({"models": ["gpt-4o"]})),
        org("b", "openai", json!({"models": ["o3"]})),
        org("c", "openai", json!({})),
        org("d", "openai", json!({"models": [], "customModels": {"gpt-4o": {}}})),
    ];
    assert_eq!(found(&query("gpt-4o", &providers, &cooling)), ["a gpt-4o", "c gpt-4o"]);
    let named = |name| RouteQuery { endpoint_name: Some(name), ..query("gpt-4o", &providers, &cooling) };
    assert_eq!(found(&named("c")), ["c gpt-4o"]);
    assert!(found(&named("C")).is_empty() && found(&named("b")).is_empty());
}

#[test]
fn secrets_of_the_project_override_those_of_the_organization() {
    let cooling = CoolingTable::new();
    let custom = |note: &str| json!({"customModels": {"mine": {"description": note}}});
    let providers = [
        org("OPENAI_API_KEY", "openai", json!({})),
        org("second", "openai", json!({})),
        org("AZURE", "azure", json!({})),
        org("own", "openai", custom("o")),
        org("Own", "openai", custom("o")),
        project("ours", "openai", json!({})),
        project("own", "mistral", custom("p")),
    ];
    // Secrets are overridden by type. Custom ones stay unless their name is overridden.
    assert_eq!(found(&query("gpt-4o", &providers, &cooling)), ["AZURE gpt-4o", "Own gpt-4o", "ours gpt-4o"]);
    assert_eq!(found(&query("mine", &providers, &cooling)), ["Own mine", "own mine"]);
}

#[test]
fn a_custom_provider_of_the_project_overrides_no_default_one() {
    let cooling = CoolingTable::new();
    let providers = [
        org("a", "openai", json!({})),
        project("b", "openai", json!({"excludeDefaultModels": true, "customModels": {"mine": {}}})),
    ];
    assert_eq!(found(&query("gpt-4o", &providers, &cooling)), ["a gpt-4o"]);
}

#[test]
fn other_names_of_a_model_are_tried_if_its_own_has_no_candidate() {
    let cooling = CoolingTable::new();
    let router = [org("r", "openrouter", json!({}))];
    assert_eq!(found(&query("gpt-5.4", &router, &cooling)), ["r openai/gpt-5.4"]);
    let openai = [org("a", "openai", json!({}))];
    assert_eq!(found(&query("openai/gpt-5.4", &openai, &cooling)), ["a gpt-5.4"]);
    let both = [router[0].clone(), openai[0].clone()];
    assert_eq!(found(&query("gpt-5.4", &both, &cooling)), ["a gpt-5.4"], "its own name first");
    let bedrock = [org("b", "bedrock", json!({}))];
    let names = found(&query("claude-sonnet-4-5", &bedrock, &cooling));
    assert_eq!(names.len(), 2, "over two steps: {names:?}");
}

#[test]
fn a_custom_model_shadows_the_one_of_the_catalog() {
    let cooling = CoolingTable::new();
    let text = r#"{"x": {"available_providers": ["mistral"], "fallback_models": ["y"]}, "y": {"available_providers": ["groq"]}}"#;
    let sources = CatalogSources { operator_models: Some(text), ..CatalogSources::default() };
    let catalog = Catalog::new(sources).expect("a catalog");
    let groq = org("g", "groq", json!({}));
    // The custom `x` is filtered out, and it hides the catalog's `x` with its other names.
    let shadowing = [groq.clone(), org("a", "openai", json!({"models": [], "customModels": {"x": {}}}))];
    assert!(found(&RouteQuery { catalog: &catalog, ..query("x", &shadowing, &cooling) }).is_empty());
    // A custom `y` is a different model from the catalog's `y`.
    let other = [groq, org("a", "openai", json!({"customModels": {"y": {}}}))];
    assert_eq!(found(&RouteQuery { catalog: &catalog, ..query("x", &other, &cooling) }), ["g y"]);
}

#[test]
fn bedrock_serves_no_model_of_the_openai_format() {
    let cooling = CoolingTable::new();
    let bedrock =
        [org("b", "bedrock", json!({"customModels": {"m": {"format": "openai"}, "n": {"format": "converse"}}}))];
    assert!(found(&query("m", &bedrock, &cooling)).is_empty());
    assert_eq!(found(&query("n", &bedrock, &cooling)), ["b n"]);
}

#[test]
fn an_unknown_model_goes_to_the_only_server_of_ones_own() {
    let cooling = CoolingTable::new();
    let openai = org("a", "openai", json!({}));
    let vllm = org("v", "openai", json!({"api_base": "http://gpu:8000/v1"}));
    let second = org("w", "openai", json!({"api_base": "http://gpu:8001/v1"}));
    let closed =
        org("x", "openai", json!({"api_base": "http://x", "excludeDefaultModels": true, "customModels": {"z": {}}}));
    let model = "Qwen/Qwen3-32B";
    let of = |providers: &[Arc<Provider>]| found(&query(model, providers, &cooling)).join(", ");
    assert_eq!(of(&[openai.clone(), vllm.clone(), closed]), "v Qwen/Qwen3-32B");
    assert_eq!(of(&[openai.clone(), vllm.clone(), second]), "a Qwen/Qwen3-32B, v Qwen/Qwen3-32B, w Qwen/Qwen3-32B");
    assert_eq!(of(std::slice::from_ref(&openai)), "a Qwen/Qwen3-32B");
    let listed = org("t", "together", json!({"models": [model]}));
    assert_eq!(of(&[openai.clone(), vllm.clone(), listed]), "t Qwen/Qwen3-32B", "who says to have it");
    assert_eq!(of(&[org("o", "ollama", json!({}))]), "o Qwen/Qwen3-32B");
    assert_eq!(of(&[org("g", "groq", json!({})), org("b", "anthropic", json!({}))]), "");
    // The catalog has only a price for this model, so its providers are unknown.
    assert_eq!(found(&query("deepseek-chat", &[openai, vllm], &cooling)), ["v deepseek-chat"]);
}

#[test]
fn the_model_may_be_overridden() {
    let cooling = CoolingTable::new();
    let providers =
        [org("a", "openai", json!({"overrideModel": "real"})), org("b", "openai", json!({"overrideModel": ""}))];
    assert_eq!(found(&query("gpt-4o", &providers, &cooling)), ["a real", "b gpt-4o"]);
}

#[test]
fn low_priorities_come_first_and_zero_weights_last() {
    let cooling = CoolingTable::new();
    let providers = [
        org("late", "openai", json!({"priority": 5, "weight": 1000})),
        org("none", "openai", json!({"priority": -1, "weight": 0})),
        org("some", "openai", json!({"priority": -1, "weight": 0.001})),
        org("mid", "openai", json!({})),
    ];
    for seed in 0..50 {
        let order = CandidateOrder::Random { seed };
        let resolved = resolve(&RouteQuery { order, ..query("gpt-4o", &providers, &cooling) }).expect("candidates");
        let names: Vec<_> = resolved.candidates.iter().map(|one| one.provider.name.as_str()).collect();
        assert_eq!(names, ["some", "none", "mid", "late"]);
    }
}

#[test]
fn cooling_candidates_are_left_out_unless_all_cool() {
    let mut cooling = CoolingTable::new();
    let providers = [org("a", "openai", json!({})), org("b", "openai", json!({}))];
    let limited = UpstreamFailure::RateLimited { retry_after_ms: None };
    let key = |secret: &str| CoolingKey { secret_id: format!("o-{secret}"), model: "gpt-4o".to_owned() };
    cooling.fail(&key("a"), NOW, 1, limited);
    assert_eq!(found(&query("gpt-4o", &providers, &cooling)), ["b gpt-4o"]);
    assert_eq!(found(&query("o3", &providers, &cooling)), ["a o3", "b o3"], "another model does not cool");
    cooling.fail(&key("b"), NOW, 2, limited);
    assert_eq!(found(&query("gpt-4o", &providers, &cooling)), ["a gpt-4o", "b gpt-4o"]);
    assert!(resolve(&query("gpt-4o", &providers, &cooling)).expect("candidates").all_cooling);
    let later = RouteQuery { now_ms: NOW + 5_000, ..query("gpt-4o", &providers, &cooling) };
    assert!(!resolve(&later).expect("candidates").all_cooling, "due for a probe");
}

#[test]
fn a_call_has_so_many_candidates_at_most() {
    let cooling = CoolingTable::new();
    let many: Vec<_> = (0..CANDIDATES_MAX + 10).map(|n| org(&n.to_string(), "openai", json!({}))).collect();
    assert_eq!(found(&query("gpt-4o", &many, &cooling)).len(), CANDIDATES_MAX);
}

#[test]
fn the_order_of_a_session_stays_as_it_was_in_earlier_releases() {
    let cooling = CoolingTable::new();
    let providers: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| org(name, "openai", json!({}))).into();
    let order = CandidateOrder::Session { principal: "user", session: "s" };
    let resolved = resolve(&RouteQuery { order, ..query("gpt-4o", &providers, &cooling) }).expect("candidates");
    let names: Vec<_> = resolved.candidates.iter().map(|one| one.provider.name.as_str()).collect();
    assert_eq!(names.join(""), "dcabe", "nodes of two versions must agree during an upgrade");
}

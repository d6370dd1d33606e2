//! Tests of providers of models: their visibility to callers, and the effect of address changes on keys.

use std::sync::Arc;

use assay_node_models::provider::ProviderScope;
use assay_node_records::kinds::{ACL, AI_SECRET, ENV_VAR};
use assay_node_records::{Kind, ModelProvider};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{World, body, id_of, missing, world};

impl World {
    async fn provider(&self, kind: &'static Kind, sent: Value) -> Value {
        self.records.create(&self.owner, kind, body(sent)).await.expect("creates").object
    }
}

fn names(providers: &[Arc<ModelProvider>]) -> Vec<(&str, &str, ProviderScope)> {
    let providers = providers.iter().map(|found| &found.provider);
    providers.map(|provider| (provider.name.as_str(), provider.provider_type.name(), provider.scope)).collect()
}

#[tokio::test]
async fn providers_are_those_of_the_organization_and_of_one_project() {
    let world = world().await;
    let (p, q) = (world.project("p").await, world.project("q").await);
    world.provider(&AI_SECRET, json!({"name": "OPENAI_API_KEY", "type": "openai", "secret": "sk-of-all"})).await;
    let on = |project: Uuid, name: &str, secret_type: Option<&str>| {
        json!({"object_type": "project", "object_id": project, "name": name, "value": format!("sk-{name}"),
            "secret_type": secret_type, "metadata": {"api_base": "http://models.internal/v1"}})
    };
    let made = world.provider(&ENV_VAR, on(p, "OURS", Some("openai"))).await;
    assert_eq!(made["secret_category"], "ai_provider");
    for (name, secret_type) in [("PLAIN", None), ("OTHER", Some("pager"))] {
        assert_eq!(world.provider(&ENV_VAR, on(p, name, secret_type)).await["secret_category"], "env_var");
    }
    let other = world.provider(&ENV_VAR, on(q, "THEIRS", Some("pager"))).await;
    for (secret_type, category) in [("anthropic", "ai_provider"), ("pager", "env_var"), ("anthropic", "ai_provider")] {
        let change = body(json!({"name": "THEIRS", "secret_type": secret_type, "value": "sk-THEIRS"}));
        let changed = world.records.patch(&world.owner, &ENV_VAR, id_of(&other), change).await.expect("changes");
        assert_eq!(changed["secret_category"], category, "the category follows the type");
    }
    let of_all = ("OPENAI_API_KEY", "openai", ProviderScope::Organization);
    let found = world.records.model_providers(&world.owner, None).await.expect("lists");
    assert_eq!(names(&found), [of_all]);
    let found = world.records.model_providers(&world.owner, Some(p)).await.expect("lists");
    assert_eq!(names(&found), [of_all, ("OURS", "openai", ProviderScope::Project)]);
    assert_eq!(found[1].provider.metadata.api_base.as_deref(), Some("http://models.internal/v1"));
    for (provider, key) in found.iter().zip(["sk-of-all", "sk-OURS"]) {
        let opened = world.records.provider_key(provider).expect("opens").expect("has one");
        assert_eq!(opened.expose(), key);
    }
}

#[tokio::test]
async fn members_use_providers_unless_grants_on_them_say_who_may() {
    let world = world().await;
    let p = world.project("p").await;
    let made = world.provider(&AI_SECRET, json!({"name": "s", "type": "openai", "secret": "sk-1"})).await;
    let (ann, bob) = (world.member("ann@example.com").await, world.member("bob@example.com").await);
    let found = world.records.model_providers(&ann, None).await.expect("lists");
    assert_eq!(names(&found), [("s", "openai", ProviderScope::Organization)]);
    missing(world.records.model_providers(&ann, Some(p)).await);
    let grant = |object_type: &str, object_id: Uuid| json!({"object_type": object_type, "object_id": object_id, "user_id": ann.user, "permission": "read"});
    for grant in [grant("project", p), grant("ai_secret", id_of(&made))] {
        world.records.create(&world.owner, &ACL, body(grant)).await.expect("grants");
    }
    let found = world.records.model_providers(&ann, Some(p)).await.expect("lists");
    assert_eq!(names(&found), [("s", "openai", ProviderScope::Organization)]);
    assert!(world.records.provider_key(&found[0]).expect("opens").is_some());
    let found = world.records.model_providers(&bob, None).await.expect("lists");
    assert_eq!(names(&found), [], "the grant on it names ann");
}

#[tokio::test]
async fn a_provider_is_listed_as_its_record_is_now() {
    let world = world().await;
    let sent = json!({"name": "s", "type": "openai", "secret": "sk-1"});
    let id = id_of(&world.provider(&AI_SECRET, sent).await);
    let listed = async || {
        let found = world.records.model_providers(&world.owner, None).await.expect("lists");
        let key = world.records.provider_key(&found[0]).expect("opens").expect("has one");
        (Arc::clone(&found[0]), key.expose().to_owned())
    };
    let (first, key) = listed().await;
    assert!(Arc::ptr_eq(&first, &listed().await.0), "an unchanged record is not read again");
    assert_eq!(key, "sk-1");
    let change = json!({"name": "renamed", "secret": "sk-2", "metadata": {"models": ["m"]}});
    world.records.patch(&world.owner, &AI_SECRET, id, body(change)).await.expect("patches");
    let (second, key) = listed().await;
    assert_eq!((second.provider.name.as_str(), key.as_str()), ("renamed", "sk-2"));
    assert_eq!(second.provider.metadata.models.as_deref(), Some(["m".to_owned()].as_slice()));
    let other = json!({"type": "pager"});
    world.records.patch(&world.owner, &AI_SECRET, id, body(other)).await.expect("patches");
    let found = world.records.model_providers(&world.owner, None).await.expect("lists");
    assert_eq!(names(&found), [], "no type of a provider");
}

/// Without this, an editor could send the key to their own server.
#[tokio::test]
async fn a_key_does_not_follow_its_provider_to_another_address() {
    let world = world().await;
    let sent = json!({"name": "s", "type": "openai", "secret": "sk-1", "metadata": {"api_base": "https://a.example"}});
    let id = id_of(&world.provider(&AI_SECRET, sent).await);
    let patch = async |sent: Value| {
        let patched = world.records.patch(&world.owner, &AI_SECRET, id, body(sent)).await.expect("patches");
        let key = world.records.secret_in(&world.owner, &AI_SECRET, id).await.expect("opens");
        (key.map(|key| key.expose().to_owned()), patched["preview_secret"].clone())
    };
    let same = json!({"metadata": {"api_base": "https://a.example", "models": ["m"]}});
    assert_eq!(patch(same).await.0.as_deref(), Some("sk-1"));
    assert_eq!(patch(json!({"metadata": {"api_base": "https://b.example"}})).await, (None, Value::Null));
    let again = json!({"metadata": {"api_base": "https://c.example"}, "secret": "sk-2"});
    assert_eq!(patch(again).await.0.as_deref(), Some("sk-2"));
    assert_eq!(patch(json!({"metadata": {}})).await, (None, Value::Null));
}

#[tokio::test]
async fn a_key_follows_no_change_that_leads_to_another_server() {
    let world = world().await;
    for (kind, sent, change) in [
        (&AI_SECRET, json!({"type": "openai"}), json!({"type": "anthropic"})),
        (
            &AI_SECRET,
            json!({"type": "bedrock", "metadata": {"region": "eu-west-1"}}),
            json!({"metadata": {"region": "us-east-1"}}),
        ),
        (
            &AI_SECRET,
            json!({"type": "vertex", "metadata": {"project": "p"}}),
            json!({"metadata": {"project": "p", "location": "europe-west1"}}),
        ),
        (
            &AI_SECRET,
            json!({"type": "azure", "metadata": {"api_base": "https://a.example"}}),
            json!({"metadata": {"api_base": "https://a.example", "token_url": "https://evil.example/token"}}),
        ),
    ] {
        let mut made = body(sent.clone());
        made.insert("name".into(), sent["type"].clone());
        made.insert("secret".into(), "sk-1".into());
        let id = id_of(&world.provider(kind, Value::Object(made)).await);
        world.records.patch(&world.owner, kind, id, body(json!({"name": "renamed"}))).await.expect("patches");
        assert!(world.records.secret_in(&world.owner, kind, id).await.expect("opens").is_some(), "{sent}");
        world.records.patch(&world.owner, kind, id, body(change.clone())).await.expect("patches");
        let key = world.records.secret_in(&world.owner, kind, id).await.expect("opens");
        assert!(key.is_none(), "{sent} then {change}");
        world.records.patch(&world.owner, kind, id, body(json!({"name": change.to_string()}))).await.expect("patches");
    }
}

#[tokio::test]
async fn a_private_key_is_not_stored_in_metadata() {
    let world = world().await;
    for (kind, type_field) in [(&AI_SECRET, "type"), (&ENV_VAR, "secret_type")] {
        let mut sent = json!({"name": "s", "metadata": {"tls": {"key": "PEM"}}});
        sent[type_field] = "openai".into();
        if kind.name() == "env_var" {
            sent["object_type"] = "project".into();
            sent["object_id"] = json!(world.project("p").await);
        }
        let refused = world.records.create(&world.owner, kind, body(sent)).await.expect_err("a refusal");
        assert!(refused.to_string().contains("`metadata.tls.key`"), "{refused}");
    }
}

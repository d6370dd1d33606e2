//! Tests of budgets of model calls: their scopes and limits, and the permission to change them.

use assay_node_records::kinds::{AI_SECRET, API_KEY, GATEWAY_BUDGET};
use assay_node_records::{ListRequest, RecordsError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{World, bad, body, id_of, missing, world};

fn budget(kind: &str, id: impl ToString) -> Value {
    json!({"scope": {"type": kind, "id": id.to_string()}, "window": "day", "limit_usd": 1.5, "action": "reject"})
}

impl World {
    async fn budget(&self, sent: Value) -> Result<Value, RecordsError> {
        self.records.create(&self.owner, &GATEWAY_BUDGET, body(sent)).await.map(|made| made.object)
    }
}

#[tokio::test]
async fn a_budget_is_about_something_of_its_organization() {
    let world = world().await;
    let project = world.project("p").await;
    let ann = world.member("ann@example.com").await;
    let key = world.records.create(&world.owner, &API_KEY, body(json!({"name": "k"}))).await.expect("creates").object;
    let secret = body(json!({"name": "s", "type": "openai", "secret": "sk-1"}));
    let secret = world.records.create(&world.owner, &AI_SECRET, secret).await.expect("creates").object;
    for (kind, id) in [
        ("org", world.owner.org.0),
        ("project", project),
        ("user", ann.user),
        ("api_key", id_of(&key)),
        ("secret", id_of(&secret)),
    ] {
        let made = world.budget(budget(kind, id)).await.expect(kind);
        assert_eq!(made["scope"], json!({"type": kind, "id": id}));
        assert_eq!(made["org_id"], json!(world.owner.org.0));
        assert_eq!((&made["allow_unpriced"], &made["limit_tokens"]), (&json!(false), &Value::Null));
        bad(world.budget(budget(kind, Uuid::from_u128(5))).await, "scope.id");
    }
    bad(world.budget(budget("service_account", ann.user)).await, "no service_account");
    bad(world.budget(budget("secret", project)).await, "no secret");
    bad(world.budget(budget("project", "p")).await, "scope.id");
    bad(world.budget(budget("team", project)).await, "scope.type");
    let model = world.budget(budget("model", "vendor/any name")).await.expect("a model is a name");
    assert_eq!(model["scope"]["id"], "vendor/any name");
}

#[tokio::test]
async fn a_budget_has_a_limit_that_fits_its_action() {
    let world = world().await;
    let with = |changes: Value| {
        let mut sent = budget("model", "m");
        sent.as_object_mut().expect("an object").extend(body(changes));
        sent
    };
    bad(world.budget(with(json!({"limit_usd": null}))).await, "no limit");
    bad(world.budget(with(json!({"limit_usd": -1}))).await, "limit_usd");
    bad(world.budget(with(json!({"limit_tokens": 1.5}))).await, "limit_tokens");
    bad(world.budget(with(json!({"window": "year"}))).await, "window");
    bad(world.budget(with(json!({"action": null}))).await, "action");
    bad(world.budget(with(json!({"action": "alert", "limit_concurrent": 3}))).await, "limit_concurrent");
    let id = id_of(&world.budget(with(json!({"limit_requests": 10}))).await.expect("creates"));
    let patch = async |sent: Value| world.records.patch(&world.owner, &GATEWAY_BUDGET, id, body(sent)).await;
    let patched = patch(json!({"limit_usd": 20, "window": "month", "scope": {"type": "model", "id": "n"}})).await;
    let patched = patched.expect("patches");
    assert_eq!((&patched["limit_usd"], &patched["window"]), (&json!(20), &json!("month")));
    assert_eq!(patched["scope"]["id"], "m", "what it is about never changes");
    let cleared = patch(json!({"allow_unpriced": null})).await.expect("patches");
    assert_eq!(cleared["allow_unpriced"], false);
    let made = world.budget(with(json!({"window": "hour", "allow_unpriced": null}))).await.expect("creates");
    assert_eq!(made["allow_unpriced"], false);
    bad(patch(json!({"limit_concurrent": 1, "action": "alert"})).await, "limit_concurrent");
}

#[tokio::test]
async fn scope_window_and_action_are_unique_together() {
    let world = world().await;
    let first = world.budget(budget("model", "m")).await.expect("creates");
    let again = world.records.create(&world.owner, &GATEWAY_BUDGET, body(budget("model", "m"))).await.expect("finds");
    assert!(again.found_existing && again.object == first);
    let mut alert = budget("model", "m");
    alert["action"] = "alert".into();
    let other = world.budget(alert).await.expect("creates");
    assert_ne!(other["id"], first["id"]);
    let taken = body(json!({"action": "reject"}));
    let taken = world.records.patch(&world.owner, &GATEWAY_BUDGET, id_of(&other), taken).await;
    assert!(matches!(taken, Err(RecordsError::Taken(_))), "{taken:?}");
}

#[tokio::test]
async fn budgets_need_rights_on_the_organization_and_are_audited() {
    let world = world().await;
    let ann = world.member("ann@example.com").await;
    let refused = world.records.create(&ann, &GATEWAY_BUDGET, body(budget("model", "m"))).await;
    assert!(matches!(refused, Err(RecordsError::Forbidden(_))), "{refused:?}");
    let id = id_of(&world.budget(budget("model", "m")).await.expect("creates"));
    missing(world.records.get(&ann, &GATEWAY_BUDGET, id).await);
    let listed = world.records.list(&world.owner, &GATEWAY_BUDGET, &ListRequest::default()).await.expect("lists");
    assert_eq!(listed.len(), 1);
    let change = body(json!({"limit_usd": 2}));
    world.records.patch(&world.owner, &GATEWAY_BUDGET, id, change).await.expect("patches");
    world.records.delete(&world.owner, &GATEWAY_BUDGET, id).await.expect("deletes");
    let entries = world.kept.entries.lock();
    let of_budget = entries.iter().filter(|(_, entry)| entry["object_id"] == id.to_string());
    let found: Vec<_> = of_budget.map(|(_, entry)| (entry["action"].as_str(), &entry["details"])).collect();
    let actions: Vec<_> = found.iter().map(|(action, _)| action.expect("an action")).collect();
    assert_eq!(actions, ["create", "update", "delete"]);
    assert_eq!(found[1].1["before"]["limit_usd"], 1.5);
    assert_eq!(found[1].1["after"]["limit_usd"], 2);
}

//! Tests of patches of a record.

use assay_node_records::RecordsError;
use assay_node_records::kinds::{DATASET, EXPERIMENT, ORG_AUTOMATION, PROJECT, PROJECT_AUTOMATION};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{bad, body, id_of, missing, world};

#[tokio::test]
async fn a_patch_is_stored_and_answered() {
    let world = world().await;
    let project = world.project("p").await;
    let patch = async |sent: Value| world.records.patch(&world.owner, &PROJECT, project, body(sent)).await;
    let before = world.records.get(&world.owner, &PROJECT, project).await.expect("reads");
    let after = patch(json!({"description": "d", "settings": {"comparison_key": "id", "blind_reviews": true}})).await;
    let after = after.expect("patches");
    assert_eq!(after["settings"], json!({"comparison_key": "id", "blind_reviews": true}));
    assert_eq!(after["created"], before["created"]);
    let replaced = patch(json!({"settings": {"comparison_key": "x"}})).await.expect("patches");
    assert_eq!(replaced["settings"], json!({"comparison_key": "x"}));
    assert_eq!(replaced["description"], "d");
    assert_eq!(patch(json!({"name": null, "unknown": 1})).await.as_ref(), Ok(&replaced));
    assert_eq!(world.records.get(&world.owner, &PROJECT, project).await.as_ref(), Ok(&replaced));

    let dataset = id_of(&world.dataset(project, "d").await);
    let patch =
        async |sent: Value| world.records.patch(&world.owner, &DATASET, dataset, body(sent)).await.expect("patches");
    patch(json!({"metadata": {"a": {"b": 1}}})).await;
    assert_eq!(patch(json!({"metadata": {"a": {"c": 2}}})).await["metadata"], json!({"a": {"b": 1, "c": 2}}));
}

#[tokio::test]
async fn a_name_moves_and_frees_the_old_one() {
    let world = world().await;
    let (p, q) = (world.project("p").await, world.project("q").await);
    let rename =
        async |id, name: &str| world.records.patch(&world.owner, &PROJECT, id, body(json!({"name": name}))).await;
    let taken = rename(p, "q").await;
    assert!(matches!(&taken, Err(RecordsError::Taken(said)) if said.contains("`q`")), "{taken:?}");
    assert_eq!(rename(p, "p2").await.expect("renames")["name"], "p2");
    assert_eq!(rename(q, "p").await.expect("renames")["name"], "p");
    assert_eq!(world.project("p").await, q);
    assert_eq!(world.listed(&PROJECT, &[("project_name", "p2")]).await, ["p2"]);
    assert_eq!(world.listed(&PROJECT, &[("project_name", "q")]).await, Vec::<String>::new());
}

#[tokio::test]
async fn patches_at_once_lose_nothing() {
    let world = world().await;
    let project = world.project("p").await;
    let id = id_of(&world.experiment(project, json!({"name": "e"})).await);
    let patches = (0..6).map(|n| {
        let sent = body(json!({"metadata": {n.to_string(): n}}));
        world.records.patch(&world.owner, &EXPERIMENT, id, sent)
    });
    for patched in futures::future::join_all(patches).await {
        patched.expect("patches");
    }
    let stored = world.records.get(&world.owner, &EXPERIMENT, id).await.expect("reads");
    assert_eq!(stored["metadata"].as_object().map(serde_json::Map::len), Some(6));
}

#[tokio::test]
async fn guardrails_that_cannot_be_applied_are_refused() {
    let world = world().await;
    let project = world.project("p").await;
    let patch = async |guardrails: Value| {
        let sent = json!({"settings": {"gateway_guardrails": guardrails}});
        world.records.patch(&world.owner, &PROJECT, project, body(sent)).await
    };
    let rule = |pattern: &str| json!({"rules": [{"name": "r", "pattern": pattern, "action": "mask"}]});
    bad(patch(rule("(")).await, "`settings.gateway_guardrails.rules[0].pattern`");
    bad(patch(json!({"rules": [{"name": "r", "action": "mask"}]})).await, "`settings.gateway_guardrails.rules[0]`");
    bad(patch(json!({"allowed_models": [7]})).await, "`settings.gateway_guardrails.allowed_models");
    let stored = patch(rule("TICKET-[0-9]+")).await.expect("patches");
    assert_eq!(stored["settings"]["gateway_guardrails"], rule("TICKET-[0-9]+"));
    let cleared = patch(Value::Null).await.expect("patches");
    assert!(cleared["settings"]["gateway_guardrails"].is_null());
}

#[tokio::test]
async fn a_patch_is_refused_with_its_reason() {
    let world = world().await;
    let project = world.project("p").await;
    let patch = async |id, sent: Value| world.records.patch(&world.owner, &PROJECT, id, body(sent)).await;
    bad(patch(project, json!({"name": ""})).await, "`name`");
    bad(patch(project, json!({"settings": {"blind_reviews": 1}})).await, "`settings.blind_reviews`");
    bad(patch(project, json!({"user_id": Uuid::from_u128(9)})).await, "`user_id`");
    missing(patch(Uuid::from_u128(9), json!({"name": "x"})).await);
    let second = world.identity.admin_create_user("acme", "second@example.com").await.expect("creates");
    let handed = patch(project, json!({"user_id": second["id"]})).await.expect("patches");
    assert_eq!(handed["user_id"], second["id"]);
}

#[tokio::test]
async fn a_retention_rule_that_keeps_nothing_has_to_be_confirmed() {
    let world = world().await;
    let project = world.project("p").await;
    let config = |days: f64, confirm: Value| json!({"event_type": "retention", "object_type": "dataset", "retention_days": days, "confirm": confirm});
    for (kind, on) in [(&PROJECT_AUTOMATION, json!(project)), (&ORG_AUTOMATION, Value::Null)] {
        let rule = |name: &str, config: Value| body(json!({"name": name, "project_id": on, "config": config}));
        for (days, confirm) in [(0.0, Value::Null), (0.0, json!(false)), (1e-12, Value::Null), (0.041, Value::Null)] {
            let refused = world.records.create(&world.owner, kind, rule("r", config(days, confirm))).await;
            bad(refused, "config.confirm");
        }
        world
            .records
            .create(&world.owner, kind, rule("hour", config(0.042, Value::Null)))
            .await
            .expect("keeps an hour");
        let made = world.records.create(&world.owner, kind, rule("r", config(1.0, Value::Null))).await;
        let id = id_of(&made.expect("keeps a day").object);
        let change =
            async |config: Value| world.records.patch(&world.owner, kind, id, body(json!({"config": config}))).await;
        bad(change(config(0.0, Value::Null)).await, "config.confirm");
        bad(change(config(1e-12, json!(false))).await, "is less than an hour");
        let changed = change(config(0.0, json!(true))).await.expect("is confirmed");
        assert_eq!(changed["config"]["retention_days"], json!(0.0));
    }
}

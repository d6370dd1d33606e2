//! Gateway budgets over HTTP: records, and the usage of one.

use serde_json::{Value, json};

use crate::fixture::Fixture;

#[test]
fn a_budget_shows_the_usage_of_its_window() {
    let fixture = Fixture::open();
    let sent = json!({"scope": {"type": "model", "id": "m"}, "window": "total", "limit_usd": 2, "limit_concurrent": 3,
        "action": "reject"});
    let made = fixture.post("/v1/gateway_budget", &sent).ok();
    let id = made["id"].as_str().expect("an id");
    let nothing = |limit: Value| json!({"limit": limit, "spent": 0, "reserved": 0, "remaining": limit});
    let expected = json!({
        "budget_id": id,
        "window": "total",
        "window_start": null,
        "window_end": null,
        "usd": {"limit": 2.0, "spent": 0.0, "reserved": 0.0, "remaining": 2.0},
        "tokens": nothing(Value::Null),
        "requests": nothing(Value::Null),
        "concurrent": {"limit": 3, "running": 0},
        "exceeded": false,
    });
    assert_eq!(fixture.get(&format!("/v1/gateway_budget/{id}/usage")).ok(), expected);
    fixture.get("/v1/gateway_budget/11111111-2222-4333-8444-555555555555/usage").refused(404);
    fixture.get("/v1/gateway_budget/none/usage").refused(400);
    fixture.knock("GET", &format!("/v1/gateway_budget/{id}/usage")).refused(401);
    fixture.call("DELETE", &format!("/v1/gateway_budget/{id}"), &[], b"").ok();
    fixture.get(&format!("/v1/gateway_budget/{id}/usage")).refused(404);
}

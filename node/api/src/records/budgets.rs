//! Handler for the usage of a gateway budget.

use assay_node_budgets::{BudgetUsage, ReplicatedBudgets};
use assay_node_http::openapi::{Operation, uuid};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_records::kinds::GATEWAY_BUDGET;
use serde_json::{Value, json};

/// Handles `GET /v1/gateway_budget/{id}/usage`, for readers of the budget.
pub async fn usage(call: Call) -> HandlerResult {
    let id = call.id()?;
    // This check also waits for changes that other nodes have acknowledged.
    call.edge.records.get(&call.principal, &GATEWAY_BUDGET, id).await?;
    let catalog = ReplicatedBudgets(call.edge.records.catalog().clone());
    let missing = || {
        let said = format!("no gateway_budget with the id {id} is visible to this credential");
        Refusal::new(ErrorKind::NotFound, said)
    };
    let usage = BudgetUsage::find(id, &catalog).ok_or_else(missing)?.map_err(Refusal::internal)?;
    json(&usage.to_json())
}

/// Describes the route for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let limit = |kind: &str| {
        let amount = json!({"type": kind, "minimum": 0});
        let maybe = json!({"type": kind, "minimum": 0, "nullable": true});
        closed(&json!({"limit": maybe, "spent": amount, "reserved": amount, "remaining": maybe}))
    };
    let count = json!({"type": "integer", "minimum": 0});
    let maybe_count = json!({"type": "integer", "minimum": 0, "nullable": true});
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    let windows = json!({"type": "string", "enum": ["minute", "hour", "day", "week", "month", "total"]});
    let answer = closed(&json!({
        "budget_id": uuid(),
        "window": windows,
        "window_start": time,
        "window_end": time,
        "usd": limit("number"),
        "tokens": limit("integer"),
        "requests": limit("integer"),
        "concurrent": closed(&json!({"limit": maybe_count, "running": count})),
        "exceeded": {"type": "boolean"},
    }));
    let summary = "Show what the current window of a gateway budget has spent and reserved";
    let shown = Operation::new("get", "/v1/gateway_budget/{id}/usage", "GatewayBudgets", summary);
    vec![shown.of("gateway_budget").answers(answer)]
}

/// Returns the schema of an object whose members are all required.
fn closed(members: &Value) -> Value {
    let names: Vec<&String> = members.as_object().into_iter().flat_map(|members| members.keys()).collect();
    json!({"type": "object", "required": names, "properties": members})
}

//! Handlers of the operations on rules: their state, the scoring of older rows, and tests of a configuration (G-47).

mod backfill;
mod row_search;
mod rule_test;

use assay_node_auth::Permission;
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_online_scoring::{
    BackfillRequest, OnlineRule, OnlineRuleStatus, RuleError, RuleTestRequest, is_online_rule,
};
use assay_node_records::kinds::PROJECT_SCORE;
use assay_node_records::mechanism::{read_body, visible};
use assay_storage_model::ObjectKind;
use serde_json::{Value, json};

use crate::RunningExecutor;
use crate::run::now_ms;
use crate::status::RuleStatus;

fn refused(error: &RuleError) -> Refusal {
    Refusal::bad(error.to_string())
}

/// Returns the rule of a path that the caller may use with this permission.
async fn rule_of(call: &Call, permission: Permission) -> Result<OnlineRule, Refusal> {
    let id = call.id()?;
    let catalog = call.edge.records.catalog();
    // an answer includes the changes that other nodes have acknowledged
    catalog.fresh().await?;
    let look = catalog.look(|view| visible(view, &call.principal, &PROJECT_SCORE, id, permission));
    let record = look.await?.record;
    let mut body = read_body(&record)?;
    if !is_online_rule(&body) {
        return Err(Refusal::bad("the score is no rule of online scoring: its `score_type` is not `online`"));
    }
    body.insert("id".to_owned(), id.to_string().into());
    OnlineRule::read(&body).map_err(|error| refused(&error))
}

/// Handles `GET /v1/project_score/{id}/status`.
pub async fn status(call: Call) -> HandlerResult {
    let rule = rule_of(&call, Permission::Read).await?;
    let executor = call.edge.state.get::<RunningExecutor>().get();
    let executor = executor.ok_or_else(|| Refusal::new(ErrorKind::Unavailable, "online scoring is starting"))?;
    let log = executor.log_status(rule.project_id).await;
    let known = log.and_then(|log| log.rules.get(&rule.id).cloned());
    let mut status = known.unwrap_or_default();
    if status.counts == RuleStatus::default().counts {
        let record = crate::executor_store::peek(call.edge.records.catalog(), rule.project_id);
        if let Some(record) = record {
            let totals = record.totals.get(&rule.id).copied().unwrap_or_default();
            (status.counts.failed, status.counts.skipped) = (totals.failed, totals.skipped);
            status.counts.cost_nano_usd = record.caps.spent_nano_usd(rule.id, now_ms());
        }
    }
    let mut answer = status.to_json();
    let word = if rule.config.status == OnlineRuleStatus::Active { "active" } else { "paused" };
    answer["status"] = word.into();
    json(&answer)
}

/// Handles `POST /v1/project_score/{id}/backfill`.
pub async fn backfill(call: Call, payload: Payload) -> HandlerResult {
    let rule = rule_of(&call, Permission::Update).await?;
    let body = call.small_body(payload).await?;
    let body = if body.is_blank() { json!({}) } else { Value::Object(body.object().await?) };
    let request = BackfillRequest::read(&body).map_err(|error| refused(&error))?;
    if !rule.is_active() {
        return Err(Refusal::bad("the rule is paused: activate it before older rows are scored"));
    }
    let queued = backfill::queue(&call, &rule, &request).await?;
    json(&json!({ "queued": queued }))
}

/// Handles `POST /v1/project_score/test`. Nothing is written.
pub async fn test(call: Call, payload: Payload) -> HandlerResult {
    let body = Value::Object(call.small_body(payload).await?.object().await?);
    let request = RuleTestRequest::read(&body).map_err(|error| refused(&error))?;
    let missing = || Refusal::bad("`project_id` is missing: it names the project whose rows are scored");
    let project = request.project_id.ok_or_else(missing)?;
    let records = &call.edge.records;
    let home = records.object(&call.principal, ObjectKind::ProjectLogs, project, Permission::Read).await?;
    let results = rule_test::results(&call, home.key, &request).await?;
    json(&json!({ "results": results }))
}

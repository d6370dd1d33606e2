//! Costs of calls for budgets: the reservation before a call, and the amounts after it.

use std::time::Duration;

use assay_node_budgets::{BudgetAmounts, BudgetCall, nano_usd, nano_usd_up};
use assay_node_models::catalog::{Catalog, estimate_tokens, reserve};
use assay_node_models::resolution::Candidate;
use assay_storage_model::OrgId;
use serde_json::Value;

use crate::call::ModelCall;
use crate::outcome::CallOutcome;
use crate::upstream::output_bound;

/// Returns the reservation of a call: the highest cost among its candidates.
///
/// A call that is not settled within `timeout` releases its reservation.
pub(crate) fn budget_call(
    catalog: &Catalog,
    call: &ModelCall,
    candidates: &[Candidate],
    (now_ms, timeout): (u64, Duration),
) -> BudgetCall {
    let body = call.body.json();
    let input_tokens = estimate_tokens(call.body.bytes().len() as u64);
    let choices = body.get("n").and_then(Value::as_u64).unwrap_or(1);
    let reservations = candidates.iter().map(|candidate| {
        let spec = candidate.spec.as_deref();
        let custom = spec.filter(|_| candidate.is_custom);
        let price = catalog.call_price(custom, candidate.upstream_model(), now_ms);
        reserve(spec, price.as_ref(), input_tokens, output_bound(body), choices)
    });
    let reservations: Vec<_> = reservations.collect();
    let tokens = reservations.iter().map(|one| one.input_tokens.saturating_add(one.output_tokens)).max();
    let usd = reservations.iter().map(|one| one.usd).collect::<Option<Vec<f64>>>();
    let owner = &call.owner;
    BudgetCall {
        org: OrgId(owner.organization),
        project: owner.project,
        user: (!owner.is_service_account).then_some(owner.principal),
        service_account: owner.is_service_account.then_some(owner.principal),
        api_key: owner.credential,
        temporary: owner.temporary,
        model: call.model.clone(),
        estimate_nano_usd: usd.map(|all| nano_usd_up(all.into_iter().fold(0.0, f64::max))),
        estimate_tokens: tokens.unwrap_or(0),
        timeout,
    }
}

/// Returns the cost and the tokens of a call. A call without a price costs nothing.
pub(crate) fn amounts_of(outcome: &CallOutcome) -> BudgetAmounts {
    let tokens = outcome.usage.as_ref().map_or(0, |usage| usage.input.saturating_add(usage.output));
    BudgetAmounts { nano_usd: nano_usd(outcome.cost_usd.unwrap_or(0.0)), tokens }
}

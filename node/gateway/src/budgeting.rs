//! Costs of calls for budgets: the reservation before a call, and the amounts after it.

use std::time::Duration;

use assay_node_budgets::{BudgetAmounts, BudgetCall, nano_usd, nano_usd_up};
use assay_node_dialects::form::TokenUsage;
use assay_node_models::catalog::{CallReservation, Catalog, ModelPrice, estimate_tokens, reserve};
use assay_node_models::resolution::Candidate;
use assay_storage_model::OrgId;

use crate::call::ModelCall;
use crate::outcome::CallOutcome;
use crate::upstream::{answer_bound, output_bound};

/// Returns the reservation of a call: the highest cost among its candidates.
///
/// A call that is not settled within `timeout` releases its reservation.
pub(crate) fn budget_call(
    catalog: &Catalog,
    call: &ModelCall,
    candidates: &[Candidate],
    (now_ms, timeout): (u64, Duration),
) -> BudgetCall {
    let reservations = candidates.iter().map(|candidate| {
        let custom = candidate.spec.as_deref().filter(|_| candidate.is_custom);
        let price = catalog.call_price(custom, candidate.upstream_model(), now_ms);
        reserved(call, candidate, price.as_ref())
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

/// Returns the reservation of a call for one candidate.
fn reserved(call: &ModelCall, candidate: &Candidate, price: Option<&ModelPrice>) -> CallReservation {
    let body = call.body.json();
    let input_tokens = estimate_tokens(call.body.bytes().len() as u64);
    let max_tokens = if call.endpoint.generates() { output_bound(body) } else { Some(0) };
    reserve(candidate.spec.as_deref(), price, input_tokens, max_tokens, answer_bound(&call.endpoint, body))
}

/// Returns the usage to charge if the client leaves before any part of the answer arrives.
///
/// A server that streams stops when its reader leaves, so only the input counts, as for a stream that is left later.
/// Any other server may complete the answer, so the upper bound counts.
pub(crate) fn usage_of_left(call: &ModelCall, candidate: &Candidate, is_stream: bool) -> TokenUsage {
    let CallReservation { input_tokens, output_tokens, .. } = reserved(call, candidate, None);
    let output = if is_stream { 0 } else { output_tokens };
    TokenUsage { input: input_tokens, output, ..TokenUsage::default() }
}

/// Returns the cost and the tokens of a call. A call without a price costs nothing.
pub(crate) fn amounts_of(outcome: &CallOutcome) -> BudgetAmounts {
    let tokens = outcome.usage.as_ref().map_or(0, |usage| usage.input.saturating_add(usage.output));
    BudgetAmounts { nano_usd: nano_usd(outcome.cost_usd.unwrap_or(0.0)), tokens }
}
